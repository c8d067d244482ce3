//! The servers of a run: one, or a primary with synchronous standbys.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dyno_net::Address;
use dyno_postgres::postgres::config::Host;
use dyno_postgres::{Cluster, Dsn, Options, PgError, Session, Synchronous, connect, standby};
use dyno_sim::Random;

const STREAMING_TIMEOUT: Duration = Duration::from_secs(60);

/// A primary and its standbys. A commit waits for any one of them.
#[derive(Debug)]
pub struct Nodes {
    primary: Option<Node>,
    standbys: Vec<Node>,
    /// A former primary that is to become a standby: its name and directory.
    deposed: Option<(String, PathBuf)>,
}

#[derive(Debug)]
struct Node {
    name: String,
    dir: PathBuf,
    cluster: Cluster,
}

fn options() -> Options {
    let mut options = Options::small();
    options.start_timeout = Duration::from_secs(60);
    options.stop_timeout = Duration::from_secs(10);
    options
}

impl Nodes {
    /// Makes `count` clusters in folders of `dir`.
    pub fn open(dir: &Path, count: usize) -> Result<Self, PgError> {
        let name = |at: usize| format!("node{at}");
        let primary = Node {
            name: name(0),
            dir: dir.join(name(0)),
            cluster: Cluster::open(&dir.join(name(0)), options())?,
        };
        let mut standbys = Vec::new();
        for at in 1..count {
            let dir = dir.join(name(at));
            let cluster =
                Cluster::open_standby(&dir, options(), &primary.cluster.dsn(), &name(at))?;
            standbys.push(Node {
                name: name(at),
                dir,
                cluster,
            });
        }
        let mut nodes = Self {
            primary: Some(primary),
            standbys,
            deposed: None,
        };
        nodes.wait_for_one()?;
        Ok(nodes)
    }

    fn primary(&self) -> Result<&Node, PgError> {
        self.primary.as_ref().ok_or_else(Self::none)
    }

    fn primary_mut(&mut self) -> Result<&mut Node, PgError> {
        self.primary.as_mut().ok_or_else(Self::none)
    }

    fn none() -> PgError {
        PgError::Standby {
            name: "node".to_owned(),
            reason: "a takeover failed, so there is no primary".to_owned(),
        }
    }

    /// Makes commits wait for any one standby, if there are some.
    fn wait_for_one(&mut self) -> Result<(), PgError> {
        if self.standbys.is_empty() {
            return Ok(());
        }
        let mut client = connect(
            &self.primary()?.cluster.dsn(),
            &Session::named("dyno check"),
        )?;
        for node in &self.standbys {
            standby::wait_streaming(&mut client, &node.name, STREAMING_TIMEOUT)?;
        }
        let names: Vec<String> = self.standbys.iter().map(|node| node.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let any = Synchronous::any(1, &names);
        let primary = self.primary_mut()?;
        primary.cluster.set_synchronous(&any, STREAMING_TIMEOUT)
    }

    /// The connection string of the primary.
    pub fn dsn(&self) -> Result<Dsn, PgError> {
        Ok(self.primary()?.cluster.dsn())
    }

    /// The primary's socket, for the proxy to connect to.
    pub fn socket(&self) -> Result<Address, PgError> {
        let config = self.dsn()?.config();
        let port = config.get_ports().first().copied().unwrap_or(5432);
        match config.get_hosts().first() {
            Some(Host::Unix(dir)) => Ok(Address::Unix(dir.join(format!(".s.PGSQL.{port}")))),
            _ => Err(PgError::Dsn {
                reason: "a private cluster has no socket".to_owned(),
            }),
        }
    }

    /// The folder of the primary.
    pub fn dir(&self) -> Result<&Path, PgError> {
        Ok(self.primary()?.cluster.dir())
    }

    /// The numbers of all server processes of all nodes.
    pub fn pids(&self) -> Vec<u32> {
        let nodes = self.primary.iter().chain(&self.standbys);
        nodes
            .flat_map(|node| {
                let pids = node.cluster.pids();
                pids.postmaster.into_iter().chain(pids.children)
            })
            .collect()
    }

    /// Kills with SIGKILL a process that serves a client. Returns `false` if none does.
    pub fn kill_backend(&self, random: &mut Random) -> Result<bool, PgError> {
        let cluster = &self.primary()?.cluster;
        let mut client = connect(&cluster.dsn(), &Session::named("dyno check nemesis"))?;
        let rows = client
            .query(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' \
                 AND pid <> pg_backend_pid() ORDER BY (state = 'active') DESC, pid",
                &[],
            )
            .map_err(|source| PgError::Statement {
                action: "ask for the server's processes".to_owned(),
                class: dyno_postgres::Class::from_error(&source),
                source: Box::new(source),
            })?;
        let Some(row) = rows.get(random.below(rows.len())) else {
            return Ok(false);
        };
        cluster.kill_one(row.get::<_, i32>(0).unsigned_abs())
    }

    /// Kills all processes of the primary with SIGKILL.
    pub fn kill_server(&mut self) -> Result<(), PgError> {
        self.primary_mut()?.cluster.kill_all()
    }

    /// Starts the primary, if it is not running.
    pub fn start(&mut self) -> Result<(), PgError> {
        self.primary_mut()?.cluster.restart()
    }

    /// Whether the primary accepts connections.
    pub fn answers(&self) -> bool {
        self.dsn()
            .and_then(|dsn| connect(&dsn, &Session::named("dyno check")))
            .is_ok()
    }

    /// Kills the primary with SIGKILL; the standby that has received most takes over. When it
    /// returns, commits of the new primary wait for a standby again, so clients may be let in.
    pub fn take_over(&mut self) -> Result<(), PgError> {
        self.kill_server()?;
        let standbys: Vec<&Cluster> = self.standbys.iter().map(|node| &node.cluster).collect();
        // Commits wait for any one standby, so only the one that has received most is sure to have
        // all that was acknowledged.
        let best = standby::furthest(&standbys)?.ok_or_else(Self::none)?;
        let mut new = self.standbys.remove(best);
        new.cluster.promote()?;
        let dsn = new.cluster.dsn();
        let old = self.primary.replace(new).ok_or_else(Self::none)?;
        old.cluster.depose(&dsn)?;
        self.deposed = Some((old.name, old.dir));
        if self.standbys.is_empty() {
            return self.rebuild_rest();
        }
        for node in &mut self.standbys {
            node.cluster.follow(&dsn)?;
        }
        self.wait_for_one()
    }

    /// Makes the former primary a standby, unless that was done.
    pub fn rebuild_rest(&mut self) -> Result<(), PgError> {
        let Some((name, dir)) = self.deposed.take() else {
            return Ok(());
        };
        let cluster = Cluster::rebuild(&dir, options(), &self.dsn()?, &name)?;
        self.standbys.push(Node { name, dir, cluster });
        self.wait_for_one()
    }
}
