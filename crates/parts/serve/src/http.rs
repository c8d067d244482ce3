//! The part of HTTP/1.1 that a scraper uses (RFC 9112): parses the head of a request, and formats
//! an answer. It does no I/O.

use std::fmt::Write as _;

/// Longest head of a request; a scraper's has a few hundred bytes.
pub(crate) const HEAD_BYTES: usize = 8 << 10;

/// The parts of a request that matter here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    /// Whether the method was HEAD, so that the answer has no body.
    pub head_only: bool,
    /// The path without its query.
    pub path: &'a str,
    /// The token of `Authorization: Bearer`, if there is one.
    pub bearer: Option<&'a [u8]>,
}

/// A status with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status(pub u16, pub &'static str);

pub(crate) const OK: Status = Status(200, "OK");
pub(crate) const BAD: Status = Status(400, "Bad Request");
pub(crate) const DENIED: Status = Status(401, "Unauthorized");
pub(crate) const MISSING: Status = Status(404, "Not Found");
pub(crate) const METHOD: Status = Status(405, "Method Not Allowed");
pub(crate) const LONG: Status = Status(431, "Request Header Fields Too Large");
pub(crate) const BUSY: Status = Status(503, "Service Unavailable");

/// The length of the head in `bytes`, its empty line included; `None` when it is not complete.
pub(crate) fn head_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(end + 4)
}

/// Parses a complete head, or returns the status that refuses it.
pub(crate) fn parse(head: &[u8]) -> Result<Request<'_>, Status> {
    let mut lines = head
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r"));
    let first = lines.next().flatten().ok_or(BAD)?;
    let first = std::str::from_utf8(first).map_err(|_| BAD)?;
    let [method, target, version] = first.split(' ').collect::<Vec<_>>()[..] else {
        return Err(BAD);
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") || !target.starts_with('/') {
        return Err(BAD);
    }
    let head_only = match method {
        "GET" => false,
        "HEAD" => true,
        _ => return Err(METHOD),
    };
    let mut bearer = None;
    for line in lines {
        let line = match line {
            Some(b"") | None => break,
            Some(line) => line,
        };
        let colon = line.iter().position(|byte| *byte == b':').ok_or(BAD)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        // A name with a space is how one request is smuggled past a proxy as two.
        if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_graphic()) {
            return Err(BAD);
        }
        if name.eq_ignore_ascii_case(b"authorization") {
            // Of two tokens a proxy may have checked the other one.
            if bearer.is_some() {
                return Err(BAD);
            }
            bearer = credentials(value);
        }
    }
    Ok(Request {
        head_only,
        path: target.split('?').next().unwrap_or(target),
        bearer,
    })
}

/// The scheme's name is any case, and one or more spaces follow it (RFC 9110, section 11.4).
fn credentials(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| rest.trim_ascii_start())
}

/// An answer in full; the connection closes after it.
pub(crate) fn answer(status: Status, media_type: &str, body: &str, head_only: bool) -> Vec<u8> {
    let Status(code, name) = status;
    let mut text = String::with_capacity(body.len() + 256);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "HTTP/1.1 {code} {name}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n",
        body.len()
    );
    match status {
        DENIED => text.push_str("WWW-Authenticate: Bearer\r\n"),
        METHOD => text.push_str("Allow: GET, HEAD\r\n"),
        _ => {}
    }
    text.push_str("\r\n");
    if !head_only {
        text.push_str(body);
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_are_read_or_refused() {
        let good =
            b"GET /metrics?a=b HTTP/1.1\r\nHost: x\r\nauthorization: bEARER  secret \r\n\r\n";
        assert_eq!(head_length(good), Some(good.len()));
        let request = parse(good).unwrap();
        assert_eq!(request.path, "/metrics");
        assert_eq!(request.bearer, Some(&b"secret"[..]));
        for (head, status) in [
            (&b"GET /\r\n\r\n"[..], BAD),
            (b"GET  / HTTP/1.1\r\n\r\n", BAD),
            (b"GET / HTTP/2.0\r\n\r\n", BAD),
            (b"POST / HTTP/1.1\r\n\r\n", METHOD),
            (b"GET http://x/ HTTP/1.1\r\n\r\n", BAD),
            (b"GET / HTTP/1.1\r\nbad line\r\n\r\n", BAD),
            (b"GET / HTTP/1.1\r\nA B: c\r\n\r\n", BAD),
            (
                b"GET / HTTP/1.1\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
                BAD,
            ),
            (b"\x16\x03\x01\x02\r\n\r\n", BAD),
        ] {
            assert_eq!(
                parse(head),
                Err(status),
                "{}",
                String::from_utf8_lossy(head)
            );
        }
        let basic = parse(b"GET / HTTP/1.0\r\nAuthorization: Basic abc\r\n\r\n");
        assert_eq!(basic.unwrap().bearer, None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
            let _ = head_length(&bytes);
        }
    }
}
