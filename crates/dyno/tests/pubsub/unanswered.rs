//! Brokers that answer nothing: Ctrl-C and a hang-up end a command that waits for one, and one that
//! cannot start leaves nothing behind.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use crate::served::{has_server, interrupt, pubsub, signal};

#[test]
fn a_command_that_waits_for_a_broker_ends_on_ctrl_c() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let broker = silent.local_addr().unwrap().to_string();
    for args in [
        &["topic", "list"][..],
        &["consume", "t", "--group", "g"],
        &["produce", "t"],
    ] {
        let mut command = pubsub(args);
        command.args(["--broker", &broker]);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        // Its connection is there, so it waits for the answer to its Hello, for 90 seconds if it is
        // let.
        let connection = silent.accept().unwrap();
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{args:?}: {error}");
        assert!(error.contains("stopped before it was done"), "{error}");
        drop(connection);
    }
}

#[test]
fn a_hang_up_ends_a_command_unless_it_was_started_with_it_ignored() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let broker = silent.local_addr().unwrap().to_string();
    // The exit code names the first signal that was not ignored.
    for (before, signals, code) in [
        ("", &["-HUP"][..], 129),
        ("trap '' HUP; ", &["-HUP", "-INT"], 130),
    ] {
        let mut command = Command::new("sh");
        let line = format!("{before}exec \"$0\" pubsub topic list --broker \"$1\"");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_dyno"), &broker]);
        command.env_remove("DYNO_TOKEN").stderr(Stdio::piped());
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        let connection = silent.accept().unwrap();
        for which in signals {
            signal(&child, which);
        }
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{before:?}: {error}");
        drop(connection);
    }
}

#[test]
fn a_broker_whose_server_may_not_enter_its_folder_is_refused_and_makes_none() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("skipped: only for root does the server run as another user");
        return;
    }
    if !has_server() {
        return;
    }
    let closed = tempfile::tempdir().unwrap();
    std::fs::set_permissions(closed.path(), Permissions::from_mode(0o700)).unwrap();
    // One that starts all the same would serve, and this test wait, for good.
    let mut command = Command::new("timeout");
    command.args(["60s", env!("CARGO_BIN_EXE_dyno"), "pubsub", "serve"]);
    let listen = format!("unix:{}", closed.path().join("broker").display());
    command.args(["--listen", &listen, "--data"]);
    let output = command.arg(closed.path().join("data")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("may not enter"), "{said}");
    assert_eq!(std::fs::read_dir(closed.path()).unwrap().count(), 0);
}
