//! Finds commits in what a client sends to PostgreSQL: a simple query COMMIT, or the Sync after an
//! Execute of a statement that commits by itself. PostgreSQL documentation, chapter 55
//! (frontend/backend protocol).

use std::collections::HashMap;

/// The kind of a packet of the start-up phase, which has no type byte: its length, then a code.
const STARTUP: u8 = 0;
/// The codes of requests for TLS, for GSSAPI, and to cancel. None of them starts the session.
const NOT_STARTING: [u32; 3] = [80_877_103, 80_877_104, 80_877_102];
/// How many bytes of a message are kept. A statement's text is at its beginning.
const LOOKED_AT_BYTES: usize = 4096;

/// Follows the messages of one connection, in whatever pieces they come.
#[derive(Debug)]
pub struct PostgresWatch {
    committing: Vec<String>,
    /// Kind of the message under way, its bytes left, and its beginning.
    kind: Option<u8>,
    header: Vec<u8>,
    left: usize,
    body: Vec<u8>,
    started: bool,
    /// Whether a statement, and a portal, commits when executed, by name.
    statements: HashMap<Vec<u8>, bool>,
    portals: HashMap<Vec<u8>, bool>,
    /// Whether an Execute that commits has passed whose Sync has not.
    executed: bool,
}

impl PostgresWatch {
    /// A connection before its first byte.
    pub fn new(committing: &[String]) -> Self {
        Self {
            committing: committing.iter().map(|s| s.to_lowercase()).collect(),
            kind: None,
            header: Vec::new(),
            left: 0,
            body: Vec::new(),
            started: false,
            statements: HashMap::new(),
            portals: HashMap::new(),
            executed: false,
        }
    }

    /// The position in `bytes` right after the first message that makes the server commit.
    pub fn commit_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut found = None;
        let mut at = 0;
        while at < bytes.len() {
            if self.kind.is_none() {
                at += self.take_header(&bytes[at..]);
            } else {
                at += self.take_body(&bytes[at..]);
            }
            if self.kind.is_some() && self.left == 0 && self.finish() && found.is_none() {
                found = Some(at);
            }
        }
        found
    }

    fn take_header(&mut self, bytes: &[u8]) -> usize {
        let typed = usize::from(self.started);
        let wanted = typed + 4 - self.header.len();
        let taken = wanted.min(bytes.len());
        self.header.extend_from_slice(&bytes[..taken]);
        if taken == wanted {
            let length = u32_of(&self.header[typed..]) as usize;
            self.kind = Some(if self.started {
                self.header[0]
            } else {
                STARTUP
            });
            // The length counts itself.
            self.left = length.saturating_sub(4);
            self.header.clear();
            self.body.clear();
        }
        taken
    }

    fn take_body(&mut self, bytes: &[u8]) -> usize {
        let taken = self.left.min(bytes.len());
        let room = LOOKED_AT_BYTES.saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..taken.min(room)]);
        self.left -= taken;
        taken
    }

    /// Handles a complete message. Returns whether it makes the server commit.
    fn finish(&mut self) -> bool {
        let kind = self.kind.take();
        let body = std::mem::take(&mut self.body);
        match kind {
            Some(STARTUP) => {
                self.started = body.len() < 4 || !NOT_STARTING.contains(&u32_of(&body));
                false
            }
            Some(b'Q') => self.commits(&body),
            Some(b'P') => {
                let (name, text) = cut(&body);
                let commits = self.commits(text);
                self.statements.insert(name.to_vec(), commits);
                false
            }
            Some(b'B') => {
                let (portal, rest) = cut(&body);
                let commits = self.statements.get(cut(rest).0).copied().unwrap_or(false);
                self.portals.insert(portal.to_vec(), commits);
                false
            }
            Some(b'E') => {
                self.executed |= self.portals.get(cut(&body).0).copied().unwrap_or(false);
                false
            }
            Some(b'S') => std::mem::take(&mut self.executed),
            _ => false,
        }
    }

    fn commits(&self, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text).to_lowercase();
        text.trim_start().starts_with("commit")
            || self.committing.iter().any(|part| text.contains(part))
    }
}

/// A text up to its zero byte, and what follows.
fn cut(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}

fn u32_of(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .take(4)
        .fold(0, |sum, byte| (sum << 8) | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = if kind == STARTUP { vec![] } else { vec![kind] };
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn start() -> Vec<u8> {
        let mut bytes = message(STARTUP, &80_877_103_u32.to_be_bytes());
        bytes.extend(message(STARTUP, b"\0\x03\0\0user\0me\0\0"));
        bytes.extend(message(b'p', b"password\0"));
        bytes
    }

    /// The places right after commits, when the bytes come in pieces of `piece`.
    fn ends(bytes: &[u8], piece: usize) -> Vec<usize> {
        let mut watch = PostgresWatch::new(&["append_".to_owned()]);
        let mut ends = Vec::new();
        for (number, part) in bytes.chunks(piece).enumerate() {
            if let Some(end) = watch.commit_end(part) {
                ends.push(number * piece + end);
            }
        }
        ends
    }

    #[test]
    fn a_plain_commit_is_seen_whatever_the_pieces() {
        let mut bytes = start();
        bytes.extend(message(b'Q', b"BEGIN\0"));
        bytes.extend(message(b'Q', b"insert into committee values (1)\0"));
        bytes.extend(message(b'Q', b" Commit\0"));
        let end = bytes.len();
        bytes.extend(message(b'X', b""));
        for piece in 1..bytes.len() {
            assert_eq!(ends(&bytes, piece), [end], "pieces of {piece}");
        }
    }

    #[test]
    fn the_sync_after_an_executed_append_is_its_commit() {
        let mut bytes = start();
        bytes.extend(message(
            b'P',
            b"s0\0SELECT * FROM pubsub.append_1_0($1)\0\0\0",
        ));
        bytes.extend(message(b'P', b"s1\0SELECT 1\0\0\0"));
        bytes.extend(message(b'S', b""));
        bytes.extend(message(b'B', b"\0s1\0\0\0\0\0\0\0"));
        bytes.extend(message(b'E', b"\0\0\0\0\0"));
        bytes.extend(message(b'S', b""));
        bytes.extend(message(b'B', &[b"\0s0\0".as_slice(), &[9; 9000]].concat()));
        bytes.extend(message(b'E', b"\0\0\0\0\0"));
        bytes.extend(message(b'S', b""));
        let end = bytes.len();
        bytes.extend(message(b'S', b""));
        for piece in [1, 3, 64, bytes.len()] {
            assert_eq!(ends(&bytes, piece), [end], "pieces of {piece}");
        }
    }
}
