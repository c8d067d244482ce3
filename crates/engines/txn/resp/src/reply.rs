//! Encodes replies in the version of the protocol that a client has chosen.

/// The version of the protocol: RESP2 unless the client asked for RESP3 with `HELLO 3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// What every client speaks at first.
    #[default]
    Resp2,
    /// With maps and a null of its own.
    Resp3,
}

/// Encodes replies, one after the other, into one buffer.
#[derive(Debug)]
pub struct Reply {
    bytes: Vec<u8>,
    /// In which version the next reply is encoded.
    pub protocol: Protocol,
    /// The length of all replies beyond which no more stored data is appended. What is written then
    /// is not a reply any more, and the code that has set the bound drops it.
    pub most_bytes: usize,
}

impl Reply {
    /// A buffer without replies, which encodes the next one in this version.
    pub fn new(protocol: Protocol) -> Self {
        Self::with_capacity(protocol, 0)
    }

    /// The same, with room for so many bytes.
    pub fn with_capacity(protocol: Protocol, bytes: usize) -> Self {
        let bytes = Vec::with_capacity(bytes);
        Self {
            bytes,
            protocol,
            most_bytes: usize::MAX,
        }
    }

    /// The number of bytes of all replies so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Drops what was written after the first `bytes` bytes.
    pub fn truncate(&mut self, bytes: usize) {
        self.bytes.truncate(bytes);
    }

    /// The encoded replies, one after the other.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends replies that are encoded already.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A line without line breaks, such as `OK`.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error. Its first word is its kind, such as `ERR`.
    pub fn error(&mut self, text: &str) {
        // A line break from a client's own bytes would end the error early, and what follows would
        // be taken for another reply.
        let text: Vec<u8> = text
            .bytes()
            .map(|byte| match byte {
                b'\r' | b'\n' => b' ',
                byte => byte,
            })
            .collect();
        self.bytes.push(b'-');
        self.bytes.extend_from_slice(&text);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A signed integer of 64 bits.
    pub fn integer(&mut self, number: i64) {
        self.number(b':', number);
    }

    /// A count, which is never near the largest integer.
    pub fn count(&mut self, number: usize) {
        self.integer(number as i64);
    }

    /// Bytes of any kind and length, line breaks included. Nothing is appended beyond
    /// [`Reply::most_bytes`].
    pub fn bulk(&mut self, bytes: &[u8]) {
        if self.bytes.len() > self.most_bytes {
            return;
        }
        self.number(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Bytes, or null if they are absent.
    pub fn optional(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Text for people, which RESP3 marks as such.
    pub fn text(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.number(b'=', text.len() + 4);
                self.bytes.extend_from_slice(b"txt:");
                self.bytes.extend_from_slice(text.as_bytes());
                self.bytes.extend_from_slice(b"\r\n");
            }
        }
    }

    /// The absence of a value, as a key that is absent has it.
    pub fn null(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The absence of an array, as an `EXEC` without effect has it.
    pub fn null_array(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The head of an array, behind which its elements follow.
    pub fn array(&mut self, elements: usize) {
        self.number(b'*', elements);
    }

    /// The head of a map, behind which keys and values follow in turn. RESP2 has an array instead.
    pub fn map(&mut self, entries: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(2 * entries),
            Protocol::Resp3 => self.number(b'%', entries),
        }
    }

    /// An integer, or the line before something that has a length or a number of elements.
    fn number(&mut self, kind: u8, number: impl itoa::Integer) {
        self.line(kind, itoa::Buffer::new().format(number).as_bytes());
    }

    fn line(&mut self, kind: u8, content: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(content);
        self.bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_appended_beyond_the_bound() {
        let mut reply = Reply::new(Protocol::Resp2);
        reply.most_bytes = 12;
        for _ in 0..1_000 {
            reply.bulk(b"text");
            reply.optional(Some(b"text"));
        }
        // The second one passes the bound, which tells the caller that something is missing.
        assert_eq!(reply.finish(), b"$4\r\ntext\r\n$4\r\ntext\r\n");
    }
}
