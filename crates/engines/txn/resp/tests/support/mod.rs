//! A served database and clients that speak bytes, for the tests of this crate.

#![allow(dead_code, reason = "each test uses its own part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use dyno_txn_api::{Procedures, Target};
use dyno_txn_node::{Durability, OpenOptions, open};
use dyno_txn_resp::{Options, RespServer, register_procedures};

/// A server on a directory of its own.
pub struct Served {
    pub server: RespServer,
    _directory: tempfile::TempDir,
}

/// Starts a server with this many partitions, with settings that a test may change.
pub fn serve_with(partitions: u32, change: impl FnOnce(&mut Options)) -> Served {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path(), partitions, Durability::Memory, change);
    Served {
        server,
        _directory: directory,
    }
}

pub fn serve(partitions: u32) -> Served {
    serve_with(partitions, |_| {})
}

/// Starts a server on a directory that may have a database already.
pub fn start(
    directory: &Path,
    partitions: u32,
    durability: Durability,
    change: impl FnOnce(&mut Options),
) -> RespServer {
    let mut procedures = Procedures::new();
    register_procedures(&mut procedures).unwrap();
    let options = OpenOptions {
        procedures,
        partitions: Some(partitions),
        durability,
        segment_bytes: 8 << 20,
        spin: Duration::ZERO,
        ..OpenOptions::default()
    };
    let target = Target::Local(directory.join("db"));
    let database = open(&target, options).unwrap();
    let mut options = Options::new("127.0.0.1:0".parse().unwrap());
    change(&mut options);
    RespServer::start(database, options).unwrap()
}

impl Served {
    pub fn client(&self) -> Client {
        Client::connect(self.server.address())
    }
}

/// A client that sends bytes and reads whole replies.
pub struct Client {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let bytes = Vec::new();
        Client { stream, bytes }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends a line as a command of words, and returns the reply as text.
    pub fn ask(&mut self, line: &str) -> String {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.send(&command(&words));
        String::from_utf8_lossy(&self.reply()).into_owned()
    }

    /// The bytes of the next reply.
    pub fn reply(&mut self) -> Vec<u8> {
        self.try_reply().expect("a reply")
    }

    /// The bytes of the next reply; `None` if the connection ends instead.
    pub fn try_reply(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = reply_end(&self.bytes, 0) {
                return Some(self.bytes.drain(..end).collect());
            }
            let mut scratch = [0; 16 << 10];
            match self.stream.read(&mut scratch) {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.bytes.extend(&scratch[..read]),
            }
        }
    }
}

/// A command as clients send it.
pub fn command(arguments: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let argument = argument.as_ref();
        bytes.extend(format!("${}\r\n", argument.len()).bytes());
        bytes.extend(argument);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Where the reply that begins at `from` ends; `None` if it is not complete.
fn reply_end(bytes: &[u8], from: usize) -> Option<usize> {
    let line = from
        + bytes
            .get(from..)?
            .windows(2)
            .position(|two| two == b"\r\n")?;
    let number = std::str::from_utf8(&bytes[from + 1..line]).unwrap_or("");
    let number = || number.parse::<i64>().expect("a length");
    let elements = match bytes[from] {
        b'$' | b'=' => {
            let length = usize::try_from(number()).map_or(0, |length| length + 2);
            let end = line + 2 + length;
            return (end <= bytes.len()).then_some(end);
        }
        b'*' => number(),
        b'%' => 2 * number(),
        _ => 0,
    };
    (0..elements).try_fold(line + 2, |at, _| reply_end(bytes, at))
}
