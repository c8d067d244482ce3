//! `dyno pages serve`: a store for NBD clients, here or on other machines.

use std::fmt::Write;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use dyno_pages::{Background, Store};
use dyno_pages_disk::Disk;
use dyno_pages_nbd::{Clients, Export, Exports, Options, Server, Tls};
use dyno_pubsub_broker::serve::tls;
use dyno_suite::Stop;

use super::control::{self, Asked};
use super::place::Place;
use super::{metrics, store};
use crate::args::{PagesServeArgs, PagesStoreArgs};
use crate::exit::Exit;
use crate::terminal;

/// Between two looks whether to stop.
const TICK: Duration = Duration::from_millis(50);

pub fn run(args: &PagesServeArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let place = Place::of(&args.name)?;
    let file = store::file_of(&args.store)?;
    place.make()?;
    let store = Arc::new(Store::create(store::settings(&args.store, file.as_ref())?)?);
    // The store has it open by itself now.
    drop(file);
    let disk = Arc::new(Disk::new(Arc::clone(&store)));
    let asked = Asked {
        disk: Arc::clone(&disk),
        fixed: false,
    };
    control::listen(&place.control(), asked)?;
    let PagesStoreArgs {
        idle,
        cpu,
        writeback,
        ..
    } = args.store;
    let schedule = store::schedule(idle, cpu, writeback);
    let background = Background::start(Arc::clone(&store), schedule)?;
    let export = Export {
        name: args.name.clone(),
        description: "compressed pages in memory".to_string(),
        disk,
        read_only: false,
    };
    let options = Options {
        tls: server_tls(args)?,
        open_to_all: args.open_to_all,
        ..Options::default()
    };
    let address = args.nbd.parse().context("--nbd")?;
    let mut server = Server::start(&address, Exports::new(vec![export])?, options)?;
    let mut text = format!("listening at {}\n", server.address());
    let endpoint = args
        .metrics
        .map(|at| metrics::endpoint(at, &store))
        .transpose()?;
    if let Some(endpoint) = &endpoint {
        // Writing to a text does not fail.
        let _ = writeln!(text, "metrics at http://{}/metrics", endpoint.address());
    }
    terminal::print(&text)?;
    while !stop.asked() {
        thread::sleep(TICK);
    }
    server.stop();
    background.stop()?;
    place.remove()?;
    Ok(Exit::Done)
}

fn server_tls(args: &PagesServeArgs) -> anyhow::Result<Option<Tls>> {
    let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) else {
        return Ok(None);
    };
    Ok(Some(match &args.tls_clients {
        None => Tls {
            config: tls::server(certificate, key)?,
            clients: Clients::Anybody,
        },
        Some(roots) => Tls {
            config: tls::server_for(roots, certificate, key)?,
            clients: Clients::Certified,
        },
    }))
}
