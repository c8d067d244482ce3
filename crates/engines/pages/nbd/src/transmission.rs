//! Requests to an export, one after the other, and their replies.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::Ordering::Relaxed;

use dyno_pages::{PAGE_BYTES, StoreError};
use dyno_pages_disk::{Disk, Head, Zeros};

use crate::export::Export;
use crate::session::{Ended, Figures};
use crate::wire::{
    Chunk, Command, MOST_BYTES, REQUEST_BYTES, Refusal, Request, chunk, flag, simple_reply,
};

/// Bytes of one request that are held at a time, however long the request is.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes read ahead: requests that came together, and small writes.
const AHEAD_BYTES: usize = 64 << 10;

/// A connection after the handshake, and the export that it uses.
pub struct Transmission<'a, L: Read + Write> {
    export: &'a Export,
    structured: bool,
    head: Head<'a>,
    link: BufReader<L>,
    /// Replies that are collected to go out together; sent before this thread waits for the client.
    out: Vec<u8>,
    piece: Vec<u8>,
    figures: &'a Figures,
}

/// Why no more requests are served: an end, or a failure of the connection.
enum Stop {
    Ended(Ended),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<'a, L: Read + Write> Transmission<'a, L> {
    /// Starts where the handshake ended.
    ///
    /// # Errors
    /// If the store has no memory for its contexts.
    pub fn new(
        export: &'a Export,
        structured: bool,
        link: L,
        figures: &'a Figures,
    ) -> Result<Self, StoreError> {
        let disk: &'a Disk = &export.disk;
        Ok(Self {
            export,
            structured,
            head: disk.head()?,
            link: BufReader::with_capacity(AHEAD_BYTES, link),
            out: Vec::new(),
            piece: vec![0; PIECE_BYTES],
            figures,
        })
    }

    /// Serves requests until the client leaves.
    pub fn run(&mut self) -> io::Result<Ended> {
        let stop = loop {
            if let Err(stop) = self.request() {
                break stop;
            }
        };
        match stop {
            Stop::Ended(ended) => self.send().map(|()| ended),
            Stop::Io(error) => Err(error),
        }
    }

    fn request(&mut self) -> Result<(), Stop> {
        // The next read may wait for the client, and the client may be waiting for these replies:
        // they must be out before. Short replies to many requests, reads of zeros among them, are
        // bounded as data are.
        if self.link.buffer().len() < REQUEST_BYTES || self.out.len() >= AHEAD_BYTES {
            self.send()?;
        }
        if self.link.fill_buf()?.is_empty() {
            return Err(Stop::Ended(Ended::HungUp));
        }
        let mut bytes = [0; REQUEST_BYTES];
        self.link.read_exact(&mut bytes)?;
        let request = Request::parse(&bytes).ok_or(Stop::Ended(Ended::Protocol(
            "a request does not begin with the magic number",
        )))?;
        self.figures.requests.fetch_add(1, Relaxed);
        let done = match request.command {
            Command::Disconnect => return Err(Stop::Ended(Ended::Left)),
            Command::Read => return self.read(request),
            Command::Write => self.write(request)?,
            // Every write that was replied to is already as durable as the store gets.
            Command::Flush => self.allowed(request, flag::FUA),
            Command::Trim => self
                .allowed(request, flag::FUA)
                .and_then(|()| self.trimmable(request))
                .and_then(|()| self.zero(request, Zeros::Free)),
            Command::WriteZeroes => {
                let zeros = match request.flags & flag::NO_HOLE {
                    0 => Zeros::Free,
                    _ => Zeros::Keep,
                };
                self.allowed(request, flag::FUA | flag::NO_HOLE | flag::FAST_ZERO)
                    .and_then(|()| self.zero(request, zeros))
            }
            Command::Other(_) => Err(Refusal::Invalid),
        };
        self.count(done);
        simple_reply(done.err(), request.cookie, &mut self.out);
        Ok(())
    }

    /// Sends the collected replies, if there are any.
    fn send(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.link.get_mut().write_all(&self.out)?;
            self.link.get_mut().flush()?;
            self.out.clear();
        }
        Ok(())
    }

    fn count(&self, done: Result<(), Refusal>) {
        if done.is_err() {
            self.figures.failed.fetch_add(1, Relaxed);
        }
    }

    fn allowed(&self, request: Request, flags: u16) -> Result<(), Refusal> {
        match request.flags & !flags {
            0 => Ok(()),
            _ => Err(Refusal::Invalid),
        }
    }

    /// Whether the bytes exist and may be changed.
    fn writable(&self, request: Request) -> Result<(), Refusal> {
        let export = self.export;
        if export.read_only {
            return Err(Refusal::ReadOnly);
        }
        if !export.disk.holds(request.offset, request.length.into()) {
            return Err(Refusal::NoSpace);
        }
        Ok(())
    }

    /// A write beyond the end finds no space; a trim there is invalid, as the protocol has it.
    fn trimmable(&self, request: Request) -> Result<(), Refusal> {
        match self.writable(request) {
            Err(Refusal::NoSpace) => Err(Refusal::Invalid),
            other => other,
        }
    }

    fn zero(&mut self, request: Request, zeros: Zeros) -> Result<(), Refusal> {
        self.writable(request)?;
        let done = self.head.zero(request.offset, request.length.into(), zeros);
        done.map_err(refusal)
    }

    /// Stores a write. Its data are read from the connection even if the write is refused, because
    /// the next request follows them.
    fn write(&mut self, request: Request) -> Result<Result<(), Refusal>, Stop> {
        if request.length > MOST_BYTES {
            // To read up to 4 GiB only to answer with an error would cost more than a new
            // connection.
            let why = "a write is longer than 32 MiB";
            return Err(Stop::Ended(Ended::Protocol(why)));
        }
        let mut done = self
            .allowed(request, flag::FUA)
            .and_then(|()| self.writable(request));
        let mut taken = 0;
        while taken < request.length {
            let at = request.offset.wrapping_add(taken.into());
            let bytes = piece_bytes(at, request.length - taken);
            if self.link.buffer().len() < bytes {
                self.send()?;
            }
            self.link.read_exact(&mut self.piece[..bytes])?;
            if done.is_ok() {
                done = self.head.write(at, &self.piece[..bytes]).map_err(refusal);
            }
            taken += bytes as u32;
        }
        if done.is_ok() {
            self.figures.written_bytes.fetch_add(taken.into(), Relaxed);
        }
        Ok(done)
    }

    fn read(&mut self, request: Request) -> Result<(), Stop> {
        let mut allowed = flag::FUA;
        if self.structured {
            allowed |= flag::DONT_FRAGMENT;
        }
        let whole = request.flags & flag::DONT_FRAGMENT != 0;
        let bytes = u64::from(request.length);
        let done = self.allowed(request, allowed).and_then(|()| {
            if request.length > MOST_BYTES || !self.export.disk.holds(request.offset, bytes) {
                return Err(Refusal::Invalid);
            }
            let in_one = piece_bytes(request.offset, request.length) == request.length as usize;
            if whole && !in_one {
                return Err(Refusal::Overflow);
            }
            Ok(())
        });
        self.count(done);
        match (done, self.structured) {
            (Ok(()), true) => self.read_structured(request),
            (Ok(()), false) => self.read_simple(request),
            (Err(why), structured) => {
                self.refuse_read(request, why, structured);
                Ok(())
            }
        }
    }

    fn refuse_read(&mut self, request: Request, why: Refusal, structured: bool) {
        let offset = request.offset;
        if structured {
            let piece = Chunk::Error { why, offset };
            chunk(piece, true, request.cookie, &mut self.out);
        } else {
            simple_reply(Some(why), request.cookie, &mut self.out);
        }
    }

    /// Answers a read with a simple reply. Its head says that the whole read succeeded, so a
    /// failure after the first piece can only end the connection, as the protocol asks.
    fn read_simple(&mut self, request: Request) -> Result<(), Stop> {
        let mut given = 0;
        loop {
            let at = request.offset + u64::from(given);
            let bytes = piece_bytes(at, request.length - given);
            let read = self.head.read(at, &mut self.piece[..bytes]);
            match read.map_err(refusal) {
                Ok(()) if given == 0 => simple_reply(None, request.cookie, &mut self.out),
                Ok(()) => {}
                Err(why) => {
                    self.count(Err(why));
                    if given == 0 {
                        self.refuse_read(request, why, false);
                        return Ok(());
                    }
                    return Err(Stop::Ended(Ended::ReadFailed));
                }
            }
            self.give(bytes)?;
            given += bytes as u32;
            if given == request.length {
                return Ok(());
            }
        }
    }

    fn read_structured(&mut self, request: Request) -> Result<(), Stop> {
        let (cookie, mut given) = (request.cookie, 0);
        if request.length == 0 {
            chunk(Chunk::None, true, cookie, &mut self.out);
        }
        while given < request.length {
            let offset = request.offset + u64::from(given);
            let len = piece_bytes(offset, request.length - given);
            let bytes = len as u32;
            if let Err(error) = self.head.read(offset, &mut self.piece[..len]) {
                let why = refusal(error);
                self.count(Err(why));
                self.refuse_read(Request { offset, ..request }, why, true);
                return Ok(());
            }
            given += bytes;
            let last = given == request.length;
            if self.piece[..len].iter().all(|&byte| byte == 0) {
                chunk(Chunk::Hole { offset, bytes }, last, cookie, &mut self.out);
            } else {
                chunk(Chunk::Data { offset, bytes }, last, cookie, &mut self.out);
                self.give(len)?;
            }
        }
        Ok(())
    }

    /// Appends the piece's bytes to the collected replies, and sends them once they are many.
    fn give(&mut self, bytes: usize) -> io::Result<()> {
        self.figures.read_bytes.fetch_add(bytes as u64, Relaxed);
        self.out.extend_from_slice(&self.piece[..bytes]);
        if self.out.len() >= AHEAD_BYTES {
            self.send()?;
        }
        Ok(())
    }
}

/// How much of `rest` bytes from `at` on is handled at once: up to the end of a page, so that no
/// page is read or written twice.
fn piece_bytes(at: u64, rest: u32) -> usize {
    (rest as usize).min(PIECE_BYTES - (at % PAGE_BYTES as u64) as usize)
}

fn refusal(error: StoreError) -> Refusal {
    Refusal::from_errno(error.errno())
}
