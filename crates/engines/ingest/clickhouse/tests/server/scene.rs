//! A server with nothing in it, archives to load, and what SQL says of the outcome.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyno_ingest::generate::{Form, Generator};
use dyno_ingest::load::{ArchiveReport, Input, LoadReport, Options, Outcome, Progress};
use dyno_ingest_clickhouse::private_server::{Config, Ports, PrivateServer};
use dyno_ingest_clickhouse::{Address, Servers, Settings};
use dyno_ingest_feeds::{Feed, load_into, named};

use crate::sums;

/// A server and a place for files.
pub struct Scene {
    pub server: PrivateServer,
    pub folder: tempfile::TempDir,
}

impl Scene {
    /// `None`, and a line that says why, where no server can be started.
    pub fn new(config: &Config) -> Option<Scene> {
        if let Some(missing) = PrivateServer::missing() {
            println!("skipped: {missing}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("server");
        fs::create_dir(&data).unwrap();
        let server = PrivateServer::start(&data, Ports::free().unwrap(), config).unwrap();
        Some(Scene { server, folder })
    }

    pub fn address(&self, table: &str) -> Address {
        self.server.address(table).unwrap()
    }

    /// Archives of plain text, from a seed.
    pub fn archives(&self, name: &str, rows: u64, months: u32, quirks: f64) -> Vec<PathBuf> {
        let generator = Generator {
            rows,
            months,
            quirks,
            form: Form::Plain,
            ..Generator::default()
        };
        let folder = self.folder.path().join(name);
        let go_on = |_| ControlFlow::Continue(());
        generator.write(&folder, 2, &go_on).unwrap().files
    }

    /// Where the server keeps the parts of a table, `DATABASE/TABLE`.
    pub fn folder_of(&self, table: &str) -> PathBuf {
        self.folder.path().join("server/data/data").join(table)
    }

    pub fn ask(&self, sql: &str) -> String {
        ask(&self.server, sql)
    }

    /// Tables of a database whose names hold `part`.
    pub fn tables_with(&self, part: &str) -> String {
        self.ask(&format!(
            "SELECT name FROM system.tables WHERE position(name, '{part}') > 0"
        ))
    }
}

pub fn address(user: &str, server: &PrivateServer, table: &str) -> Address {
    let text = format!("clickhouse://{user}@{}/{table}", server.http());
    text.parse().unwrap()
}

/// The answer of a server to a question, by a client that is not ours.
pub fn ask(server: &PrivateServer, sql: &str) -> String {
    let mut answer = dyno_http::ureq::post(format!("http://{}/", server.http()))
        .config()
        .http_status_as_error(false)
        .build()
        .send(sql)
        .unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    assert!(answer.status().is_success(), "{sql}: {text}");
    text.trim_end().to_owned()
}

/// Patience that a server's restart fits in.
pub fn settings() -> Settings {
    Settings {
        patience: Duration::from_secs(120),
        ..Settings::default()
    }
}

/// Two threads, as many bad rows as there are, and little memory: many blocks.
pub fn options() -> Options {
    Options {
        workers: 2,
        max_bad: 1.0,
        memory: 256 << 20,
        ..Options::default()
    }
}

pub fn try_load(
    files: &[PathBuf],
    address: &Address,
    settings: &Settings,
    options: &Options,
) -> dyno_ingest::Result<LoadReport> {
    try_load_of(named("wspr").unwrap(), files, address, settings, options)
}

pub fn try_load_of(
    feed: &'static Feed,
    files: &[PathBuf],
    address: &Address,
    settings: &Settings,
    options: &Options,
) -> dyno_ingest::Result<LoadReport> {
    let inputs = files.iter().cloned().map(Input::File).collect();
    let servers = Servers {
        address: address.clone(),
        settings: settings.clone(),
    };
    load_into(feed, inputs, &servers, options, &Progress::default())
}

pub fn load(files: &[PathBuf], address: &Address, settings: &Settings) -> Vec<ArchiveReport> {
    try_load(files, address, settings, &options())
        .unwrap()
        .archives
}

pub fn loaded_rows(report: &ArchiveReport) -> u64 {
    match &report.outcome {
        Outcome::Loaded { rows, .. } => *rows,
        other => panic!("{}: {other:?}", report.path.display()),
    }
}

pub fn failure(report: &ArchiveReport) -> String {
    match &report.outcome {
        Outcome::Failed(error) => error.to_string(),
        other => panic!("{} should have failed: {other:?}", report.path.display()),
    }
}

/// The table has the rows of these texts, each once, and nothing else.
pub fn check_table(server: &PrivateServer, table: &str, files: &[PathBuf]) {
    let found = ask(server, &sums::query(table));
    assert_eq!(found, sums::expected(&read(files)), "{table}");
}

fn read(files: &[PathBuf]) -> String {
    let text = |path: &PathBuf| fs::read_to_string(Path::new(path)).unwrap();
    files.iter().map(text).collect()
}
