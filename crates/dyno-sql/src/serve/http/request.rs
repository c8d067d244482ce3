//! The head of a request (RFC 9112) and the parameters of its address. It does no I/O.

use std::collections::BTreeMap;

/// The longest head of a request. A browser sends about one kilobyte.
pub(super) const HEAD_BYTES: usize = 16 << 10;
/// The longest statement that a request may carry.
pub(super) const BODY_BYTES: usize = 1 << 20;

/// The parts of a request that matter here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The method, in capitals as it was sent.
    pub(super) method: String,
    /// The path, without its parameters.
    pub(super) path: String,
    /// The parameters behind the path; of a name that comes twice, the last.
    pub(super) parameters: BTreeMap<String, String>,
    /// The headers, by names in lower case.
    pub(super) headers: BTreeMap<String, String>,
}

/// Why a head is not one, with its status.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadRequest(pub(super) u16, pub(super) &'static str);

/// The length of a head with its empty line, if all of it is there.
pub(super) fn head_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(end + 4)
}

impl Request {
    /// Parses a head.
    ///
    /// # Errors
    /// It is not HTTP/1, or has a form that is not read here.
    pub(super) fn parse(head: &[u8]) -> Result<Self, BadRequest> {
        let text = std::str::from_utf8(head).map_err(|_| BadRequest(400, "it is not UTF-8"))?;
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let mut words = first.split(' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        let (Some(method), Some(target), Some(version)) = (method, target, version) else {
            return Err(BadRequest(400, "its first line is not that of a request"));
        };
        if !version.starts_with("HTTP/1.") || words.next().is_some() {
            return Err(BadRequest(505, "only HTTP/1.0 and HTTP/1.1 are spoken"));
        }
        let mut headers = BTreeMap::new();
        for line in lines.filter(|line| !line.is_empty()) {
            // A line that continues the one before it is obsolete, and proxies read it in different
            // ways.
            let Some((name, value)) = line.split_once(':') else {
                return Err(BadRequest(400, "a header has no colon"));
            };
            // A name with a space is how one request is smuggled past a proxy as two.
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(BadRequest(400, "the name of a header is not one"));
            }
            let name = name.to_ascii_lowercase();
            // Of two tokens or two lengths, a proxy may have believed the other one.
            let twice = headers.insert(name, value.trim().to_owned()).is_some();
            if twice {
                return Err(BadRequest(400, "a header comes twice"));
            }
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = decoded(path).ok_or(BadRequest(400, "its path is not encoded UTF-8"))?;
        let parameters = parameters(query).ok_or(BadRequest(400, "a parameter is not UTF-8"))?;
        Ok(Self {
            method: method.to_owned(),
            path,
            parameters,
            headers,
        })
    }

    /// A header, by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// A parameter that is not empty.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let value = self.parameters.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    /// The length of the body.
    ///
    /// # Errors
    /// It is not stated, or longer than a statement may be.
    pub(super) fn body_length(&self) -> Result<usize, BadRequest> {
        if self.headers.contains_key("transfer-encoding") {
            return Err(BadRequest(411, "send the body with its Content-Length"));
        }
        let Some(length) = self.header("content-length") else {
            return Ok(0);
        };
        match length.parse() {
            Ok(length) if length <= BODY_BYTES => Ok(length),
            Ok(_) => Err(BadRequest(413, "the statement is longer than 1 MiB")),
            Err(_) => Err(BadRequest(400, "Content-Length is not a number")),
        }
    }
}

/// The parameters of an address, as forms send them; `None` if they are not UTF-8.
fn parameters(query: &str) -> Option<BTreeMap<String, String>> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // A form sends a plus for a space; a plus itself comes as %2B.
            let value = decoded(&value.replace('+', " "))?;
            Some((decoded(name)?, value))
        })
        .collect()
}

/// Text without percent encoding (RFC 3986, section 2.1).
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read() {
        let head = b"GET /spots?band=20m&call=G%2FX+1&empty= HTTP/1.1\r\nHost: here\r\n\
                     Accept:text/csv \r\n\r\n";
        assert_eq!(head_length(head), Some(head.len()));
        let request = Request::parse(head).unwrap();
        assert_eq!(request.path, "/spots");
        assert_eq!(request.parameter("band"), Some("20m"));
        assert_eq!(request.parameter("call"), Some("G/X 1"));
        assert_eq!(request.parameter("empty"), None);
        assert_eq!(request.header("accept"), Some("text/csv"));
        assert_eq!(request.body_length(), Ok(0));
    }

    #[test]
    fn what_is_not_a_request_is_refused() {
        for (head, status) in [
            (&b"\r\n\r\n"[..], 400),
            (b"GET / HTTP/2.0\r\n\r\n", 505),
            (b"GET / HTTP/1.1 x\r\n\r\n", 505),
            (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            (b"GET /%zz HTTP/1.1\r\n\r\n", 400),
            (b"GET /?a=%ff HTTP/1.1\r\n\r\n", 400),
            (b"GET /% HTTP/1.1\r\n\r\n", 400),
        ] {
            let refused = Request::parse(head).unwrap_err();
            assert_eq!(refused.0, status, "{}", String::from_utf8_lossy(head));
        }
        for (header, status) in [
            ("Content-Length: 2000000", 413),
            ("Content-Length: x", 400),
            ("Transfer-Encoding: chunked", 411),
        ] {
            let head = format!("POST /query HTTP/1.1\r\n{header}\r\n\r\n");
            let request = Request::parse(head.as_bytes()).unwrap();
            assert_eq!(request.body_length().unwrap_err().0, status, "{header}");
        }
    }
}
