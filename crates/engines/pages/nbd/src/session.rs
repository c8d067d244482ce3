//! One client from its first byte to its last, on anything that reads and writes.

use std::io::{self, Read, Write};
use std::sync::atomic::AtomicU64;

use dyno_pages::StoreError;

use crate::export::Exports;
use crate::handshake::{Handshake, Next};
use crate::option::{Head, MOST_OPTION_BYTES};
use crate::transmission::Transmission;
use crate::wire::OPTION_BYTES;

/// The most options that a client may send before it uses an export, so that a handshake ends.
const MOST_OPTIONS: usize = 1000;

/// A connection to a client, as the protocol sees it.
pub trait Link: Read + Write + Sized {
    /// Whether clients must begin TLS before anything else.
    fn wants_tls(&self) -> bool;

    /// Turns the connection into one in TLS.
    ///
    /// # Errors
    /// If the handshake of TLS fails, or TLS is not configured.
    fn start_tls(self) -> io::Result<Self>;

    /// Ends the limits of the handshake: from now on the client may take its time.
    ///
    /// # Errors
    /// When the connection is down.
    fn settle(&mut self) -> io::Result<()>;
}

/// How a connection ended, if not by a failure of the connection itself.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client said that it leaves, in the handshake or after it.
    Left,
    /// The client hung up between two options or requests.
    HungUp,
    /// The client asked for an export that does not exist, by the option that has no reply for it.
    NoExport,
    /// The client broke the protocol; the text says how.
    Protocol(&'static str),
    /// A page could not be read after its reply had begun, so the reply could not become an error.
    ReadFailed,
    /// The store has no memory for the contexts of another connection.
    NoMemory,
}

/// Counters that all connections of a server share.
#[derive(Debug, Default)]
pub struct Figures {
    /// Requests that came, of every kind.
    pub requests: AtomicU64,
    /// Requests that were answered with an error.
    pub failed: AtomicU64,
    /// Bytes that were sent in replies to reads.
    pub read_bytes: AtomicU64,
    /// Bytes that successful writes have stored.
    pub written_bytes: AtomicU64,
}

/// Serves one client until its connection ends.
///
/// # Errors
/// If the connection fails, or ends in the middle of a message.
pub fn serve<L: Link>(mut link: L, exports: &Exports, figures: &Figures) -> io::Result<Ended> {
    let mut handshake = Handshake::new(exports, link.wants_tls());
    link.write_all(&Handshake::greeting())?;
    link.flush()?;
    if !handshake.flags(u32::from_be_bytes(take(&mut link)?)) {
        return Ok(Ended::Protocol("a flag of the handshake is not known"));
    }
    let mut data = Vec::new();
    for _ in 0..MOST_OPTIONS {
        let mut head = [0; OPTION_BYTES];
        // A client that only lists exports hangs up here, which is not an error.
        let arrived = link.read(&mut head)?;
        if arrived == 0 {
            return Ok(Ended::HungUp);
        }
        link.read_exact(&mut head[arrived..])?;
        let Some(head) = Head::parse(&head) else {
            return Ok(Ended::Protocol("an option has another magic number"));
        };
        if head.bytes > MOST_OPTION_BYTES {
            return Ok(Ended::Protocol("an option is too long"));
        }
        // The buffer grows with what arrives, not with the announced length, so a client that lies
        // about it costs no memory.
        data.clear();
        let announced = head.bytes.into();
        let arrived = Read::take(&mut link, announced).read_to_end(&mut data)?;
        if arrived < head.bytes as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut out = Vec::new();
        let next = handshake.option(head.option, &data, &mut out);
        link.write_all(&out)?;
        link.flush()?;
        match next {
            Next::Option => {}
            // Nothing is read ahead in the handshake: bytes that an attacker put in the clear
            // behind the option are read as TLS, and fail.
            Next::StartTls => link = link.start_tls()?,
            Next::Requests { export, structured } => {
                link.settle()?;
                return match Transmission::new(export, structured, link, figures) {
                    Ok(mut transmission) => transmission.run(),
                    Err(StoreError::System { .. } | StoreError::Zstd(_)) => Ok(Ended::NoMemory),
                    Err(other) => Err(io::Error::other(other)),
                };
            }
            Next::Close if out.is_empty() => return Ok(Ended::NoExport),
            Next::Close => return Ok(Ended::Left),
        }
    }
    Ok(Ended::Protocol("more than 1000 options"))
}

fn take<const N: usize>(link: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    link.read_exact(&mut bytes)?;
    Ok(bytes)
}
