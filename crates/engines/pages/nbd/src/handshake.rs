//! The handshake as a state machine: an option goes in, the reply and the next step come out.

use crate::export::{Export, Exports};
use crate::option::ClientOption;
use crate::wire::{
    FIXED_NEWSTYLE, GREETING, MOST_BYTES, MOST_NAME_BYTES, NO_ZEROES, OPTION_MAGIC, can,
    option_reply, reply,
};

/// What a client has agreed on before it uses an export.
#[derive(Debug)]
pub struct Handshake<'a> {
    exports: &'a Exports,
    /// Whether TLS must begin before anything else.
    wants_tls: bool,
    structured: bool,
    no_zeroes: bool,
}

/// What the connection does after an option.
#[derive(Debug)]
pub enum Next<'a> {
    Option,
    StartTls,
    /// The handshake is done, and requests follow.
    Requests {
        export: &'a Export,
        /// Whether reads are answered with structured replies.
        structured: bool,
    },
    /// The client leaves, or the server has to hang up.
    Close,
}

const INFO_EXPORT: u16 = 0;
const INFO_NAME: u16 = 1;
const INFO_DESCRIPTION: u16 = 2;
const INFO_BLOCK_SIZE: u16 = 3;
/// Least, preferred and largest size of a request: any length is served, but whole pages are
/// fastest.
const BLOCK_SIZES: [u32; 3] = [1, dyno_pages::PAGE_BYTES as u32, MOST_BYTES];

impl<'a> Handshake<'a> {
    pub fn new(exports: &'a Exports, wants_tls: bool) -> Self {
        Self {
            exports,
            wants_tls,
            structured: false,
            no_zeroes: false,
        }
    }

    /// The first bytes that the server sends.
    pub fn greeting() -> [u8; 18] {
        let mut bytes = [0; 18];
        bytes[..8].copy_from_slice(&GREETING.to_be_bytes());
        bytes[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
        bytes[16..].copy_from_slice(&(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
        bytes
    }

    /// Takes the client's flags, which come next. Returns false if one of them is unknown; the
    /// protocol asks the server to hang up then.
    pub fn flags(&mut self, flags: u32) -> bool {
        self.no_zeroes = flags & u32::from(NO_ZEROES) != 0;
        flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) == 0
    }

    /// Handles an option with its data, and appends the reply to `out`.
    pub fn option(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Next<'a> {
        let parsed = ClientOption::parse(option, data);
        // Before TLS nothing is revealed: neither names of exports nor whether one exists. The old
        // request for an export has no reply for errors, so `old_way` hangs up.
        if self.wants_tls
            && !matches!(
                parsed,
                ClientOption::StartTls | ClientOption::Abort | ClientOption::ExportName(_)
            )
        {
            option_reply(option, reply::TLS_REQUIRED, &[], out);
            return Next::Option;
        }
        match parsed {
            ClientOption::ExportName(name) => return self.old_way(name, out),
            ClientOption::Abort => {
                option_reply(option, reply::ACK, &[], out);
                return Next::Close;
            }
            ClientOption::List => self.list(option, out),
            ClientOption::StartTls if self.wants_tls => {
                option_reply(option, reply::ACK, &[], out);
                self.wants_tls = false;
                // What was agreed in the clear may come from an attacker in between.
                self.structured = false;
                return Next::StartTls;
            }
            ClientOption::StartTls => option_reply(option, reply::POLICY, &[], out),
            ClientOption::Info(name) => {
                self.describe(option, name, out);
            }
            ClientOption::Go(name) => {
                if let Some(export) = self.describe(option, name, out) {
                    return self.requests(export);
                }
            }
            ClientOption::StructuredReply => {
                self.structured = true;
                option_reply(option, reply::ACK, &[], out);
            }
            ClientOption::Malformed => option_reply(option, reply::INVALID, &[], out),
            ClientOption::Other => option_reply(option, reply::UNSUPPORTED, &[], out),
        }
        Next::Option
    }

    fn requests(&self, export: &'a Export) -> Next<'a> {
        Next::Requests {
            export,
            structured: self.structured,
        }
    }

    /// The old request for an export has no reply for a failure, so all that the server can do is
    /// hang up.
    fn old_way(&self, name: &[u8], out: &mut Vec<u8>) -> Next<'a> {
        match self.exports.find(name) {
            Some(export) if !self.wants_tls => {
                out.extend(export.disk.bytes().to_be_bytes());
                out.extend(self.abilities(export).to_be_bytes());
                if !self.no_zeroes {
                    out.extend([0; 124]);
                }
                self.requests(export)
            }
            _ => Next::Close,
        }
    }

    fn list(&self, option: u32, out: &mut Vec<u8>) {
        for export in self.exports.all() {
            let name_bytes = (export.name.len() as u32).to_be_bytes();
            let (name, text) = (export.name.as_bytes(), export.description.as_bytes());
            option_reply(option, reply::SERVER, &[&name_bytes, name, text], out);
        }
        option_reply(option, reply::ACK, &[], out);
    }

    fn describe(&self, option: u32, name: &[u8], out: &mut Vec<u8>) -> Option<&'a Export> {
        if name.len() > MOST_NAME_BYTES {
            option_reply(option, reply::TOO_BIG, &[], out);
            return None;
        }
        let Some(export) = self.exports.find(name) else {
            option_reply(option, reply::UNKNOWN, &[], out);
            return None;
        };
        let mut info = |kind: u16, data: &[&[u8]]| {
            let kind = kind.to_be_bytes();
            let parts: Vec<&[u8]> = [&kind[..]]
                .into_iter()
                .chain(data.iter().copied())
                .collect();
            option_reply(option, reply::INFO, &parts, out);
        };
        let size = export.disk.bytes().to_be_bytes();
        info(INFO_EXPORT, &[&size, &self.abilities(export).to_be_bytes()]);
        info(INFO_NAME, &[export.name.as_bytes()]);
        info(INFO_DESCRIPTION, &[export.description.as_bytes()]);
        let [least, best, most] = BLOCK_SIZES.map(u32::to_be_bytes);
        info(INFO_BLOCK_SIZE, &[&least, &best, &most]);
        option_reply(option, reply::ACK, &[], out);
        Some(export)
    }

    fn abilities(&self, export: &Export) -> u16 {
        let mut flags = can::ALWAYS;
        if export.read_only {
            flags |= can::READ_ONLY;
        }
        if self.structured {
            flags |= can::DONT_FRAGMENT;
        }
        flags
    }
}
