//! Messages as bytes, without I/O: a head of 16 bytes, a name, a note.

use crate::HoldError;

/// The first bytes of every message.
const MAGIC: [u8; 4] = *b"dyph";
const VERSION: u8 = 1;
/// Length of a head: magic, version, verb, and the lengths of what follows.
pub const HEAD_BYTES: usize = 16;
/// The longest name; its length takes one byte of the head.
pub const MOST_NAME_BYTES: usize = 255;
/// The longest note; it bounds the memory that a message can make the other end allocate.
pub const MOST_NOTE_BYTES: usize = 4096;
/// The most files that a holder has at once: two for each virtual machine of a pager, which are at
/// most 240, and a few more.
pub const MOST_HELD: usize = 512;

/// The question or the answer that a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    /// Hold the descriptor that comes with the message.
    Put = 1,
    /// Send back a descriptor of the file of that name.
    Get = 2,
    /// Send all names, as the note of the answer, each with a line feed behind it.
    List = 3,
    /// Close the file of that name.
    Drop = 4,
    /// Close all files, and end.
    End = 5,
    /// Done; a descriptor comes with it if one was asked for.
    Done = 128,
    /// No file of that name is held.
    Unknown = 129,
    /// The holder accepts no more files.
    Full = 130,
    /// Not a question of this version, or without the descriptor that it needs.
    Refused = 131,
}

impl Verb {
    const ALL: [Self; 9] = [
        Self::Put,
        Self::Get,
        Self::List,
        Self::Drop,
        Self::End,
        Self::Done,
        Self::Unknown,
        Self::Full,
        Self::Refused,
    ];
}

/// The fixed part of a message, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub verb: Verb,
    /// Bytes of the name that follows, at most [`MOST_NAME_BYTES`].
    pub name_bytes: usize,
    /// Bytes of the note behind it, at most [`MOST_NOTE_BYTES`].
    pub note_bytes: usize,
}

impl Head {
    /// Reads a head. Reserved bytes must be zero, so that a later version can give them a meaning.
    pub fn parse(bytes: &[u8; HEAD_BYTES]) -> Result<Self, HoldError> {
        let wrong = |what: String| Err(HoldError::Message(what));
        let [
            m0,
            m1,
            m2,
            m3,
            version,
            verb,
            name,
            0,
            n0,
            n1,
            n2,
            n3,
            0,
            0,
            0,
            0,
        ] = *bytes
        else {
            return wrong("bytes that must be zero are not".to_owned());
        };
        if [m0, m1, m2, m3] != MAGIC {
            return wrong(format!("it begins with {:02x?}", &bytes[..4]));
        }
        if version != VERSION {
            return wrong(format!(
                "it has version {version}, this program knows {VERSION}"
            ));
        }
        let Some(verb) = Verb::ALL.into_iter().find(|&known| known as u8 == verb) else {
            return wrong(format!("verb {verb} is not known"));
        };
        let note_bytes = u32::from_le_bytes([n0, n1, n2, n3]) as usize;
        if note_bytes > MOST_NOTE_BYTES {
            return wrong(format!("a note of {note_bytes} bytes"));
        }
        Ok(Self {
            verb,
            name_bytes: usize::from(name),
            note_bytes,
        })
    }
}

/// The bytes of a whole message.
pub fn message(verb: Verb, name: &str, note: &[u8]) -> Result<Vec<u8>, HoldError> {
    for (what, bytes, most) in [
        ("the name", name.len(), MOST_NAME_BYTES),
        ("the note", note.len(), MOST_NOTE_BYTES),
    ] {
        if bytes > most {
            return Err(HoldError::TooLong { what, bytes, most });
        }
    }
    let mut all = MAGIC.to_vec();
    all.extend([VERSION, verb as u8, name.len() as u8, 0]);
    all.extend((note.len() as u32).to_le_bytes());
    all.extend([0; 4]);
    all.extend(name.as_bytes());
    all.extend(note);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_head_is_known_or_refused(bytes: [u8; HEAD_BYTES], magic: bool) {
            let mut bytes = bytes;
            if magic {
                bytes[..5].copy_from_slice(b"dyph\x01");
            }
            if let Ok(head) = Head::parse(&bytes) {
                prop_assert!(head.note_bytes <= MOST_NOTE_BYTES);
            }
        }

        #[test]
        fn a_head_says_what_follows(name in "[a-z]{0,255}", note in proptest::collection::vec(any::<u8>(), 0..4096)) {
            let bytes = message(Verb::Put, &name, &note).expect("short enough");
            let (head, rest) = bytes.split_first_chunk().expect("a head");
            let head = Head::parse(head).expect("known");
            prop_assert_eq!(head, Head { verb: Verb::Put, name_bytes: name.len(), note_bytes: note.len() });
            prop_assert_eq!(rest, [name.as_bytes(), &note].concat());
        }
    }

    /// The bytes of version 1, which later versions must understand.
    #[test]
    fn version_1_stays_what_it_is() {
        let bytes = message(Verb::Get, "store", b"").expect("short enough");
        assert_eq!(bytes, b"dyph\x01\x02\x05\0\0\0\0\0\0\0\0\0store");
        let mut later = *bytes.first_chunk::<HEAD_BYTES>().expect("a head");
        later[4] = 2;
        let error = Head::parse(&later)
            .expect_err("a later version")
            .to_string();
        assert!(error.contains("version 2"), "{error}");
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_is_sent() {
        assert!(message(Verb::Put, &"x".repeat(256), b"").is_err());
        assert!(message(Verb::Put, "x", &[0; MOST_NOTE_BYTES + 1]).is_err());
    }
}
