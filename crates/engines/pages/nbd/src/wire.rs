//! Numbers and fixed forms of the protocol. All integers are big-endian.

/// Opens the server's greeting: `NBDMAGIC`.
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
/// Stands before every option, and in the greeting: `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flags, of both sides: options get replies; no padding after an export's data.
pub const FIXED_NEWSTYLE: u16 = 1;
/// See [`FIXED_NEWSTYLE`].
pub const NO_ZEROES: u16 = 2;

/// The longest name of the protocol.
pub const MOST_NAME_BYTES: usize = 4096;
/// The longest read or write.
pub const MOST_BYTES: u32 = 32 << 20;
/// Bytes of an option's header: magic, option, length.
pub const OPTION_BYTES: usize = 16;
/// Bytes of a request without its data.
pub const REQUEST_BYTES: usize = 28;

/// Replies to options.
pub mod reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// An export's name and description.
    pub const SERVER: u32 = 2;
    /// Something about an export.
    pub const INFO: u32 = 3;
    const ERROR: u32 = 1 << 31;
    /// No such option here.
    pub const UNSUPPORTED: u32 = ERROR + 1;
    /// Not allowed here.
    pub const POLICY: u32 = ERROR + 2;
    /// The option's data make no sense.
    pub const INVALID: u32 = ERROR + 3;
    /// TLS comes first.
    pub const TLS_REQUIRED: u32 = ERROR + 5;
    /// No such export.
    pub const UNKNOWN: u32 = ERROR + 6;
    /// Too long.
    pub const TOO_BIG: u32 = ERROR + 9;
}

/// What an export can do.
pub mod can {
    const HAS_FLAGS: u16 = 1;
    /// Writing is refused.
    pub const READ_ONLY: u16 = 1 << 1;
    const FLUSH: u16 = 1 << 2;
    const FUA: u16 = 1 << 3;
    const TRIM: u16 = 1 << 5;
    const WRITE_ZEROES: u16 = 1 << 6;
    /// Reads in one piece on request; for structured replies alone.
    pub const DONT_FRAGMENT: u16 = 1 << 7;
    const MULTI_CONNECTION: u16 = 1 << 8;
    const FAST_ZERO: u16 = 1 << 11;
    /// All that every export can do.
    pub const ALWAYS: u16 =
        HAS_FLAGS | FLUSH | FUA | TRIM | WRITE_ZEROES | MULTI_CONNECTION | FAST_ZERO;
}

/// What a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Bytes.
    Read,
    /// Store the data that follow.
    Write,
    /// Hang up.
    Disconnect,
    /// Have what was written where it stays.
    Flush,
    /// The bytes are not needed any more.
    Trim,
    /// Zeros, without sending them.
    WriteZeroes,
    /// Something else.
    Other(u16),
}

/// Flags of a request.
pub mod flag {
    /// Have it where it stays before the reply.
    pub const FUA: u16 = 1;
    /// Zeros that take space.
    pub const NO_HOLE: u16 = 2;
    /// One piece.
    pub const DONT_FRAGMENT: u16 = 4;
    /// Zeros fast or not at all; ours are.
    pub const FAST_ZERO: u16 = 16;
}

/// A request, without data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What.
    pub command: Command,
    /// How.
    pub flags: u16,
    /// Comes back in the reply.
    pub cookie: u64,
    /// From where on.
    pub offset: u64,
    /// How many bytes.
    pub length: u32,
}

impl Request {
    /// Reads one. None: the magic is not there, and the stream cannot be followed any more.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let mut fields = Fields(bytes);
        if fields.u32()? != REQUEST_MAGIC {
            return None;
        }
        let flags = fields.u16()?;
        let command = match fields.u16()? {
            0 => Command::Read,
            1 => Command::Write,
            2 => Command::Disconnect,
            3 => Command::Flush,
            4 => Command::Trim,
            6 => Command::WriteZeroes,
            other => Command::Other(other),
        };
        Some(Self {
            command,
            flags,
            cookie: fields.u64()?,
            offset: fields.u64()?,
            length: fields.u32()?,
        })
    }
}

/// Error numbers of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Refusal {
    /// The export is read-only.
    ReadOnly = 1,
    /// The store cannot give the bytes.
    Io = 5,
    /// The system has no memory.
    Memory = 12,
    /// The request makes no sense.
    Invalid = 22,
    /// The store is full, or the bytes to be written lie beyond the end.
    NoSpace = 28,
    /// Too long for one piece.
    Overflow = 75,
}

impl Refusal {
    /// The number that a call of the system would have failed with.
    pub fn of_errno(errno: i32) -> Self {
        match errno {
            libc::ENOSPC => Self::NoSpace,
            libc::ENOMEM => Self::Memory,
            libc::EINVAL => Self::Invalid,
            _ => Self::Io,
        }
    }
}

/// A reply to an option, with its data.
pub fn option_reply(option: u32, kind: u32, data: &[&[u8]], out: &mut Vec<u8>) {
    out.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend(option.to_be_bytes());
    out.extend(kind.to_be_bytes());
    let bytes: usize = data.iter().map(|part| part.len()).sum();
    out.extend((bytes as u32).to_be_bytes());
    data.iter().for_each(|part| out.extend(*part));
}

/// The head of a simple reply; the bytes of a read that worked follow.
pub fn simple_reply(refusal: Option<Refusal>, cookie: u64, out: &mut Vec<u8>) {
    out.extend(SIMPLE_REPLY_MAGIC.to_be_bytes());
    out.extend(refusal.map_or(0, |why| why as u32).to_be_bytes());
    out.extend(cookie.to_be_bytes());
}

/// Pieces of a structured reply.
#[derive(Debug, Clone, Copy)]
pub enum Chunk {
    /// Nothing; a reply needs at least one piece.
    None,
    /// So many bytes from an offset on, which follow.
    Data {
        /// From where on.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// So many zeros from an offset on.
    Hole {
        /// From where on.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// It failed at an offset.
    Error {
        /// Why.
        why: Refusal,
        /// Where.
        offset: u64,
    },
}

/// A piece of a structured reply, or its head where data follow.
pub fn chunk(piece: Chunk, last: bool, cookie: u64, out: &mut Vec<u8>) {
    let (kind, bytes): (u16, u32) = match piece {
        Chunk::None => (0, 0),
        Chunk::Data { bytes, .. } => (1, 8 + bytes),
        Chunk::Hole { .. } => (2, 12),
        Chunk::Error { .. } => (0x8002, 14),
    };
    out.extend(STRUCTURED_REPLY_MAGIC.to_be_bytes());
    out.extend(u16::from(last).to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(bytes.to_be_bytes());
    match piece {
        Chunk::None => {}
        Chunk::Data { offset, .. } => out.extend(offset.to_be_bytes()),
        Chunk::Hole { offset, bytes } => {
            out.extend(offset.to_be_bytes());
            out.extend(bytes.to_be_bytes());
        }
        Chunk::Error { why, offset } => {
            out.extend((why as u32).to_be_bytes());
            // No message: the number says it.
            out.extend(0u16.to_be_bytes());
            out.extend(offset.to_be_bytes());
        }
    }
}

/// Big-endian numbers one after the other, until there are no more bytes.
#[derive(Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// The next two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// The next eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}
