//! Options for running a cluster.

use std::path::PathBuf;
use std::time::Duration;

use super::home::Home;
use crate::error::PgError;
use crate::installation::{Installation, Places};
use crate::machine_size::MachineSize;

/// An address that the server listens on besides its Unix socket, with SCRAM authentication and a
/// generated password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Address or host name; `127.0.0.1` for this machine only.
    pub address: String,
    /// TCP port, which is also the number in the socket's name.
    pub port: u16,
}

/// How to run a cluster. The default suits a cluster that has the machine to itself.
#[derive(Debug, Clone)]
pub struct Options {
    /// The programs, if they have been found already.
    pub installation: Option<Installation>,
    /// The directory with the programs, if they need not be searched for (`--pg-bin`).
    pub bin: Option<PathBuf>,
    /// The user that runs the server if the caller is root (`--pg-user`) [default: postgres].
    pub os_user: Option<String>,
    /// Where to listen for TCP; `None` for the Unix socket only.
    pub listen: Option<Listen>,
    /// The machine that settings are computed for; `None` for this one.
    pub size: Option<MachineSize>,
    /// More settings (name, value), which override ours.
    pub settings: Vec<(String, String)>,
    /// How long a start may take, recovery included.
    pub start_timeout: Duration,
    /// How long a fast shutdown may take before an immediate one follows.
    pub stop_timeout: Duration,
    /// Whether the cluster need not survive a power cut, as in tests. Creating it then skips
    /// syncing; commits are as durable as ever.
    pub short_lived: bool,
    /// Whether segments of the write-ahead log are made with the cluster, which takes about a
    /// second. Otherwise each is made when the log first reaches it, and some commit waits for
    /// that, until checkpoints have enough old ones to use again.
    pub wal_ahead: bool,
    /// Whether the server outlives its owner.
    pub leave_running: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            installation: None,
            bin: None,
            os_user: None,
            listen: None,
            size: None,
            settings: Vec::new(),
            start_timeout: Duration::from_secs(300),
            stop_timeout: Duration::from_secs(60),
            short_lived: false,
            wal_ahead: true,
            leave_running: false,
        }
    }
}

impl Options {
    /// A small, short-lived cluster, for many servers on one machine, as in tests.
    pub fn small() -> Self {
        Self {
            size: Some(MachineSize::small()),
            short_lived: true,
            wal_ahead: false,
            ..Self::default()
        }
    }

    /// Finds the programs for a cluster of major version `major`; without one, the newest.
    pub(super) fn find_installation(
        &self,
        home: &Home,
        major: Option<u32>,
    ) -> Result<Installation, PgError> {
        let found = match &self.installation {
            Some(installation) => installation.clone(),
            None => {
                let (places, bin) = (Places::system(), self.bin.as_deref());
                let fitting = Installation::find_in(&places, bin, major);
                match (fitting, major) {
                    (Err(PgError::Unsupported { found }), Some(data)) => {
                        return Err(PgError::Major {
                            dir: home.dir.clone(),
                            data,
                            found,
                        });
                    }
                    (fitting, _) => fitting?,
                }
            }
        };
        match major {
            Some(data) if data != found.version().major => Err(PgError::Major {
                dir: home.dir.clone(),
                data,
                found: found.to_string(),
            }),
            _ => Ok(found),
        }
    }
}
