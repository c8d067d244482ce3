//! The examples of the manual, run by psql.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dyno_pubsub::{Connection, TopicOptions};

use super::server::Server;

/// (language, text) of the blocks, in order.
fn blocks() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/pubsub.md");
    let text = fs::read_to_string(path).unwrap();
    let parts = text.split("```").collect::<Vec<_>>();
    let blocks = parts
        .chunks(2)
        .filter_map(|pair| pair.get(1)?.split_once('\n'));
    blocks
        .map(|(language, text)| (language.to_owned(), text.to_owned()))
        .collect()
}

#[test]
fn psql_answers_as_the_manual_says() {
    let server = Server::alone();
    let psql = server.cluster().installation().program("psql");
    if !psql.exists() {
        println!(
            "skipped: psql on the manual: {} is not there",
            psql.display()
        );
        return;
    }
    let config = server.dsn.config();
    let dyno_postgres::postgres::config::Host::Unix(socket) = &config.get_hosts()[0] else {
        panic!("a private cluster has a socket");
    };
    let blocks = blocks();
    let mut compared = 0;
    for (at, (language, script)) in blocks.iter().enumerate() {
        if language != "sql" {
            continue;
        }
        let mut command = Command::new(&psql);
        command
            .arg("-h")
            .arg(socket)
            .arg("-p")
            .arg(config.get_ports()[0].to_string());
        command.args([
            "-U",
            config.get_user().unwrap(),
            "-d",
            config.get_dbname().unwrap(),
        ]);
        command.args(["-XqAt", "-v", "ON_ERROR_STOP=1"]);
        let input =
            std::env::temp_dir().join(format!("dyno-manual-{}-{at}.sql", std::process::id()));
        fs::write(&input, script).unwrap();
        let done = command.arg("-f").arg(&input).output().unwrap();
        fs::remove_file(&input).unwrap();
        assert!(
            done.status.success(),
            "{script}\n{}",
            String::from_utf8_lossy(&done.stderr)
        );
        assert_eq!(blocks[at + 1].0, "text", "the answer follows");
        assert_eq!(
            String::from_utf8_lossy(&done.stdout),
            blocks[at + 1].1,
            "{script}"
        );
        compared += 1;
    }
    assert!(compared >= 6);
}

#[test]
fn the_manuals_python_is_python() {
    let python: Vec<String> = blocks()
        .into_iter()
        .filter(|block| block.0 == "python")
        .map(|block| block.1)
        .collect();
    assert!(!python.is_empty());
    for program in python {
        let compile = "import sys; compile(sys.argv[1], 'manual', 'exec')";
        match Command::new(PYTHON)
            .args(["-c", compile, &program])
            .output()
        {
            Ok(done) => assert!(
                done.status.success(),
                "{}",
                String::from_utf8_lossy(&done.stderr)
            ),
            Err(error) => println!("skipped: Python of the manual: {error}"),
        }
    }
}

/// The interpreter that Debian's package of psycopg is for.
const PYTHON: &str = "/usr/bin/python3";

/// The program of the manual that polls in a loop, on this server.
fn loop_of_the_manual(dsn: &str) -> String {
    let programs = blocks().into_iter().filter(|block| block.0 == "python");
    let mut loops = programs.filter(|block| block.1.contains("while True"));
    let program = loops.next().unwrap().1;
    assert!(program.contains("\"dbname=shop\""));
    program.replace("\"dbname=shop\"", &format!("{dsn:?}"))
}

/// Waits until the loop has asked to be told of what comes, and asks nothing more.
fn await_rest(connection: &mut Connection) {
    let waits =
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND query LIKE '%await_group%'";
    let until = Instant::now() + Duration::from_secs(60);
    while connection
        .client()
        .query_one(waits, &[])
        .unwrap()
        .get::<_, i64>(0)
        == 0
    {
        assert!(Instant::now() < until, "it does not come to rest");
    }
}

#[test]
fn the_manuals_loop_reads_what_comes_and_waits_when_nothing_does() {
    let found = Command::new(PYTHON).args(["-c", "import psycopg"]).output();
    if !found.is_ok_and(|done| done.status.success()) {
        println!("skipped: the manual's loop: {PYTHON} has no psycopg; scripts/setup installs it");
        return;
    }
    let server = Server::alone();
    let mut connection = server.connect();
    let orders = TopicOptions::default();
    connection.create_topic("orders", &orders).unwrap();
    let mut python = Command::new(PYTHON)
        .args(["-u", "-c", &loop_of_the_manual(&server.dsn.text())])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(python.stdout.take().unwrap()).lines();
    // It is told of each record: between two of them it asks nothing, having asked to be told.
    for turn in 0..3 {
        await_rest(&mut connection);
        let send = format!("SELECT pubsub.send('orders', 'record {turn}')");
        connection.client().execute(&send, &[]).unwrap();
        let line = lines.next().unwrap().unwrap();
        assert_eq!(line, format!("b'record {turn}'"));
    }
    // Its last record is committed when it rests; before that, losing its place would bring the
    // record again.
    await_rest(&mut connection);
    // Another takes its place: it forgets what it had, joins again, and goes on.
    let end = "DELETE FROM pubsub.members; UPDATE pubsub.assignments SET member = NULL, generation = generation + 1";
    connection.client().batch_execute(end).unwrap();
    connection
        .client()
        .execute("SELECT pubsub.send('orders', 'last')", &[])
        .unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "b'last'");
    python.kill().unwrap();
    python.wait().unwrap();
}
