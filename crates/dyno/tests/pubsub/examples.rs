//! The examples of the help: each is run as it stands.

use std::path::Path;
use std::process::Command;

use dyno_pubsub::{Connection, Dsn};

use crate::served::{Log, has_server, pubsub};

/// The examples in the help of a command, with continued lines joined.
fn examples(command: &[&str]) -> Vec<String> {
    let output = pubsub(&[command, &["--help"]].concat()).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let after = help.split("Examples:\n").nth(1).unwrap();
    let block = after.split("\n\n").next().unwrap().replace("\\\n", " ");
    let lines = block.lines().map(|line| line.trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// Runs a line of a shell in which `dyno` is this program.
fn shell(line: &str, dir: &Path) {
    let program = Path::new(env!("CARGO_BIN_EXE_dyno")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", line])
        .env("PATH", path)
        .current_dir(dir)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
}

#[test]
fn the_examples_of_the_help_do_what_they_say() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("pairs.txt"), "a:1\nb:2\n").unwrap();
    let mut run = 0;
    for command in [
        &[][..],
        &["topic", "create"],
        &["produce"],
        &["consume"],
        &["group"],
        &["group", "reset"],
    ] {
        for example in examples(command) {
            // Those that start a server, or need two, have tests of their own.
            if example.contains("pubsub serve") || example.contains("--dsn") {
                continue;
            }
            // A reset needs the group that the example before it deleted, and a topic is made once.
            let prepare = "dyno pubsub topic drop clicks --yes BROKER; dyno pubsub topic drop orders --yes BROKER; \
                           dyno pubsub topic create orders BROKER; seq 1500 | dyno pubsub produce orders BROKER; \
                           dyno pubsub consume orders --group billing --count 5 BROKER";
            let broker = format!("--broker {}", log.broker);
            let quiet = prepare.replace("BROKER", &format!("{broker} >/dev/null 2>&1"));
            let drop = format!("dyno pubsub topic drop orders --yes {broker} >/dev/null");
            let before = if example.contains("topic create") {
                format!("{quiet}; {drop}")
            } else {
                quiet
            };
            shell(&before, dir.path());
            let (from, to) = example.split_at(example.find("dyno pubsub").unwrap());
            let (words, redirected) = to
                .split_once(" <")
                .map_or((to, String::new()), |(words, file)| {
                    (words, format!(" <{file}"))
                });
            // A time of the past, which the example gives, is before the topic's first record, and
            // so at its beginning.
            let ends = words.contains("--count") || words.contains("--until-empty");
            let count = if words.contains("pubsub consume") && !ends {
                " --until-empty"
            } else {
                ""
            };
            shell(
                &format!("{from}{words}{count} {broker}{redirected}"),
                dir.path(),
            );
            run += 1;
        }
    }
    assert!(run >= 14, "{run} examples were run");
    log.stop();
}

#[test]
fn the_sql_of_the_help_is_sql() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    let mut connection = Connection::open(&Dsn::parse(&log.dsn).unwrap()).unwrap();
    let statements = examples(&["install"]);
    let statements = statements.iter().filter_map(|line| line.split('"').nth(1));
    let mut run = 0;
    for statement in statements {
        connection.client().execute(statement, &[]).unwrap();
        run += 1;
    }
    assert_eq!(run, 2);
    assert_eq!(log.records("orders"), 1);
    log.stop();
}
