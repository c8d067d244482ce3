//! The HTTP interface of one server: sends statements and blocks, and reads the answers.

use std::fmt;
use std::time::Duration;

use dyno_http::ureq::{self, http};
use url::Url;

use crate::address::Address;
use crate::error::{Error, Result};
use crate::exception::{Exception, shown};

/// Longest answer that is read. Ledgers and lists of parts are the longest ones.
const MOST_ANSWER_BYTES: u64 = 64 << 20;
const CONNECT: Duration = Duration::from_secs(10);
/// Timeout of a statement or a block. Old servers answer a swap of partitions, and a block when
/// they are short of disk, only when it is done.
const ANSWER: Duration = Duration::from_secs(300);
/// Connections idle for longer are not reused, because servers close them, some after three
/// seconds.
const IDLE: Duration = Duration::from_secs(1);

/// A password that `Debug` and `Display` do not show.
#[derive(Clone, Default)]
pub struct Password(String);

impl Password {
    /// Wraps `text`, which is empty for no password.
    pub fn new(text: String) -> Self {
        Password(text)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// A server and our user there. It keeps connections open, and threads share it.
#[derive(Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    url: Url,
    /// Host and port, for messages.
    pub server: String,
    pub user: String,
    password: Password,
}

impl Client {
    /// Makes clients for all servers of `address`. Nothing is sent yet.
    pub fn for_all_servers(address: &Address, password: &Password) -> Result<Vec<Client>> {
        // No redirect is followed, because the credentials are for this server only.
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

    /// Runs a statement. `action` says in words what it is for. The answer is in the format that
    /// the statement names.
    pub fn query(&self, action: &str, sql: &str) -> Result<String> {
        self.query_with(&[], action, sql)
    }

    /// Like [`Client::query`], with settings for the server.
    pub fn query_with(&self, settings: &[(&str, &str)], action: &str, sql: &str) -> Result<String> {
        self.send(action, settings, sql.as_bytes())
            .map_err(|failure| failure.into_error(self, action))
    }

    /// The rows of a SELECT without a FORMAT clause, each value unescaped.
    pub fn rows(&self, action: &str, sql: &str) -> Result<Vec<Vec<String>>> {
        let text = self.query(action, &format!("{sql} FORMAT TabSeparated"))?;
        let row = |line: &str| line.split('\t').map(unescaped).collect();
        Ok(text.lines().map(row).collect())
    }

    /// The single value of a SELECT, as a number.
    pub fn number(&self, action: &str, sql: &str) -> Result<u64> {
        let text = self.query(action, sql)?;
        text.trim().parse().map_err(|_| self.odd(action, &text))
    }

    /// The error for a malformed answer.
    pub fn odd(&self, action: &str, found: &str) -> Error {
        Error::Answer {
            server: self.server.clone(),
            action: action.to_owned(),
            found: shown(found),
        }
    }

    /// Inserts one block of Native-format frames under the query ID `id`.
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
        // The credentials go into headers, because servers and proxies write addresses into their
        // logs.
        let request = http::Request::post(url.as_str())
            .header("X-ClickHouse-User", &self.user)
            .header("X-ClickHouse-Key", &self.password.0)
            .body(body)
            .map_err(|_| Failure::Unsendable(action.to_owned()))?;
        let answer = self.agent.run(request).map_err(|e| reason(&e))?;
        let (head, mut body) = answer.into_parts();
        // Whatever answers at this address may do so without end, so the memory for it has a limit.
        let text = body.with_config().limit(MOST_ANSWER_BYTES).read_to_vec();
        let text = text.map_err(|e| reason(&e))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let code = head.headers.get("X-ClickHouse-Exception-Code");
        let code = code.and_then(|code| code.to_str().ok());
        // An error may come with status 200 if the server had begun to answer before it.
        let failed_late = code.is_none() && late_exception(&text);
        if head.status == http::StatusCode::OK && code.is_none() && !failed_late {
            return Ok(text);
        }
        let exception = Exception::from_response(code, &text);
        // ClickHouse gives each exception a code. Without one, a proxy or another service has
        // answered.
        if exception.code == 0 {
            return Err(Failure::NotClickHouse(head.status.as_u16(), shown(&text)));
        }
        Err(Failure::Exception(exception))
    }
}

/// Whether an answer that began well ends in an exception. It is not used for statements whose
/// answers contain text from others.
fn late_exception(text: &str) -> bool {
    let last = text.trim_end().rsplit('\n').next().unwrap_or_default();
    last.starts_with("Code: ") && last.contains("DB::Exception: ")
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server returned an exception.
    Exception(Exception),
    /// The request was sent and its answer lost, so it may have been carried out.
    Lost(String),
    /// The server never got the request, and a retry would not help.
    Hopeless(String),
    /// Something other than ClickHouse answered: status and text.
    NotClickHouse(u16, String),
    /// The request cannot be encoded.
    Unsendable(String),
}

impl Failure {
    pub fn into_error(self, client: &Client, action: &str) -> Error {
        let server = client.server.clone();
        let action = action.to_owned();
        match self {
            Failure::Exception(exception) => exception.into_error(&server, &client.user, &action),
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
            // A load balancer whose servers are away answers 502 to 504.
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
    match dyno_http::Failure::from_error(error) {
        lost if !lost.lasting => Failure::Lost(lost.reason),
        hopeless => Failure::Hopeless(hopeless.reason),
    }
}

/// Unescapes a value of the TabSeparated format.
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

/// Quotes and escapes a string for SQL.
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
        let clients = Client::for_all_servers(&address, &password).expect("clients");
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
