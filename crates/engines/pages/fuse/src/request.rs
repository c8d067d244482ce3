//! Requests of the kernel, as `linux/fuse.h` (protocol 7.x) lays them out, in this machine's byte
//! order.

use crate::FuseError;

/// Length of the head in front of every request.
pub const HEAD_BYTES: usize = 40;
/// Node number of the root directory.
pub const ROOT: u64 = 1;
/// Node number of the one file in it.
pub const FILE: u64 = 2;

/// A request of the kernel, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The number that the reply must repeat.
    pub unique: u64,
    /// The node that it is for: [`ROOT`] or [`FILE`].
    pub node: u64,
    pub call: Call<'a>,
}

/// The operation, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call<'a> {
    /// Agree on version and abilities. It comes before anything else.
    Init {
        major: u32,
        minor: u32,
        /// Bytes that the kernel reads ahead.
        max_readahead: u32,
        /// The kernel's abilities; the upper half exists since 7.36.
        flags: u64,
    },
    /// Find the node of a name in the directory.
    Lookup(&'a [u8]),
    /// Size, mode and times of a node.
    GetAttributes,
    /// Change attributes; only a size matters here.
    SetAttributes {
        size: Option<u64>,
    },
    /// Open the file; nothing is remembered for it.
    Open,
    /// Open the directory; nothing is remembered for it.
    OpenDirectory,
    /// List names of the directory.
    ReadDirectory {
        /// How many names to skip.
        offset: u64,
        /// The most bytes of the reply.
        bytes: u32,
    },
    Read {
        offset: u64,
        bytes: u32,
    },
    Write {
        offset: u64,
        data: &'a [u8],
    },
    /// Make written bytes durable, which here means nothing to do.
    Sync,
    /// Zero a range, give its space back, or reserve space for it (fallocate).
    Allocate {
        offset: u64,
        bytes: u64,
        /// The `FALLOC_FL_` flags of fallocate(2).
        mode: u32,
    },
    /// How many blocks the file system has, and how many are free.
    StatFs,
    /// The last user of a handle has closed it.
    Release,
    /// A message that the kernel wants no reply to.
    Silent,
    /// The file system was unmounted.
    Destroy,
    /// An operation that is not supported here.
    Other,
}

/// Reads numbers one after the other, and fails at the end of the bytes.
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
    /// Decodes a request. The kernel is trusted not to lie, but a length that does not match is
    /// refused.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FuseError> {
        let mut fields = Fields(bytes);
        let (length, code) = (fields.u32()?, fields.u32()?);
        let (unique, node) = (fields.u64()?, fields.u64()?);
        if length as usize != bytes.len() {
            return Err(FuseError::Request(
                "its length differs from the one in its head",
            ));
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
            // Forget, interrupt (our operations are short), and forget many.
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
            "the data of a write differ in length from its head",
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
