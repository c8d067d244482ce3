//! How a cluster is to be run.

use std::path::PathBuf;
use std::time::Duration;

use super::home::Home;
use crate::error::PgError;
use crate::installation::{Installation, Places};
use crate::machine_size::MachineSize;

/// An address that the server listens on besides its Unix socket; scram with a generated password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Address or host name; `127.0.0.1` for this machine only.
    pub address: String,
    /// Port.
    pub port: u16,
}

/// How to run a cluster. The default is right for a cluster on a machine of its own.
#[derive(Debug, Clone)]
pub struct Options {
    /// The programs, when they are known already.
    pub installation: Option<Installation>,
    /// The folder of the programs, when it is not to be looked for (`--pg-bin`).
    pub bin: Option<PathBuf>,
    /// The user who runs the server when root asks; `postgres` without one (`--pg-user`).
    pub os_user: Option<String>,
    /// TCP, when it is wanted.
    pub listen: Option<Listen>,
    /// The machine that settings are for; this one when it is not given.
    pub size: Option<MachineSize>,
    /// More settings (name, value), which come after ours and so win.
    pub settings: Vec<(String, String)>,
    /// How long a start may take, recovery included.
    pub start_timeout: Duration,
    /// How long a polite stop may take before the server is stopped at once.
    pub stop_timeout: Duration,
    /// Whether the cluster is gone after a power cut anyway, as a test's: making it then skips the
    /// syncing. Commits are as durable as ever.
    pub short_lived: bool,
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
            leave_running: false,
        }
    }
}

impl Options {
    /// A modest and short-lived one, for many servers on one machine, as in tests.
    pub fn small() -> Self {
        Self {
            size: Some(MachineSize::small()),
            short_lived: true,
            ..Self::default()
        }
    }

    /// The programs for a cluster of major version `major`, or the newest for a new one.
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
