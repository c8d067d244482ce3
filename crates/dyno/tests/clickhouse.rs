//! `dyno ingest load --into clickhouse://...` on a real server.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use dyno_certificates::Certificates;
use dyno_ingest_clickhouse::private_server::{Config, Ports, PrivateServer};
use dyno_readback::spots;
use dyno_rigs::server_checksum;

const SECRET: &str = "hidden-one";

fn dyno(folder: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dyno"));
    command
        .current_dir(folder)
        .env_remove("CLICKHOUSE_PASSWORD")
        .env_remove("SSL_CERT_FILE");
    command
}

/// What a command that must succeed printed.
fn printed(command: &mut Command) -> String {
    let output = command.assert().success().get_output().clone();
    String::from_utf8(output.stdout).expect("text")
}

/// What a command that must fail said.
fn refusal(command: &mut Command) -> String {
    let output = command.assert().code(2).get_output().clone();
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(!said.contains(SECRET), "{said}");
    said
}

/// A server with a user who has a password, two archives, and the same archives in a directory.
struct Scene {
    server: PrivateServer,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Option<Scene> {
        Scene::with(String::new())
    }

    /// With more in the server's configuration.
    fn with(xml: String) -> Option<Scene> {
        if let Some(missing) = PrivateServer::missing() {
            println!("skipped: {missing}");
            return None;
        }
        let folder = tempfile::tempdir().expect("a directory");
        let data = folder.path().join("server");
        fs::create_dir(&data).expect("a directory");
        let user = ("loader".to_owned(), SECRET.to_owned(), "default".to_owned());
        let config = Config {
            users: vec![user],
            xml,
        };
        let server = PrivateServer::start(&data, Ports::free().expect("ports"), &config);
        let server = server.expect("a server");
        fs::write(folder.path().join("password"), format!("{SECRET}\n")).expect("writable");
        let scene = Scene { server, folder };
        let made = ["--rows", "40k", "--months", "2", "--out", "archives"];
        let mut command = scene.dyno();
        command
            .args(["ingest", "gen"])
            .args(made)
            .assert()
            .success();
        scene.load("spots").assert().success();
        Some(scene)
    }

    fn dyno(&self) -> Command {
        dyno(self.folder.path())
    }

    /// The address of a table for the user with the password.
    fn address(&self, table: &str) -> String {
        format!("clickhouse://loader@{}/{table}", self.server.http())
    }

    fn load(&self, into: &str) -> Command {
        let mut command = self.dyno();
        command
            .args(["ingest", "load", "archives/wsprspots-2023-01.csv.gz"])
            .args(["archives/wsprspots-2023-02.csv.gz", "--into", into]);
        command
    }

    /// The table on the server has the rows of the directory.
    fn check(&self, table: &str) {
        let embedded = spots(&self.folder.path().join("spots")).expect("a table");
        let held = server_checksum(&self.server, table).expect("a table");
        assert_eq!(
            (held.count, held.checksum),
            (embedded.count, embedded.checksum)
        );
    }
}

#[test]
fn what_cannot_be_is_refused_and_no_password_is_shown() {
    let Some(scene) = Scene::new() else { return };
    let into = scene.address("wspr.bronze");
    let said = refusal(&mut scene.load(&into));
    assert!(
        said.contains("does not accept the credentials of user loader"),
        "{said}"
    );
    let said = refusal(scene.load(&into).env("CLICKHOUSE_PASSWORD", "wrong"));
    assert!(said.contains("(code 193)"), "{said}");
    let with_password = into.replace("loader@", &format!("loader:{SECRET}@"));
    let said = refusal(&mut scene.load(&with_password));
    assert!(said.contains("CLICKHOUSE_PASSWORD"), "{said}");
    let said = refusal(scene.load("spots").arg("--dictionary-types"));
    assert!(said.contains("not for a directory"), "{said}");
}

#[test]
fn a_server_holds_the_same_rows_as_a_directory() {
    let Some(scene) = Scene::new() else { return };
    let into = scene.address("wspr.bronze");
    let mut load = scene.load(&into);
    let text = printed(load.env("CLICKHOUSE_PASSWORD", SECRET).arg("--json"));
    assert!(text.contains("\"rows\": 40000"), "{text}");
    assert!(text.contains("\"parts_most\""), "{text}");
    assert!(!text.contains(SECRET), "{text}");
    scene.check("wspr.bronze");
    let again = printed(scene.load(&into).args(["--password-file", "password"]));
    assert!(again.contains("there already, same bytes"), "{again}");

    // The directory's files are a third kind of source; they hold the same rows.
    let other = format!("clickhouse://{}/wspr.parquet", scene.server.http());
    let files = fs::read_dir(scene.folder.path().join("spots/data")).expect("files");
    let files = files.map(|entry| entry.expect("a file").path());
    let mut command = scene.dyno();
    command.args(["ingest", "load", "--into", &other, "--dictionary-types"]);
    command.args(files).assert().success();
    scene.check("wspr.parquet");

    let status = |more: &[&str]| {
        let mut command = scene.dyno();
        command.args(["ingest", "status", &into, "--password-file", "password"]);
        printed(command.args(more))
    };
    assert!(status(&[]).contains("40000 rows, 2 archives in the ledger"));
    assert!(status(&["--json"]).contains("\"state\": \"there\""));
}

/// The server's own TLS, with a certificate of a root that the machine does not trust until it is
/// told to.
#[test]
fn a_server_behind_tls_is_loaded_into_and_only_its_own_root_vouches_for_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(made) = Certificates::make(folder.path(), "https:// to ClickHouse") else {
        return;
    };
    let port = Ports::free().expect("ports").http;
    let xml = format!(
        "<https_port>{port}</https_port><openSSL><server><certificateFile>{}</certificateFile>\
         <privateKeyFile>{}</privateKeyFile><verificationMode>none</verificationMode>\
         <cacheSessions>true</cacheSessions><disableProtocols>sslv2,sslv3</disableProtocols>\
         </server></openSSL>",
        made.server().display(),
        made.server_key().display()
    );
    let Some(scene) = Scene::with(xml) else {
        return;
    };
    let into = format!("https://loader@localhost:{port}/wspr.bronze");
    let load = |root: &Path, password: &str| {
        let mut command = scene.load(&into);
        command
            .env("SSL_CERT_FILE", root)
            .env("CLICKHOUSE_PASSWORD", password);
        command
    };
    let text = printed(load(&made.root(), SECRET).arg("--json"));
    assert!(text.contains("\"rows\": 40000"), "{text}");
    scene.check("wspr.bronze");

    let said = refusal(&mut load(&made.root(), "hidden-one-that-has-expired"));
    assert!(said.contains("(code 193)"), "{said}");
    let said = refusal(&mut load(&made.other_root(), SECRET));
    assert!(
        said.contains("TLS: ") && said.contains("UnknownIssuer"),
        "{said}"
    );
    // The certificate is for a name, and this is a number.
    let by_number = into.replace("localhost", "127.0.0.1");
    let mut command = scene.load(&by_number);
    let said = refusal(
        command
            .env("SSL_CERT_FILE", made.root())
            .env("CLICKHOUSE_PASSWORD", SECRET),
    );
    assert!(said.contains("not valid for name"), "{said}");
    // TLS is not spoken to a port that does not. Its first message is partly random: after some of
    // them the server answers with an error, and after others, one in four, it waits for more.
    let plain = format!(
        "https://loader@localhost:{}/wspr.bronze",
        scene.server.ports().http
    );
    let said = (0..6)
        .map(|_| refusal(scene.load(&plain).env("CLICKHOUSE_PASSWORD", SECRET)))
        .find(|said| !said.contains("no answer in time"))
        .expect("an error in one of six answers");
    assert!(said.contains("TLS: "), "{said}");

    let status = scene
        .dyno()
        .args(["ingest", "status", &into, "--password-file", "password"])
        .env("SSL_CERT_FILE", made.root())
        .assert()
        .success();
    let status = String::from_utf8_lossy(&status.get_output().stdout).into_owned();
    assert!(status.contains("40000 rows, 2 archives"), "{status}");
}

/// Another feed than WSPR by the command, beside a directory with the same rows.
#[test]
fn other_feeds_go_into_a_server_too() {
    let Some(scene) = Scene::new() else { return };
    let mut made = scene.dyno();
    made.args([
        "ingest", "gen", "--feed", "rbn", "--rows", "5k", "--months", "2",
    ]);
    made.args(["--out", "days"]).assert().success();
    let days = fs::read_dir(scene.folder.path().join("days")).expect("files");
    let days: Vec<_> = days.map(|entry| entry.expect("a file").path()).collect();
    let into = scene.address("rbn.bronze");
    let load = |into: &str| {
        let mut command = scene.dyno();
        command
            .args(["ingest", "load", "--feed", "rbn", "--into", into, "--json"])
            .args(&days)
            .env("CLICKHOUSE_PASSWORD", SECRET);
        printed(&mut command)
    };
    let text = load(&into);
    assert!(text.contains("\"parts_most\""), "{text}");
    load("feeds");
    let ask = |sql: &str| scene.server.ask(sql).expect("an answer");
    let rows = ask("SELECT count() FROM rbn.bronze");
    assert!(
        text.contains(&format!("\"rows\": {}", rows.trim())),
        "{text}"
    );
    assert_eq!(ask("SELECT uniq(archive) FROM rbn.bronze").trim(), "2");
    let again = load(&into);
    assert!(again.contains("there already, same bytes"), "{again}");
    // Spots of WSPR have no place in it.
    let said = refusal(scene.load(&into).env("CLICKHOUSE_PASSWORD", SECRET));
    assert!(said.contains("it has no column id"), "{said}");
}
