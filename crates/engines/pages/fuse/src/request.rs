//! Requests of the system, as `linux/fuse.h` (protocol 7.x) lays them out: numbers of this
//! machine's byte order.

use crate::FuseError;

/// Bytes in front of every request.
pub const HEAD_BYTES: usize = 40;
/// The directory.
pub const ROOT: u64 = 1;
/// The one file in it.
pub const FILE: u64 = 2;

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Comes back in the reply.
    pub unique: u64,
    /// What it is about: [`ROOT`] or [`FILE`].
    pub node: u64,
    /// What.
    pub call: Call<'a>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call<'a> {
    /// Which version and abilities: (major, minor, read-ahead, flags, more flags).
    Init {
        /// The protocol's.
        major: u32,
        /// Its minor version.
        minor: u32,
        /// Bytes that the system reads ahead.
        max_readahead: u32,
        /// What it can do; the upper half since 7.36.
        flags: u64,
    },
    /// What a name in the directory is.
    Lookup(&'a [u8]),
    /// Size, mode and times.
    GetAttributes,
    /// Set them; the size, if that is among them.
    SetAttributes {
        /// The new size.
        size: Option<u64>,
    },
    /// Of file or directory.
    Open,
    /// Of the directory.
    OpenDirectory,
    /// Names from one on, in so many bytes.
    ReadDirectory {
        /// Names passed over.
        offset: u64,
        /// Bytes of the reply at most.
        bytes: u32,
    },
    /// Bytes.
    Read {
        /// From where on.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// Store bytes.
    Write {
        /// From where on.
        offset: u64,
        /// What.
        data: &'a [u8],
    },
    /// Have what was written where it stays.
    Sync,
    /// Zero, or free, or take, a range.
    Allocate {
        /// From where on.
        offset: u64,
        /// How many bytes.
        bytes: u64,
        /// FALLOC_FL_ flags.
        mode: u32,
    },
    /// How full it is.
    StatFs,
    /// Closed.
    Release,
    /// No reply is wanted.
    Silent,
    /// The file system ends.
    Destroy,
    /// Something else.
    Other,
}

/// Numbers one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u32(&mut self) -> Result<u32, FuseError> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Result<u64, FuseError> {
        self.take().map(u64::from_ne_bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], FuseError> {
        let (head, rest) = self
            .0
            .split_first_chunk()
            .ok_or(FuseError::Request("it ends too early"))?;
        self.0 = rest;
        Ok(*head)
    }
}

impl<'a> Request<'a> {
    /// Reads one.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FuseError> {
        let mut fields = Fields(bytes);
        let (length, code) = (fields.u32()?, fields.u32()?);
        let (unique, node) = (fields.u64()?, fields.u64()?);
        if length as usize != bytes.len() {
            return Err(FuseError::Request("its length is another than it says"));
        }
        let body = bytes
            .get(HEAD_BYTES..)
            .ok_or(FuseError::Request("it ends too early"))?;
        Ok(Self {
            unique,
            node,
            call: Call::parse(code, body)?,
        })
    }
}

impl<'a> Call<'a> {
    fn parse(code: u32, body: &'a [u8]) -> Result<Self, FuseError> {
        let mut fields = Fields(body);
        Ok(match code {
            1 => Self::Lookup(name(body)?),
            // Forget, interrupt (our calls are short), forget many.
            2 | 36 | 42 => Self::Silent,
            3 => Self::GetAttributes,
            4 => {
                const SIZE: u32 = 1 << 3;
                let valid = fields.u32()?;
                let (_padding, _handle) = (fields.u32()?, fields.u64()?);
                let size = fields.u64()?;
                Self::SetAttributes {
                    size: (valid & SIZE != 0).then_some(size),
                }
            }
            14 => Self::Open,
            15 | 28 => {
                let _handle = fields.u64()?;
                let (offset, bytes) = (fields.u64()?, fields.u32()?);
                match code {
                    15 => Self::Read { offset, bytes },
                    _ => Self::ReadDirectory { offset, bytes },
                }
            }
            16 => write(body)?,
            17 => Self::StatFs,
            18 | 29 => Self::Release,
            20 | 30 => Self::Sync,
            26 => init(fields)?,
            27 => Self::OpenDirectory,
            38 => Self::Destroy,
            43 => {
                let _handle = fields.u64()?;
                Self::Allocate {
                    offset: fields.u64()?,
                    bytes: fields.u64()?,
                    mode: fields.u32()?,
                }
            }
            _ => Self::Other,
        })
    }
}

fn name(body: &[u8]) -> Result<&[u8], FuseError> {
    let end = body.iter().position(|&byte| byte == 0);
    let end = end.ok_or(FuseError::Request("a name does not end"))?;
    Ok(&body[..end])
}

fn write(body: &[u8]) -> Result<Call<'_>, FuseError> {
    const BEFORE_DATA: usize = 40;
    let mut fields = Fields(body);
    let _handle = fields.u64()?;
    let (offset, bytes) = (fields.u64()?, fields.u32()?);
    let data = body.get(BEFORE_DATA..);
    match data.filter(|data| data.len() == bytes as usize) {
        Some(data) => Ok(Call::Write { offset, data }),
        None => Err(FuseError::Request(
            "a write's data are not as long as it says",
        )),
    }
}

fn init(mut fields: Fields<'_>) -> Result<Call<'_>, FuseError> {
    const HAS_MORE_FLAGS: u32 = 1 << 30;
    let (major, minor) = (fields.u32()?, fields.u32()?);
    let (max_readahead, low) = (fields.u32()?, fields.u32()?);
    let high = match low & HAS_MORE_FLAGS {
        0 => 0,
        _ => fields.u32()?,
    };
    Ok(Call::Init {
        major,
        minor,
        max_readahead,
        flags: u64::from(high) << 32 | u64::from(low),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(code: u32, body: &[u8]) -> Vec<u8> {
        let mut all = ((HEAD_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
        all.extend(code.to_ne_bytes());
        all.extend(7u64.to_ne_bytes());
        all.extend(FILE.to_ne_bytes());
        all.extend([0; 16]);
        all.extend(body);
        all
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(code in 0u32..60, body in proptest::collection::vec(any::<u8>(), 0..120), cut in 0usize..200) {
            let all = bytes(code, &body);
            let _ = Request::parse(&all[..cut.min(all.len())]);
            let _ = Request::parse(&all);
        }
    }

    #[test]
    fn a_write_has_all_its_data() {
        let mut body = [0u64, 4096].map(u64::to_ne_bytes).concat();
        body.extend(3u32.to_ne_bytes());
        body.extend([0; 20]);
        body.extend(b"abc");
        let all = bytes(16, &body);
        let request = Request::parse(&all).expect("a request");
        assert_eq!((request.unique, request.node), (7, FILE));
        let (offset, data) = (4096, &b"abc"[..]);
        assert_eq!(request.call, Call::Write { offset, data });
        assert!(Request::parse(&bytes(16, &body[..42])).is_err());
    }
}
