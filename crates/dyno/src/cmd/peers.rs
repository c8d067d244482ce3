//! `dyno peers list|install|verify`: the programs that dyno is measured against.

use dyno_suite::{Catalogue, ChildExecutor, Peer, PeerState, Stop};
use serde_json::json;

use crate::args::{PeersArgs, PeersCommand};
use crate::exit::Exit;
use crate::progress::Spinner;
use crate::{built_in, systems, terminal};

pub fn run(args: &PeersArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        PeersCommand::List { from, json } => list(&built_in::peers(from)?, *json),
        PeersCommand::Install { names, from } => install(&built_in::peers(from)?, names, stop),
        PeersCommand::Verify { names, from } => verify(&built_in::peers(from)?, names, stop),
    }
}

fn list(catalogue: &Catalogue, as_json: bool) -> anyhow::Result<Exit> {
    let state = |peer: &Peer| match systems::state(catalogue, peer) {
        PeerState::Ready => "installed".to_string(),
        PeerState::Missing(reason) => reason,
    };
    if as_json {
        let peers: Vec<_> = catalogue
            .peers()
            .iter()
            .map(|peer| {
                json!({
                    "name": peer.name,
                    "version": peer.version,
                    "licence": peer.licence,
                    "homepage": peer.homepage,
                    "installed": systems::state(catalogue, peer) == PeerState::Ready,
                    "state": state(peer),
                })
            })
            .collect();
        terminal::print(&serde_json::to_string_pretty(&peers)?)?;
        return Ok(Exit::Done);
    }
    // With licence and homepage a row would be wider than a terminal; they are in the JSON.
    let mut table = terminal::table(&["peer", "version", "state", "needs"]);
    for peer in catalogue.peers() {
        table.add_row([
            peer.name.clone(),
            peer.version.clone(),
            state(peer),
            peer.needs.join(", "),
        ]);
    }
    terminal::print(&table.to_string())?;
    Ok(Exit::Done)
}

fn install(catalogue: &Catalogue, names: &[String], stop: &Stop) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    for peer in chosen(catalogue, names)? {
        match systems::state(catalogue, peer) {
            // A user who names no peer wants what is there in a moment, and so does a test of all.
            PeerState::Missing(_) if names.is_empty() && peer.is_compiled() => {
                eprintln!(
                    "{} {} would be compiled, which takes minutes: install it by its name",
                    peer.name, peer.version
                );
                continue;
            }
            PeerState::Ready => {
                eprintln!("{} {} is installed already", peer.name, peer.version);
                continue;
            }
            // Its program comes with the operating system and is not ours to install. The user is
            // told its name, and the other peers are still installed.
            PeerState::Missing(reason) if peer.requirements().is_empty() => {
                eprintln!(
                    "{}: {reason}; it needs {}",
                    peer.name,
                    peer.needs.join(", ")
                );
                exit = Exit::No;
                continue;
            }
            PeerState::Missing(_) => {}
        }
        let spinner = Spinner::new(&format!("installing {} {}", peer.name, peer.version));
        catalogue.install(peer)?;
        // An installed package may still not start, such as for want of a library. A peer counts as
        // installed when it has answered.
        catalogue.verify(peer, &mut ChildExecutor::default(), stop)?;
        spinner.done(&format!(
            "installed {} {} in {}",
            peer.name,
            peer.version,
            catalogue.home(peer).display()
        ));
    }
    Ok(exit)
}

fn verify(catalogue: &Catalogue, names: &[String], stop: &Stop) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    for peer in chosen(catalogue, names)? {
        // Our own rig answers for a peer that is a server or a client, and knows its version
        // whether it is here or not.
        if let PeerState::Missing(reason) = systems::state(catalogue, peer) {
            eprintln!("{}: {reason}", peer.name);
            exit = Exit::No;
            continue;
        }
        match catalogue.verify(peer, &mut ChildExecutor::default(), stop) {
            Ok(()) => eprintln!("{} {}: as declared", peer.name, peer.version),
            Err(error) => {
                eprintln!("{error}");
                exit = Exit::No;
            }
        }
    }
    Ok(exit)
}

fn chosen<'a>(catalogue: &'a Catalogue, names: &[String]) -> anyhow::Result<Vec<&'a Peer>> {
    if names.is_empty() {
        return Ok(catalogue.peers().iter().collect());
    }
    names.iter().map(|name| Ok(catalogue.peer(name)?)).collect()
}
