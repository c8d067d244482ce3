//! What a new user does with transactions: serve, write, look, copy, restore, all as commands; TLS
//! and a token; and a kill.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod redis;
mod served;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use dyno_certificates::Certificates;

use served::{Served, dyno, failed, ok, refused};

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
    assert!(outside.contains("has letters, digits"), "{outside}");
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

#[test]
fn with_tls_and_a_token_transactions_pass_and_nobody_else_gets_in() {
    let at = tempfile::tempdir().unwrap();
    let Some(made) = Certificates::make(at.path(), "TLS of transactions") else {
        return;
    };
    let file = |name: &str| at.path().join(name).display().to_string();
    std::fs::write(file("token"), format!("{TOKEN}\n")).unwrap();
    std::fs::write(file("wrong"), "another-secret-of-this-test").unwrap();
    let shown = |path: PathBuf| path.display().to_string();
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

#[test]
fn the_processes_of_a_database_speak_tls_with_each_other() {
    let at = tempfile::tempdir().unwrap();
    let Some(made) = Certificates::make(at.path(), "TLS between processes") else {
        return;
    };
    let shown = |path: PathBuf| path.display().to_string();
    let token = shown(at.path().join("token"));
    std::fs::write(&token, TOKEN).unwrap();
    let root = shown(made.root());
    let (certificate, key) = (shown(made.server()), shown(made.server_key()));
    let secured = [
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
        "--token-file",
        &token,
    ];
    let mut oracle = Served::start_role("oracle", "localhost:0", &secured);
    let start = |part: &str| {
        let data = at.path().join(part.replace('/', "-of-"));
        let role = ["--role", "partitions", "--part", part, "--tls-ca", &root];
        let more = [&role[..], &["--join", oracle.address()], &secured].concat();
        Served::start(&data, "localhost:0", &more)
    };
    let mut parts = [start("0/2"), start("1/2")];
    let shell =
        |served: &Served| served.dyno(&["shell", "--tls-ca", &root, "--token-file", &token]);
    // They refuse everybody until the oracle has given them a timestamp.
    let began = Instant::now();
    while !shell(&parts[0]).output().unwrap().status.success() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "no timestamp comes"
        );
    }
    ok(shell(&parts[0]), "create rows\n");
    let rows: Vec<String> = (0..20).map(|n| format!("put rows key-{n} {n}\n")).collect();
    // One transaction over both processes.
    let all = format!("begin\n{}commit\n", rows.concat());
    assert!(ok(shell(&parts[1]), &all).contains("done at"));
    let said = ok(shell(&parts[0]), "scan rows\n");
    assert_eq!(said.lines().count(), 20, "{said}");
    parts.iter_mut().for_each(Served::stop);
    oracle.stop();
}

#[test]
fn a_mistyped_name_makes_no_database() {
    let at = tempfile::tempdir().unwrap();
    let path = at.path().join("typo");
    let (on, to) = (
        format!("local:{}", path.display()),
        at.path().join("copy").display().to_string(),
    );
    let commands: [&[&str]; 5] = [
        &["txn", "status"],
        &["txn", "shell"],
        &["txn", "backup", "--to", &to],
        &["tpcc", "check"],
        &["tpcc", "run", "--transactions", "1"],
    ];
    for command in commands {
        let said = refused(dyno(&[command, &["--on", &on]].concat()));
        assert!(said.contains("there is no database in"), "{said}");
        assert!(!path.exists(), "{command:?}");
    }
    let said = refused(dyno(&["txn", "status", "--on", &on]));
    assert!(said.contains("dyno txn serve --data"), "{said}");
    let create = ["txn", "shell", "--create", "--on", &on];
    ok(dyno(&create), "create t\nput t a 1\n");
    assert_eq!(ok(dyno(&["txn", "shell", "--on", &on]), "get t a\n"), "1\n");
    // A database that has lost its table of contents is not made anew either.
    std::fs::remove_file(path.join("partition-0/manifest")).unwrap();
    for command in ["status", "shell"] {
        let said = refused(dyno(&["txn", command, "--on", &on]));
        assert!(said.contains("has no file `manifest`"), "{said}");
    }
}

#[test]
fn what_is_typed_wrong_is_answered_with_what_is_right() {
    let at = tempfile::tempdir().unwrap();
    let on = format!("local:{}", at.path().join("bank").display());
    let shell = || dyno(&["txn", "shell", "--create", "--on", &on]);
    let said = failed(shell(), "create t\n\nput t\nput t a 1\nfetch\n");
    assert!(said.contains("line 3: put needs TABLE KEY VALUE"), "{said}");
    assert!(
        said.contains("line 5: there is no command `fetch`"),
        "{said}"
    );
    let said = refused(dyno(&["txn", "status", "--on", "127.0.0.1:7421"]));
    assert!(
        said.contains("did you mean dyno://127.0.0.1:7421?"),
        "{said}"
    );
    let data = at.path().join("small").display().to_string();
    for (role, least) in [("all", "1 MiB"), ("persist", "32 MiB")] {
        let mut words = vec!["txn", "serve", "--role", role, "--memory", "1KiB"];
        words.extend(["--listen", "127.0.0.1:0"]);
        if role == "all" {
            words.extend(["--data", &data]);
        }
        let said = refused(dyno(&words));
        assert!(
            said.contains("1024 bytes of memory are not enough"),
            "{said}"
        );
        assert!(said.contains(&format!("give at least {least}")), "{said}");
    }
}
