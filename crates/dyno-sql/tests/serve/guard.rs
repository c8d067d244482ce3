//! Who is let in by `dyno-sql serve`: addresses, token, TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::serving::{Server, has_psql, psql_at};
use crate::tables::{self, Form, spot};
use dyno_certificates::Certificates;

const TOKEN: &str = "0123456789abcdef";

fn table() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let one = vec![vec![spot(1, "K1ABC", -3)]];
    tables::write(folder.path(), &[one], Form::default());
    std::fs::write(folder.path().join("token"), TOKEN).unwrap();
    folder
}

#[test]
fn no_address_beyond_this_machine_without_a_token() {
    let table = table();
    for front in ["--pg", "--http"] {
        let output = Command::new(env!("CARGO_BIN_EXE_dyno-sql"))
            .arg("serve")
            .arg(table.path())
            .args([front, "0.0.0.0:0"])
            .env_remove("DYNO_TOKEN")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("without a token"), "{said}");
    }
}

#[test]
fn only_the_token_opens() {
    if !has_psql() {
        return;
    }
    let table = table();
    let file = table.path().join("token");
    let server = Server::start(table.path(), &["--token-file", file.to_str().unwrap()]);
    for (password, well) in [("0123456789abcdeF", false), ("", false), (TOKEN, true)] {
        let output = psql_at(&server)
            .args(["-w", "-At", "-c", "SELECT count(*) FROM spots"])
            .env("PGPASSWORD", password)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.success(), well, "{password}: {said}");
        assert!(well || said.contains("assword"), "{said}");
    }
}

#[test]
fn tls_shows_the_certificate() {
    let table = table();
    let Some(made) = Certificates::make(table.path(), "TLS of serve") else {
        return;
    };
    let (certificate, key) = (made.server(), made.server_key());
    let server = Server::start(
        table.path(),
        &[
            "--token-file",
            table.path().join("token").to_str().unwrap(),
            "--tls-cert",
            certificate.to_str().unwrap(),
            "--tls-key",
            key.to_str().unwrap(),
        ],
    );
    let port = server.pg.port();
    for (root, well) in [(made.root(), true), (made.other_root(), false)] {
        let dsn = format!(
            "host=localhost hostaddr=127.0.0.1 port={port} user=me dbname=dyno \
             sslmode=verify-full sslrootcert={}",
            root.display()
        );
        let output = Command::new("psql")
            .args(["-X", "-At", "-c", "SELECT count(*) FROM spots", &dsn])
            .env("PGPASSWORD", TOKEN)
            .output();
        if !has_psql() {
            return;
        }
        let output = output.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), well, "{errors}");
        if well {
            assert_eq!(output.stdout, b"1\n");
        }
    }
    let clear = psql_at(&server)
        .args(["-w", "-c", "SELECT 1"])
        .env("PGPASSWORD", TOKEN)
        .env("PGSSLMODE", "disable")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&clear.stderr).into_owned();
    assert!(said.contains("TLS only"), "{said}");
    let address = format!("https://localhost:{}/spots?format=csv", server.http.port());
    let curl = Command::new("curl")
        .args(["-s", "--fail-with-body", "--cacert"])
        .arg(made.root())
        .args(["--oauth2-bearer", TOKEN, &address])
        .output();
    match curl {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.starts_with("timestamp,callsign"), "{said}");
        }
        Err(error) => println!("skipped: HTTPS of serve: no curl: {error}"),
    }
}

/// A server that asks for the token.
fn guarded(table: &tempfile::TempDir) -> Server {
    let file = table.path().join("token");
    Server::start(table.path(), &["--token-file", file.to_str().unwrap()])
}

/// A message of PostgreSQL's protocol; the first one of a connection has no kind.
fn message(kind: &[u8], body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [kind, &length, body].concat()
}

fn startup() -> Vec<u8> {
    message(b"", b"\0\x03\0\0user\0me\0database\0dyno\0\0")
}

fn metrics(server: &Server) -> String {
    let mut stream = TcpStream::connect(server.http).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// What the server says to these messages, after which it has to end the connection by itself.
fn exchange(server: &Server, messages: &[Vec<u8>]) -> String {
    let mut stream = TcpStream::connect(server.pg).unwrap();
    let patience = Duration::from_secs(10);
    stream.set_read_timeout(Some(patience)).unwrap();
    // One write, as of a client that does not wait for answers.
    stream.write_all(&messages.concat()).unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    // This end of the connection is still open.
    let until = Instant::now() + patience;
    while !metrics(server).contains("dyno_sql_connections 0\n") {
        assert!(Instant::now() < until, "the connection is still served");
    }
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn a_client_that_was_refused_is_not_served() {
    let table = table();
    let server = guarded(&table);
    let said = exchange(
        &server,
        &[
            startup(),
            message(b"p", b"0123456789abcdeF\0"),
            message(b"Q", b"SELECT count(*) FROM spots\0"),
        ],
    );
    assert!(said.contains("28P01"), "{said}");
    let metrics = metrics(&server);
    assert!(
        metrics.contains("dyno_sql_statements_total 0\n"),
        "{metrics}"
    );
}

#[test]
fn a_connection_brings_one_request_to_cancel() {
    let table = table();
    let server = guarded(&table);
    let cancel = message(b"", &[4, 210, 22, 46, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert_eq!(exchange(&server, &[cancel.clone(), cancel]), "");
}

#[test]
fn messages_that_are_cut_short_end_the_connection_alone() {
    let table = table();
    let server = guarded(&table);
    // Each says that it has no body, or not even a length, or a gibibyte.
    for hostile in [
        &b"p\0\0\0\0"[..],
        b"P\0\0\0\x04",
        b"B\0\0\0\x04",
        b"C\0\0\0\x04",
        b"D\0\0\0\x04",
        b"E\0\0\0\x04",
        b"Q\x3f\xff\xff\xf0",
        b"p\xff\xff\xff\xff",
    ] {
        let said = exchange(&server, &[startup(), hostile.to_vec()]);
        assert!(said.contains("08P01"), "{hostile:?}: {said}");
    }
    // A client that knows the token names the formats of two columns out of three.
    let said = exchange(
        &server,
        &[
            startup(),
            message(b"p", format!("{TOKEN}\0").as_bytes()),
            message(b"P", b"\0SELECT 1 AS a, 2 AS b, 3 AS c\0\0\0"),
            message(b"B", b"\0\0\0\0\0\0\0\x02\0\0\0\0"),
            message(b"D", b"P\0"),
            message(b"S", b""),
            message(b"X", b""),
        ],
    );
    assert!(said.contains("08P01"), "{said}");
}
