//! What a new user does with transactions: serve, write, look, copy, restore, all as commands; TLS and a token; and
//! a kill.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod served;

use std::path::Path;
use std::process::Command;

use served::{Served, dyno, ok, refused};

const TOKEN: &str = "a-secret-of-this-test";

#[test]
fn what_was_acknowledged_is_there_after_a_kill_and_in_a_copy() {
    let at = tempfile::tempdir().unwrap();
    let data = at.path().join("bank");
    let copies = at.path().join("copies").display().to_string();
    let mut server = Served::start(&data, "127.0.0.1:0", &["--backups", &copies]);
    let shell = |server: &Served| server.dyno(&["shell"]);
    let said = ok(
        shell(&server),
        "create accounts\nbegin\nput accounts ada 700\nput accounts bob 5\ncommit\n",
    );
    assert!(said.contains("done at"), "{said}");
    server.kill();
    server.start_again(&["--backups", &copies]);
    let said = ok(shell(&server), "scan accounts\n");
    assert_eq!(said, "ada\t700\nbob\t5\n");
    ok(server.dyno(&["backup", "--to", "monday"]), "");
    let taken = refused(server.dyno(&["backup", "--to", "monday"]));
    assert!(taken.contains("not empty"), "{taken}");
    let outside = refused(server.dyno(&["backup", "--to", "../outside"]));
    assert!(outside.contains("it is a name"), "{outside}");
    ok(shell(&server), "put accounts ada 1\n");
    server.stop();

    let (monday, restored) = (
        at.path().join("copies/monday").display().to_string(),
        at.path().join("restored").display().to_string(),
    );
    ok(
        dyno(&["txn", "restore", "--from", &monday, "--data", &restored]),
        "",
    );
    let on = format!("local:{restored}");
    let said = ok(dyno(&["txn", "shell", "--on", &on]), "get accounts ada\n");
    assert_eq!(said, "700\n");
    // Without a server the directory itself is copied.
    let copy = at.path().join("copy").display().to_string();
    ok(dyno(&["txn", "backup", "--on", &on, "--to", &copy]), "");
    let status = ok(
        dyno(&["txn", "status", "--json", "--on", &format!("local:{copy}")]),
        "",
    );
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["tables"][0]["name"], "accounts");
}

/// A root, a certificate for `localhost` signed by it, and another root; false where there is no openssl.
fn certificates(dir: &Path) -> bool {
    let names = std::fs::write(dir.join("names"), "subjectAltName=DNS:localhost\n");
    names.is_ok()
        && [
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=root -keyout root.key -out root.pem",
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout other.key -out other.pem",
            "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out server.csr",
            "x509 -req -in server.csr -CA root.pem -CAkey root.key -CAcreateserial -days 2 -extfile names -out cert.pem",
        ]
        .iter()
        .all(|line| {
            let words = line.split_whitespace();
            let output = Command::new("openssl").args(words).current_dir(dir).output();
            output.is_ok_and(|output| output.status.success())
        })
}

#[test]
fn with_tls_and_a_token_transactions_pass_and_nobody_else_gets_in() {
    let at = tempfile::tempdir().unwrap();
    if !certificates(at.path()) {
        println!("skipped: TLS of transactions: there is no openssl to make certificates");
        return;
    }
    let file = |name: &str| at.path().join(name).display().to_string();
    std::fs::write(file("token"), format!("{TOKEN}\n")).unwrap();
    std::fs::write(file("wrong"), "another-secret-of-this-test").unwrap();
    let (root, other) = (file("root.pem"), file("other.pem"));
    let (token, wrong) = (file("token"), file("wrong"));
    let (certificate, key) = (file("cert.pem"), file("key.pem"));
    let secured = [
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
        "--token-file",
        &token,
    ];
    let mut server = Served::start(&at.path().join("bank"), "localhost:0", &secured);
    let with =
        |ca: &str, token: &str| server.dyno(&["shell", "--tls-ca", ca, "--token-file", token]);
    ok(with(&root, &token), "create t\nput t a 1\n");
    assert_eq!(ok(with(&root, &token), "get t a\n"), "1\n");
    // The token may also be in the environment.
    let mut status = server.dyno(&["status", "--tls-ca", &root]);
    status.env("DYNO_TOKEN", TOKEN);
    assert!(ok(status, "").contains("| t "));

    let denied = refused(with(&root, &wrong));
    assert!(denied.contains("[denied]"), "{denied}");
    let without = refused(server.dyno(&["shell", "--tls-ca", &root]));
    assert!(without.contains("[denied]"), "{without}");
    // Not signed by that root; and no TLS at all.
    let said = refused(with(&other, &token));
    assert!(said.contains("certificate"), "{said}");
    let plain = refused(server.dyno(&["shell", "--token-file", &token]));
    assert!(plain.contains("[unavailable]"), "{plain}");
    server.stop();
}
