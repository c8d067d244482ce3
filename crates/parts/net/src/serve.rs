//! The server's end: connections of many clients, each with a thread that reads and one that writes.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::ring::RingError;
use crate::{Address, Decoder, Frame, FrameError, Listener, NetError, Outbox, Stream, writer};

/// What answers.
pub trait Service: Send + Sync + 'static {
    /// What it remembers of one connection.
    type Session: Send;

    /// A connection has come. Answers go into its outbox, now or later, from any thread.
    fn open(&self, connection: &Connection) -> Self::Session;

    /// A request has come. While this call waits nothing more is read from that connection, which is how
    /// back-pressure reaches the client. False ends the connection, once what waits in its outbox is written.
    fn request(&self, session: &mut Self::Session, frame: Frame) -> bool;

    /// The connection has ended.
    fn close(&self, session: Self::Session, why: Closed);
}

/// Why a connection ended.
#[derive(Debug)]
pub enum Closed {
    /// The client hung up between two frames.
    Peer,
    /// The client sent what is no frame.
    Frame(FrameError),
    /// Reading or writing failed.
    Io(io::Error),
    /// The service ended it.
    Service,
    /// The client did not read its answers for [`ServeOptions::write_wait`].
    Stuck,
    /// The ring to the client cannot be used: it was damaged, or the client lies.
    Ring(RingError),
}

/// One client's connection.
#[derive(Debug, Clone)]
pub struct Connection {
    /// A number of its own in this server.
    pub id: u64,
    /// The client, for messages.
    pub peer: String,
    /// Where its answers go.
    pub outbox: Arc<Outbox>,
}

/// The bounds of a server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Connections at once; one more is closed as soon as it comes.
    pub most_connections: usize,
    /// The longest body that is taken.
    pub most_body_bytes: usize,
    /// With this many bytes of answers unwritten no more requests are read.
    pub outbox_bytes: usize,
    /// How long a client may leave its answers unread before it is taken for dead.
    pub write_wait: Duration,
    /// How long answers may still be written once nothing more is read.
    pub drain_wait: Duration,
}

impl Default for ServeOptions {
    fn default() -> ServeOptions {
        ServeOptions {
            most_connections: 1024,
            most_body_bytes: 64 << 20,
            outbox_bytes: 4 << 20,
            write_wait: Duration::from_secs(30),
            drain_wait: Duration::from_secs(2),
        }
    }
}

/// A listener and its connections. Dropping it stops it.
pub struct Server {
    address: Address,
    stop: Arc<AtomicBool>,
    streams: Arc<Mutex<Streams>>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Streams {
    open: HashMap<u64, Stream>,
    threads: Vec<JoinHandle<()>>,
    refused: u64,
}

impl Server {
    /// Begins to accept connections for `service`.
    pub fn start<S: Service>(
        listener: Listener,
        service: Arc<S>,
        options: ServeOptions,
    ) -> Result<Server, NetError> {
        let address = listener.address().clone();
        let stop = Arc::new(AtomicBool::new(false));
        let streams = Arc::new(Mutex::new(Streams::default()));
        let door = Door {
            listener,
            service,
            options,
            stop: Arc::clone(&stop),
            streams: Arc::clone(&streams),
        };
        let accepting = thread::Builder::new()
            .name("net-accept".to_owned())
            .spawn(move || door.accept_all())
            .map_err(|error| NetError::io("listen at", &address, error))?;
        Ok(Server {
            address,
            stop,
            streams,
            accepting: Some(accepting),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Connections now.
    pub fn connections(&self) -> usize {
        lock(&self.streams).open.len()
    }

    /// Connections that were closed at once because there were too many.
    pub fn refused(&self) -> u64 {
        lock(&self.streams).refused
    }

    /// Accepts nothing more, reads nothing more, writes the answers that are there (for at most
    /// [`ServeOptions::drain_wait`]), ends every connection and waits for their threads.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        // The thread waits in accept; a connection of our own wakes it. If somebody has removed the
        // socket's file it cannot be woken, and ends with the process.
        if Stream::connect(&self.address, Duration::from_secs(1)).is_ok() {
            let _ = accepting.join();
        }
        let threads = {
            let mut streams = lock(&self.streams);
            streams.open.values().for_each(Stream::shutdown_read);
            std::mem::take(&mut streams.threads)
        };
        for thread in threads {
            // A thread that panicked has said so on standard error; its connection has ended.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Door<S: Service> {
    listener: Listener,
    service: Arc<S>,
    options: ServeOptions,
    stop: Arc<AtomicBool>,
    streams: Arc<Mutex<Streams>>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl<S: Service> Door<S> {
    fn accept_all(self) {
        while !self.stop.load(Ordering::SeqCst) {
            match self.listener.accept() {
                Ok(stream) if !self.stop.load(Ordering::SeqCst) => self.admit(stream),
                Ok(_) => {}
                // Out of descriptors, mostly: there will be some again when a connection ends.
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Starts the threads of a connection. One that cannot be served is closed, which its client sees.
    fn admit(&self, stream: Stream) {
        let mut streams = lock(&self.streams);
        streams.threads.retain(|thread| !thread.is_finished());
        if streams.open.len() >= self.options.most_connections {
            streams.refused += 1;
            return stream.shutdown();
        }
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let started = (|| -> io::Result<()> {
            stream.set_write_timeout(Some(self.options.write_wait))?;
            let reading = stream.try_clone()?;
            let writing = stream.try_clone()?;
            let connection = Connection {
                id,
                peer: stream.peer(),
                outbox: Arc::new(Outbox::new()),
            };
            let outbox = Arc::clone(&connection.outbox);
            let writes = thread::Builder::new()
                .name("net-write".to_owned())
                .spawn(move || writer::run(&outbox, writing))?;
            let service = Arc::clone(&self.service);
            let options = self.options.clone();
            let all = Arc::clone(&self.streams);
            let reads = thread::Builder::new()
                .name("net-read".to_owned())
                .spawn(move || {
                    serve(&*service, &connection, reading, writes, &options);
                    lock(&all).open.remove(&connection.id);
                })?;
            streams.threads.push(reads);
            Ok(())
        })();
        match started {
            Ok(()) => {
                streams.open.insert(id, stream);
            }
            Err(_) => {
                streams.refused += 1;
                stream.shutdown();
            }
        }
    }
}

/// One connection from its first frame to its end.
fn serve<S: Service>(
    service: &S,
    connection: &Connection,
    stream: Stream,
    writes: JoinHandle<io::Result<()>>,
    options: &ServeOptions,
) {
    let mut session = service.open(connection);
    let mut why = read(service, &mut session, connection, stream, options);
    if matches!(why, Closed::Service | Closed::Peer) {
        connection.outbox.wait_below(1, options.drain_wait);
    }
    connection.outbox.close();
    if let Ok(Err(error)) = writes.join()
        && !matches!(why, Closed::Frame(_))
    {
        why = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Closed::Stuck,
            _ => Closed::Io(error),
        };
    }
    service.close(session, why);
}

fn read<S: Service>(
    service: &S,
    session: &mut S::Session,
    connection: &Connection,
    mut stream: Stream,
    options: &ServeOptions,
) -> Closed {
    let mut decoder = Decoder::new(options.most_body_bytes);
    loop {
        match decoder.read_from(&mut stream) {
            Ok(0) => return decoder.end().map_or_else(Closed::Frame, |()| Closed::Peer),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Closed::Io(error),
        }
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    if !service.request(session, frame) {
                        return Closed::Service;
                    }
                }
                Ok(None) => break,
                Err(error) => return Closed::Frame(error),
            }
            // The writer ends the connection when nothing moves, so this wait ends too.
            while !connection
                .outbox
                .wait_below(options.outbox_bytes, options.write_wait)
            {
                if connection.outbox.is_closed() {
                    return Closed::Peer;
                }
            }
        }
    }
}

fn lock(streams: &Mutex<Streams>) -> MutexGuard<'_, Streams> {
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}
