//! The side of a link test that answers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dyno_serve::{ServeError, Token, guard, wake_accept};

use super::{
    Answer, CHUNK_BYTES, MAGIC, MESSAGE_BYTES, MOST_TOKEN_BYTES, Mode, incompressible, read_message,
};

/// How the server listens, and whom it answers.
#[derive(Debug, Clone)]
pub struct LinkServerOptions {
    /// An address of this machine; one that others reach needs a token.
    pub listen: SocketAddr,
    /// The token that clients must show.
    pub token: Option<Token>,
    /// Connections at the same time; further ones are refused.
    pub connections: usize,
    /// The longest time for one connection, after which it is closed.
    pub longest: Duration,
}

impl LinkServerOptions {
    /// Sixteen connections of at most a minute each.
    pub fn new(listen: SocketAddr, token: Option<Token>) -> Self {
        Self {
            listen,
            token,
            connections: 16,
            longest: Duration::from_secs(60),
        }
    }
}

/// Answers link tests until it is dropped.
#[derive(Debug)]
pub struct LinkServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

/// How long a client may take for its hello, and for any other byte that it owes. A client that
/// says nothing would otherwise hold one of the few connections.
const PATIENCE: Duration = Duration::from_secs(5);

impl LinkServer {
    /// Starts to listen.
    ///
    /// # Errors
    /// [`ServeError::Unguarded`] for an address beyond this machine without a token, and
    /// [`ServeError::Listen`].
    pub fn start(options: LinkServerOptions) -> Result<LinkServer, ServeError> {
        let address = options.listen;
        guard(address, options.token.as_ref())?;
        // Made now, so that the first client does not wait for it while its clock runs.
        incompressible();
        let cannot = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let stop = Arc::new(AtomicBool::new(false));
        let accepting = {
            let stop = Arc::clone(&stop);
            thread::Builder::new()
                .name("link-accept".to_owned())
                .spawn(move || accept(&listener, Arc::new(options), &stop))
                .map_err(cannot)?
        };
        Ok(LinkServer {
            address,
            stop,
            accepting: Some(accepting),
        })
    }

    /// Where it listens, with the port that the system chose when none was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for LinkServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if wake_accept(self.address, PATIENCE)
            && let Some(accepting) = self.accepting.take()
        {
            let _ = accepting.join();
        }
    }
}

/// Counts a connection for as long as it lives, however its thread ends.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn accept(listener: &TcpListener, options: Arc<LinkServerOptions>, stop: &Arc<AtomicBool>) {
    let open = Arc::new(AtomicUsize::new(0));
    for socket in listener.incoming() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let Ok(socket) = socket else {
            // Out of descriptors, for example: without a pause this loop would take a processor
            // until some are free again.
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        let counted = Open(Arc::clone(&open));
        let full = open.fetch_add(1, Ordering::Relaxed) >= options.connections;
        let (options, stop) = (Arc::clone(&options), Arc::clone(stop));
        // A refusal reads the hello as well: closing with unread bytes would reset the connection,
        // and the client would not see the reason. Up to as many refusals again may be under way.
        if open.load(Ordering::Relaxed) > 2 * options.connections {
            continue;
        }
        let spawned = thread::Builder::new()
            .name("link".to_owned())
            .spawn(move || {
                let _counted = counted;
                // An error ends the connection, and the client sees the close.
                let _ = serve(socket, &options, full, &stop);
            });
        if spawned.is_err() {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn serve(
    mut socket: TcpStream,
    options: &LinkServerOptions,
    full: bool,
    stop: &AtomicBool,
) -> io::Result<()> {
    let until = Instant::now() + options.longest;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let (mode, offered) = read_hello(&mut socket)?;
    let admitted = match &options.token {
        Some(token) => token.is(&offered),
        None => true,
    };
    let mode = Mode::from_byte(mode);
    let answer = match mode {
        _ if !admitted => Answer::TokenRefused,
        _ if full => Answer::TooManyConnections,
        None => Answer::UnknownMode,
        Some(_) => Answer::Accepted,
    };
    socket.write_all(&[answer as u8])?;
    let Some(mode) = mode.filter(|_| answer == Answer::Accepted) else {
        return Ok(());
    };
    let is_over = || Instant::now() >= until || stop.load(Ordering::Relaxed);
    match mode {
        Mode::RoundTrip => {
            let mut message = [0; MESSAGE_BYTES];
            while !is_over() && read_message(&mut socket, &mut message)? {
                socket.write_all(&message)?;
            }
            Ok(())
        }
        Mode::Send => {
            let mut chunk = vec![0; CHUNK_BYTES];
            let mut received = 0_u64;
            while !is_over() {
                match socket.read(&mut chunk)? {
                    0 => return socket.write_all(&received.to_le_bytes()),
                    n => received += n as u64,
                }
            }
            Ok(())
        }
        Mode::Receive => {
            let chunk = incompressible();
            while !is_over() {
                socket.write_all(chunk)?;
            }
            Ok(())
        }
    }
}

/// Reads a hello: the byte of its mode, and the token that it shows.
fn read_hello(socket: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 11];
    socket.read_exact(&mut head)?;
    let length = u16::from_le_bytes([head[9], head[10]]);
    if head[..8] != MAGIC[..] || length > MOST_TOKEN_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut offered = vec![0; usize::from(length)];
    socket.read_exact(&mut offered)?;
    Ok((head[8], offered))
}
