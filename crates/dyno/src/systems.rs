//! Which systems take part in a suite, and which are missing.

use dyno_suite::{Definition, System};

use crate::args::SelectArgs;
use crate::{built_in, identity};

/// The systems of a run.
pub struct Chosen {
    /// `dyno` first; those missing say why.
    pub systems: Vec<System>,
    /// Names of the peers that can take part.
    pub peers: Vec<String>,
}

/// `dyno`, and the suite's peers when they were asked for.
pub fn choose(suite: &Definition, select: &SelectArgs) -> anyhow::Result<Chosen> {
    let mut systems = vec![identity::system()?];
    if select.peers {
        let catalogue = built_in::peers(&select.peers_from)?;
        for name in suite.peers() {
            let mut system = catalogue.system(catalogue.peer(&name)?);
            let missing = || dyno_rigs::peer_missing(&name);
            system.missing = system.missing.or_else(missing);
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
