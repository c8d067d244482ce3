//! A broker that other machines can reach: TLS, a token, and how clients that lack one of them are
//! refused.

use std::path::PathBuf;

use dyno_certificates::Certificates;

use crate::served::{Log, folder, has_server, ok, pubsub, refused};

const TOKEN: &str = "a-secret-of-this-test";

fn shown(path: PathBuf) -> String {
    path.display().to_string()
}

#[test]
fn with_tls_and_a_token_records_pass_and_nobody_else_gets_in() {
    if !has_server() {
        return;
    }
    let dir = folder();
    let Some(made) = Certificates::make(dir.path(), "TLS of the broker") else {
        return;
    };
    let file = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(file("token"), format!("{TOKEN}\n")).unwrap();
    std::fs::write(file("wrong"), "another-secret-of-this-test").unwrap();
    let (root, other) = (shown(made.root()), shown(made.other_root()));
    let (token, wrong) = (file("token"), file("wrong"));
    let (certificate, key) = (shown(made.server()), shown(made.server_key()));
    let secured = [
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
        "--token-file",
        &token,
    ];
    let mut log = Log::start_in(dir, "localhost:0", &secured);
    let with = |log: &Log, args: &[&str], ca: &str, token: &str| {
        let mut command = log.dyno(args);
        command.args(["--tls-ca", ca, "--token-file", token]);
        command
    };
    ok(with(&log, &["topic", "create", "t"], &root, &token), "");
    let said = ok(with(&log, &["produce", "t"], &root, &token), "one\ntwo\n");
    assert_eq!(said, "2 records acknowledged\n");
    let read = ["consume", "t", "--group", "g", "--until-empty"];
    assert_eq!(ok(with(&log, &read, &root, &token), ""), "one\ntwo\n");
    // The token may also be in the environment.
    let mut status = log.dyno(&["status", "--tls-ca", &root]);
    status.env("DYNO_TOKEN", TOKEN);
    assert!(ok(status, "").contains("| t "));

    for args in [&["status"][..], &["produce", "t"], &read] {
        let said = refused(with(&log, args, &root, &wrong), "x\n");
        assert!(said.contains("[denied]; a retry is of no use"), "{said}");
        let mut nothing = log.dyno(args);
        nothing.args(["--tls-ca", &root]);
        let said = refused(nothing, "x\n");
        assert!(said.contains("[denied]; a retry is of no use"), "{said}");
    }
    // Not signed by that root; and a certificate of another name.
    let said = refused(with(&log, &["status"], &other, &token), "x\n");
    assert!(said.contains("certificate"), "{said}");
    assert!(said.contains("; a retry is of no use"), "{said}");
    let port = log.broker.rsplit(':').next().unwrap().to_owned();
    let by_number = format!("127.0.0.1:{port}");
    let tls = ["status", "--tls-ca", &root, "--token-file", &token];
    let mut elsewhere = pubsub(&tls);
    elsewhere.args(["--broker", &by_number]);
    let said = refused(elsewhere, "x\n");
    assert!(said.contains("certificate"), "{said}");
    assert!(said.contains("; a retry is of no use"), "{said}");
    // The broker answers what is not TLS with an alert, from which the client knows what it lacks.
    let said = refused(log.dyno(&["status", "--token-file", &token]), "x\n");
    assert!(said.contains("the peer speaks TLS"), "{said}");
    assert!(
        said.contains("[server-lost]; a retry is of no use"),
        "{said}"
    );
    log.stop();
}

#[test]
fn a_client_that_wants_tls_does_not_speak_without_it() {
    if !has_server() {
        return;
    }
    let dir = folder();
    let Some(made) = Certificates::make(dir.path(), "TLS of the broker") else {
        return;
    };
    let root = shown(made.root());
    let mut log = Log::start_in(dir, "localhost:0", &[]);
    let said = refused(log.dyno(&["status", "--tls-ca", &root]), "x\n");
    assert!(
        said.contains("TLS") || said.contains("[server-lost]"),
        "{said}"
    );
    ok(log.dyno(&["status"]), "");
    log.stop();
}
