//! A broker as a process with a server of its own, and commands that talk to it.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A broker with a private server in a directory of its own, on a socket there unless told
/// otherwise.
pub struct Log {
    pub dir: TempDir,
    serve: Child,
    /// Where clients connect to.
    pub broker: String,
    /// Its server, for tests that connect to it directly.
    pub dsn: String,
}

impl Log {
    pub fn start() -> Log {
        let dir = folder();
        let listen = socket(dir.path());
        Log::start_in(dir, &listen, &[])
    }

    /// One with more arguments.
    pub fn start_with(more: &[&str]) -> Log {
        let dir = folder();
        let listen = socket(dir.path());
        Log::start_in(dir, &listen, more)
    }

    /// One that listens elsewhere, with more arguments.
    pub fn start_in(dir: TempDir, listen: &str, more: &[&str]) -> Log {
        let (serve, broker, dsn) = serve(dir.path(), listen, more);
        Log {
            dir,
            serve,
            broker,
            dsn,
        }
    }

    /// `kill -9` of the broker; the kernel asks the server under it to stop.
    pub fn kill(&mut self) {
        self.serve.kill().unwrap();
        self.serve.wait().unwrap();
    }

    pub fn start_again(&mut self) {
        self.start_again_with(&[]);
    }

    /// One with more arguments.
    pub fn start_again_with(&mut self, more: &[&str]) {
        let listen = socket(self.dir.path());
        (self.serve, self.broker, self.dsn) = serve(self.dir.path(), &listen, more);
    }

    /// Ctrl-C.
    pub fn stop(&mut self) {
        interrupt(&self.serve);
        assert!(self.serve.wait().unwrap().success());
        let left = self.dir.path().join("data/postgres/data/postmaster.pid");
        assert!(!left.exists(), "the server was left behind");
    }

    /// A command that talks to the broker.
    pub fn dyno(&self, args: &[&str]) -> Command {
        let mut command = pubsub(args);
        command.args(["--broker", &self.broker]);
        command
    }

    /// Records in a topic, as the server knows them.
    pub fn records(&self, topic: &str) -> i64 {
        let status = ok(self.direct(&["status", "--json"]), "");
        let status: Value = serde_json::from_str(&status).unwrap();
        let topics = status["topics"].as_array().unwrap();
        let topic = topics.iter().find(|one| one["topic"] == topic).unwrap();
        let partitions = topic["partitions"].as_array().unwrap().iter();
        partitions
            .map(|one| one["next_offset"].as_i64().unwrap())
            .sum()
    }

    /// A command that goes straight to the server.
    pub fn direct(&self, args: &[&str]) -> Command {
        let mut command = pubsub(args);
        command.args(["--dsn", &self.dsn]);
        command
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // A test that failed leaves nothing running.
        if self.serve.try_wait().is_ok_and(|ended| ended.is_none()) {
            interrupt(&self.serve);
            let _ = self.serve.wait();
        }
    }
}

/// A directory that the server's user can get at: root lends the server to another.
pub fn folder() -> TempDir {
    let dir = tempfile::Builder::new()
        .prefix("dyno-log-")
        .tempdir_in("/tmp")
        .unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    dir
}

fn socket(dir: &Path) -> String {
    format!("unix:{}", dir.join("broker.sock").display())
}

pub fn pubsub(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.arg("pubsub").args(args).env_remove("DYNO_TOKEN");
    command
}

/// Starts it, and waits until it says where it listens; what it prints last is the server's
/// address.
fn serve(dir: &Path, listen: &str, more: &[&str]) -> (Child, String, String) {
    let mut child = pubsub(&["serve", "--listen", listen, "--lease", "1s", "--data"])
        .arg(dir.join("data"))
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().expect("it serves").unwrap();
    let at = first.strip_prefix("listening at ").unwrap().to_owned();
    assert!(at == listen || listen.ends_with(":0"), "{at}");
    // Where metrics are served is said before it, if they are.
    let quoted = |line: String| line.split('\'').nth(1).map(str::to_owned);
    let dsn = lines.find_map(|line| quoted(line.unwrap())).unwrap();
    (child, at, dsn)
}

pub fn interrupt(child: &Child) {
    signal(child, "-INT");
}

/// Sends a signal as `kill` names it.
pub fn signal(child: &Child, which: &str) {
    let sent = Command::new("kill")
        .args([which, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Runs it with this standard input; it must succeed.
pub fn ok(mut command: Command, input: &str) -> String {
    let output = with_input(&mut command, input);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a command says on stderr that must fail with exit code 2.
pub fn refused(mut command: Command, input: &str) -> String {
    let output = with_input(&mut command, input);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
    said
}

pub fn with_input(command: &mut Command, input: &str) -> Output {
    let pipes = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    // One that fails early does not read it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// Whether there is a server to run; where not, that is said and the test is over.
pub fn has_server() -> bool {
    let output = Command::new(env!("CARGO_BIN_EXE_dyno"))
        .args(["doctor", "--engine", "pubsub"])
        .output()
        .unwrap();
    let found = output.status.success();
    if !found {
        println!(
            "skipped: dyno pubsub: {}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    found
}
