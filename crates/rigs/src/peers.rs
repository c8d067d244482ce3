//! The peers that rigs stand in for: protocols that our client speaks, and servers and devices that
//! have to be started for each measurement. `peers/*.toml` declares each with
//! `run = ["dyno", "rig", "--speak-as", NAME]`.

use crate::txn::EtcdNodes;
use crate::{RigError, clickhouse, kafka, pages, pubsub, resp};

/// A peer that a rig stands in for.
pub(crate) struct Peer {
    name: &'static str,
    /// The answer to a request for its version, as its TOML file declares it.
    pub version: &'static str,
    /// Returns why it cannot run on this machine.
    missing: fn() -> Option<String>,
}

/// The version of a program that is used as installed; the record of a run has the real one.
const AS_INSTALLED: &str = "as-installed";
/// The version of a peer that is a part of this program.
const AS_BUILT_IN: &str = "as-built-in";
/// The version of a peer that is a part of the kernel.
const AS_IN_KERNEL: &str = "as-in-kernel";

const PEERS: [Peer; 18] = [
    Peer {
        name: "pg-msg-bench",
        version: "8164907",
        missing: || None,
    },
    Peer {
        name: "pgbench",
        version: AS_INSTALLED,
        missing: pubsub::pgbench_missing,
    },
    Peer {
        name: "postgres",
        version: AS_INSTALLED,
        missing: pubsub::server_missing,
    },
    Peer {
        name: "postgres-serializable",
        version: AS_INSTALLED,
        missing: pubsub::server_missing,
    },
    Peer {
        name: "etcd",
        version: AS_INSTALLED,
        missing: EtcdNodes::missing,
    },
    Peer {
        name: kafka::JARS,
        version: kafka::VERSION,
        missing: kafka::missing,
    },
    Peer {
        name: kafka::FLUSH,
        version: kafka::VERSION,
        missing: kafka::missing,
    },
    Peer {
        name: kafka::AS_INSTALLED,
        version: kafka::VERSION,
        missing: kafka::missing,
    },
    Peer {
        name: kafka::NISSHI,
        version: kafka::NISSHI_VERSION,
        missing: kafka::nisshi_missing,
    },
    Peer {
        name: resp::ALWAYS,
        version: AS_INSTALLED,
        missing: resp::missing,
    },
    Peer {
        name: resp::EVERY_SECOND,
        version: AS_INSTALLED,
        missing: resp::missing,
    },
    Peer {
        name: resp::NONE,
        version: AS_INSTALLED,
        missing: resp::missing,
    },
    Peer {
        name: "clickhouse-client",
        version: AS_INSTALLED,
        missing: clickhouse::peer_missing,
    },
    Peer {
        name: "zram-lz4",
        version: AS_IN_KERNEL,
        missing: || pages::zram_missing("lz4"),
    },
    Peer {
        name: "zram-lzo-rle",
        version: AS_IN_KERNEL,
        missing: || pages::zram_missing("lzo-rle"),
    },
    Peer {
        name: "tmpfs",
        version: AS_IN_KERNEL,
        missing: || None,
    },
    Peer {
        name: pages::PLAIN_PAGER,
        version: AS_BUILT_IN,
        missing: || None,
    },
    Peer {
        name: pages::PAGE_CACHE,
        version: AS_IN_KERNEL,
        missing: || None,
    },
];

/// # Errors
/// No rig stands in for a peer of this name.
pub(crate) fn find(name: &str) -> Result<&'static Peer, RigError> {
    PEERS
        .iter()
        .find(|peer| peer.name == name)
        .ok_or_else(|| unknown(name))
}

/// The error for a peer that no rig stands in for, or not in this workload.
pub(crate) fn unknown(name: &str) -> RigError {
    let names = PEERS.each_ref().map(|peer| peer.name);
    RigError::Unknown(dyno_suite::Error::unknown("peer", name, &names))
}

/// Why a peer that a rig stands in for cannot run on this machine. `None` if it can, and for peers
/// that are programs of their own.
pub fn missing(peer: &str) -> Option<String> {
    find(peer).ok().and_then(|peer| (peer.missing)())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use dyno_suite::Catalogue;

    use super::PEERS;

    /// Both ways: a declared peer without a rig fails when it is run, and a rig without a
    /// declaration is never run.
    #[test]
    fn every_peer_that_is_declared_has_its_rig_and_every_rig_its_declaration() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers");
        let catalogue = Catalogue::from_dir(&folder, &folder).unwrap();
        let declared: BTreeMap<String, String> = catalogue
            .peers()
            .iter()
            .filter(|peer| peer.run.iter().any(|word| word == "--speak-as"))
            .map(|peer| (peer.run.last().unwrap().clone(), peer.version.clone()))
            .collect();
        let known: BTreeMap<String, String> = PEERS
            .iter()
            .map(|peer| (peer.name.to_owned(), peer.version.to_owned()))
            .collect();
        assert_eq!(declared, known);
    }
}
