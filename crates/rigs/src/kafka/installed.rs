//! What `dyno peers install` has fetched for these workloads: the jars of Apache Kafka, and Nisshi.

use std::path::PathBuf;
use std::process::Command;

use dyno_suite::{Catalogue, Peer, PeerState, peers_root};

use super::{JARS, NISSHI};
use crate::process::ProcessError;

/// The declarations, of which the program holds a copy, so that a rig finds what they install.
const FILES: [(&str, &str); 2] = [
    (
        "apache-kafka.toml",
        include_str!("../../../../peers/apache-kafka.toml"),
    ),
    ("nisshi.toml", include_str!("../../../../peers/nisshi.toml")),
];

/// Java with the jars as its class path.
pub(super) fn java() -> Result<Command, ProcessError> {
    let (catalogue, peer) = declared(JARS)?;
    let mut command = Command::new("java");
    command
        .arg("-cp")
        .arg(catalogue.jars(&peer).join("*"))
        // Warnings go to standard error, of which the end is shown when a program fails.
        .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn");
    Ok(command)
}

/// Where the program of Nisshi is.
pub(super) fn nisshi() -> Result<PathBuf, ProcessError> {
    let (catalogue, peer) = declared(NISSHI)?;
    Ok(catalogue.program(&peer, NISSHI))
}

/// Why the clients and servers of Apache Kafka cannot run on this machine; `None` if they can.
pub(crate) fn jars_missing() -> Option<String> {
    missing(JARS).or_else(|| {
        let java = Command::new("java").arg("-version").output();
        let text = "java: it is not installed (Debian: openjdk-17-jre-headless)";
        java.is_err().then(|| text.to_owned())
    })
}

/// Why a peer that has to be installed is not there; `None` if it is.
pub(super) fn missing(name: &str) -> Option<String> {
    match declared(name) {
        Ok((catalogue, peer)) => match catalogue.state(&peer) {
            PeerState::Missing(reason) => Some(format!("{name}: {reason}")),
            PeerState::Ready => None,
        },
        Err(error) => Some(error.to_string()),
    }
}

fn declared(name: &str) -> Result<(Catalogue, Peer), ProcessError> {
    let known = |error: dyno_suite::Error| ProcessError::program(name, error.to_string());
    let root = peers_root().ok_or_else(|| {
        let reason = "neither XDG_DATA_HOME nor HOME is set; set one of them";
        ProcessError::program(name, reason)
    })?;
    let catalogue = Catalogue::built_in(&FILES, &root).map_err(known)?;
    let peer = catalogue.peer(name).map_err(known)?.clone();
    Ok((catalogue, peer))
}
