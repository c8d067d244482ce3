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

/// Who owns everything in a private cluster.
const SUPERUSER: &str = "dyno";
/// The database that initdb makes; one of another name would be a second copy of it.
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
    /// The server, when this process started it.
    server: Option<Child>,
    /// The length of the log before it was started.
    logged: u64,
    /// Held as long as the cluster is owned.
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
            // It may have been deposed by a process that then died.
            cluster.kill_all()?;
            return Err(error);
        }
        cluster.make_data()?;
        cluster.bring_up()?;
        Ok(cluster)
    }

    /// Owns the directory, with everything in place but data and server.
    pub(crate) fn claim(dir: &Path, options: Options) -> Result<Self, PgError> {
        let owner = Owner::resolve(options.os_user.as_deref())?;
        // Asked before anything is made, so that a directory that is of no use leaves nothing
        // behind.
        owner.reach(nearest_existing(dir))?;
        let home = Home::prepare(dir)?;
        let lock = home.lock()?;
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

    /// How to reach it over its Unix socket; the user who may is the one who opened it, and root.
    pub fn dsn(&self) -> Dsn {
        socket_dsn(&self.identity)
    }

    /// How to reach it over TCP, password included; `None` unless [`Options::listen`] is set.
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

    /// Its directory, absolute and without links.
    pub fn dir(&self) -> &Path {
        &self.home.dir
    }

    /// The programs it runs on.
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

/// The directory itself, or the closest one above it that is there.
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
