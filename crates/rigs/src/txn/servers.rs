//! Server processes for transactions on loopback: ours, and etcd's. They are killed when dropped.

use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dyno_txn_api::{Code, Error, Result, Target};
use dyno_txn_node::{OpenOptions, Role};

use crate::process::free_port;

/// How long a server may take until it listens, recovery on a busy machine included.
const START: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);
/// The most operations of one etcd transaction: enough for a page of ten deliveries with all their
/// lines.
const MAX_TXN_OPS: &str = "4096";

/// A process `dyno txn serve` of ours.
pub struct DynoServer {
    program: PathBuf,
    words: Vec<String>,
    /// The file with its stdout and stderr.
    log: PathBuf,
    port: u16,
    child: Child,
}

impl DynoServer {
    /// Starts `program` on a directory, with more options of `dyno txn serve`; it listens when this
    /// returns.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(program: &Path, data: &Path, more: &[&str]) -> Result<DynoServer> {
        let folder = data.to_string_lossy();
        let words = [&["--data", &folder], more].concat();
        DynoServer::start_with(program, &words, data.with_extension("log"))
    }

    /// Starts one of a role that has no rows; what it says goes into a file.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_role(program: &Path, role: Role, log: &Path, more: &[&str]) -> Result<DynoServer> {
        let words = [&["--role", role.name()], more].concat();
        DynoServer::start_with(program, &words, log.to_owned())
    }

    fn start_with(program: &Path, words: &[&str], log: PathBuf) -> Result<DynoServer> {
        let port = free_port().map_err(unavailable)?;
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let child = serve(program, &words, &log, port)?;
        Ok(DynoServer {
            program: program.to_owned(),
            words,
            log,
            port,
            child,
        })
    }

    /// The address it listens on, `HOST:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The address in the form that opens a database.
    pub fn target(&self) -> Target {
        Target::Dyno(vec![self.address()])
    }

    /// The process id, for signals and `/proc`.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it with signal 9, so that it flushes and says nothing more.
    pub fn kill(&mut self) {
        kill(&mut self.child);
    }

    /// Starts it again on the same directory and the same port.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_again(&mut self) -> Result<()> {
        self.child = serve(&self.program, &self.words, &self.log, self.port)?;
        Ok(())
    }
}

impl Drop for DynoServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn serve(program: &Path, words: &[String], log: &Path, port: u16) -> Result<Child> {
    let mut command = Command::new(program);
    command
        .args(["txn", "serve"])
        .args(words)
        .args(["--listen", &format!("127.0.0.1:{port}")]);
    spawn(command, log, &[port])
}

/// A database of ours in several processes, with one timestamp oracle.
pub struct DynoProcesses {
    parts: Vec<DynoServer>,
    oracle: DynoServer,
}

impl DynoProcesses {
    /// Starts so many, with their data below a folder; the database answers when this returns. With
    /// `cores_each` above 1, each has that many threads, pinned to cores that follow those of the
    /// process before it; otherwise it has one that is not pinned.
    ///
    /// # Errors
    /// When it does not.
    pub fn start(
        program: &Path,
        folder: &Path,
        count: usize,
        cores_each: usize,
        more: &[&str],
    ) -> Result<DynoProcesses> {
        let log = folder.join("oracle.log");
        let oracle = DynoServer::start_role(program, Role::Oracle, &log, &[])?;
        let join = oracle.address();
        let mut parts = Vec::with_capacity(count);
        for number in 0..count {
            let part = format!("{number}/{count}");
            let role = ["--role", "partitions", "--part", &part, "--join", &join];
            let data = folder.join(format!("part-{number}"));
            let mut words = [&role[..], more].concat();
            let cores: Vec<String> = (number * cores_each..(number + 1) * cores_each)
                .map(|core| core.to_string())
                .collect();
            let cores = cores.join(",");
            if cores_each > 1 {
                words.extend(["--cores", &cores]);
            }
            parts.push(DynoServer::start(program, &data, &words)?);
        }
        let processes = DynoProcesses { parts, oracle };
        processes.wait()?;
        Ok(processes)
    }

    /// Processes listen before the oracle has given them a timestamp, and until then refuse every
    /// client.
    fn wait(&self) -> Result<()> {
        let until = Instant::now() + START;
        for part in &self.parts {
            while let Err(error) = dyno_txn_node::open(&part.target(), OpenOptions::default()) {
                if Instant::now() > until {
                    return Err(error);
                }
                thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    /// The address for clients, any one of which reaches all processes.
    pub fn target(&self) -> Target {
        self.parts[0].target()
    }

    /// The process ids of all of them, for `/proc`.
    pub fn pids(&self) -> Vec<u32> {
        let parts = self.parts.iter().chain([&self.oracle]);
        parts.map(DynoServer::pid).collect()
    }
}

/// The processes of an etcd cluster.
pub struct EtcdNodes {
    children: Vec<Child>,
    /// The port for clients and the port for peers of each node.
    ports: Vec<(u16, u16)>,
}

impl EtcdNodes {
    /// Why etcd cannot run on this machine; `None` if it can.
    pub fn missing() -> Option<String> {
        let found = Command::new("etcd").arg("--version").output();
        let text = "etcd: the program is not installed (Debian: etcd-server)";
        found.is_err().then(|| text.to_owned())
    }

    /// Starts so many nodes of one cluster, with their data below a folder.
    ///
    /// # Errors
    /// When they do not start.
    pub fn start(folder: &Path, count: usize) -> Result<EtcdNodes> {
        let mut ports = Vec::with_capacity(count);
        for _ in 0..count {
            let port = || free_port().map_err(unavailable);
            ports.push((port()?, port()?));
        }
        let mut nodes = EtcdNodes {
            children: Vec::new(),
            ports,
        };
        // All nodes are started before any is waited for, because none can serve while a majority
        // is missing.
        for number in 0..count {
            let log = folder.join(format!("n{number}.log"));
            let command = nodes.command(number, folder);
            nodes.children.push(spawn(command, &log, &[])?);
        }
        // A node listens before the cluster has a leader; its clients wait for one.
        let ports: Vec<u16> = nodes.ports.iter().map(|(client, _)| *client).collect();
        for (child, port) in nodes.children.iter_mut().zip(ports) {
            wait(child, &folder.join("n0.log"), &[port])?;
        }
        Ok(nodes)
    }

    /// The addresses of all nodes, for clients.
    pub fn target(&self) -> Target {
        let address = |(port, _): &(u16, u16)| format!("127.0.0.1:{port}");
        Target::Etcd(self.ports.iter().map(address).collect())
    }

    /// The process ids of the nodes.
    pub fn pids(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }

    /// Kills the process of one node with signal 9.
    pub fn kill(&mut self, number: usize) {
        kill(&mut self.children[number]);
    }

    fn command(&self, number: usize, folder: &Path) -> Command {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let members = self.ports.iter().enumerate();
        let members: Vec<String> = members
            .map(|(number, (_, peer))| format!("n{number}={}", url(*peer)))
            .collect();
        let (client, peer) = self.ports[number];
        let mut command = Command::new("etcd");
        command
            .arg(format!("--name=n{number}"))
            .arg("--data-dir")
            .arg(folder.join(format!("n{number}")))
            .args(["--listen-client-urls", &url(client)])
            .args(["--advertise-client-urls", &url(client)])
            .args(["--listen-peer-urls", &url(peer)])
            .args(["--initial-advertise-peer-urls", &url(peer)])
            .args(["--initial-cluster", &members.join(",")])
            .args(["--initial-cluster-state", "new"])
            .args(["--max-txn-ops", MAX_TXN_OPS])
            // Room for all revisions of a whole warehouse and of a run on it.
            .args(["--quota-backend-bytes", "8589934592"])
            .args(["--max-request-bytes", "16777216"]);
        command
    }
}

impl Drop for EtcdNodes {
    fn drop(&mut self) {
        self.children.iter_mut().for_each(kill);
    }
}

fn kill(child: &mut Child) {
    // The error is ignored, because the node may have been killed already.
    let _ = child.kill();
    let _ = child.wait();
}

fn unavailable(what: impl std::fmt::Display) -> Error {
    Error::new(Code::Unavailable, what)
}

fn spawn(mut command: Command, log: &Path, ports: &[u16]) -> Result<Child> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error: io::Error| unavailable(format!("{program}: {error}"));
    let stderr = File::create(log).map_err(failed)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .map_err(failed)?;
    match wait(&mut child, log, ports) {
        Ok(()) => Ok(child),
        Err(error) => {
            kill(&mut child);
            Err(error)
        }
    }
}

/// Waits until every port has a listener, and fails if the process ends first.
fn wait(child: &mut Child, log: &Path, ports: &[u16]) -> Result<()> {
    let until = Instant::now() + START;
    let open = |port: &u16| TcpStream::connect(("127.0.0.1", *port)).is_ok();
    while !ports.iter().all(open) {
        if let Ok(Some(status)) = child.try_wait() {
            // The last line of its log is the reason in most cases, such as a directory that is in
            // use.
            let text = fs::read_to_string(log).unwrap_or_default();
            let last = text.lines().last().unwrap_or_default();
            return Err(unavailable(format!("a server ended with {status}: {last}")));
        }
        if Instant::now() > until {
            return Err(unavailable(format!(
                "nothing listens on the ports {ports:?} after {START:?}"
            )));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
