//! What a connection says before its first transaction, and the verbs of its frames
//! (docs/formats/txn-frames.md).
//!
//! | verb | body | request id |
//! |---|---|---|
//! | 1 hello | version u8, core u32, length u16, token | 0 |
//! | 2 welcome | version u8, cores u32, partitions u32, durability u8 | 0 |
//! | 3 refused | code u8, text | that of what was refused |
//! | 4 message | a message of `dyno-txn-core` | the partition it goes to or comes from; all ones for the oracle |
//! | 5 stats | nothing | any |
//! | 6 figures | lines `name value` | that of the stats |
//! | 7 backup | ticket u64, name | any |
//! | 8 backup state | 0 under way, 1 done, or 2 and a refusal's body | that of the backup |
//! | 16 hello of a log's writer, to a process of role `persist` | version u8, length u16, token | 0 |
//! | 17 its welcome | version u8, bytes held u64, bytes held at most u64 | 0 |
//! | 18 request to a store | `Ask` of `dyno-txn-log` | the writer's own number |
//! | 19 reply of a store | `Reply` of `dyno-txn-log` | that of the request |
//! | 24 hello of a process with partitions, to another one or to an oracle | version u8, thread wanted u32, part u32, parts u32, partitions u32, own thread u32, threads u32, identity u64, length u16, token, address | 0 |
//! | 25 its welcome | version u8 | 0 |
//! | 26 message between processes | 1 (a partition) or 2 (an oracle), its number u32, a message | the partition it goes to; all ones for the oracle |
//! | 27 request of the map | nothing | any |
//! | 28 map | `member::cluster_map` | that of the request, or 0 if an oracle sends it by itself |
//!
//! Numbers are little-endian.

use dyno_txn_api::{Code, Error, Result};
use dyno_txn_core::message::{Address, Message};

use crate::options::Durability;

pub(crate) const HELLO: u8 = 1;
pub(crate) const WELCOME: u8 = 2;
pub(crate) const REFUSED: u8 = 3;
pub(crate) const MESSAGE: u8 = 4;
pub(crate) const STATS: u8 = 5;
pub(crate) const FIGURES: u8 = 6;
pub(crate) const BACKUP: u8 = 7;
pub(crate) const BACKUP_STATE: u8 = 8;
pub(crate) const STORE_HELLO: u8 = 16;
pub(crate) const STORE_WELCOME: u8 = 17;
pub(crate) const STORE_ASK: u8 = 18;
pub(crate) const STORE_REPLY: u8 = 19;
pub(crate) const MEMBER_HELLO: u8 = 24;
pub(crate) const MEMBER_WELCOME: u8 = 25;
pub(crate) const PEER_MESSAGE: u8 = 26;
pub(crate) const MAP_ASK: u8 = 27;
pub(crate) const MAP: u8 = 28;

/// The version of the greetings that this program speaks.
pub(crate) const HELLO_VERSION: u8 = 1;
/// Takes the place of a partition's number in messages to and from the oracle.
pub(crate) const ORACLE: u32 = u32::MAX;
/// The longest body that a server accepts before the other end is authenticated: a token and an
/// address, whose lengths have two bytes each, and a few numbers.
pub(crate) const MOST_HELLO_BYTES: usize = 160 << 10;
/// The longest body that either side accepts.
pub(crate) const MOST_BODY_BYTES: usize = 64 << 20;
/// Bytes of unfinished frames and unread answers that all connections of one thread may hold
/// together, without those within the process.
pub(crate) const MOST_HELD_BYTES: usize = 256 << 20;

/// The first frame of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The thread of the engine that it wants to talk to.
    pub core: u32,
    pub token: Vec<u8>,
}

/// The answer to a [`Hello`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Welcome {
    pub cores: u32,
    pub partitions: u32,
    pub durability: Durability,
}

impl Hello {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![HELLO_VERSION];
        out.extend_from_slice(&self.core.to_le_bytes());
        encode_token(&self.token, &mut out);
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let rest = version(bytes)?;
        let token = rest.get(4..).and_then(decode_token);
        match (number(rest, 0), token) {
            (Some(core), Some(token)) => Ok(Self {
                core,
                token: token.to_vec(),
            }),
            _ => Err(damaged("a hello")),
        }
    }
}

impl Welcome {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![HELLO_VERSION];
        out.extend_from_slice(&self.cores.to_le_bytes());
        out.extend_from_slice(&self.partitions.to_le_bytes());
        out.push(match self.durability {
            Durability::Fsync => 0,
            Durability::Memory => 1,
            Durability::RemoteMemory => 2,
        });
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let rest = version(bytes)?;
        let (Some(cores), Some(partitions), Some(&how), 9) =
            (number(rest, 0), number(rest, 4), rest.get(8), rest.len())
        else {
            return Err(damaged("a welcome"));
        };
        let durability = match how {
            0 => Durability::Fsync,
            1 => Durability::Memory,
            2 => Durability::RemoteMemory,
            _ => return Err(damaged("a welcome")),
        };
        // A client allocates something for each core, so a server cannot be allowed any number.
        if (1..=1024).contains(&cores) && (cores..=65_536).contains(&partitions) {
            Ok(Self {
                cores,
                partitions,
                durability,
            })
        } else {
            Err(damaged("a welcome"))
        }
    }
}

/// The first frame of a process with partitions to another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberHello {
    /// The thread that it wants to talk to.
    pub core: u32,
    /// The index of the sending process, and the number of processes.
    pub part: u32,
    pub of: u32,
    /// Partitions of the whole database.
    pub partitions: u32,
    /// The index of the sending thread, and the number of threads of its process.
    pub thread: u32,
    pub threads: u32,
    /// That of its directory.
    pub identity: u64,
    pub token: Vec<u8>,
    /// Where others reach it.
    pub address: String,
}

impl MemberHello {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![HELLO_VERSION];
        for number in [
            self.core,
            self.part,
            self.of,
            self.partitions,
            self.thread,
            self.threads,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.identity.to_le_bytes());
        encode_token(&self.token, &mut out);
        out.extend_from_slice(self.address.as_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let rest = version(bytes)?;
        let parse = || -> Option<Self> {
            let (identity, rest) = rest.get(24..)?.split_first_chunk::<8>()?;
            let (length, rest) = rest.split_first_chunk::<2>()?;
            let (token, address) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
            let address = std::str::from_utf8(address)
                .ok()
                .filter(|a| a.len() <= 300)?;
            Some(Self {
                core: number(bytes, 1)?,
                part: number(bytes, 5)?,
                of: number(bytes, 9)?,
                partitions: number(bytes, 13)?,
                thread: number(bytes, 17)?,
                threads: number(bytes, 21)?,
                identity: u64::from_le_bytes(*identity),
                token: token.to_vec(),
                address: address.to_owned(),
            })
        };
        parse().ok_or_else(|| damaged("a hello of a process"))
    }
}

/// Appends the body of a message between processes.
pub(crate) fn encode_peer_message(from: Address, message: &Message, out: &mut Vec<u8>) {
    let (kind, number) = match from {
        Address::Partition(id) => (1, id),
        Address::Oracle(id) => (2, id),
        // No process speaks for a client. The receiver refuses this.
        Address::Client(_) => (0, 0),
    };
    out.push(kind);
    out.extend_from_slice(&number.to_le_bytes());
    message.encode(out);
}

/// The sender and the message in such a body.
pub(crate) fn decode_peer_message(bytes: &[u8]) -> Result<(Address, Message)> {
    let from = match (bytes.first(), number(bytes, 1)) {
        (Some(1), Some(id)) => Address::Partition(id),
        (Some(2), Some(id)) => Address::Oracle(id),
        _ => return Err(damaged("a message between processes")),
    };
    Ok((from, Message::decode(&bytes[5..])?))
}

/// The first frame of a log's writer to a process of role `persist`.
pub(crate) fn encode_store_hello(token: &[u8]) -> Vec<u8> {
    let mut out = vec![HELLO_VERSION];
    encode_token(token, &mut out);
    out
}

/// The token in the first frame of a log's writer.
pub(crate) fn decode_store_hello(bytes: &[u8]) -> Result<&[u8]> {
    decode_token(version(bytes)?).ok_or_else(|| damaged("a hello"))
}

/// The answer to it: bytes of logs that the process holds, and that it may hold.
pub(crate) fn encode_store_welcome(used_bytes: u64, most_bytes: u64) -> Vec<u8> {
    let mut out = vec![HELLO_VERSION];
    out.extend_from_slice(&used_bytes.to_le_bytes());
    out.extend_from_slice(&most_bytes.to_le_bytes());
    out
}

/// Checks that an answer is such a welcome. Its numbers are for people.
pub(crate) fn check_store_welcome(bytes: &[u8]) -> Result<()> {
    match version(bytes)?.len() {
        16 => Ok(()),
        _ => Err(damaged("a welcome")),
    }
}

fn encode_token(token: &[u8], out: &mut Vec<u8>) {
    let length = token.len().min(usize::from(u16::MAX)) as u16;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&token[..usize::from(length)]);
}

/// A token that fills the rest of the body.
fn decode_token(bytes: &[u8]) -> Option<&[u8]> {
    let (length, token) = bytes.split_first_chunk::<2>()?;
    (token.len() == usize::from(u16::from_le_bytes(*length))).then_some(token)
}

/// The body of a refusal.
pub(crate) fn encode_refusal(error: &Error) -> Vec<u8> {
    let mut out = vec![error.kind().number()];
    out.extend_from_slice(error.text().as_bytes());
    out
}

/// The error in the body of a refusal.
pub(crate) fn decode_refusal(bytes: &[u8]) -> Error {
    let code = bytes.first().and_then(|&number| Code::numbered(number));
    let text = String::from_utf8_lossy(bytes.get(1..).unwrap_or_default());
    Error::new(code.unwrap_or(Code::Damaged), text)
}

fn version(bytes: &[u8]) -> Result<&[u8]> {
    match bytes.split_first() {
        Some((&HELLO_VERSION, rest)) => Ok(rest),
        Some((found, _)) => {
            let text = format!("a greeting of version {found}: this program has {HELLO_VERSION}");
            Err(Error::new(Code::NewerVersion, text))
        }
        None => Err(damaged("a greeting")),
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn damaged(what: &str) -> Error {
    Error::new(Code::Damaged, format!("{what} that does not parse"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_come_back_and_have_the_bytes_of_the_table() {
        let hello = Hello {
            core: 3,
            token: b"ab".to_vec(),
        };
        assert_eq!(hello.encode(), [1, 3, 0, 0, 0, 2, 0, b'a', b'b']);
        assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        let welcome = Welcome {
            cores: 2,
            partitions: 4,
            durability: Durability::Memory,
        };
        assert_eq!(welcome.encode(), [1, 2, 0, 0, 0, 4, 0, 0, 0, 1]);
        assert_eq!(Welcome::decode(&welcome.encode()), Ok(welcome));
    }

    #[test]
    fn what_is_cut_or_from_a_later_version_is_refused() {
        let hello = Hello {
            core: 3,
            token: b"ab".to_vec(),
        }
        .encode();
        for length in 0..hello.len() {
            assert!(Hello::decode(&hello[..length]).is_err(), "{length}");
            assert!(Welcome::decode(&hello[..length]).is_err(), "{length}");
        }
        let newer = Hello::decode(&[2, 0]).expect_err("version 2");
        assert_eq!(newer.kind(), Code::NewerVersion);
    }

    #[test]
    fn a_process_says_who_it_is_and_what_is_cut_is_refused() {
        let hello = MemberHello {
            core: 1,
            part: 2,
            of: 3,
            partitions: 4,
            thread: 5,
            threads: 6,
            identity: 7,
            token: b"ab".to_vec(),
            address: "h:1".to_owned(),
        };
        let bytes = [
            1, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0,
            0, 0, 0, 0, 2, 0, b'a', b'b', b'h', b':', b'1',
        ];
        assert_eq!(hello.encode(), bytes);
        assert_eq!(MemberHello::decode(&bytes), Ok(hello.clone()));
        for length in 0..bytes.len() {
            assert_ne!(MemberHello::decode(&bytes[..length]), Ok(hello.clone()));
        }
        let message = Message::Heartbeat { timestamp: 9 };
        let mut between = Vec::new();
        encode_peer_message(Address::Partition(3), &message, &mut between);
        assert_eq!(between[..5], [1, 3, 0, 0, 0]);
        assert_eq!(
            decode_peer_message(&between),
            Ok((Address::Partition(3), message))
        );
        for length in 0..between.len() {
            assert!(decode_peer_message(&between[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_writer_is_known_by_its_token() {
        let hello = encode_store_hello(b"ab");
        assert_eq!(hello, [1, 2, 0, b'a', b'b']);
        assert_eq!(decode_store_hello(&hello), Ok(&b"ab"[..]));
        for length in 0..hello.len() {
            assert!(decode_store_hello(&hello[..length]).is_err(), "{length}");
        }
        let welcome = encode_store_welcome(1, 2);
        assert_eq!(welcome, [1, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(check_store_welcome(&welcome), Ok(()));
        assert!(check_store_welcome(&encode_store_welcome(1, 2)[..9]).is_err());
    }

    #[test]
    fn a_refusal_keeps_its_code() {
        let error = Error::new(Code::Denied, "the token is not this server's");
        assert_eq!(decode_refusal(&encode_refusal(&error)), error);
    }
}
