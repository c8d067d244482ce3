//! Numbers and fixed forms of the protocol. All integers are big-endian.

/// The first eight bytes of the server: `NBDMAGIC`.
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
/// Stands in front of every option, and in the greeting: `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flag of both sides: options get replies, errors included.
pub const FIXED_NEWSTYLE: u16 = 1;
/// Handshake flag of both sides: no padding follows an export's data in the old reply.
pub const NO_ZEROES: u16 = 2;

/// The longest name that the protocol allows.
pub const MOST_NAME_BYTES: usize = 4096;
/// The longest read or write, as it is announced to clients.
pub const MOST_BYTES: u32 = 32 << 20;
/// Bytes of an option's head: magic, option, length.
pub const OPTION_BYTES: usize = 16;
/// Bytes of a request without its data.
pub const REQUEST_BYTES: usize = 28;

/// Numbers of replies to options.
pub mod reply {
    pub const ACK: u32 = 1;
    /// An export's name and description.
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    const ERROR: u32 = 1 << 31;
    pub const UNSUPPORTED: u32 = ERROR + 1;
    pub const POLICY: u32 = ERROR + 2;
    /// The option's data make no sense.
    pub const INVALID: u32 = ERROR + 3;
    pub const TLS_REQUIRED: u32 = ERROR + 5;
    pub const UNKNOWN: u32 = ERROR + 6;
    pub const TOO_BIG: u32 = ERROR + 9;
}

/// Transmission flags: what an export can do.
pub mod can {
    const HAS_FLAGS: u16 = 1;
    pub const READ_ONLY: u16 = 1 << 1;
    const FLUSH: u16 = 1 << 2;
    const FUA: u16 = 1 << 3;
    const TRIM: u16 = 1 << 5;
    const WRITE_ZEROES: u16 = 1 << 6;
    /// Reads are answered in one piece on request; only for structured replies.
    pub const DONT_FRAGMENT: u16 = 1 << 7;
    const MULTI_CONNECTION: u16 = 1 << 8;
    const FAST_ZERO: u16 = 1 << 11;
    /// The abilities of every export.
    pub const ALWAYS: u16 =
        HAS_FLAGS | FLUSH | FUA | TRIM | WRITE_ZEROES | MULTI_CONNECTION | FAST_ZERO;
}

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    Read,
    /// Store the data that follow the request.
    Write,
    Disconnect,
    /// Make everything that was written durable, as far as the store is.
    Flush,
    /// The bytes are not needed any more; they may read as anything.
    Trim,
    WriteZeroes,
    Other(u16),
}

/// Flags that go with a request.
pub mod flag {
    /// Make this write durable before the reply.
    pub const FUA: u16 = 1;
    /// The zeros must take space, so that a later write finds room.
    pub const NO_HOLE: u16 = 2;
    /// Answer the read in one piece, or fail.
    pub const DONT_FRAGMENT: u16 = 4;
    /// Zero fast or fail at once; zeroing is always fast here.
    pub const FAST_ZERO: u16 = 16;
}

/// The fixed part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub command: Command,
    pub flags: u16,
    /// The client's number for the request, which the reply repeats.
    pub cookie: u64,
    /// The first byte on the disk.
    pub offset: u64,
    pub length: u32,
}

impl Request {
    /// Reads the fixed part; `None` if it does not begin with the magic number, after which the
    /// stream cannot be followed any more.
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

/// Error numbers of replies, fixed by the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Refusal {
    ReadOnly = 1,
    /// The store cannot return the bytes.
    Io = 5,
    /// The system has no memory left.
    Memory = 12,
    /// The request is not valid.
    Invalid = 22,
    /// The store is full, or the write lies beyond the end.
    NoSpace = 28,
    /// The answer does not fit into one piece.
    Overflow = 75,
}

impl Refusal {
    /// The number for a failed call of the store; all others count as an I/O error.
    pub fn from_errno(errno: i32) -> Self {
        match errno {
            libc::ENOSPC => Self::NoSpace,
            libc::ENOMEM => Self::Memory,
            libc::EINVAL => Self::Invalid,
            _ => Self::Io,
        }
    }
}

/// Appends a reply to an option, with its data, to `out`.
pub fn option_reply(option: u32, kind: u32, data: &[&[u8]], out: &mut Vec<u8>) {
    out.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend(option.to_be_bytes());
    out.extend(kind.to_be_bytes());
    let bytes: usize = data.iter().map(|part| part.len()).sum();
    out.extend((bytes as u32).to_be_bytes());
    data.iter().for_each(|part| out.extend(*part));
}

/// Appends the head of a simple reply; the bytes of a read that succeeded follow.
pub fn simple_reply(refusal: Option<Refusal>, cookie: u64, out: &mut Vec<u8>) {
    out.extend(SIMPLE_REPLY_MAGIC.to_be_bytes());
    out.extend(refusal.map_or(0, |why| why as u32).to_be_bytes());
    out.extend(cookie.to_be_bytes());
}

/// One piece of a structured reply.
#[derive(Debug, Clone, Copy)]
pub enum Chunk {
    /// An empty piece, because a reply needs at least one.
    None,
    /// Bytes from an offset on, which follow the piece's head.
    Data { offset: u64, bytes: u32 },
    /// This many zeros from an offset on, which are not sent.
    Hole { offset: u64, bytes: u32 },
    /// The read failed at an offset.
    Error { why: Refusal, offset: u64 },
}

/// Appends a piece of a structured reply, or its head if data follow.
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
            // There is no message, because the error number says enough.
            out.extend(0u16.to_be_bytes());
            out.extend(offset.to_be_bytes());
        }
    }
}

/// Reads big-endian numbers one after the other; `None` once the bytes run out.
#[derive(Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `count` bytes, or `None` if fewer are left.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}
