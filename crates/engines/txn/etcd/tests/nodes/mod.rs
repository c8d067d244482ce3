//! etcd servers of a test's own, on loopback, in a folder that goes with them.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a cluster may take to have a leader.
const START: Duration = Duration::from_secs(60);

/// Servers of one cluster; they are killed when it is dropped.
pub struct Nodes {
    folder: TempDir,
    children: Vec<Child>,
    /// Ports for clients and for peers.
    ports: Vec<(u16, u16)>,
}

impl Nodes {
    /// Starts them; None, with the reason printed, where etcd is not installed.
    pub fn start(count: usize) -> Option<Nodes> {
        if Command::new("etcd").arg("--version").output().is_err() {
            println!("skipped: etcd: the program is not installed (Debian: etcd-server)");
            return None;
        }
        let mut nodes = Nodes {
            folder: TempDir::new().expect("a folder can be made"),
            children: Vec::new(),
            ports: (0..count).map(|_| (free_port(), free_port())).collect(),
        };
        for number in 0..count {
            let child = nodes.command(number).spawn().expect("etcd starts");
            nodes.children.push(child);
        }
        let until = Instant::now() + START;
        while !nodes
            .ports
            .iter()
            .all(|(port, _)| TcpStream::connect(("127.0.0.1", *port)).is_ok())
        {
            assert!(Instant::now() < until, "etcd does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(nodes)
    }

    /// Where clients connect.
    pub fn addresses(&self) -> Vec<String> {
        let address = |(port, _): &(u16, u16)| format!("127.0.0.1:{port}");
        self.ports.iter().map(address).collect()
    }

    /// Kills a node as a power cut would.
    pub fn kill(&mut self, number: usize) {
        self.children[number].kill().expect("it is ours");
        self.children[number].wait().expect("it was alive");
    }

    fn command(&self, number: usize) -> Command {
        let (client, peer) = self.ports[number];
        let members = self.ports.iter().enumerate();
        let members: Vec<String> = members
            .map(|(number, (_, peer))| format!("n{number}=http://127.0.0.1:{peer}"))
            .collect();
        let mut command = Command::new("etcd");
        let client = format!("http://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        command
            .arg(format!("--name=n{number}"))
            .arg("--data-dir")
            .arg(self.folder.path().join(format!("n{number}")))
            .args([
                "--listen-client-urls",
                &client,
                "--advertise-client-urls",
                &client,
            ])
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ])
            .args(["--initial-cluster", &members.join(",")])
            .args(["--initial-cluster-state", "new", "--max-txn-ops", "1024"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in &mut self.children {
            // One that was killed already is not a fault.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn free_port() -> u16 {
    dyno_ports::free().expect("loopback has a free port")
}
