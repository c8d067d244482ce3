//! A broker that takes connections and answers nothing: Ctrl-C ends a command that waits for it.

use std::net::TcpListener;
use std::process::Stdio;

use crate::served::{interrupt, pubsub};

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
