//! One client from its first byte to its last, on anything that reads and writes.

use std::io::{self, Read, Write};
use std::sync::atomic::AtomicU64;

use dyno_pages::StoreError;

use crate::export::Exports;
use crate::handshake::{Handshake, Next};
use crate::option::{Head, MOST_OPTION_BYTES};
use crate::transmission::Transmission;
use crate::wire::OPTION_BYTES;

/// Options that a client may ask for before it uses an export.
const MOST_OPTIONS: usize = 1000;

/// A connection.
pub trait Link: Read + Write + Sized {
    /// Whether clients must begin TLS.
    fn wants_tls(&self) -> bool;

    /// The same connection in TLS.
    ///
    /// # Errors
    /// When it cannot be.
    fn start_tls(self) -> io::Result<Self>;

    /// The handshake is done: from now on the client may take its time.
    ///
    /// # Errors
    /// When the connection is down.
    fn settle(&mut self) -> io::Result<()>;
}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client said so, in the handshake or behind it.
    Left,
    /// The client hung up between two options or requests.
    HungUp,
    /// The client wants an export that is not there, in the way that has no answer for it.
    NoExport,
    /// The client does not speak the protocol.
    Protocol(&'static str),
    /// A page could not be read after the reply had begun.
    ReadFailed,
    /// There is no memory for another connection.
    NoMemory,
}

/// Counters that connections share.
#[derive(Debug, Default)]
pub struct Figures {
    /// Requests that came.
    pub requests: AtomicU64,
    /// Requests answered with an error.
    pub failed: AtomicU64,
    /// Bytes sent for reads.
    pub read_bytes: AtomicU64,
    /// Bytes stored by writes.
    pub written_bytes: AtomicU64,
}

/// Serves one client to its end.
///
/// # Errors
/// When the connection fails, or ends within what the client was saying.
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
        // Who lists exports hangs up here.
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
        // Grows with what arrives, not with what is announced.
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
            // Nothing is read ahead in the handshake: what came in the clear behind the option is
            // taken for TLS, and fails.
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
