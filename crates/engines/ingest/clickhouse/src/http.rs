//! One server's HTTP interface: statements and blocks, and what it says to them.

use std::fmt;
use std::time::Duration;

use dyno_http::ureq::{self, http};
use url::Url;

use crate::address::Address;
use crate::error::{Error, Result};
use crate::exception::{Exception, shown};

/// More of an answer is not read: ledgers and lists of parts are the longest.
const MOST_ANSWER_BYTES: u64 = 64 << 20;
const CONNECT: Duration = Duration::from_secs(10);
/// A statement or a block that takes longer has failed. Old servers answer a swap of partitions,
/// and a block when they are short of disk, only when it is done.
const ANSWER: Duration = Duration::from_secs(300);
/// Servers hang up on connections that idle for longer, some after three seconds.
const IDLE: Duration = Duration::from_secs(1);

/// A password that no formatter shows.
#[derive(Clone, Default)]
pub struct Password(String);

impl Password {
    /// Holds `text`; empty for none.
    pub fn new(text: String) -> Self {
        Password(text)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// A server, and who we are there. It keeps connections open; threads share it.
#[derive(Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    url: Url,
    /// Host and port, as they are shown.
    pub server: String,
    pub user: String,
    password: Password,
}

impl Client {
    /// Clients for all servers of `address`. Nothing is sent yet.
    pub fn of_all(address: &Address, password: &Password) -> Result<Vec<Client>> {
        // Credentials are for one server: no redirect is followed.
        let agent = dyno_http::agent(&dyno_http::Settings {
            connect: CONNECT,
            whole: ANSWER,
            idle: IDLE,
            redirects: 0,
        });
        let scheme = if address.tls { "https" } else { "http" };
        let client = |server: &String| {
            let text = format!("{scheme}://{server}/");
            let url = Url::parse(&text).map_err(|e| Error::Address {
                reason: format!("{server}: {e}"),
            })?;
            Ok(Client {
                agent: agent.clone(),
                url,
                server: server.clone(),
                user: address.user.clone(),
                password: password.clone(),
            })
        };
        address.servers.iter().map(client).collect()
    }

    /// Runs a statement; `action` is what it is for, in words. The answer is text in the format
    /// that the statement names.
    pub fn query(&self, action: &str, sql: &str) -> Result<String> {
        self.query_with(&[], action, sql)
    }

    /// As [`Client::query`], with settings of the server.
    pub fn query_with(&self, settings: &[(&str, &str)], action: &str, sql: &str) -> Result<String> {
        self.send(action, settings, sql.as_bytes())
            .map_err(|failure| failure.into_error(self, action))
    }

    /// The rows of a SELECT that ends without a format, each value unescaped.
    pub fn rows(&self, action: &str, sql: &str) -> Result<Vec<Vec<String>>> {
        let text = self.query(action, &format!("{sql} FORMAT TabSeparated"))?;
        let row = |line: &str| line.split('\t').map(unescaped).collect();
        Ok(text.lines().map(row).collect())
    }

    /// The only value of a SELECT, a number.
    pub fn number(&self, action: &str, sql: &str) -> Result<u64> {
        let text = self.query(action, sql)?;
        text.trim().parse().map_err(|_| self.odd(action, &text))
    }

    /// An answer that cannot be.
    pub fn odd(&self, action: &str, found: &str) -> Error {
        Error::Answer {
            server: self.server.clone(),
            action: action.to_owned(),
            found: shown(found),
        }
    }

    /// Inserts one block of frames of the Native format, as the query `id`.
    pub fn insert(&self, sql: &str, id: &str, frames: &[u8]) -> std::result::Result<(), Failure> {
        let settings = [("query", sql), ("query_id", id), ("decompress", "1")];
        self.send("insert a block", &settings, frames).map(drop)
    }

    fn send(
        &self,
        action: &str,
        settings: &[(&str, &str)],
        body: &[u8],
    ) -> std::result::Result<String, Failure> {
        let mut url = self.url.clone();
        url.query_pairs_mut().extend_pairs(settings);
        let request = http::Request::post(url.as_str())
            .header("X-ClickHouse-User", &self.user)
            .header("X-ClickHouse-Key", &self.password.0)
            .body(body)
            .map_err(|_| Failure::Unsendable(action.to_owned()))?;
        let answer = self.agent.run(request).map_err(|e| reason(&e))?;
        let (head, mut body) = answer.into_parts();
        let text = body.with_config().limit(MOST_ANSWER_BYTES).read_to_vec();
        let text = text.map_err(|e| reason(&e))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let code = head.headers.get("X-ClickHouse-Exception-Code");
        let code = code.and_then(|code| code.to_str().ok());
        // An error may come with status 200, after the server had begun to answer.
        let failed_late = code.is_none() && late_exception(&text);
        if head.status == http::StatusCode::OK && code.is_none() && !failed_late {
            return Ok(text);
        }
        let exception = Exception::of(code, &text);
        if exception.code == 0 {
            return Err(Failure::NotClickHouse(head.status.as_u16(), shown(&text)));
        }
        Err(Failure::Said(exception))
    }
}

/// Whether an answer that had begun well ends in an exception; statements whose answers are other
/// people's text are not asked here.
fn late_exception(text: &str) -> bool {
    let last = text.trim_end().rsplit('\n').next().unwrap_or_default();
    last.starts_with("Code: ") && last.contains("DB::Exception: ")
}

/// Why a request came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server said no.
    Said(Exception),
    /// It may or may not have done it.
    Lost(String),
    /// It never got it, and another attempt is not better.
    Hopeless(String),
    /// Something answered that is not ClickHouse: status and text.
    NotClickHouse(u16, String),
    /// The request cannot be written down.
    Unsendable(String),
}

impl Failure {
    pub fn into_error(self, client: &Client, action: &str) -> Error {
        let server = client.server.clone();
        let action = action.to_owned();
        match self {
            Failure::Said(exception) => exception.into_error(&server, &client.user, &action),
            Failure::Lost(reason) => Error::Unreachable {
                server,
                action,
                reason,
            },
            Failure::Hopeless(message) => Error::Refused {
                server,
                action,
                code: 0,
                message,
            },
            // A balancer whose servers are away says 502 to 504.
            Failure::NotClickHouse(status @ 502..=504, text) => Error::Unreachable {
                server,
                action,
                reason: format!("status {status}: {text}"),
            },
            Failure::NotClickHouse(status, text) => Error::Answer {
                server,
                action,
                found: format!("status {status}: {text}"),
            },
            Failure::Unsendable(action) => Error::Refused {
                server,
                action,
                code: 0,
                message: "user or password cannot stand in a header".to_owned(),
            },
        }
    }
}

fn reason(error: &ureq::Error) -> Failure {
    match dyno_http::Failure::of(error) {
        lost if !lost.lasting => Failure::Lost(lost.reason),
        hopeless => Failure::Hopeless(hopeless.reason),
    }
}

/// A value of the format TabSeparated.
fn unescaped(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            value.push(c);
            continue;
        }
        value.push(match chars.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('0') => '\0',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some(other) => other,
            None => '\\',
        });
    }
    value
}

/// A string in SQL.
pub(crate) fn quoted(text: &str) -> String {
    let mut sql = String::with_capacity(text.len() + 2);
    sql.push('\'');
    for c in text.chars() {
        match c {
            '\'' => sql.push_str("\\'"),
            '\\' => sql.push_str("\\\\"),
            '\n' => sql.push_str("\\n"),
            '\t' => sql.push_str("\\t"),
            '\r' => sql.push_str("\\r"),
            '\0' => sql.push_str("\\0"),
            c => sql.push(c),
        }
    }
    sql.push('\'');
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_both_ways() {
        assert_eq!(quoted("it's a\\b\n"), r"'it\'s a\\b\n'");
        assert_eq!(unescaped(r"a\tb\\n\'c\0"), "a\tb\\n'c\0");
    }

    #[test]
    fn nothing_shows_the_password() {
        let address: Address = "clickhouse://me@h/a.b".parse().expect("an address");
        let password = Password::new("hidden".to_owned());
        let clients = Client::of_all(&address, &password).expect("clients");
        assert!(!format!("{clients:?} {password:?}").contains("hidden"));
    }

    #[test]
    fn an_exception_behind_a_good_beginning_is_seen() {
        assert!(late_exception(
            "1\n2\nCode: 241. DB::Exception: Memory limit"
        ));
        assert!(!late_exception("1\n2\n"));
        assert!(!late_exception("Code: 1\n2\n"));
    }
}
