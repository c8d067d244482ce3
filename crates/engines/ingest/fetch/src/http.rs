//! Sends one request and classifies its answer.

use std::io::Read;
use std::time::Duration;

use dyno_http::ureq::http::{HeaderMap, Response};
use dyno_http::ureq::{Agent, Body};
use dyno_http::{Failure, Settings};

use crate::state::Version;

/// The longest body that is read, longer than any archive.
const BYTES_MAX: u64 = 64 << 30;

/// The answer of a server.
pub(crate) enum Answer {
    /// The file, from byte `from` on.
    Bytes {
        version: Version,
        /// Either 0 or the byte that was requested.
        from: u64,
        body: Box<dyn Read + Send>,
    },
    /// The server still has the version that the request named.
    Unchanged,
    /// The server has no such file.
    Missing,
    /// The server does not send the rest that was asked for, with the reason. The file has to be
    /// asked for from its beginning.
    NoRest(&'static str),
    /// The server is busy or broken, with this status. A later attempt may succeed.
    Busy(u16),
    /// The server refuses, with this status.
    Refused(u16),
}

/// The part of the file that is requested.
pub(crate) enum Ask<'a> {
    /// The whole file.
    All,
    /// The whole file, unless the server still has this version.
    IfChanged(&'a Version),
    /// The rest of version `of` from a byte on, or the whole file if it has changed.
    Rest { of: &'a str, from: u64 },
}

/// Makes an HTTP client whose requests may take `attempt` each, including the body.
pub(crate) fn agent(attempt: Duration) -> Agent {
    dyno_http::agent(&Settings {
        whole: attempt,
        // Archives move to other addresses, and the request has no secret that they could learn.
        redirects: 5,
        ..Settings::default()
    })
}

/// Sends one request.
///
/// # Errors
/// Why there is no answer.
pub(crate) fn ask(agent: &Agent, url: &str, ask: &Ask<'_>) -> Result<Answer, Failure> {
    let mut request = agent.get(url);
    // Otherwise a server may compress the file once more, and a range would be one of that form.
    request = request.header("Accept-Encoding", "identity");
    let mut asked_from = 0;
    match ask {
        Ask::All => {}
        Ask::IfChanged(version) => {
            if let Some(tag) = &version.etag {
                request = request.header("If-None-Match", tag);
            } else if let Some(date) = &version.last_modified {
                request = request.header("If-Modified-Since", date);
            }
        }
        Ask::Rest { of, from } => {
            asked_from = *from;
            request = request.header("Range", format!("bytes={from}-"));
            request = request.header("If-Range", *of);
        }
    }
    let answer = request.call().map_err(|e| Failure::from_error(&e))?;
    Ok(match answer.status().as_u16() {
        200 => bytes(url, answer, 0),
        206 => match range(answer.headers()) {
            Some((from, total)) if from == asked_from && asked_from > 0 => {
                if is_of(answer.headers(), ask) {
                    with_total(bytes(url, answer, from), total)
                } else {
                    Answer::NoRest("the server sends a range of another version")
                }
            }
            _ => Answer::NoRest("the server sends another range than was asked for"),
        },
        304 => Answer::Unchanged,
        404 | 410 => Answer::Missing,
        416 => Answer::NoRest("the server has no such range"),
        status @ (408 | 429 | 500..=599) => Answer::Busy(status),
        status => Answer::Refused(status),
    })
}

/// Whether a range is of the version that was asked for. A server that does not know `If-Range`
/// sends a range of whatever it has now, which would be put behind bytes of the older version.
fn is_of(headers: &HeaderMap, ask: &Ask<'_>) -> bool {
    let Ask::Rest { of, .. } = ask else {
        return false;
    };
    let name = if of.starts_with('"') {
        "etag"
    } else {
        "last-modified"
    };
    headers.get(name).is_none_or(|found| found == of)
}

fn bytes(url: &str, answer: Response<Body>, from: u64) -> Answer {
    let text = |name: &str| {
        let value = answer.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let version = Version {
        url: url.to_owned(),
        etag: text("etag"),
        last_modified: text("last-modified"),
        bytes: text("content-length").and_then(|length| length.parse().ok()),
    };
    let body = answer
        .into_body()
        .into_with_config()
        .limit(BYTES_MAX)
        .reader();
    Answer::Bytes {
        version,
        from,
        body: Box::new(body),
    }
}

fn with_total(answer: Answer, total: Option<u64>) -> Answer {
    match answer {
        Answer::Bytes {
            version,
            from,
            body,
        } => Answer::Bytes {
            version: Version {
                bytes: total,
                ..version
            },
            from,
            body,
        },
        other => other,
    }
}

/// First byte and whole length of `Content-Range: bytes FROM-TO/LENGTH`.
fn range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get("content-range")?.to_str().ok()?;
    let (range, length) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (from, _) = range.split_once('-')?;
    Some((from.parse().ok()?, length.parse().ok()))
}
