//! `dyno-sql serve --http` as curl and programs ask it.

use std::io::{Cursor, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::serving::Server;
use crate::tables::{self, Form, spot};
use bytes::Bytes;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
    /// Whether the body came to its stated end.
    whole: bool,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

fn send(server: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let sent = bytes[end + 4..].to_vec();
    let (body, whole) = if head.contains("chunked") {
        unchunked(&sent)
    } else {
        (sent, true)
    };
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head,
        body,
        whole,
    }
}

fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let length = std::str::from_utf8(&rest[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return (body, true);
        }
        body.extend(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 2 + length + 2..];
    }
    (body, false)
}

fn get(server: &Server, path: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.http);
    send(server.http, &request)
}

fn query(server: &Server, sql: &str, accept: &str) -> Answer {
    let request = format!(
        "POST /query HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nContent-Length: {}\r\n\r\n\
         {sql}",
        sql.len()
    );
    send(server.http, &request)
}

fn table() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let spots = (1..=100).map(|id| spot(id, if id % 2 == 0 { "K1ABC" } else { "G8JNJ" }, 5));
    tables::write(folder.path(), &[vec![spots.collect()]], Form::default());
    folder
}

#[test]
fn an_answer_comes_in_the_form_that_is_asked_for() {
    let table = table();
    let server = Server::start(table.path(), &[]);
    let sql = "SELECT callsign, count(*) AS n FROM spots GROUP BY 1 ORDER BY 1";
    let answer = query(&server, sql, "*/*");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let expected = json!([{"callsign": "G8JNJ", "n": 50}, {"callsign": "K1ABC", "n": 50}]);
    assert_eq!(answer.json(), expected);
    assert_eq!(
        query(&server, sql, "text/csv").text(),
        "callsign,n\nG8JNJ,50\nK1ABC,50\n"
    );
    let arrow = query(&server, sql, "application/vnd.apache.arrow.stream");
    let reader = StreamReader::try_new(Cursor::new(arrow.body), None).unwrap();
    let rows: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 2);
    let parquet = query(&server, sql, "application/vnd.apache.parquet");
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(parquet.body)).unwrap();
    let rows: usize = reader
        .build()
        .unwrap()
        .map(|batch| batch.unwrap().num_rows())
        .sum();
    assert_eq!(rows, 2);
    let empty = query(&server, "SELECT id FROM spots WHERE id = 0", "*/*");
    assert_eq!((empty.json(), empty.whole), (json!([]), true));
    let plan = query(&server, &format!("EXPLAIN {sql}"), "*/*").text();
    assert!(plan.contains("CodedAggregateExec"), "{plan}");
}

#[test]
fn spots_pass_the_filters() {
    let table = table();
    let server = Server::start(table.path(), &[]);
    let count = |parameters: &str| {
        let answer = get(&server, &format!("/spots?limit=1000&{parameters}"));
        assert_eq!(answer.status, 200, "{parameters}: {}", answer.text());
        answer.json().as_array().unwrap().len()
    };
    assert_eq!(count(""), 100);
    assert_eq!(count("call=k1abc"), 50);
    assert_eq!(count("band=20m"), 50);
    assert_eq!(count("band=106&call=K1ABC"), 0);
    assert_eq!(count("grid=fn"), 60);
    assert_eq!(count("from=1700000000&to=1700001200"), 9);
    assert_eq!(
        count("from=2023-11-14T22:13:20Z&to=2023-11-14T22:33:20Z"),
        9
    );
    assert_eq!(count("reporter=DK1UG"), 3);
    assert_eq!(count("snr=6"), 0);
    let csv = get(&server, "/spots?format=csv&limit=1").text();
    assert!(csv.starts_with("timestamp,callsign,grid,"), "{csv}");
    assert_eq!(csv.lines().count(), 2);
    let injected = get(&server, "/spots?call=x%27%20OR%20%271%27=%271");
    assert_eq!(injected.json(), json!([]));
}

#[test]
fn an_error_says_what_and_why() {
    let table = table();
    let server = Server::start(
        table.path(),
        &["--max-rows", "1000", "--time-limit-ms", "1500"],
    );
    for (sql, status, code) in [
        ("SELECT nothing FROM spots", 400, "42703"),
        ("SELECT 1 FROM nowhere", 404, "42P01"),
        ("INSERT INTO spots VALUES (1)", 403, "25006"),
        ("SELECT 1; SELECT 2", 400, "42601"),
        ("", 400, "42601"),
        (
            "SELECT count(*) FROM generate_series(1, 1000000) a(v), generate_series(1, 1000000) \
             b(v) WHERE a.v * b.v % 7 = 3",
            408,
            "57014",
        ),
        ("SELECT * FROM generate_series(1, 1001)", 413, "54000"),
    ] {
        let answer = query(&server, sql, "*/*");
        let said = answer.json();
        assert_eq!(answer.status, status, "{sql}: {said}");
        assert_eq!(said["sqlstate"], code, "{sql}");
        assert!(!said["why"].as_str().unwrap().is_empty());
    }
    for (path, status) in [
        ("/nowhere", 404),
        ("/spots?band=19m", 400),
        ("/query?sql=SELECT%201&format=xml", 400),
        ("/fetchWSPR.pl", 400),
    ] {
        assert_eq!(get(&server, path).status, status, "{path}");
    }
    for (request, status) in [
        ("DELETE /spots HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
        ("GET /\r\n\r\n", 400),
        (
            "POST /query HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n",
            413,
        ),
    ] {
        assert_eq!(send(server.http, request).status, status, "{request}");
    }
}

#[test]
fn an_answer_that_breaks_off_does_not_look_whole() {
    let table = table();
    let server = Server::start(table.path(), &["--max-rows", "100000"]);
    let answer = query(
        &server,
        "SELECT * FROM generate_series(1, 200000)",
        "text/csv",
    );
    assert_eq!(answer.status, 200);
    assert!(!answer.whole, "{} bytes", answer.body.len());
}

#[test]
fn metrics_health_and_the_page_are_there() {
    let table = table();
    let server = Server::start(table.path(), &[]);
    query(&server, "SELECT count(*) FROM spots", "*/*");
    let metrics = get(&server, "/metrics").text();
    assert!(
        metrics.contains("dyno_sql_statements_total 1\n"),
        "{metrics}"
    );
    assert_eq!(get(&server, "/healthz").text(), "ok\n");
    let page = get(&server, "/");
    assert!(page.head.contains("text/html"));
    // What is not in the page itself would come from elsewhere.
    let text = page.text();
    assert!(!text.contains("http://") && !text.contains("https://"));
    let clock = get(
        &server,
        "/ham/HamClock/fetchWSPR.pl?ofcall=K1ABC&maxage=1800",
    );
    assert_eq!((clock.status, clock.text()), (200, String::new()));
    // This table has nothing of the Reverse Beacon Network.
    let clock = get(&server, "/ham/HamClock/fetchRBN.pl?ofcall=K1ABC");
    assert_eq!((clock.status, clock.text()), (200, String::new()));
}

#[test]
fn a_clock_gets_the_newest_spots_in_the_order_of_time() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let start_s = now.as_secs().cast_signed() - 3600;
    let form = Form {
        start_ms: start_s * 1000,
        ..Form::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let spots = (1..=20).map(|id| spot(id, "K1ABC", 5)).collect();
    tables::write(folder.path(), &[vec![spots]], form);
    // More spots than an answer may have rows are fewer lines, and not an error.
    let server = Server::start(folder.path(), &["--max-rows", "5"]);
    let answer = get(&server, "/fetchWSPR.pl?ofcall=K1ABC&maxage=86400");
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    let times: Vec<i64> = text
        .lines()
        .map(|line| line.split(',').next().unwrap().parse().unwrap())
        .collect();
    let newest: Vec<i64> = (16..=20).map(|id| start_s + id * 120).collect();
    assert_eq!(times, newest);
}

#[test]
fn a_table_that_was_removed_and_loaded_anew_is_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("spots");
    let write = |call: &str| {
        let spots = (1..=100).map(|id| spot(id, call, 5)).collect();
        tables::write(&table, &[vec![spots]], Form::default());
    };
    write("K1ABC");
    let server = Server::start(&table, &[]);
    let sql = "SELECT callsign, count(*) AS n FROM spots GROUP BY 1";
    let calls = || query(&server, sql, "text/csv").text();
    assert_eq!(calls(), "callsign,n\nK1ABC,100\n");
    std::fs::remove_dir_all(&table).unwrap();
    // The files have the same names, and as many rows.
    write("G8JNJ");
    assert_eq!(calls(), "callsign,n\nG8JNJ,100\n");
}

#[test]
fn a_chain_of_operators_is_refused_and_the_server_goes_on() {
    let table = table();
    let server = Server::start(table.path(), &[]);
    for chain in [
        format!("SELECT 1{}", "+1".repeat(400_000)),
        format!(
            "SELECT count(*) FROM spots WHERE id = 0{}",
            " OR id = 7".repeat(20_000)
        ),
    ] {
        let answer = query(&server, &chain, "*/*");
        let said = answer.json();
        assert_eq!((answer.status, &said["sqlstate"]), (400, &json!("54001")));
        let why = said["why"].as_str().unwrap();
        assert!(why.contains("more than 2000 operators"), "{why}");
        assert_eq!(
            query(&server, "SELECT 1 AS n", "*/*").json(),
            json!([{"n": 1}])
        );
    }
    let short = format!("SELECT 1{} AS n", "+1".repeat(500));
    assert_eq!(query(&server, &short, "*/*").json(), json!([{"n": 501}]));
    let list = format!(
        "SELECT count(*) AS n FROM spots WHERE id IN (7{})",
        ", 1007".repeat(3000)
    );
    assert_eq!(query(&server, &list, "*/*").json(), json!([{"n": 1}]));
}

/// The body of a page after its script ran in Chromium; nothing where that is not installed.
fn in_browser(address: &str, profile: &Path) -> Option<String> {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--disable-background-networking", "--disable-dev-shm-usage"])
        .arg("--virtual-time-budget=30000")
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(address)
        .output();
    match output {
        Ok(output) => {
            let page = String::from_utf8(output.stdout).unwrap();
            let (_, body) = page.split_once("<body>").unwrap();
            Some(body.split("<script>").next().unwrap().to_owned())
        }
        Err(error) => {
            println!("skipped: page of spots: chromium: {error}");
            None
        }
    }
}

#[test]
fn the_page_shows_the_newest_hour_and_any_before_it() {
    let folder = tempfile::tempdir().unwrap();
    // A spot each two minutes, the last of them at 01:33:20.
    let spots = (1..=100).map(|id| spot(id, "K1ABC", 0)).collect();
    tables::write(folder.path(), &[vec![spots]], Form::default());
    let server = Server::start(folder.path(), &[]);
    let profile = tempfile::tempdir().unwrap();
    let address = format!("http://{}/", server.http);
    let Some(newest) = in_browser(&address, profile.path()) else {
        return;
    };
    let squares = "13 squares; the fullest has 1 spot.";
    for said in [
        "17 spots from 2023-11-15 01:00 to 02:00 UTC",
        squares,
        ">30m</th>",
        ">20m</th>",
        "title=\"01:00: 1 spot\"",
        "title=\"01:36: 0 spots\"",
        ">9</th>",
        "id=\"after\" aria-label=\"The hour after\" disabled",
    ] {
        assert!(newest.contains(said), "{said} is not in {newest}");
    }
    let before = in_browser(&format!("{address}#2023-11-14T23:00"), profile.path()).unwrap();
    for said in ["30 spots from 2023-11-14 23:00 to 00:00 UTC", ">15</th>"] {
        assert!(before.contains(said), "{said} is not in {before}");
    }
    assert!(!before.contains("disabled"), "there is an hour after it");
    let none = in_browser(&format!("{address}#2023-11-13T23:00"), profile.path()).unwrap();
    assert!(none.contains("0 spots from 2023-11-13 23:00"), "{none}");
}

fn dashboard(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/operating/dashboards")
        .join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The texts of a kind in the targets of a dashboard.
fn targets(dashboard: &Value, kind: &str) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    targets
        .map(|target| target[kind].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_dashboards_ask_for_what_the_server_shows() {
    let table = table();
    let server = Server::start(table.path(), &[]);
    query(&server, "SELECT 1", "*/*");
    let metrics = get(&server, "/metrics").text();
    let expressions = targets(&dashboard("ingest-serve.json"), "expr");
    let names = expressions
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .filter(|word| word.starts_with("dyno_"));
    let mut asked = 0;
    for name in names {
        asked += 1;
        assert!(metrics.contains(name), "{name} is not in {metrics}");
    }
    assert!(asked >= 5, "{expressions:?}");
    // Grafana puts the times of the view in the place of its macro.
    let within = "timestamp BETWEEN '2023-11-14T00:00:00Z' AND '2023-11-16T00:00:00Z'";
    for sql in targets(&dashboard("ingest-spots.json"), "rawSql") {
        let answer = query(
            &server,
            &sql.replace("$__timeFilter(timestamp)", within),
            "*/*",
        );
        assert_eq!(answer.status, 200, "{sql}: {}", answer.text());
        assert!(!answer.json().as_array().unwrap().is_empty(), "{sql}");
    }
}
