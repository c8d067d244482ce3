//! Turns ClickHouse's exceptions, codes and texts, into our errors.
//!
//! Source: ClickHouse, `src/Common/ErrorCodes.cpp`.

use crate::error::Error;

/// How many characters of a server's message are shown.
const MOST_SHOWN: usize = 400;

/// The exception that a server returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exception {
    pub code: i32,
    pub message: String,
}

impl Exception {
    /// Parses code and message of an answer: `Code: 60, e.displayText() = DB::Exception: TEXT,
    /// e.what() = ...` of old servers, `Code: 60. DB::Exception: TEXT (UNKNOWN_TABLE) (version
    /// ...)` of newer ones.
    pub fn from_response(header: Option<&str>, body: &str) -> Exception {
        let stated = header.and_then(|code| code.trim().parse().ok());
        let written = body.split_once("Code: ").and_then(|(_, rest)| {
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            rest[..end].parse().ok()
        });
        let text = body
            .split_once("DB::Exception: ")
            .map_or(body, |(_, text)| text);
        let text = text.split(", e.what() = ").next().unwrap_or(text);
        let text = text.split(" (version ").next().unwrap_or(text);
        Exception {
            code: stated.or(written).unwrap_or(0),
            message: shown(text),
        }
    }

    /// Converts it by its code.
    pub fn into_error(self, server: &str, user: &str, action: &str) -> Error {
        let (server, action) = (server.to_owned(), action.to_owned());
        let Exception { code, message } = self;
        // Servers report a full disk under several codes, so the text decides, too.
        let no_space = message.contains("No space left") || message.contains("errno: 28");
        match code {
            // UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, AUTHENTICATION_FAILED
            192..=194 | 516 => Error::Credentials {
                server,
                user: user.to_owned(),
                code,
            },
            // READONLY, IP_ADDRESS_NOT_ALLOWED, DATABASE_ACCESS_DENIED, ACCESS_DENIED
            164 | 195 | 291 | 497 => Error::Permission {
                server,
                action,
                user: user.to_owned(),
                code,
                message,
            },
            // NOT_ENOUGH_SPACE, and what writing to a full disk gives
            243 => Error::DiskFull {
                server,
                action,
                code,
                message,
            },
            _ if no_space => Error::DiskFull {
                server,
                action,
                code,
                message,
            },
            // TIMEOUT_EXCEEDED, TOO_MANY_SIMULTANEOUS_QUERIES, SOCKET_TIMEOUT, NETWORK_ERROR,
            // QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING, MEMORY_LIMIT_EXCEEDED, TOO_MANY_PARTS,
            // ALL_CONNECTION_TRIES_FAILED
            159 | 202 | 209 | 210 | 216 | 241 | 252 | 279 => Error::Busy {
                server,
                action,
                code,
                message,
            },
            _ => Error::Refused {
                server,
                action,
                code,
                message,
            },
        }
    }
}

/// Text of another program, shortened and on one line.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MOST_SHOWN)
        .collect();
    if text.chars().nth(MOST_SHOWN).is_some() {
        shown.push_str("...");
    }
    shown.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_words_are_found_in_both_forms() {
        let old = "Code: 60, e.displayText() = DB::Exception: Table a.b doesn't exist., e.what() = DB::Exception\n";
        let new = "Code: 497. DB::Exception: reader: Not enough privileges. (ACCESS_DENIED) (version 26.9.2.1 (official build))\n";
        for (header, body, code, message) in [
            (None, old, 60, "Table a.b doesn't exist."),
            (
                Some("497"),
                new,
                497,
                "reader: Not enough privileges. (ACCESS_DENIED)",
            ),
            (None, "<html>502</html>", 0, "<html>502</html>"),
            (Some("x"), "", 0, ""),
            (None, "Code: 99999999999999.", 0, "Code: 99999999999999."),
        ] {
            let message = message.to_owned();
            assert_eq!(
                Exception::from_response(header, body),
                Exception { code, message }
            );
        }
    }

    #[test]
    fn each_code_becomes_the_error_that_says_what_to_do() {
        let error = |code, message: &str| {
            let message = message.to_owned();
            Exception { code, message }.into_error("h:1", "me", "insert")
        };
        assert!(matches!(
            error(193, ""),
            Error::Credentials { code: 193, .. }
        ));
        assert!(matches!(error(516, ""), Error::Credentials { .. }));
        assert!(matches!(error(164, ""), Error::Permission { .. }));
        assert!(matches!(error(243, ""), Error::DiskFull { .. }));
        let full = "Cannot write to file, errno: 28, strerror: No space left on device";
        assert!(matches!(error(75, full), Error::DiskFull { .. }));
        assert!(error(252, "Too many parts").may_pass());
        assert!(!error(60, "no such table").may_pass());
    }
}
