//! Options: what a client says in the handshake.

use crate::wire::{Fields, OPTION_BYTES, OPTION_MAGIC};

/// The longest data of an option: every information request, with the longest name.
pub const MOST_OPTION_BYTES: u32 = 160 << 10;

/// The fixed part of an option: its number and the length of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub option: u32,
    pub bytes: u32,
}

impl Head {
    /// Reads the fixed part; `None` if it does not begin with the magic number.
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

/// An option that this server knows, with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientOption<'a> {
    /// Use an export, by the old option that has no reply for a failure.
    ExportName(&'a [u8]),
    /// End the connection in agreement.
    Abort,
    /// List the names of the exports.
    List,
    /// Speak TLS from here on.
    StartTls,
    /// Describe the export of this name.
    Info(&'a [u8]),
    /// Describe the export of this name, and use it.
    Go(&'a [u8]),
    /// Answer reads with structured replies from now on.
    StructuredReply,
    /// The data are not those of the option.
    Malformed,
    /// An option that this server does not know.
    Other,
}

impl<'a> ClientOption<'a> {
    /// Decodes the data of `option`.
    pub fn parse(option: u32, data: &'a [u8]) -> Self {
        let bare = |parsed| {
            if data.is_empty() {
                parsed
            } else {
                Self::Malformed
            }
        };
        match option {
            1 => Self::ExportName(data),
            // The protocol allows data here, and gives them no meaning.
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

/// The name in the data of Info and Go. The list of wanted information is checked for its length
/// alone, because all information is sent in any case.
fn export_of(data: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields(data);
    let name_bytes = fields.u32()?;
    let name = fields.bytes(usize::try_from(name_bytes).ok()?)?;
    let count = fields.u16()?;
    (fields.0.len() == 2 * usize::from(count)).then_some(name)
}
