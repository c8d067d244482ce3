//! A server of `dyno-sql serve` for a test, and psql as people run it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A server that is killed when the test ends.
pub struct Server {
    child: Child,
    pub pg: SocketAddr,
    pub http: SocketAddr,
}

impl Server {
    /// Serves a table on free ports.
    pub fn start(table: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dyno-sql"))
            .arg("serve")
            .arg(table)
            .args(["--pg", "127.0.0.1:0", "--http", "127.0.0.1:0"])
            .args(["--threads", "2", "--log-level", "warn"])
            .args(more)
            .env_remove("DYNO_TOKEN")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut address = || {
            let line = lines.next().unwrap().unwrap();
            let (_, rest) = line.split_once("://").unwrap();
            let word = rest.split('/').next().unwrap();
            word.parse().unwrap()
        };
        let (pg, http) = (address(), address());
        Self { child, pg, http }
    }

    /// Bytes of memory that the server has resident.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS"));
        let kib = line.unwrap().split_whitespace().nth(1).unwrap();
        kib.parse::<u64>().unwrap() << 10
    }

    /// Ends the server as the kernel does when memory runs out.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Tells the server to stop, and waits for its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(status.unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command of psql at a server, as the user of a name that means nothing here.
pub fn psql_at(server: &Server) -> Command {
    let mut command = Command::new("psql");
    command
        .args(["-X", "-h", "127.0.0.1", "-p", &server.pg.port().to_string()])
        .args(["-U", "me", "-d", "dyno", "-v", "VERBOSITY=sqlstate"])
        .env_remove("PGPASSWORD");
    command
}

/// Whether psql is installed; prints that a test is skipped where it is not.
pub fn has_psql() -> bool {
    match Command::new("psql").arg("--version").output() {
        Ok(_) => true,
        Err(error) => {
            println!("skipped: psql: {error}");
            false
        }
    }
}

/// Runs psql with arguments.
pub fn psql(server: &Server, args: &[&str]) -> Output {
    psql_at(server).args(args).output().unwrap()
}

/// The answer to a statement, a line each row with bars between columns, or the code with which it
/// was refused.
pub fn ask(server: &Server, sql: &str) -> Result<String, String> {
    let output = psql(server, &["-At", "-c", sql]);
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned())
    } else {
        Err(String::from_utf8(output.stderr)
            .unwrap()
            .trim_end()
            .to_owned())
    }
}
