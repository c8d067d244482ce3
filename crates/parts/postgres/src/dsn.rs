//! Connection strings, in both forms that libpq knows (PostgreSQL documentation, "Connection
//! Strings").

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use postgres::Config;
use postgres::config::Host;

use crate::error::PgError;

mod split;

/// Where the servers of Debian and Red Hat put their socket.
const USUAL_SOCKET_DIR: &str = "/var/run/postgresql";
const USUAL_PORT: u16 = 5432;

/// How much TLS is required, as libpq defines it ("SSL Support", table "SSL Mode Descriptions").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SslMode {
    /// Never use TLS, even if the server offers it.
    Disable,
    /// Use TLS if the server offers it, without checking its identity.
    #[default]
    Prefer,
    /// Always use TLS; the certificate is checked only if a root is named.
    Require,
    /// Always use TLS, with a certificate from a known root.
    VerifyCa,
    /// Always use TLS, with a certificate from a known root that names this host.
    VerifyFull,
}

impl SslMode {
    fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// Certificates named in a connection string.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TlsFiles {
    /// `sslrootcert`: a file, or `system`.
    pub root: Option<PathBuf>,
    /// `sslcert`, the client certificate that the server may require.
    pub certificate: Option<PathBuf>,
    /// `sslkey`, the private key of that certificate.
    pub key: Option<PathBuf>,
}

/// A parsed connection string. Its `Display` and `Debug` show no password.
#[derive(Clone)]
pub struct Dsn {
    config: Config,
    pub(crate) ssl: SslMode,
    pub(crate) files: TlsFiles,
}

impl Dsn {
    /// Parses `postgresql://user@host/db?...` or `host=... user=...`. The default host is the usual
    /// socket of this machine, the default password that of `PGPASSWORD`.
    ///
    /// # Errors
    /// [`PgError::Dsn`] with the option that cannot be used.
    pub fn parse(text: &str) -> Result<Self, PgError> {
        let (rest, options) = split::ssl_options(text)?;
        let bad = |error: postgres::Error| PgError::Dsn {
            reason: crate::class::describe(&error),
        };
        let mut dsn = Self {
            config: Config::from_str(&rest).map_err(bad)?,
            ssl: SslMode::default(),
            files: TlsFiles::default(),
        };
        for (name, value) in options {
            dsn.set_ssl(&name, &value)?;
        }
        let config = &mut dsn.config;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            if Path::new(USUAL_SOCKET_DIR).is_dir() {
                config.host_path(USUAL_SOCKET_DIR);
            } else {
                config.host("localhost");
            }
        }
        if config.get_password().is_none()
            && let Some(password) = std::env::var_os("PGPASSWORD")
        {
            config.password(password.into_encoded_bytes());
        }
        dsn.mirror_ssl();
        Ok(dsn)
    }

    /// Whether a connection string contains a password, and so must not be stored or shown.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn holds_password(text: &str) -> Result<bool, PgError> {
        let (rest, _) = split::ssl_options(text)?;
        match Config::from_str(&rest) {
            Ok(config) => Ok(config.get_password().is_some()),
            Err(error) => Err(PgError::Dsn {
                reason: crate::class::describe(&error),
            }),
        }
    }

    /// Adds a connection timeout unless it has one.
    #[must_use]
    pub fn or_connect_timeout(mut self, timeout: std::time::Duration) -> Self {
        if self.config.get_connect_timeout().is_none() {
            self.config.connect_timeout(timeout);
        }
        self
    }

    /// A server on a Unix socket.
    pub fn unix(socket_dir: &Path, port: u16, user: &str, database: &str) -> Self {
        let mut config = Config::new();
        config.host_path(socket_dir).port(port);
        config.user(user).dbname(database);
        let mut dsn = Self {
            config,
            ssl: SslMode::Disable,
            files: TlsFiles::default(),
        };
        dsn.mirror_ssl();
        dsn
    }

    /// A server on TCP, with TLS if the server offers it.
    pub fn tcp(host: &str, port: u16, user: &str, database: &str, password: &str) -> Self {
        let mut config = Config::new();
        config.host(host).port(port);
        config.user(user).dbname(database).password(password);
        Self {
            config,
            ssl: SslMode::Prefer,
            files: TlsFiles::default(),
        }
    }

    /// Another database of the same server, reached in the same way.
    pub fn with_database(&self, name: &str) -> Self {
        let mut other = self.clone();
        other.config.dbname(name);
        other
    }

    /// The configuration for the driver.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// How much TLS the string requires.
    pub fn ssl_mode(&self) -> SslMode {
        self.ssl
    }

    /// Whether all its hosts are Unix sockets.
    pub fn is_local(&self) -> bool {
        let hosts = self.config.get_hosts();
        !hosts.is_empty() && hosts.iter().all(|host| matches!(host, Host::Unix(_)))
    }

    /// The first host without port, for messages and certificates.
    pub fn host(&self) -> String {
        match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => match self.config.get_hostaddrs().first() {
                Some(address) => address.to_string(),
                None => "?".to_owned(),
            },
        }
    }

    /// What a person writes after `--dsn`: first host, port, user and database, without a password.
    /// It is enough for a private cluster's socket, which needs none.
    pub fn text(&self) -> String {
        let config = &self.config;
        let host = self.host();
        let port = config.get_ports().first().copied().unwrap_or(USUAL_PORT);
        let user = config.get_user().unwrap_or_default();
        let name = config.get_dbname().unwrap_or_default();
        format!("host={host} port={port} user={user} dbname={name}")
    }

    /// libpq's form with the password, for PostgreSQL's own programs. Keep it where only the
    /// server's user can read it.
    pub(crate) fn conninfo(&self, application_name: Option<&str>) -> String {
        let words = self.words(application_name).into_iter();
        let words = words.map(|(name, value)| format!("{name}={}", split::quote(&value)));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The options of [`Self::conninfo`] as pairs of name and value.
    pub(crate) fn words(&self, application_name: Option<&str>) -> Vec<(&'static str, String)> {
        let config = &self.config;
        let join = |all: Vec<String>| all.join(",");
        let hosts = config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let addresses = config.get_hostaddrs().iter().map(ToString::to_string);
        let ports = config.get_ports().iter().map(ToString::to_string);
        let password = config.get_password().map(String::from_utf8_lossy);
        let path = |file: &Option<PathBuf>| file.as_ref().map(|file| file.display().to_string());
        let words = [
            ("host", Some(join(hosts.collect()))),
            ("hostaddr", Some(join(addresses.collect()))),
            ("port", Some(join(ports.collect()))),
            ("user", config.get_user().map(str::to_owned)),
            ("password", password.map(|text| text.into_owned())),
            ("dbname", config.get_dbname().map(str::to_owned)),
            ("sslmode", Some(self.ssl.name().to_owned())),
            ("sslrootcert", path(&self.files.root)),
            ("sslcert", path(&self.files.certificate)),
            ("sslkey", path(&self.files.key)),
            ("application_name", application_name.map(str::to_owned)),
        ];
        let given = words
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        given.filter(|(_, value)| !value.is_empty()).collect()
    }

    fn set_ssl(&mut self, name: &str, value: &str) -> Result<(), PgError> {
        let file = || Some(PathBuf::from(value)).filter(|path| !path.as_os_str().is_empty());
        match name {
            "sslrootcert" => self.files.root = file(),
            "sslcert" => self.files.certificate = file(),
            "sslkey" => self.files.key = file(),
            _ => {
                self.ssl = match value {
                    "disable" => SslMode::Disable,
                    // libpq's `allow` tries without TLS first. Trying with TLS first is not weaker.
                    "allow" | "prefer" => SslMode::Prefer,
                    "require" => SslMode::Require,
                    "verify-ca" => SslMode::VerifyCa,
                    "verify-full" => SslMode::VerifyFull,
                    other => {
                        let known = "disable, prefer, require, verify-ca and verify-full";
                        return Err(PgError::Dsn {
                            reason: format!("sslmode {other:?} is not one of {known}"),
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Maps the six modes to the driver's three; our connector checks certificates.
    fn mirror_ssl(&mut self) {
        self.config.ssl_mode(match self.ssl {
            SslMode::Disable => postgres::config::SslMode::Disable,
            SslMode::Prefer => postgres::config::SslMode::Prefer,
            _ => postgres::config::SslMode::Require,
        });
    }
}

impl fmt::Display for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self
            .config
            .get_ports()
            .first()
            .copied()
            .unwrap_or(USUAL_PORT);
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        write!(f, "{}:{port}", self.host())?;
        match self.config.get_dbname() {
            Some(name) => write!(f, "/{name}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dsn({self}, sslmode {})", self.ssl.name())
    }
}

impl FromStr for Dsn {
    type Err = PgError;

    fn from_str(text: &str) -> Result<Self, PgError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_no_password_is_shown() {
        for text in [
            "postgresql://ann:se%20cret@db.example:6000/log?sslmode=verify-full&sslrootcert=/a%20b.pem&application_name=x",
            r"host=db.example port=6000 user=ann password='se cret' dbname = log sslmode=verify-full sslrootcert=/a\ b.pem",
        ] {
            let dsn = Dsn::parse(text).unwrap();
            assert_eq!(dsn.to_string(), "ann@db.example:6000/log");
            assert_eq!(dsn.ssl_mode(), SslMode::VerifyFull);
            assert_eq!(dsn.files.root.as_deref(), Some(Path::new("/a b.pem")));
            assert_eq!(dsn.config().get_password(), Some(&b"se cret"[..]));
            assert!(!format!("{dsn:?}").contains("cret"));
            let again = Dsn::parse(&dsn.conninfo(Some("b"))).unwrap();
            assert_eq!(again.conninfo(Some("b")), dsn.conninfo(Some("b")));
        }
    }

    #[test]
    fn bad_strings_name_the_option() {
        for (text, says) in [
            ("host=a sslmode=maybe", "\"maybe\" is not one of"),
            ("host=a passfile=x", "unknown option `passfile`"),
            ("host=a port=none", "invalid value for option `port`"),
            ("host=a password='open", "unterminated"),
            ("postgres://h/d?colour=red", "unknown option `colour`"),
            ("nonsense", "nonsense"),
        ] {
            let error = Dsn::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_socket_with_strange_signs_survives() {
        let dsn = Dsn::unix(Path::new("/tmp/it's a \\ place"), 7, "u", "d");
        let again = Dsn::parse(&dsn.conninfo(None)).unwrap();
        assert!(again.is_local());
        assert_eq!(again.to_string(), "u@/tmp/it's a \\ place:7/d");
    }
}
