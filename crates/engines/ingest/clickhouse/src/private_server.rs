//! A private ClickHouse server on loopback, in the foreground with its own directory and ports,
//! removed when dropped. It is for tests and measurements; the packaged service stays off.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::error::{Error, Result};
use crate::http::{Client, Password};

/// How long a server may take until it listens, on a busy machine.
const START: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);
/// Names of the server's program, and the arguments before its options.
const PROGRAMS: [(&str, &[&str]); 2] = [("clickhouse-server", &[]), ("clickhouse", &["server"])];
/// A directory to search besides the PATH, which leaves it out for ordinary users.
const SYSTEM: &str = "/usr/sbin";

/// Ports of one server on loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// Port of the HTTP interface.
    pub http: u16,
    /// Port of the native protocol.
    pub tcp: u16,
    /// Port for traffic between servers.
    pub interserver: u16,
}

impl Ports {
    /// Three ports that are free now; another program may take them before the server does.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn free() -> Result<Ports> {
        let port = || dyno_ports::free().map_err(|e| here("find a free port", e.to_string()));
        Ok(Ports {
            http: port()?,
            tcp: port()?,
            interserver: port()?,
        })
    }
}

/// What differs from a server with defaults.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Users besides `default`, which has no password: name, password, profile (`default`,
    /// `readonly`).
    pub users: Vec<(String, String, String)>,
    /// More configuration for the server, in its XML.
    pub xml: String,
}

/// A running server, killed when dropped.
#[derive(Debug)]
pub struct PrivateServer {
    folder: PathBuf,
    ports: Ports,
    child: Child,
}

impl PrivateServer {
    /// Why no server can be started on this machine; `None` if one can.
    pub fn missing() -> Option<String> {
        let text = "clickhouse: the server is not installed (Debian: clickhouse-server)";
        program().is_none().then(|| text.to_owned())
    }

    /// Starts one with all files below `folder`, and returns when it answers.
    ///
    /// # Errors
    /// When there is no program, or it does not start.
    pub fn start(folder: &Path, ports: Ports, config: &Config) -> Result<PrivateServer> {
        for below in ["data", "tmp", "format_schemas", "user_files"] {
            let path = folder.join(below);
            fs::create_dir_all(&path).map_err(|e| here("make a directory", e.to_string()))?;
        }
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text)
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o600)))
                .map_err(|e| here("configure the server", e.to_string()))
        };
        write("config.xml", &server_xml(folder, ports, config))?;
        write("users.xml", &users_xml(config))?;
        let child = spawn(folder, ports)?;
        Ok(PrivateServer {
            folder: folder.to_owned(),
            ports,
            child,
        })
    }

    /// Host and port of its HTTP interface.
    pub fn http(&self) -> String {
        format!("127.0.0.1:{}", self.ports.http)
    }

    /// The ports that it listens on.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// The address of `table` (`database.table`) on it, for the user `default`.
    ///
    /// # Errors
    /// [`Error::Address`] when there can be no such table.
    pub fn address(&self, table: &str) -> Result<Address> {
        format!("clickhouse://{}/{table}", self.http()).parse()
    }

    /// Runs a statement and returns the answer's text.
    ///
    /// # Errors
    /// Those of the server, and [`Error::Unreachable`].
    pub fn ask(&self, sql: &str) -> Result<String> {
        let clients =
            Client::for_all_servers(&self.address("default.none")?, &Password::default())?;
        let client = clients.first().ok_or_else(|| Error::Address {
            reason: "it names no server".to_owned(),
        })?;
        client.query("ask", sql)
    }

    /// The process id, for signals.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it with signal 9, so that it flushes nothing.
    pub fn kill(&mut self) {
        // An error means that it has ended already.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }

    /// Starts it again on the same directory and ports.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_again(&mut self) -> Result<()> {
        self.child = spawn(&self.folder, self.ports)?;
        Ok(())
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn here(action: &'static str, reason: String) -> Error {
    Error::Here { action, reason }
}

/// The program, and the arguments before its options.
fn program() -> Option<(PathBuf, &'static [&'static str])> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path)
        .chain([PathBuf::from(SYSTEM)])
        .collect();
    PROGRAMS.iter().find_map(|(name, words)| {
        let mut places = folders.iter().map(|folder| folder.join(name));
        places
            .find(|place| place.is_file())
            .map(|place| (place, *words))
    })
}

fn spawn(folder: &Path, ports: Ports) -> Result<Child> {
    const ACTION: &str = "start a ClickHouse server";
    let missing = || here(ACTION, PrivateServer::missing().unwrap_or_default());
    let (name, words) = program().ok_or_else(missing)?;
    let log = folder.join("server.log");
    let out = File::options()
        .create(true)
        .append(true)
        .open(&log)
        .map_err(|e| here(ACTION, e.to_string()))?;
    let errors = out.try_clone().map_err(|e| here(ACTION, e.to_string()))?;
    let mut child = Command::new(name)
        .args(words)
        .arg("--config-file")
        .arg(folder.join("config.xml"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(errors)
        .spawn()
        .map_err(|e| here(ACTION, e.to_string()))?;
    let begun = Instant::now();
    loop {
        if TcpStream::connect(("127.0.0.1", ports.http)).is_ok() {
            return Ok(child);
        }
        let ended = child.try_wait().ok().flatten();
        if ended.is_some() || begun.elapsed() > START {
            let _killed = child.kill();
            let _waited = child.wait();
            let text = fs::read_to_string(&log).unwrap_or_default();
            let last: Vec<&str> = text.lines().rev().take(3).collect();
            return Err(here(ACTION, format!("it does not listen: {last:?}")));
        }
        std::thread::sleep(LOOK);
    }
}

fn server_xml(folder: &Path, ports: Ports, config: &Config) -> String {
    let folder = folder.display();
    let Ports {
        http,
        tcp,
        interserver,
    } = ports;
    format!(
        r#"<?xml version="1.0"?>
<yandex>
    <logger><level>warning</level><console>1</console></logger>
    <http_port>{http}</http_port>
    <tcp_port>{tcp}</tcp_port>
    <interserver_http_port>{interserver}</interserver_http_port>
    <interserver_http_host>127.0.0.1</interserver_http_host>
    <listen_host>127.0.0.1</listen_host>
    <path>{folder}/data/</path>
    <tmp_path>{folder}/tmp/</tmp_path>
    <user_files_path>{folder}/user_files/</user_files_path>
    <format_schema_path>{folder}/format_schemas/</format_schema_path>
    <users_config>{folder}/users.xml</users_config>
    <default_profile>default</default_profile>
    <default_database>default</default_database>
    <timezone>UTC</timezone>
    <mark_cache_size>67108864</mark_cache_size>
    {}
</yandex>
"#,
        config.xml
    )
}

fn users_xml(config: &Config) -> String {
    let mut users = String::new();
    let default = ("default".to_owned(), String::new(), "default".to_owned());
    for (name, password, profile) in std::iter::once(&default).chain(&config.users) {
        let user = format!(
            "<{name}><password>{password}</password><networks><ip>127.0.0.1</ip></networks>\
             <profile>{profile}</profile><quota>default</quota></{name}>"
        );
        // Writing into a string does not fail.
        let _written = writeln!(users, "{user}");
    }
    format!(
        "<?xml version=\"1.0\"?>\n<yandex>\n<profiles><default/><readonly><readonly>1</readonly>\
         </readonly></profiles>\n<users>\n{users}</users>\n<quotas><default/></quotas>\n</yandex>\n"
    )
}
