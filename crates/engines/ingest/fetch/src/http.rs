//! One request.

use std::io::Read;
use std::time::Duration;

use dyno_http::ureq::http::{HeaderMap, Response};
use dyno_http::ureq::{Agent, Body};
use dyno_http::{Failure, Settings};

use crate::state::Version;

/// No archive is longer.
const BYTES_MAX: u64 = 64 << 30;

/// What a server answers.
pub(crate) enum Answer {
    /// The file from some byte on.
    Bytes {
        version: Version,
        /// 0, or the byte that was asked for.
        from: u64,
        body: Box<dyn Read + Send>,
    },
    /// It has not changed.
    Unchanged,
    /// There is none.
    Missing,
    /// What was asked for is not there (any more): ask for all of it.
    NoSuchRange,
    /// It may work later.
    Busy(u16),
    /// It says no.
    Refused(u16),
}

/// What is asked for.
pub(crate) enum Ask<'a> {
    /// All of it.
    All,
    /// All of it, unless it is this version still.
    IfChanged(&'a Version),
    /// The rest of this version from a byte on, or all of another.
    Rest { of: &'a str, from: u64 },
}

/// What asks. An attempt may take so long; the next one goes on from there.
pub(crate) fn agent(attempt: Duration) -> Agent {
    dyno_http::agent(&Settings {
        whole: attempt,
        // Archives move; a request for one holds no secret.
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
    // Without it a server may compress what is compressed already, and ranges would be of that.
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
    let answer = request.call().map_err(|e| Failure::of(&e))?;
    Ok(match answer.status().as_u16() {
        200 => bytes(url, answer, 0),
        206 => match range(answer.headers()) {
            Some((from, total)) if from == asked_from && asked_from > 0 => {
                with_total(bytes(url, answer, from), total)
            }
            _ => {
                return Err(Failure {
                    lasting: false,
                    reason: "the server sends another range than was asked for".to_owned(),
                });
            }
        },
        304 => Answer::Unchanged,
        404 | 410 => Answer::Missing,
        416 => Answer::NoSuchRange,
        status @ (408 | 429 | 500..=599) => Answer::Busy(status),
        status => Answer::Refused(status),
    })
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
