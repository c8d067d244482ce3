//! The encoding of messages between writers and stores: a version, a kind and the fields. Numbers
//! are little-endian, and a field without a length of its own goes to the end
//! (docs/formats/remote-logs.md).

use dyno_wire::{Protocol, Reader, Wire, wire_struct};

use super::{Answer, PersistError, Read, Request};
use crate::position::Lsn;

const VERSION: u8 = 1;
/// Length of an encoded append without the bytes that it appends.
const APPEND_HEAD: usize = 26;

/// The error for bytes that are not a message of this protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The message is cut short, too long, or of an unknown kind.
    #[error("a store's message does not parse: its bytes {what}")]
    Damaged {
        /// What the bytes do wrong.
        what: &'static str,
    },
    /// A later version of this program sent the message.
    #[error("a store's message of version {found}: this program has {VERSION}")]
    Newer {
        /// The version that the message names.
        found: u8,
    },
}

/// Any request to a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// A request of a writer, which may be fenced.
    Write(Request),
    /// A request of a reader of the log with this number.
    Read(u64, Read),
}

/// Any reply of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To a writer whose request was carried out.
    Answer(Answer),
    /// To a reader, whose request says what the bytes are.
    Bytes(Vec<u8>),
    /// To either, if the store did not do what was requested.
    Refused(PersistError),
}

/// The protocol of writers and stores, for the types of `dyno_wire`.
struct Stores;

impl Protocol for Stores {
    type Error = WireError;

    fn damaged(what: &'static str, _left_bytes: usize) -> WireError {
        WireError::Damaged { what }
    }
}

wire_struct!(Stores: Lsn { 0 });

/// A field that ends a message, because it has no length of its own.
trait Rest {
    fn as_bytes(&self) -> &[u8];
    fn from_bytes(bytes: &[u8]) -> Self;
}

impl Rest for Vec<u8> {
    fn as_bytes(&self) -> &[u8] {
        self
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        bytes.to_vec()
    }
}

impl Rest for String {
    fn as_bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// Begins to read a message. Returns its kind, and a reader of its fields.
fn open(bytes: &[u8]) -> Result<(u8, Reader<'_, Stores>), WireError> {
    let mut reader = Reader::new(bytes);
    match reader.byte()? {
        VERSION => Ok((reader.byte()?, reader)),
        found => Err(WireError::Newer { found }),
    }
}

/// Encodes an enum as the version, a byte for the kind, the fields, and the field that ends the
/// message (the name after `..`). Each kind is a pattern and an expression at once.
macro_rules! messages {
    ($name:ident {$(
        $kind:literal [$($field:ident)* $(.. $rest:ident)?] ($($form:tt)+)
    )+}) => {
        impl $name {
            /// Appends the encoded message to `out`.
            pub fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $($($form)+ => {
                        out.extend_from_slice(&[VERSION, $kind]);
                        $(Wire::<Stores>::write($field, out);)*
                        $(out.extend_from_slice(Rest::as_bytes($rest));)?
                    })+
                }
            }

            /// Decodes a message, which must take up all of `bytes`.
            ///
            /// # Errors
            /// [`WireError`].
            pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
                let (kind, mut reader) = open(bytes)?;
                let message = match kind {
                    $($kind => {
                        $(let $field = Wire::<Stores>::read(&mut reader)?;)*
                        $(let $rest = Rest::from_bytes(reader.rest());)?
                        $($form)+
                    })+
                    _ => return Err(reader.damaged("name a kind that is not known")),
                };
                reader.finish().map(|()| message)
            }
        }
    };
}

messages!(Ask {
    1 [log epoch] (Ask::Write(Request::Open { log, epoch }))
    2 [log epoch at .. bytes] (Ask::Write(Request::Append { log, epoch, at, bytes }))
    3 [log epoch end] (Ask::Write(Request::Cut { log, epoch, end }))
    4 [log epoch at] (Ask::Write(Request::Reset { log, epoch, at }))
    5 [log epoch number .. bytes] (Ask::Write(Request::Chunk { log, epoch, number, bytes }))
    6 [log epoch number chunks first_needed]
        (Ask::Write(Request::Install { log, epoch, number, chunks, first_needed }))
    7 [log from most_bytes] (Ask::Read(log, Read::Bytes { from, most_bytes }))
    8 [log index] (Ask::Read(log, Read::Chunk { index }))
});

messages!(Reply {
    1 [written_epoch first_needed chunks end]
        (Reply::Answer(Answer::Opened { written_epoch, first_needed, chunks, end }))
    2 [end] (Reply::Answer(Answer::Kept { end }))
    3 [] (Reply::Answer(Answer::Done))
    4 [.. bytes] (Reply::Bytes(bytes))
    16 [log epoch] (Reply::Refused(PersistError::Fenced { log, epoch }))
    17 [log end] (Reply::Refused(PersistError::Gap { log, end }))
    18 [used_bytes most_bytes] (Reply::Refused(PersistError::Full { used_bytes, most_bytes }))
    19 [log] (Reply::Refused(PersistError::Unknown { log }))
    20 [log .. what] (Reply::Refused(PersistError::NotKept { log, what }))
});

/// Encodes the front of a [`Request::Append`]. The caller sends the bytes behind it, so they need
/// not be copied into one buffer.
pub fn append_head(log: u64, epoch: u64, at: Lsn) -> [u8; APPEND_HEAD] {
    let mut head = [0; APPEND_HEAD];
    (head[0], head[1]) = (VERSION, 2);
    for (place, number) in [log, epoch, at.0].into_iter().enumerate() {
        head[2 + place * 8..10 + place * 8].copy_from_slice(&number.to_le_bytes());
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks() -> Vec<Ask> {
        let (log, epoch, at) = (7, 3, Lsn(258));
        let bytes = b"ab".to_vec();
        vec![
            Ask::Write(Request::Open { log, epoch }),
            Ask::Write(Request::Append {
                log,
                epoch,
                at,
                bytes: bytes.clone(),
            }),
            Ask::Write(Request::Cut {
                log,
                epoch,
                end: at,
            }),
            Ask::Write(Request::Reset { log, epoch, at }),
            Ask::Write(Request::Chunk {
                log,
                epoch,
                number: 1,
                bytes,
            }),
            Ask::Write(Request::Install {
                log,
                epoch,
                number: 1,
                chunks: 2,
                first_needed: at,
            }),
            Ask::Read(
                log,
                Read::Bytes {
                    from: at,
                    most_bytes: 9,
                },
            ),
            Ask::Read(log, Read::Chunk { index: 4 }),
        ]
    }

    fn replies() -> Vec<Reply> {
        let (log, end) = (7, Lsn(258));
        let answers = [
            Answer::Opened {
                written_epoch: 1,
                first_needed: Lsn(2),
                chunks: 3,
                end,
            },
            Answer::Kept { end },
            Answer::Done,
        ];
        let errors = [
            PersistError::Fenced { log, epoch: 4 },
            PersistError::Gap { log, end },
            PersistError::Full {
                used_bytes: 5,
                most_bytes: 6,
            },
            PersistError::Unknown { log },
            PersistError::NotKept {
                log,
                what: "bytes".to_owned(),
            },
        ];
        let mut all: Vec<_> = answers.into_iter().map(Reply::Answer).collect();
        all.push(Reply::Bytes(b"ab".to_vec()));
        all.extend(errors.map(Reply::Refused));
        all
    }

    /// Version 1 as it was first written: every later version must read it.
    const APPEND: &[u8] = &[
        1, 2, 7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, b'a', b'b',
    ];
    const KEPT: &[u8] = &[1, 2, 2, 1, 0, 0, 0, 0, 0, 0];

    #[test]
    fn what_is_written_comes_back_and_has_the_bytes_of_the_table() {
        for ask in asks() {
            let mut bytes = Vec::new();
            ask.encode(&mut bytes);
            assert_eq!(Ask::decode(&bytes), Ok(ask));
        }
        for reply in replies() {
            let mut bytes = Vec::new();
            reply.encode(&mut bytes);
            assert_eq!(Reply::decode(&bytes), Ok(reply));
        }
        assert_eq!(Ask::decode(APPEND), Ok(asks()[1].clone()));
        assert_eq!([&append_head(7, 3, Lsn(258))[..], b"ab"].concat(), APPEND);
        assert_eq!(Reply::decode(KEPT), Ok(replies()[1].clone()));
    }

    /// The checksums of what version 1 writes, so that no change of the code changes a byte.
    #[test]
    fn every_message_of_version_1_has_the_bytes_that_it_always_had() {
        let asks = asks().into_iter().map(|ask| {
            let mut bytes = Vec::new();
            ask.encode(&mut bytes);
            dyno_checksum::crc32c(&bytes)
        });
        let replies = replies().into_iter().map(|reply| {
            let mut bytes = Vec::new();
            reply.encode(&mut bytes);
            dyno_checksum::crc32c(&bytes)
        });
        let all = [asks.collect::<Vec<_>>(), replies.collect()];
        assert_eq!(all, [&ASKS[..], &REPLIES]);
    }

    const ASKS: [u32; 8] = [
        0x97105821, 0x4ceefa5a, 0x4f3d61f2, 0x85b31321, 0x7f935d9d, 0xf8b70008, 0x93101002,
        0xc6538e60,
    ];
    const REPLIES: [u32; 9] = [
        0x58a18c1a, 0x3f618729, 0xf1931c51, 0x183f1b81, 0xdebde9bf, 0x5a3f610b, 0x12f8c642,
        0xbe76113c, 0x347bb031,
    ];

    #[test]
    fn what_is_cut_is_refused_or_shorter_and_a_newer_version_is_named() {
        for ask in asks() {
            let mut bytes = Vec::new();
            ask.encode(&mut bytes);
            for length in 0..bytes.len() {
                assert_ne!(Ask::decode(&bytes[..length]), Ok(ask.clone()));
            }
            bytes[0] = 2;
            assert_eq!(Ask::decode(&bytes), Err(WireError::Newer { found: 2 }));
            assert_eq!(Reply::decode(&bytes), Err(WireError::Newer { found: 2 }));
        }
        for reply in replies() {
            let mut bytes = Vec::new();
            reply.encode(&mut bytes);
            for length in 0..bytes.len() {
                assert_ne!(Reply::decode(&bytes[..length]), Ok(reply.clone()));
            }
        }
        assert!(Ask::decode(&[1, 99, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    }
}
