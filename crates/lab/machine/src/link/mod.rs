//! What a network link can do: round trips and bytes each second between this machine and another
//! one that runs the [server](LinkServer).
//!
//! A connection begins with a hello: eight bytes of magic and version, one byte of mode, two bytes
//! (little-endian) of token length, the token. The server answers with one byte. Then, by mode:
//! messages of [`MESSAGE_BYTES`] are sent back until the client closes; or the client sends until
//! it shuts down its side, and the server answers with the number of bytes that arrived (eight
//! bytes, little-endian); or the server sends until the client closes.

mod client;
mod server;

pub use client::{LinkOptions, link};
pub use server::{LinkServer, LinkServerOptions};

use std::io::{self, Read};
use std::sync::LazyLock;

use dyno_random::Random;

const MAGIC: &[u8; 8] = b"dynolnk1";
/// Bytes of a question and of its answer.
const MESSAGE_BYTES: usize = 64;
/// Bytes of one write, large enough that the cost of a system call is small beside it.
const CHUNK_BYTES: usize = 256 << 10;
/// The longest token, as `dyno_serve::Token` has it.
const MOST_TOKEN_BYTES: u16 = 4096;

/// What a connection measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Mode {
    RoundTrip = 1,
    Send = 2,
    Receive = 3,
}

impl Mode {
    fn from_byte(byte: u8) -> Option<Mode> {
        [Mode::RoundTrip, Mode::Send, Mode::Receive]
            .into_iter()
            .find(|mode| *mode as u8 == byte)
    }
}

/// The server's answer to a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Answer {
    Accepted = 0,
    TokenRefused = 1,
    TooManyConnections = 2,
    UnknownMode = 3,
}

impl Answer {
    /// Why the server refuses, for the client's error; `None` when it accepts.
    fn reason(byte: u8) -> Option<&'static str> {
        let refusals = [
            (Answer::TokenRefused, "the server refuses the token"),
            (
                Answer::TooManyConnections,
                "the server has as many connections as it takes",
            ),
            (Answer::UnknownMode, "the server does not know this test"),
        ];
        if byte == Answer::Accepted as u8 {
            return None;
        }
        let known = refusals.iter().find(|(answer, _)| *answer as u8 == byte);
        Some(known.map_or(
            "the server answers what this version does not know",
            |(_, reason)| reason,
        ))
    }
}

/// Reads one message. False when the other side closed between two messages.
fn read_message(socket: &mut impl Read, message: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < message.len() {
        match socket.read(&mut message[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// The bytes of one write, which a link that compresses cannot make smaller. They are made once,
/// and callers ask for them before a clock runs.
fn incompressible() -> &'static [u8] {
    static CHUNK: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut chunk = vec![0; CHUNK_BYTES];
        Random::new(1).fill(&mut chunk);
        chunk
    });
    &CHUNK
}
