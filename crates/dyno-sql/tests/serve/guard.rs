//! Who is let in by `dyno-sql serve`: addresses, token, TLS.

use std::process::Command;

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
