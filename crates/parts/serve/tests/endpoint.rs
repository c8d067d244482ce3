//! The endpoint as scrapers, strangers and enemies see it.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dyno_certificates::Certificates;
use dyno_serve::rustls::pki_types::ServerName;
use dyno_serve::rustls::{ClientConnection, StreamOwned};
use dyno_serve::{Endpoint, Histogram, Registry, Scale, ServeError, Settings, Token, tls};

const SECRET: &str = "0123456789abcdef";

fn registry() -> Registry {
    let registry = Registry::new();
    for (topic, count) in [("a", 3), ("with \"quotes\" \\ and\nlines", 4)] {
        let labels = [("topic", topic), ("broker", "1")];
        let sent = registry.counter("sent_total", "Sent \\ records.\nAll.", &labels);
        sent.unwrap().add(count);
    }
    registry
        .gauge("open_connections", "Open.", &[])
        .unwrap()
        .set(-7);
    let (scale, bounds) = (Scale::Nanoseconds, &Histogram::LATENCY_NS);
    let waits = registry
        .histogram("wait_seconds", "Waits.", &[], scale, bounds)
        .unwrap();
    (0..1000).for_each(|n| waits.observe(n * 1_000_000));
    registry
}

fn start(settings: Settings) -> Endpoint {
    Endpoint::start("127.0.0.1:0".parse().unwrap(), registry(), settings).unwrap()
}

fn talk(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // The other side may answer and close before it has read all.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

fn get(address: SocketAddr, path: &str, more: &str) -> (u16, String) {
    let answer = talk(
        address,
        format!("GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n").as_bytes(),
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

#[test]
fn metrics_are_for_those_with_the_token_and_health_for_all() {
    let settings = Settings {
        token: Some(Token::new(SECRET).unwrap()),
        health: Some(Arc::new(|| Err("the server is lost".to_owned()))),
        ..Settings::default()
    };
    let endpoint = start(settings);
    let bearer = format!("Authorization: Bearer {SECRET}\r\n");
    let (status, body) = get(endpoint.address(), "/metrics", &bearer);
    assert_eq!(status, 200);
    assert!(body.contains("open_connections -7\n"), "{body}");
    assert_eq!(get(endpoint.address(), "/metrics", "").0, 401);
    let wrong = bearer.replace("0123", "3210");
    assert_eq!(get(endpoint.address(), "/metrics", &wrong).0, 401);
    assert_eq!(
        get(endpoint.address(), "/healthz", ""),
        (503, "not well\n".to_owned())
    );
    let unhealthy = (503, "the server is lost\n".to_owned());
    assert_eq!(get(endpoint.address(), "/healthz", &bearer), unhealthy);
    assert_eq!(get(endpoint.address(), "/other", &bearer).0, 404);
}

#[test]
fn nobody_listens_to_all_without_a_token() {
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let refused = Endpoint::start(everywhere, Registry::new(), Settings::default());
    assert!(matches!(refused, Err(ServeError::Unguarded { .. })));
    let settings = Settings {
        token: Some(Token::new(SECRET).unwrap()),
        ..Settings::default()
    };
    let endpoint = Endpoint::start(everywhere, Registry::new(), settings).unwrap();
    let taken = Endpoint::start(
        SocketAddr::from(([127, 0, 0, 1], endpoint.address().port())),
        Registry::new(),
        Settings::default(),
    );
    assert!(matches!(taken, Err(ServeError::Listen { .. })));
}

#[test]
fn hostile_bytes_get_an_answer_and_the_next_one_is_served() {
    let endpoint = start(Settings::default());
    let long = format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(9000));
    for (request, status) in [
        (&b"\0\0\0\0\r\n\r\n"[..], " 400 "),
        (b"GET /metrics\r\n\r\n", " 400 "),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n", " 405 "),
        (b"GET /metrics HTTP/1.1\r\nno colon\r\n\r\n", " 400 "),
    ] {
        let answer = talk(endpoint.address(), request);
        assert!(answer.contains(status), "{answer}");
    }
    // The end of a connection with unread bytes may reach the client before the answer does.
    let answer = talk(endpoint.address(), long.as_bytes());
    assert!(answer.is_empty() || answer.contains(" 431 "), "{answer}");
    let head = talk(endpoint.address(), b"HEAD /healthz HTTP/1.1\r\n\r\n");
    assert!(
        head.contains(" 200 OK") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    assert_eq!(
        get(endpoint.address(), "/healthz", ""),
        (200, "ok\n".to_owned())
    );
}

#[test]
fn slow_clients_neither_stay_nor_keep_others_out_for_long() {
    let within = Duration::from_millis(300);
    let endpoint = start(Settings {
        within,
        ..Settings::default()
    });
    let begin = Instant::now();
    let mut slow: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(endpoint.address()).unwrap();
            stream.write_all(b"GET /met").unwrap();
            stream
        })
        .collect();
    let mut answer = String::new();
    // One that sends on and on is cut at the same time as one that is silent.
    while slow[0].write_all(b"r").is_ok() && begin.elapsed() < Duration::from_secs(10) {
        std::thread::yield_now();
        if begin.elapsed() > within * 2 {
            break;
        }
    }
    let _ = slow[1].read_to_string(&mut answer);
    assert_eq!(answer, "");
    let served = loop {
        let mut stream = TcpStream::connect(endpoint.address()).unwrap();
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\n\r\n");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        if answer.contains(" 200 ") {
            break begin.elapsed();
        }
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "strangers keep it busy"
        );
    };
    assert!(served < Duration::from_secs(10));
}

#[test]
fn idle_connections_do_not_keep_a_scrape_out() {
    let settings = Settings {
        within: Duration::from_secs(600),
        ..Settings::default()
    };
    let endpoint = start(settings);
    let idle: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(endpoint.address()).unwrap())
        .collect();
    assert_eq!(get(endpoint.address(), "/metrics", "").0, 200);
    // The first of them gave its place away.
    assert_eq!((&idle[0]).read(&mut [0; 1]).unwrap_or(0), 0);
}

#[test]
fn an_endpoint_that_was_dropped_is_gone() {
    // On an address of its own: the port may be another test's, or the caller's, the moment it is
    // free.
    let own = "127.0.0.77:0".parse().unwrap();
    let endpoint = Endpoint::start(own, registry(), Settings::default()).unwrap();
    let address = endpoint.address();
    drop(endpoint);
    // A child that another test is starting holds every socket of this process until it is another
    // program.
    let until = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < until, "{address} still answers");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn tls_is_spoken_with_the_certificates_of_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let error = tls::server(&dir.join("cert.pem"), &dir.join("key.pem")).unwrap_err();
    assert!(error.to_string().contains("cert.pem"), "{error}");
    let Some(made) = Certificates::make(dir, "metrics in TLS") else {
        return;
    };
    let swapped = tls::server(&made.root(), &made.server_key());
    assert!(matches!(swapped, Err(ServeError::Tls { .. })));
    let settings = Settings {
        tls: Some(tls::server(&made.server(), &made.server_key()).unwrap()),
        ..Settings::default()
    };
    let endpoint = start(settings);
    let ask = |name: &'static str| {
        let client = tls::client(&made.root()).unwrap();
        let session = ClientConnection::new(client, ServerName::try_from(name).unwrap()).unwrap();
        let socket = TcpStream::connect(endpoint.address()).unwrap();
        let mut stream = StreamOwned::new(session, socket);
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<String, std::io::Error>(answer)
    };
    assert!(ask("localhost").unwrap().contains("open_connections -7\n"));
    assert!(ask("elsewhere").is_err());
    // Plain bytes on a TLS port end the connection, and nothing else.
    assert!(TcpStream::connect(endpoint.address()).is_ok());
    let mut plain = TcpStream::connect(endpoint.address()).unwrap();
    plain.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("open_connections"));
    assert!(ask("localhost").is_ok());
}

#[test]
fn curl_reads_it() {
    let endpoint = start(Settings {
        token: Some(Token::new(SECRET).unwrap()),
        ..Settings::default()
    });
    let url = format!("http://{}/metrics", endpoint.address());
    let header = format!("Authorization: Bearer {SECRET}");
    let asked = Command::new("curl")
        .args(["--silent", "--fail", "--header", &header, &url])
        .output();
    match asked {
        Err(error) => println!("skipped: curl: {error}"),
        Ok(output) => {
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(
                output.status.success() && text == registry().text(),
                "{text}"
            );
        }
    }
}

const JUDGE: &str = r#"
import sys
from prometheus_client.parser import text_string_to_metric_families
for family in text_string_to_metric_families(sys.stdin.read()):
    print(family.name, family.type, repr(family.documentation))
    for sample in family.samples:
        if not sample.name.endswith("_bucket"):
            print(sample.name, sorted(sample.labels.items()), float(sample.value))
"#;

#[test]
fn the_parser_of_prometheus_own_client_reads_what_was_meant() {
    let data = std::env::var("XDG_DATA_HOME")
        .unwrap_or_else(|_| format!("{}/.local/share", std::env::var("HOME").unwrap_or_default()));
    let python = format!("{data}/dynolab/peers/prometheus/venv/bin/python");
    if !Path::new(&python).exists() {
        println!("skipped: prometheus_client: {python} is not there");
        return;
    }
    let mut child = Command::new(python)
        .args(["-c", JUDGE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = registry().text();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        said,
        r#"open_connections gauge 'Open.'
open_connections [] -7.0
sent counter 'Sent \\ records.\nAll.'
sent_total [('broker', '1'), ('topic', 'a')] 3.0
sent_total [('broker', '1'), ('topic', 'with "quotes" \\ and\nlines')] 4.0
wait_seconds histogram 'Waits.'
wait_seconds_sum [] 499.5
wait_seconds_count [] 1000.0
"#
    );
}
