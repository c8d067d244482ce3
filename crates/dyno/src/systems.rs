//! Chooses the systems that take part in a suite, and names those that are missing.

use dyno_record::Size;
use dyno_suite::{Catalogue, Definition, Peer, PeerState, Planned, System};

use crate::args::PeersFrom;
use crate::{built_in, identity};

/// The systems of a run.
pub struct Chosen {
    /// `dyno` first; those missing say why.
    pub systems: Vec<System>,
    /// Names of the peers that can take part.
    pub peers: Vec<String>,
}

impl Chosen {
    /// A suite expanded for them, with which of the peers promise less than `dyno`.
    pub fn plan(&self, suite: &Definition, size: Size) -> Result<Planned, dyno_suite::Error> {
        let mut planned = Planned::new(suite, size, &self.peers)?;
        planned.note_lesser_promises(&self.systems);
        Ok(planned)
    }
}

/// Whether a peer can take part: what is declared is installed, and what it drives is on this
/// machine.
pub fn state(catalogue: &Catalogue, peer: &Peer) -> PeerState {
    match catalogue.state(peer) {
        PeerState::Ready => match dyno_rigs::peer_missing(&peer.name) {
            None => PeerState::Ready,
            // The reason names what is missing. Where that is the peer itself, a message has named
            // it already.
            Some(reason) => {
                let own = format!("{}: ", peer.name);
                PeerState::Missing(reason.strip_prefix(&own).unwrap_or(&reason).to_owned())
            }
        },
        missing => missing,
    }
}

/// `dyno`, and the suite's peers as they are declared at `peers`; without that only `dyno`.
pub fn choose(suite: &Definition, peers: Option<&PeersFrom>) -> anyhow::Result<Chosen> {
    let mut systems = vec![identity::system()?];
    if let Some(from) = peers {
        let catalogue = built_in::peers(from)?;
        for name in suite.peers() {
            let peer = catalogue.peer(&name)?;
            let mut system = catalogue.system(peer);
            system.missing = match state(&catalogue, peer) {
                PeerState::Ready => None,
                PeerState::Missing(reason) => Some(reason),
            };
            systems.push(system);
        }
    }
    let peers = systems[1..]
        .iter()
        .filter(|system| system.missing.is_none())
        .map(|system| system.name.clone())
        .collect();
    Ok(Chosen { systems, peers })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_the_file_of_a_peer_says_of_its_promises_is_in_the_plan() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let suite = Definition::read(&repository.join("suites/ycsb.toml")).expect("a suite");
        let catalogue = Catalogue::from_dir(&repository.join("peers"), Path::new("/nowhere"));
        let catalogue = catalogue.expect("peers");
        let peers = suite.peers();
        let systems = peers
            .iter()
            .map(|name| catalogue.system(catalogue.peer(name).expect("declared")))
            .collect();
        let chosen = Chosen { systems, peers };
        let planned = chosen.plan(&suite, Size::Quick).expect("it expands");
        for case in &planned.plan.cases {
            assert_eq!(case.rivals().collect::<Vec<_>>(), ["redis-always"]);
            assert!(case.promises_less["redis-none"].contains("no log"));
        }
    }
}
