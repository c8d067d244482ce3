//! What a client says in the handshake.

use crate::wire::{Fields, OPTION_BYTES, OPTION_MAGIC};

/// The longest data that an option may have: every list of informations with the longest name.
pub const MOST_OPTION_BYTES: u32 = 160 << 10;

/// An option's number and the length of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The number.
    pub option: u32,
    /// Bytes of data that follow.
    pub bytes: u32,
}

impl Head {
    /// Reads one. None: the magic is not there.
    pub fn parse(bytes: &[u8; OPTION_BYTES]) -> Option<Self> {
        let mut fields = Fields(bytes);
        if fields.u64()? != OPTION_MAGIC {
            return None;
        }
        Some(Self {
            option: fields.u32()?,
            bytes: fields.u32()?,
        })
    }
}

/// An option that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish<'a> {
    /// An export, by the old way that has no reply for failure.
    ExportName(&'a [u8]),
    /// To leave.
    Abort,
    /// Names of the exports.
    List,
    /// TLS from here on.
    StartTls,
    /// What an export is like.
    Info(&'a [u8]),
    /// The same, and to use it.
    Go(&'a [u8]),
    /// Structured replies to reads.
    StructuredReply,
    /// Data that are not those of the option.
    Malformed,
    /// Something else.
    Other,
}

impl<'a> Wish<'a> {
    /// What `option` with `data` is.
    pub fn parse(option: u32, data: &'a [u8]) -> Self {
        let bare = |wish| {
            if data.is_empty() {
                wish
            } else {
                Self::Malformed
            }
        };
        match option {
            1 => Self::ExportName(data),
            // Its data mean nothing, and are allowed.
            2 => Self::Abort,
            3 => bare(Self::List),
            5 => bare(Self::StartTls),
            6 => export_of(data).map_or(Self::Malformed, Self::Info),
            7 => export_of(data).map_or(Self::Malformed, Self::Go),
            8 => bare(Self::StructuredReply),
            _ => Self::Other,
        }
    }
}

/// The name in the data of Info and Go; the informations wanted are looked at for their length
/// alone, as all are given.
fn export_of(data: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields(data);
    let name_bytes = fields.u32()?;
    let name = fields.bytes(usize::try_from(name_bytes).ok()?)?;
    let count = fields.u16()?;
    (fields.0.len() == 2 * usize::from(count)).then_some(name)
}
