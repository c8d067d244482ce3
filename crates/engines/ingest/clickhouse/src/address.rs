//! The address of a table and of the servers that hold it.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Default port for HTTP.
const HTTP_PORT: u16 = 8123;
/// Default port for HTTP with TLS.
const HTTPS_PORT: u16 = 8443;

/// `clickhouse://USER@HOST:PORT,HOST:PORT/DATABASE.TABLE`, or `http://` and `https://` before the
/// same. Several hosts are the shards of one cluster. There is never a password in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// The user to log in as; `default` if none is named.
    pub user: String,
    /// Host and port of each server's HTTP interface, as they stand in a URL.
    pub servers: Vec<String>,
    /// The database's name, which needs no quotes in SQL.
    pub database: String,
    /// The table's name, which needs no quotes in SQL.
    pub table: String,
}

impl Address {
    /// Whether `text` is meant as an address, and not as a directory.
    pub fn is_meant(text: &str) -> bool {
        text.contains("://")
    }

    /// Full name of the table, or of a companion table if `suffix` is not empty.
    pub fn full_name(&self, suffix: &str) -> String {
        format!("{}.{}{suffix}", self.database, self.table)
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address> {
        // An error must not repeat the text before it is known to hold no password.
        let wrong = |reason: &str| Error::Address {
            reason: reason.to_owned(),
        };
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| wrong("it does not begin with clickhouse://, http:// or https://"))?;
        let tls = match scheme {
            "clickhouse" | "http" => false,
            "https" => true,
            _ => {
                return Err(wrong(
                    "it begins with neither clickhouse://, http:// nor https://. A table is a directory of this \
                     machine, given as a plain path, or a table of ClickHouse, given as \
                     clickhouse://USER@HOST:PORT/DATABASE.TABLE; object stores (s3://) and file:// are not supported",
                ));
            }
        };
        let (servers, table) = rest.split_once('/').unwrap_or((rest, ""));
        // The last `@` counts, because the name of a user may contain one.
        let (user, servers) = servers.rsplit_once('@').unwrap_or(("default", servers));
        if user.contains(':') {
            return Err(wrong(
                "it has a password in it, which everybody on the machine could read; \
                 use CLICKHOUSE_PASSWORD or --password-file",
            ));
        }
        // The user is sent in a header, which takes visible characters only.
        if user.is_empty() || !user.bytes().all(|b| b.is_ascii_graphic() && b != b'%') {
            return Err(wrong("its user is empty or has strange characters"));
        }
        let servers: Vec<String> = servers
            .split(',')
            .map(|server| with_port(server, tls))
            .collect::<Option<_>>()
            .ok_or_else(|| wrong("a server in it is not HOST or HOST:PORT"))?;
        // Named twice, a server would count as two shards. Each would get a stage of an archive,
        // and the swap of the second stage would replace the rows of the first.
        let mut sorted = servers.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != servers.len() {
            return Err(wrong("it names a server twice"));
        }
        let (database, table) = table
            .split_once('.')
            .filter(|(database, table)| is_name(database) && is_name(table))
            .ok_or_else(|| {
                wrong(&format!(
                    "it does not end with /DATABASE.TABLE, in letters, digits and _; \
                     write {scheme}://{}/DATABASE.TABLE",
                    servers.join(",")
                ))
            })?;
        Ok(Address {
            tls,
            user: user.to_owned(),
            servers,
            database: database.to_owned(),
            table: table.to_owned(),
        })
    }
}

/// Adds the default port. `None` if the text is not a host, or not a host and a port.
fn with_port(server: &str, tls: bool) -> Option<String> {
    // The colons of an IPv6 address are inside brackets.
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse::<u16>().ok()?),
        _ => (server, if tls { HTTPS_PORT } else { HTTP_PORT }),
    };
    let inner = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':');
    (!inner.is_empty() && inner.bytes().all(good)).then(|| format!("{host}:{port}"))
}

/// Whether a name needs neither quotes in SQL nor escapes in a URL.
fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "clickhouse" };
        let (user, servers) = (&self.user, self.servers.join(","));
        let (database, table) = (&self.database, &self.table);
        write!(f, "{scheme}://{user}@{servers}/{database}.{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_addresses_are_shown_as_they_were_meant() {
        for (text, shown) in [
            (
                "clickhouse://h/wspr.bronze",
                "clickhouse://default@h:8123/wspr.bronze",
            ),
            ("https://me@h/a.b", "https://me@h:8443/a.b"),
            (
                "http://me@h:1,[::1],10.0.0.2:9/a_1.b",
                "clickhouse://me@h:1,[::1]:8123,10.0.0.2:9/a_1.b",
            ),
        ] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), shown);
            assert_eq!(shown.parse::<Address>().expect(shown), address);
        }
    }

    #[test]
    fn others_are_refused_and_a_password_is_not_repeated() {
        for (text, reason) in [
            ("spots", "does not begin with"),
            ("mysql://h/a.b", "begins with neither"),
            (
                "s3://bucket/x",
                "object stores (s3://) and file:// are not supported",
            ),
            ("file:///a/b", "given as a plain path"),
            ("clickhouse://me:hidden@h/a.b", "password"),
            (
                "clickhouse://h/a",
                "write clickhouse://h:8123/DATABASE.TABLE",
            ),
            ("clickhouse://h", "DATABASE.TABLE"),
            ("clickhouse://h/a.b c", "DATABASE.TABLE"),
            ("clickhouse://h/a.1b", "DATABASE.TABLE"),
            ("clickhouse:///a.b", "a server in it"),
            ("clickhouse://h:70000/a.b", "a server in it"),
            ("clickhouse://h h/a.b", "a server in it"),
            ("clickhouse://::1/a.b", "a server in it"),
            ("clickhouse://h,h:8123/a.b", "twice"),
            ("clickhouse://@h/a.b", "user"),
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
            assert!(!error.contains("hidden"), "{error}");
        }
    }
}
