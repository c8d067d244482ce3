//! The address of a database as text: `local:DIR`, `dyno://HOST:PORT`, `etcd://HOST:PORT`,
//! `postgres:DSN`. This crate only parses it; the crates that implement an engine open it. It is
//! printed without its password.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::{Code, Error};

/// The address of a database.
///
/// ```
/// use dyno_txn_api::Target;
/// assert_eq!(
///     "etcd://127.0.0.1:2379,127.0.0.1:2381".parse(),
///     Ok(Target::Etcd(vec!["127.0.0.1:2379".into(), "127.0.0.1:2381".into()])),
/// );
/// assert!("mysql://x".parse::<Target>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    /// Our engine in this process, on a directory.
    Local(PathBuf),
    /// Our engine behind one or several addresses.
    Dyno(Vec<String>),
    /// An etcd cluster, by the addresses of some of its members.
    Etcd(Vec<String>),
    /// A database that speaks PostgreSQL's protocol, with the DSN that its driver takes.
    Postgres(String),
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let nothing = |what: &str| {
            let text = format!("database `{}`: no {what} in it", without_password(text));
            Error::new(Code::BadArgument, text)
        };
        if let Some(folder) = text.strip_prefix("local:") {
            return if folder.is_empty() {
                Err(nothing("directory"))
            } else {
                Ok(Target::Local(folder.into()))
            };
        }
        let addresses = |list: &str| {
            let list: Vec<String> = list
                .trim_end_matches('/')
                .split(',')
                .map(str::to_owned)
                .collect();
            if list.iter().all(|one| port_of(one).is_some()) {
                Ok(list)
            } else {
                Err(nothing("HOST:PORT, or a list of such with commas"))
            }
        };
        if let Some(list) = text.strip_prefix("dyno://") {
            return addresses(list).map(Target::Dyno);
        }
        if let Some(list) = text.strip_prefix("etcd://") {
            return addresses(list).map(Target::Etcd);
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Target::Postgres(text.to_owned()));
        }
        match text.strip_prefix("postgres:") {
            Some("") => Err(nothing("DSN")),
            Some(dsn) => Ok(Target::Postgres(dsn.to_owned())),
            None => {
                let shown = without_password(text);
                let meant = if text.split(',').all(|one| port_of(one).is_some()) {
                    format!("; did you mean dyno://{shown}?")
                } else {
                    String::new()
                };
                let text = format!(
                    "database `{shown}`: begins with none of local:, dyno://, etcd://, postgres:{meant}"
                );
                Err(Error::new(Code::BadArgument, text))
            }
        }
    }
}

/// The port of `HOST:PORT`; a host with colons, as of IPv6, ends at the last one.
fn port_of(address: &str) -> Option<u16> {
    let (host, port) = address.rsplit_once(':')?;
    if host.is_empty() {
        return None;
    }
    port.parse().ok()
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Local(folder) => write!(f, "local:{}", folder.display()),
            Target::Dyno(list) => write!(f, "dyno://{}", list.join(",")),
            Target::Etcd(list) => write!(f, "etcd://{}", list.join(",")),
            Target::Postgres(dsn) if dsn.contains("://") => f.write_str(&without_password(dsn)),
            Target::Postgres(dsn) => write!(f, "postgres:{}", without_password(dsn)),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

/// Printed in place of a password.
const HIDDEN: &str = "***";

/// Removes passwords from a connection string: that of `//user:password@`, and every `password=`,
/// quoted or not. In doubt it removes too much rather than too little.
fn without_password(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    // A password may contain an @, so the user ends at the last one.
    if let Some(at) = text.find("://")
        && let Some(end) = text.rfind('@').filter(|end| *end > at)
        && let Some(colon) = text[at + 3..end].find(':')
    {
        shown += &text[..at + 3 + colon + 1];
        shown += HIDDEN;
        rest = &text[end..];
    }
    // Offsets in the lower-case copy are valid in the original, because only ASCII letters change.
    while let Some(at) = rest.to_ascii_lowercase().find("password") {
        let name_end = at + "password".len();
        shown += &rest[..name_end];
        rest = &rest[name_end..];
        let value = rest.trim_start();
        let Some(value) = value.strip_prefix('=') else {
            continue;
        };
        shown += "=";
        shown += HIDDEN;
        let value = value.trim_start();
        rest = &value[value_bytes(value)..];
    }
    shown + rest
}

/// Length of a value: up to its closing quote, or to whitespace or the `&` of an address.
fn value_bytes(value: &str) -> usize {
    let quoted = value.starts_with('\'');
    let mut escaped = false;
    for (at, sign) in value.char_indices().skip(usize::from(quoted)) {
        match sign {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\'' if quoted => return at + 1,
            _ if !quoted && (sign.is_whitespace() || sign == '&') => return at,
            _ => {}
        }
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_parsed_prints_as_it_was() {
        for text in [
            "local:/var/lib/x",
            "dyno://db:7000",
            "etcd://a:1,b:2",
            "postgres:host=/run user=x",
            "postgresql://u@h/d",
        ] {
            let target: Target = text.parse().expect(text);
            assert_eq!(target.to_string(), text);
        }
        for (text, shown) in [
            ("postgres://u:secret@h:1/d", "postgres://u:***@h:1/d"),
            ("postgres://u:se@cret@h/d?x=1", "postgres://u:***@h/d?x=1"),
            (
                "postgresql://u@h/d?password=secret&x=1",
                "postgresql://u@h/d?password=***&x=1",
            ),
            (
                "postgres:user=x password = 'se\\' cret' port=1",
                "postgres:user=x password=*** port=1",
            ),
            ("postgres:password=secret", "postgres:password=***"),
            ("postgres:password='open secret", "postgres:password=***"),
        ] {
            let target: Target = text.parse().expect(text);
            assert_eq!(target.to_string(), shown);
            assert!(!format!("{target:?}").contains("cret"), "{text}");
        }
        let wrong = "postgre://u:secret@h/d".parse::<Target>();
        assert!(!wrong.expect_err("a slip").text().contains("secret"));
        for text in [
            "local:",
            "dyno://db",
            "dyno://:7",
            "etcd://a:1,b",
            "postgres:",
            "x",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
