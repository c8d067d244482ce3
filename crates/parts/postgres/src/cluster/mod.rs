//! A private cluster: a directory with a server in it that this process owns, starts and stops.

mod conf;
mod create;
mod home;
mod identity;
mod lifecycle;
mod options;
mod postmaster;
mod processes;
mod wal_ahead;

use std::fs::File;
use std::path::Path;
use std::process::Child;

use crate::dsn::Dsn;
use crate::error::PgError;
use crate::installation::Installation;
use crate::os::Owner;
pub(crate) use create::run;
use home::Home;
pub(crate) use identity::{Identity, Role};
pub use options::{Listen, Options};
pub use processes::Pids;

/// The superuser of a private cluster, which owns every object in it.
const SUPERUSER: &str = "dyno";
/// The database that initdb makes. Another name would mean a second copy of it.
const DATABASE: &str = "postgres";

/// A private cluster, its server running. Dropping it stops the server, unless
/// [`Options::leave_running`] is set; [`Cluster::stop`] does so and says how it went. When this
/// process is killed the kernel asks the server to stop.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) home: Home,
    pub(crate) owner: Owner,
    pub(crate) installation: Installation,
    pub(crate) identity: Identity,
    pub(crate) options: Options,
    /// The server process, if this process started it.
    server: Option<Child>,
    /// Length of the log before the server was started, so that errors quote only what came after.
    logged: u64,
    /// The locked file; closing it ends the ownership.
    _lock: File,
}

impl Cluster {
    /// Opens the cluster in `dir`, making it at the first time, and has its server running when it
    /// returns. What is left of a killed owner's server is stopped. A living one is adopted if
    /// [`Options::leave_running`] is set, and otherwise started again, since the server is to end
    /// with us.
    ///
    /// # Errors
    /// See [`PgError`]: no programs or the wrong version, no right to the directory, a directory in
    /// use or with something else in it, a server that does not start.
    pub fn open(dir: &Path, options: Options) -> Result<Self, PgError> {
        let mut cluster = Self::claim(dir, options)?;
        if let Role::Deposed { by } = &cluster.identity.role {
            let error = PgError::Deposed {
                dir: cluster.home.dir.clone(),
                by: by.clone(),
            };
            // The cluster was deposed; its server may still run if the process that deposed it then
            // died.
            cluster.kill_all()?;
            return Err(error);
        }
        cluster.make_data()?;
        cluster.bring_up()?;
        Ok(cluster)
    }

    /// Takes ownership of the directory, with everything in place except data and server.
    pub(crate) fn claim(dir: &Path, options: Options) -> Result<Self, PgError> {
        let owner = Owner::resolve(options.os_user.as_deref())?;
        // Checked before anything is created, so that a directory that cannot be used is left as it
        // was.
        owner.reach(nearest_existing(dir))?;
        let home = Home::prepare(dir)?;
        let lock = home.lock()?;
        // Read under the lock, because another owner may be changing it until it lets go.
        let known = Identity::load(&home)?;
        let major = known.as_ref().map(|identity| identity.major);
        let installation = options.find_installation(&home, major)?;
        let identity = match known {
            Some(mut identity) => {
                let recorded = Some(identity.socket_dir.as_path());
                identity.socket_dir = home.socket_dir(&owner, recorded, identity.port)?;
                identity
            }
            None => {
                home.must_be_empty()?;
                owner.reach(&home.dir)?;
                let socket_dir = home.socket_dir(&owner, None, identity::PORT)?;
                Identity::new(installation.version().major, socket_dir)?
            }
        };
        let mut cluster = Self {
            home,
            owner,
            installation,
            identity,
            options,
            server: None,
            logged: 0,
            _lock: lock,
        };
        if let Some(listen) = &cluster.options.listen {
            cluster.identity.port = listen.port;
        }
        cluster.identity.store(&cluster.home)?;
        cluster.home.make_rooms(&cluster.owner)?;
        Ok(cluster)
    }

    /// The connection string for its Unix socket, which only the user that opened it and root can
    /// use.
    pub fn dsn(&self) -> Dsn {
        socket_dsn(&self.identity)
    }

    /// The connection string for TCP, password included; `None` unless [`Options::listen`] is set.
    pub fn tcp_dsn(&self) -> Option<Dsn> {
        let listen = self.options.listen.as_ref()?;
        Some(Dsn::tcp(
            &listen.address,
            listen.port,
            SUPERUSER,
            DATABASE,
            &self.identity.password,
        ))
    }

    /// The cluster's directory, absolute and without links.
    pub fn dir(&self) -> &Path {
        &self.home.dir
    }

    /// The programs that it runs on.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.options.leave_running {
            return;
        }
        // A drop cannot report a failure; a caller that wants to know calls stop() first.
        let _ = self.stop();
    }
}

/// The directory itself, or its nearest ancestor that exists.
fn nearest_existing(dir: &Path) -> &Path {
    let mut existing = dir.ancestors().filter(|path| path.is_dir());
    existing.next().unwrap_or(Path::new("."))
}

fn socket_dsn(identity: &Identity) -> Dsn {
    Dsn::unix(&identity.socket_dir, identity.port, SUPERUSER, DATABASE)
}

/// How to reach the running server of the cluster in `dir`, without becoming its owner.
///
/// # Errors
/// [`PgError::NotRunning`], and what is wrong with the directory.
pub fn attach(dir: &Path) -> Result<Dsn, PgError> {
    let home = Home::at(dir)?;
    let not_running = || PgError::NotRunning {
        dir: home.dir.clone(),
    };
    let identity = Identity::load(&home)?.ok_or_else(not_running)?;
    let postmaster = postmaster::read(&home.data());
    if postmaster.is_some_and(|postmaster| postmaster.is_ready()) {
        return Ok(socket_dsn(&identity));
    }
    Err(not_running())
}
