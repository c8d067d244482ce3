//! `dyno-sql serve --pg` with psql, a client that is not ours.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::installed::installed;
use crate::serving::{Server, ask, has_psql, psql, psql_at};
use crate::tables::{self, Form, Spot, spot};

/// A statement that computes until it is stopped.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 1000000) a(v), \
                       generate_series(1, 1000000) b(v) WHERE a.v * b.v % 7 = 3";

fn spots(count: u64) -> Vec<Spot> {
    let calls = ["K1ABC", "G8JNJ", "DK1UG"];
    (1..=count)
        .map(|id| spot(id, calls[id as usize % 3], (id % 40) as i8 - 20))
        .collect()
}

fn table(count: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    tables::write(folder.path(), &[vec![spots(count)]], Form::default());
    folder
}

#[test]
fn psql_answers_as_ingest_query_does() {
    if !has_psql() {
        return;
    }
    let table = table(1000);
    let server = Server::start(table.path(), &[]);
    for sql in [
        "select band, count(*) from spots group by 1 order by 1",
        "SELECT callsign, round(avg(snr), 3) AS a, min(id), max(id) FROM wspr.bronze GROUP BY \
         callsign ORDER BY callsign",
        "SELECT id, callsign, snr, frequency FROM spots WHERE id % 100 = 7 ORDER BY id LIMIT 5",
        "SELECT count(*) FROM wspr WHERE callsign LIKE 'G%' AND snr > 3",
    ] {
        let output = psql(&server, &["--csv", "-c", sql]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{sql}: {errors}");
        let ours = Command::new(env!("CARGO_BIN_EXE_dyno-sql"))
            .arg("query")
            .arg(table.path())
            .args([sql, "--format", "csv"])
            .output()
            .unwrap();
        // The names of columns without an alias are PostgreSQL's own matter.
        let rows = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(rows(&output.stdout), rows(&ours.stdout), "{sql}");
        assert!(!rows(&ours.stdout).is_empty(), "{sql}");
    }
}

#[test]
fn psql_describes_what_is_there() {
    if !has_psql() {
        return;
    }
    let table = table(10);
    let server = Server::start(table.path(), &[]);
    for (command, expected) in [
        ("\\dt", "spots"),
        ("\\d", "spots"),
        ("\\d spots", "callsign"),
        ("\\dn", "public"),
        ("\\l", "dyno"),
        ("SHOW server_version", "16.6"),
        ("SHOW TABLES", "bronze"),
        ("SELECT current_database()", "dyno"),
        ("SELECT version()", "DataFusion"),
        (
            "EXPLAIN SELECT band, count(*) FROM spots GROUP BY 1",
            "CodedAggregateExec",
        ),
        ("BEGIN; SELECT count(*) AS n FROM spots; COMMIT", "10"),
    ] {
        let output = psql(&server, &["-c", command]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(expected), "{command}: {said}{errors}");
    }
}

#[test]
fn a_write_is_refused_with_postgresqls_code() {
    if !has_psql() {
        return;
    }
    let table = table(10);
    let server = Server::start(table.path(), &[]);
    for (sql, expected) in [
        ("INSERT INTO spots VALUES (1)", "25006"),
        ("CREATE TABLE t (a int)", "25006"),
        ("CREATE TABLE t AS SELECT * FROM spots", "25006"),
        ("SELECT * INTO t FROM spots", "25006"),
        ("EXPLAIN INSERT INTO spots SELECT * FROM spots", "25006"),
        ("DROP TABLE spots", "25006"),
        ("UPDATE spots SET snr = 1", "25006"),
        ("DELETE FROM spots", "25006"),
        ("TRUNCATE spots", "25006"),
        ("COPY spots TO '/tmp/all.csv'", "25006"),
        ("COPY spots FROM STDIN", "25006"),
        ("LISTEN a", "0A000"),
        ("SET datafusion.execution.batch_size = 1", "42704"),
        ("SELECT nothing FROM spots", "42703"),
        ("SELECT 1 FROM nowhere", "42P01"),
        ("SELEC 1", "42601"),
    ] {
        let refused = ask(&server, sql).unwrap_err();
        assert!(refused.contains(expected), "{sql}: {refused}");
    }
}

#[test]
fn a_chain_of_operators_is_too_deep() {
    if !has_psql() {
        return;
    }
    let table = table(10);
    let server = Server::start(table.path(), &[]);
    let chain = format!("SELECT 1{}", "+1".repeat(50_000));
    let refused = ask(&server, &chain).unwrap_err();
    assert!(refused.contains("54001"), "{refused}");
    assert_eq!(ask(&server, "SELECT 1"), Ok("1".to_owned()));
}

/// The Python of an environment with the three drivers.
fn python_with_drivers() -> Option<PathBuf> {
    let own = installed("postgres-drivers/venv/bin/python");
    let mut all = own.into_iter().chain([PathBuf::from("python3")]);
    all.find(|python| {
        let imported = Command::new(python)
            .args(["-c", "import asyncpg, pg8000, psycopg"])
            .stderr(Stdio::null())
            .status();
        imported.is_ok_and(|status| status.success())
    })
}

#[test]
fn drivers_prepare_statements_and_read_binary_rows() {
    let Some(python) = python_with_drivers() else {
        println!("skipped: drivers: pip install asyncpg pg8000 'psycopg[binary]'");
        return;
    };
    let table = table(1000);
    let server = Server::start(table.path(), &[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/drivers.py");
    let output = Command::new(python)
        .arg(script)
        .arg(server.pg.port().to_string())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
}

#[test]
fn a_statement_is_cancelled_and_the_server_goes_on() {
    if !has_psql() {
        return;
    }
    let table = table(10);
    // The rows must not reach their limit before the request to cancel arrives.
    let limits = ["--max-statements", "2", "--max-rows", "1000000000"];
    let server = Server::start(table.path(), &limits);
    // The second sends rows when it is cancelled, and the third computes in one long join.
    let rows =
        "SELECT a.v, b.v FROM generate_series(1, 100000) a(v), generate_series(1, 1000) b(v)";
    for sql in [ENDLESS, rows, ENDLESS, ENDLESS] {
        let mut child = psql_at(&server)
            .args(["-At", "-c", "SELECT 'connected'", "-c", sql])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Before psql has connected, the signal would end it without a request to cancel.
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        answers.read_line(&mut first).unwrap();
        assert_eq!(first, "connected\n");
        std::thread::sleep(Duration::from_millis(300));
        // psql turns the signal into a request to cancel, on a connection of its own.
        let pid = child.id().to_string();
        let status = Command::new("kill").args(["-INT", &pid]).status().unwrap();
        assert!(status.success());
        let started = Instant::now();
        child.wait().unwrap();
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(said.contains("57014"), "{sql}: {said}");
        assert!(started.elapsed() < Duration::from_secs(10), "{sql}");
    }
    // Two turns were taken by four statements that had been given up, and both are free again.
    assert_eq!(
        ask(&server, "SELECT count(*) FROM spots"),
        Ok("10".to_owned())
    );
}

#[test]
fn time_rows_and_memory_have_limits() {
    if !has_psql() {
        return;
    }
    let table = table(10);
    let limits = [
        "--time-limit-ms",
        "3000",
        "--max-rows",
        "1000",
        "--memory",
        "2MiB",
    ];
    let server = Server::start(table.path(), &limits);
    let refused = |sql: &str| ask(&server, sql).unwrap_err();
    let started = Instant::now();
    let soon = format!("SET statement_timeout = '100ms'; {ENDLESS}");
    assert!(refused(&soon).contains("57014"));
    assert!(started.elapsed() < Duration::from_millis(2500));
    assert!(refused(ENDLESS).contains("57014"));
    assert!(refused("SELECT * FROM generate_series(1, 1001)").contains("54000"));
    let whole = ask(&server, "SELECT * FROM generate_series(1, 1000)").unwrap();
    assert_eq!(whole.lines().count(), 1000);
    let join = "SELECT count(*) FROM generate_series(1, 3000000) a(v) JOIN \
                generate_series(1, 3000000) b(v) ON a.v = b.v";
    assert!(refused(join).contains("53200"));
    assert_eq!(
        ask(&server, "SELECT count(*) FROM spots"),
        Ok("10".to_owned())
    );
}

#[test]
fn a_client_above_the_limit_is_told_so() {
    if !has_psql() {
        return;
    }
    let table = table(10);
    let server = Server::start(table.path(), &["--max-connections", "1"]);
    let mut first = psql_at(&server)
        .arg("-At")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = first.stdin.take().unwrap();
    writeln!(input, "SELECT 1;").unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "1");
    // psql prints no code for an error before it is connected.
    let refused = ask(&server, "SELECT 1").unwrap_err();
    assert!(refused.contains("too many clients"), "{refused}");
    drop(input);
    first.wait().unwrap();
    // The place is free once the server has seen the first one go.
    let until = Instant::now() + Duration::from_secs(10);
    while let Err(refused) = ask(&server, "SELECT 1") {
        assert!(Instant::now() < until, "{refused}");
    }
}

#[test]
fn two_hundred_sessions_are_answered() {
    if !has_psql() {
        return;
    }
    let table = table(5000);
    let server = Server::start(table.path(), &[]);
    let mut sessions: Vec<_> = (0..200)
        .map(|_| {
            psql_at(&server)
                .arg("-At")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    // All are open before the first one is closed: their input ends only below.
    let inputs: Vec<_> = sessions
        .iter_mut()
        .map(|session| {
            let mut input = session.stdin.take().unwrap();
            writeln!(
                input,
                "SELECT count(*) FROM spots WHERE callsign = 'G8JNJ';"
            )
            .unwrap();
            input
        })
        .collect();
    for session in &mut sessions {
        let mut line = String::new();
        BufReader::new(session.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "1667\n");
    }
    drop(inputs);
    for mut session in sessions {
        assert!(session.wait().unwrap().success());
    }
}

#[test]
fn a_failed_transaction_stays_failed_until_it_ends() {
    if !has_psql() {
        return;
    }
    let table = table(10);
    let server = Server::start(table.path(), &[]);
    let output = psql(
        &server,
        &[
            "-At",
            "-c",
            "BEGIN",
            "-c",
            "SELECT x FROM spots",
            "-c",
            "SELECT 1",
            "-c",
            "ROLLBACK",
            "-c",
            "SELECT 2",
        ],
    );
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("42703") && errors.contains("25P02"),
        "{errors}"
    );
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "BEGIN\nROLLBACK\n2\n");
}

#[test]
fn a_server_that_is_told_to_stop_stops() {
    let table = table(10);
    let mut server = Server::start(table.path(), &[]);
    let running = has_psql().then(|| psql_at(&server).args(["-c", ENDLESS]).spawn().unwrap());
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(server.stop(), Some(0));
    if let Some(mut running) = running {
        assert!(!running.wait().unwrap().success());
    }
}
