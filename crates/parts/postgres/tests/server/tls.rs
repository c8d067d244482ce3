//! TLS with certificates that are and are not good.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dyno_certificates::Certificates;

use crate::place::place;
use dyno_postgres::{Cluster, Dsn, Listen, Options, PgError, Session, connect};

/// A cluster on TCP, with and without TLS.
struct Listening {
    dir: PathBuf,
    made: Certificates,
    port: u16,
    password: String,
    cluster: Option<Cluster>,
}

impl Listening {
    fn start(dir: &Path, made: Certificates) -> Self {
        let mut one = Self {
            dir: dir.to_path_buf(),
            made,
            port: dyno_ports::free().unwrap(),
            password: String::new(),
            cluster: None,
        };
        let cluster = one.open("off").unwrap();
        let config = cluster.tcp_dsn().unwrap().config();
        one.password = String::from_utf8(config.get_password().unwrap().to_vec()).unwrap();
        one.cluster = Some(cluster);
        one
    }

    fn open(&self, ssl: &str) -> Result<Cluster, PgError> {
        let options = Options {
            listen: Some(Listen {
                address: "localhost".to_owned(),
                port: self.port,
            }),
            settings: vec![("ssl".to_owned(), ssl.to_owned())],
            ..Options::small()
        };
        Cluster::open(&self.dir.join("one"), options)
    }

    /// `false` when this server was built without TLS, as those in wheels are.
    fn turn_on(&mut self) -> bool {
        let data = self.dir.join("one/data");
        for (from, to) in [
            (self.made.server(), "server.crt"),
            (self.made.server_key(), "server.key"),
        ] {
            let to = data.join(to);
            fs::copy(from, &to).unwrap();
            let like = format!("--reference={}", data.display());
            Command::new("chown").arg(like).arg(&to).status().unwrap();
            Command::new("chmod").arg("600").arg(&to).status().unwrap();
        }
        self.cluster = None;
        match self.open("on") {
            Ok(cluster) => self.cluster = Some(cluster),
            Err(error) if error.to_string().contains("not supported by this build") => {
                return false;
            }
            Err(error) => panic!("{error}"),
        }
        true
    }

    /// Whether a connection to `host` with options `more` is encrypted.
    fn encrypts(&self, host: &str, more: &str) -> Result<bool, PgError> {
        let (password, port) = (&self.password, self.port);
        let more = more.replace("ROOT", self.made.root().to_str().unwrap());
        let text = format!("postgresql://dyno:{password}@{host}:{port}/postgres?{more}");
        let dsn: Dsn = text.parse().unwrap();
        let ask = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let mut sql = connect(&dsn, &Session::named("tls"))?;
        Ok(sql.query_one(ask, &[]).unwrap().get(0))
    }
}

#[test]
fn certificates_are_checked_as_far_as_the_mode_says() {
    let Some(place) = place() else { return };
    let Some(made) = Certificates::make(place.path(), "PostgreSQL over TLS") else {
        return;
    };
    let mut one = Listening::start(place.path(), made);
    assert!(!one.encrypts("localhost", "sslmode=prefer").unwrap());
    assert!(one.encrypts("localhost", "sslmode=require").is_err());
    if !one.turn_on() {
        println!("skipped: TLS: this PostgreSQL was built without it");
        return;
    }
    for (host, more, encrypted) in [
        ("localhost", "sslmode=disable", false),
        ("localhost", "sslmode=prefer", true),
        ("localhost", "sslmode=require", true),
        ("localhost", "sslmode=verify-full&sslrootcert=ROOT", true),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=ROOT", true),
    ] {
        let found = one.encrypts(host, more).unwrap();
        assert_eq!(found, encrypted, "{host} {more}");
    }
    for (host, more, says) in [
        (
            "127.0.0.1",
            "verify-full&sslrootcert=ROOT",
            "certificate not valid for name",
        ),
        // Unknown to the system, or the system has no roots.
        ("localhost", "verify-full&sslrootcert=system", "cannot"),
        ("localhost", "verify-full", "no root"),
        ("localhost", "verify-ca&sslrootcert=/no/file", "/no/file"),
    ] {
        let error = one.encrypts(host, &format!("sslmode={more}")).unwrap_err();
        assert!(error.to_string().contains(says), "{more}: {error}");
    }
}
