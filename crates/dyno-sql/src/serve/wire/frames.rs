//! Messages as they lie in the stream, looked at before `pgwire` takes them apart.
//!
//! Its decoders trust what a message says of itself. One that is shorter than its parts makes them
//! panic, which ends the server, and it may announce a gibibyte, which is gathered in memory. Both
//! are open to a client that has not shown the token yet.

use pgwire::api::PgWireConnectionState;

/// The longest message of a client that was not let in yet, as in PostgreSQL.
const STRANGER_BYTES: usize = 10_000;
/// The longest message of a client that was let in. A statement over HTTP may have one mebibyte;
/// a message may also bring the values of its parameters.
const MESSAGE_BYTES: usize = 4 << 20;
/// The length, which counts itself.
const LENGTH_BYTES: usize = 4;
/// The length of a first message, and the number of the protocol.
const FIRST_BYTES: usize = 8;

/// How far a client has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its first message is awaited, the only one that does not begin with its kind.
    Arrived,
    /// Its password is awaited.
    Asked,
    /// It was let in.
    LetIn,
}

impl Stage {
    pub(super) fn from_state(state: PgWireConnectionState) -> Self {
        match state {
            PgWireConnectionState::AwaitingSslRequest | PgWireConnectionState::AwaitingStartup => {
                Self::Arrived
            }
            PgWireConnectionState::AuthenticationInProgress => Self::Asked,
            _ => Self::LetIn,
        }
    }
}

/// The length of the message with which `bytes` begin, if all of it is there. Such a message can be
/// decoded without a panic.
///
/// # Errors
/// The message is longer than may be read at this stage, or is not what its kind says.
pub(super) fn whole(bytes: &[u8], stage: Stage) -> Result<Option<usize>, String> {
    let (head, least, most) = match stage {
        Stage::Arrived => (0, FIRST_BYTES, STRANGER_BYTES),
        Stage::Asked => (1, LENGTH_BYTES, STRANGER_BYTES),
        Stage::LetIn => (1, LENGTH_BYTES, MESSAGE_BYTES),
    };
    let declared = bytes
        .get(head..)
        .and_then(|rest| rest.first_chunk::<LENGTH_BYTES>());
    let Some(declared) = declared else {
        return Ok(None);
    };
    let declared = usize::try_from(u32::from_be_bytes(*declared)).unwrap_or(usize::MAX);
    if !(least..=most).contains(&declared) {
        return Err(format!(
            "invalid length of message: {declared} bytes, where {least} to {most} are read"
        ));
    }
    let Some(message) = bytes.get(..head + declared) else {
        return Ok(None);
    };
    if stage != Stage::Arrived
        && let Some(kind) = message.first()
    {
        check_frame(*kind, &message[head + LENGTH_BYTES..])?;
    }
    Ok(Some(message.len()))
}

/// Refuses a body that does not consist of exactly the parts that a message of its kind has.
fn check_frame(kind: u8, body: &[u8]) -> Result<(), String> {
    let mut rest = Rest(body);
    match rest.take_message(kind) {
        Some(()) if rest.0.is_empty() => Ok(()),
        _ => Err(format!(
            "invalid message format: one of kind {:?} has other parts",
            char::from(kind)
        )),
    }
}

/// What is left of a body, from which part after part is taken. `None` if a part is not there.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take_message(&mut self, kind: u8) -> Option<()> {
        match kind {
            // Query and CopyFail.
            b'Q' | b'f' => self.text(),
            b'P' => self.parse(),
            b'B' => self.bind(),
            // Close and Describe: of what kind, and its name.
            b'C' | b'D' => {
                self.skip(1)?;
                self.text()
            }
            // Execute: the name of the portal, and the most rows.
            b'E' => {
                self.text()?;
                self.skip(4)
            }
            // Flush, Sync, Terminate and CopyDone.
            b'H' | b'S' | b'X' | b'c' => Some(()),
            // A password and CopyData are bytes of any kind, and any other message is not decoded.
            _ => self.skip(self.0.len()),
        }
    }

    /// Two names, and the types of parameters.
    fn parse(&mut self) -> Option<()> {
        self.text()?;
        self.text()?;
        let types = self.count()?;
        self.skip(4 * types)
    }

    /// Two names, the formats of parameters, their values, and the formats of columns.
    fn bind(&mut self) -> Option<()> {
        self.text()?;
        self.text()?;
        let formats = self.count()?;
        self.skip(2 * formats)?;
        let values = self.count()?;
        for _ in 0..values {
            // NULL has a negative length, and no bytes.
            let length = self.chunk().map(i32::from_be_bytes)?;
            self.skip(usize::try_from(length).unwrap_or(0))?;
        }
        let columns = self.count()?;
        self.skip(2 * columns)?;
        // The format of a value is looked for by its number, unless there is one for all.
        (formats <= 1 || formats == values).then_some(())
    }

    /// A text that ends with a zero.
    fn text(&mut self) -> Option<()> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        self.skip(end + 1)
    }

    fn count(&mut self) -> Option<usize> {
        self.chunk().map(u16::from_be_bytes).map(usize::from)
    }

    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*chunk)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with the length that it has.
    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + LENGTH_BYTES).unwrap();
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    #[test]
    fn messages_of_clients_are_let_through() {
        for (kind, body) in [
            (b'p', &b"0123456789abcdef\0"[..]),
            (b'p', b""),
            (b'Q', b"SELECT 1\0"),
            (b'P', b"\0SELECT $1\0\0\x01\0\0\0\x17"),
            (b'P', b"name\0SELECT 1\0\0\0"),
            (b'B', b"\0\0\0\0\0\0\0\0"),
            (
                b'B',
                b"\0name\0\0\x01\0\x01\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\x01\0\x01",
            ),
            (b'D', b"S\0"),
            (b'C', b"Pportal\0"),
            (b'E', b"\0\0\0\0\0"),
            (b'H', b""),
            (b'S', b""),
            (b'X', b""),
            (b'd', b"any\0bytes"),
            (b'f', b"why\0"),
            (b'c', b""),
            // Its kind is refused by the decoder.
            (b'!', b"x"),
        ] {
            let sent = message(kind, body);
            let two = [&sent[..], b"Q\0"].concat();
            let kind = char::from(kind);
            assert_eq!(whole(&two, Stage::LetIn), Ok(Some(sent.len())), "{kind}");
            for some in 0..sent.len() {
                assert_eq!(whole(&sent[..some], Stage::LetIn), Ok(None), "{kind}");
            }
        }
    }

    #[test]
    fn hostile_messages_are_refused() {
        for (kind, body) in [
            (b'Q', &b""[..]),
            (b'Q', b"SELECT 1"),
            (b'Q', b"SELECT 1\0;"),
            (b'P', b""),
            (b'P', b"\0\0"),
            (b'P', b"no end"),
            (b'P', b"\0\0\xff\xff"),
            (b'P', b"\0\0\0\x01\0\0\0"),
            (b'B', b""),
            (b'B', b"\0\0"),
            (b'B', b"\0\0\0\x01"),
            (b'B', b"\0\0\0\0\0\x01"),
            (b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"),
            (b'B', b"\0\0\0\0\0\0"),
            (b'B', b"\0\0\0\0\0\0\xff\xff"),
            // Two formats for three values.
            (
                b'B',
                b"\0\0\0\x02\0\0\0\0\0\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0",
            ),
            (b'C', b""),
            (b'C', b"S"),
            (b'D', b""),
            (b'D', b"Sno end"),
            (b'E', b""),
            (b'E', b"\0\0\0\0"),
            (b'S', b"x"),
        ] {
            for stage in [Stage::Asked, Stage::LetIn] {
                let found = whole(&message(kind, body), stage);
                assert!(found.is_err(), "{} {body:?}: {found:?}", char::from(kind));
            }
        }
    }

    #[test]
    fn lengths_have_bounds() {
        let one = |length: usize| {
            let length = u32::try_from(length).unwrap();
            [&b"Q"[..], &length.to_be_bytes()].concat()
        };
        for (length, asked, let_in) in [
            (0, false, false),
            (3, false, false),
            (STRANGER_BYTES, true, true),
            (STRANGER_BYTES + 1, false, true),
            (MESSAGE_BYTES, false, true),
            (MESSAGE_BYTES + 1, false, false),
            (1 << 30, false, false),
            (0xffff_ffff, false, false),
        ] {
            let bytes = one(length);
            assert_eq!(whole(&bytes, Stage::Asked).is_ok(), asked, "{length}");
            assert_eq!(whole(&bytes, Stage::LetIn).is_ok(), let_in, "{length}");
        }
        for (length, well) in [(0_u32, false), (7, false), (8, true), (10_001, false)] {
            let found = whole(&length.to_be_bytes(), Stage::Arrived);
            assert_eq!(found.is_ok(), well, "{length}");
        }
        let first = b"\0\0\0\x09\0\x03\0\0\0";
        assert_eq!(whole(first, Stage::Arrived), Ok(Some(9)));
        assert_eq!(whole(&first[..8], Stage::Arrived), Ok(None));
    }
}
