//! One connection: a thread that reads requests and begins to carry them out, and one that writes
//! the answers in the same order, as the protocol wants it.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use dyno_net::{Charge, Stream, write_parts};
use tracing::debug;

use crate::dispatch::Session;
use crate::shared::Shared;
use crate::wire::{ProduceRequest, Request};

/// The longest request that appends. Its batches have to fit the broker's longest body.
const MOST_PRODUCE_BYTES: usize = 16 << 20;
/// The longest other request, whose fields take more memory than bytes on the wire.
const MOST_OTHER_BYTES: usize = 4 << 20;
/// The longest request of a client that has not shown the token.
const MOST_UNADMITTED_BYTES: usize = 16 << 10;
/// How long a client may take to show the token, TLS included.
const ADMISSION: Duration = Duration::from_secs(10);
/// How long the rest of a request may take to come, and how many bytes a second it must bring.
const REQUEST_WAIT: Duration = Duration::from_secs(10);
const LEAST_RATE: usize = 1 << 20;
/// How long a client may leave an answer unread.
const WRITE_WAIT: Duration = Duration::from_secs(30);
/// How long answers may still come after the server was told to stop.
pub const DRAIN: Duration = Duration::from_secs(2);
/// Requests that may wait for their answers. No more are read while there are as many.
const MOST_PENDING: usize = 64;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// An answer that is made when those before it are written.
pub type Pending = Box<dyn FnOnce(&Link) -> Answer + Send>;

/// What becomes of a request.
pub enum Answer {
    /// The parts of a response.
    Send(Vec<Bytes>),
    /// The client wants no response.
    Nothing,
    /// The connection ends, which is how a client learns of a failure that has no response.
    Close,
}

/// Whether the connection still stands.
#[derive(Debug, Default)]
pub struct Link {
    closed: AtomicBool,
    /// Set when the server stops.
    closes_at: OnceLock<Instant>,
}

impl Link {
    pub fn is_open(&self) -> bool {
        let is_over = |at: &Instant| Instant::now() >= *at;
        !self.closed.load(Ordering::Acquire) && !self.closes_at.get().is_some_and(is_over)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

/// Serves a connection until it ends.
pub fn serve(shared: &Arc<Shared>, stream: Stream) {
    let peer = stream.peer();
    let link = Arc::new(Link::default());
    // A full channel stops the reading thread, so a client that does not read its answers cannot
    // pile up more requests than these.
    let (pending, answers) = sync_channel(MOST_PENDING);
    let writing = stream.try_clone().and_then(|stream| {
        stream.set_write_timeout(Some(WRITE_WAIT))?;
        let link = Arc::clone(&link);
        thread::Builder::new()
            .name("kafka-write".to_owned())
            .spawn(move || write(stream, &answers, &link))
    });
    let Ok(writing) = writing else {
        return stream.shutdown();
    };
    let mut reading = Reading {
        shared,
        stream,
        session: Session::new(Arc::clone(shared), peer.clone()),
        admitted_until: Instant::now() + ADMISSION,
    };
    let ended = reading.run(&pending, &link);
    if let Err(error) = ended {
        debug!("connection of {peer} ends: {error}");
    }
    if shared.is_stopping() {
        // The client still reads. Its records may be committed by now, and it would send them again
        // if the acknowledgement did not come.
        let _ = link.closes_at.set(Instant::now() + DRAIN);
    } else {
        // A client that has closed the connection reads no more answers, so nothing waits for them.
        link.close();
    }
    drop(pending);
    let _ = writing.join();
    reading.stream.shutdown();
}

struct Reading<'a> {
    shared: &'a Arc<Shared>,
    stream: Stream,
    session: Session,
    admitted_until: Instant,
}

impl Reading<'_> {
    fn run(&mut self, pending: &SyncSender<Pending>, link: &Arc<Link>) -> io::Result<()> {
        while let Some((frame, charge)) = self.next_frame(link)? {
            self.shared.counts.requests.add(1);
            let Some(answer) = self.session.begin(frame) else {
                self.shared.counts.broken.add(1);
                return Err(io::Error::other(
                    "a request that is not one, or not offered",
                ));
            };
            // The memory of the request is given back when its answer was made.
            let answer: Pending = Box::new(move |link| {
                let made = answer(link);
                drop(charge);
                made
            });
            // The writing thread has ended only if it panicked, which was printed.
            if pending.send(answer).is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The next request; `None` when the client has closed the connection.
    fn next_frame(&mut self, link: &Arc<Link>) -> io::Result<Option<(Bytes, Charge)>> {
        let mut length = [0; 4];
        self.wait_at_most(None)?;
        // The first byte alone: a connection that ends before it ends between two requests.
        match self.stream.read_exact(&mut length[..1]) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            first => first?,
        }
        self.wait_at_most(Some(REQUEST_WAIT))?;
        let mut head = [0; 2];
        self.stream.read_exact(&mut length[1..])?;
        // The number of the API is read before the length is judged, because requests that append
        // may be longer than the others.
        self.stream.read_exact(&mut head)?;
        let key = i16::from_be_bytes(head);
        let most = match (self.session.is_admitted(), key) {
            (false, _) => MOST_UNADMITTED_BYTES,
            (true, key) if key == ProduceRequest::API.key => MOST_PRODUCE_BYTES,
            (true, _) => MOST_OTHER_BYTES,
        };
        let length = usize::try_from(i32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if !(head.len()..=most).contains(&length) {
            return Err(io::Error::other("a request is too long"));
        }
        // This request is charged before its bytes are read. Those before it give theirs back on
        // the writing thread, so waiting here does not wait for itself.
        let goes_on = || link.is_open() && !self.shared.is_stopping();
        let charge = self.shared.frames.wait_while(length, goes_on);
        let charge = charge.ok_or_else(|| io::Error::other("the server is stopping"))?;
        let frame = self.read_rest(length, head)?;
        Ok(Some((frame, charge)))
    }

    /// Reads the rest of a request, which has to come at some rate: a client that sends a byte now
    /// and then would otherwise keep memory from others.
    fn read_rest(&mut self, length: usize, head: [u8; 2]) -> io::Result<Bytes> {
        // The buffer grows with what has come, because the length is only what the client says.
        let mut frame = BytesMut::with_capacity(length.min(READ_BYTES));
        frame.extend_from_slice(&head);
        let begun = Instant::now();
        let most = REQUEST_WAIT + Duration::from_secs((length / LEAST_RATE) as u64);
        while frame.len() < length {
            if begun.elapsed() > most {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let from = frame.len();
            frame.resize(length.min(from + READ_BYTES), 0);
            let read = self.stream.read(&mut frame[from..])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            frame.truncate(from + read);
        }
        Ok(frame.freeze())
    }

    /// Bounds how long a read may wait: by `wait`, and for a client that is not admitted yet by
    /// what is left of its time.
    fn wait_at_most(&self, wait: Option<Duration>) -> io::Result<()> {
        if self.session.is_admitted() {
            return self.stream.set_read_timeout(wait);
        }
        let left = self
            .admitted_until
            .saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.shared.counts.denied.add(1);
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))
    }
}

/// Writes the answers in order. What is pending after the end of the connection is made all the
/// same, so that its effects are complete, and its bytes are dropped.
fn write(mut stream: Stream, answers: &Receiver<Pending>, link: &Link) {
    let written_bytes = AtomicU64::new(0);
    for answer in answers {
        let written = match answer(link) {
            Answer::Send(parts) if link.is_open() => {
                write_parts(&mut stream, &parts, &written_bytes).and_then(|()| stream.flush())
            }
            Answer::Send(_) | Answer::Nothing => Ok(()),
            Answer::Close => Err(io::ErrorKind::ConnectionAborted.into()),
        };
        if written.is_err() {
            // The reading thread may wait for a request that never comes. The shutdown ends its
            // read.
            link.close();
            stream.shutdown();
        }
    }
    link.close();
}
