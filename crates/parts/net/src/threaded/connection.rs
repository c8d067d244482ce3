//! One connection of a server, from its first byte to its end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::connections::{Connections, Incoming, Life};
use super::writer;
use crate::frame::READ_BYTES;
use crate::share::Charge;
use crate::{Closed, Connection, Decoder, Outbox, Service, Stream};

/// How often a thread that waits for its client to read checks whether the server stops.
const STOP_POLL: Duration = Duration::from_millis(250);

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Starts the thread of a connection. A connection that cannot be served is closed, which its
/// client sees.
pub fn start<S: Service>(stream: Stream, service: &Arc<S>, connections: &Arc<Connections>) {
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let outbox = Arc::new(Outbox::new());
    let life = Arc::new(Life::new(Arc::clone(&outbox)));
    let its = stream
        .set_write_timeout(Some(connections.options.write_wait))
        .and_then(|()| stream.try_clone());
    let Ok(own) = its else {
        return connections.refuse(&stream);
    };
    let conversation = Conversation {
        connection: Connection {
            id,
            peer: stream.peer(),
            outbox,
        },
        stream: own,
        life: Arc::clone(&life),
        service: Arc::clone(service),
        connections: Arc::clone(connections),
    };
    let entered = connections.enter(id, stream, life, || {
        thread::Builder::new()
            .name("net-read".to_owned())
            .spawn(move || conversation.run())
    });
    if let Err((stream, _)) = entered {
        connections.refuse(&stream);
    }
}

struct Conversation<S: Service> {
    connection: Connection,
    stream: Stream,
    life: Arc<Life>,
    service: Arc<S>,
    connections: Arc<Connections>,
}

/// The thread that writes to an admitted client.
type Writes = JoinHandle<io::Result<()>>;

impl<S: Service> Conversation<S> {
    /// Reads until the connection ends, then lets the writer finish. Whatever ends it, `close` is
    /// called once, and the place is free afterwards.
    fn run(mut self) {
        let mut session = self.service.open(&self.connection);
        let mut decoder = Decoder::new(self.connections.options.most_hello_bytes);
        let (mut why, writes) = match self.greet(&mut session, &mut decoder) {
            Ok(writes) => (self.read(&mut session, &mut decoder), Some(writes)),
            Err(why) => (why, None),
        };
        drop(decoder);
        if let Some(writes) = writes {
            self.finish(writes, &mut why);
        }
        self.connection.outbox.close();
        self.stream.shutdown();
        // A connection that was cut from outside fails like any other here, so the reason is looked
        // up.
        let why = self.life.cut().unwrap_or(why);
        self.service.close(session, why);
        self.connections.leave(self.connection.id);
    }

    /// Reads, answers and writes on this one thread until the client is admitted. Frames that came
    /// with the admitting one stay in the decoder. The time limit is enforced from outside, by a
    /// shutdown.
    fn greet(&mut self, session: &mut S::Session, decoder: &mut Decoder) -> Result<Writes, Closed> {
        let mut charge = None;
        loop {
            while let Some(frame) = decoder.next_frame().map_err(Closed::Frame)? {
                *self.life.incoming() = None;
                let goes_on = self.service.request(session, frame, charge.take());
                if goes_on && self.service.is_admitted(session) {
                    decoder.set_most_body_bytes(self.connections.options.most_body_bytes);
                    return self.admit();
                }
                let mut parts = Vec::new();
                self.connection.outbox.drain_now(&mut parts);
                // A client without a writer thread is written to here. If it does not read, the
                // limit for its admission ends the wait.
                let written = &self.connection.outbox.written;
                writer::write_parts(&mut self.stream, &parts, written).map_err(Closed::Io)?;
                if !goes_on {
                    return Err(Closed::Service);
                }
            }
            self.charge_for(decoder, &mut charge)?;
            self.fill(decoder)?;
        }
    }

    /// Gives an admitted client its place and its writer.
    fn admit(&self) -> Result<Writes, Closed> {
        let stream = self.stream.try_clone().map_err(Closed::Io)?;
        if !self.connections.admit(self.connection.id) {
            return Err(Closed::Crowded);
        }
        let outbox = Arc::clone(&self.connection.outbox);
        thread::Builder::new()
            .name("net-write".to_owned())
            .spawn(move || writer::run(&outbox, stream))
            .map_err(Closed::Io)
    }

    /// Reads once. An error is the end of the connection, also because the server stops: after the
    /// shutdown for reading, Linux still hands out what a client of TCP sends, so a client that
    /// does not cease to send would never let the server end.
    fn fill(&mut self, decoder: &mut Decoder) -> Result<(), Closed> {
        loop {
            if self.connections.is_stopping() {
                return Err(Closed::Peer);
            }
            match decoder.read_from(&mut self.stream) {
                Ok(0) => return Err(decoder.end().map_or_else(Closed::Frame, |()| Closed::Peer)),
                Ok(bytes) => {
                    if let Some(incoming) = &mut *self.life.incoming() {
                        incoming.bytes += bytes as u64;
                    }
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Closed::Io(error)),
            }
        }
    }

    fn read(&mut self, session: &mut S::Session, decoder: &mut Decoder) -> Closed {
        let mut charge = None;
        loop {
            loop {
                match decoder.next_frame() {
                    Ok(Some(frame)) => {
                        *self.life.incoming() = None;
                        if !self.service.request(session, frame, charge.take()) {
                            return Closed::Service;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return Closed::Frame(error),
                }
                if let Err(why) = self.wait_for_outbox() {
                    return why;
                }
            }
            let filled = self
                .charge_for(decoder, &mut charge)
                .and_then(|()| self.fill(decoder));
            if let Err(why) = filled {
                return why;
            }
        }
    }

    /// Waits while the client leaves too many answers unread. The wait ends in any case, because
    /// the accepting thread ends a client that reads nothing.
    fn wait_for_outbox(&self) -> Result<(), Closed> {
        let options = &self.connections.options;
        let outbox = &self.connection.outbox;
        while !outbox.wait_below(options.outbox_bytes, STOP_POLL) {
            if outbox.is_closed() || self.connections.is_stopping() {
                return Err(Closed::Peer);
            }
        }
        Ok(())
    }

    /// Charges a frame that does not fit one read before more of it is read. The whole length is
    /// charged at once: if frames were charged as they come, many half frames could wait for each
    /// other's memory.
    fn charge_for(&self, decoder: &Decoder, charge: &mut Option<Charge>) -> Result<(), Closed> {
        let bytes = decoder.announced_bytes().unwrap_or(0);
        if charge.is_some() || bytes <= READ_BYTES {
            return Ok(());
        }
        let frames = &self.connections.options.frames;
        let still = || !self.connection.outbox.is_closed() && !self.connections.is_stopping();
        *charge = Some(frames.wait_while(bytes, still).ok_or(Closed::Peer)?);
        *self.life.incoming() = Some(Incoming::new());
        Ok(())
    }

    /// Lets the writer send what waits, for a limited time, and joins it.
    fn finish(&self, writes: Writes, why: &mut Closed) {
        let outbox = &self.connection.outbox;
        let drained = outbox.wait_below(1, self.connections.options.drain_wait);
        outbox.close();
        if !drained {
            // The writer may be in a write that the client does not take; the shutdown makes it
            // return.
            self.stream.shutdown();
        }
        // A writer that panicked has printed that itself.
        if let Ok(Err(error)) = writes.join()
            && !matches!(why, Closed::Frame(_))
        {
            *why = match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Closed::Stuck,
                _ => Closed::Io(error),
            };
        }
    }
}
