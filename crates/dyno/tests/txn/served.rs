//! A server of transactions that a test starts as a command.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// `dyno` with no token of the caller's.
pub fn dyno(args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dyno"));
    command.args(args).env_remove("DYNO_TOKEN");
    command
}

/// What a command prints that must succeed.
pub fn ok(command: Command, input: &str) -> String {
    let (code, out, said) = ran(command, input);
    assert_eq!(code, Some(0), "{out}{said}");
    out
}

/// What a command says that must fail.
pub fn refused(command: Command) -> String {
    let (code, out, said) = ran(command, "");
    assert_eq!(code, Some(2), "{out}{said}");
    said
}

/// What a shell says on standard error when a line failed.
pub fn failed(command: Command, input: &str) -> String {
    let (code, out, said) = ran(command, input);
    assert_eq!(code, Some(1), "{out}{said}");
    said
}

fn ran(mut command: Command, input: &str) -> (Option<i32>, String, String) {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().unwrap();
    // One that fails at once does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A server; it is killed when dropped.
pub struct Served {
    child: Child,
    /// Which directory, if it has one.
    data: Vec<String>,
    listen: String,
    address: String,
}

impl Served {
    pub fn start(data: &Path, listen: &str, more: &[&str]) -> Served {
        Served::begin(
            vec!["--data".to_owned(), data.display().to_string()],
            listen,
            more,
        )
    }

    /// One that has no rows.
    pub fn start_role(role: &str, listen: &str, more: &[&str]) -> Served {
        let words = [&["--role", role], more].concat();
        Served::begin(Vec::new(), listen, &words)
    }

    fn begin(data: Vec<String>, listen: &str, more: &[&str]) -> Served {
        let (child, address) = start(&data, listen, more);
        Served {
            child,
            data,
            listen: listen.to_owned(),
            address,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A command of `dyno txn` on this server.
    pub fn dyno(&self, args: &[&str]) -> Command {
        let mut command = dyno(&["txn"]);
        command.args(args);
        command.args(["--on", &format!("dyno://{}", self.address)]);
        command
    }

    /// As a power cut would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn start_again(&mut self, more: &[&str]) {
        (self.child, self.address) = start(&self.data, &self.listen, more);
    }

    /// By Ctrl-C, and in peace.
    pub fn stop(&mut self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status();
        assert!(sent.unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that has stopped is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(data: &[String], listen: &str, more: &[&str]) -> (Child, String) {
    let mut command = dyno(&["txn", "serve", "--listen", listen, "--checkpoint", "8MiB"]);
    command.args(data).args(more);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let line = output.lines().map_while(Result::ok).next();
    let line = line.expect("it listens");
    let address = line.strip_prefix("listening at ").expect("an address");
    (child, address.trim().to_owned())
}
