//! The side of a link test that asks and measures.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use dyno_record::{Limit, Size};
use dyno_serve::Token;

use super::{Answer, CHUNK_BYTES, MAGIC, MESSAGE_BYTES, Mode, incompressible, read_message};
use crate::error::MachineError;
use crate::limits::{Measured, REPETITIONS, median};

/// Which link to measure, and for how long.
pub struct LinkOptions<'a> {
    /// Where a [`LinkServer`](super::LinkServer) listens.
    pub address: SocketAddr,
    /// The token that the server asks for.
    pub token: Option<Token>,
    /// Quick takes about half a minute, full about two minutes; tiny measures nothing.
    pub size: Size,
    /// The time that limits are stamped with, RFC 3339.
    pub now_utc: &'a dyn Fn() -> String,
}

/// Connections that share the link in the second test of each direction: one connection alone may
/// be held back by its window or by one processor.
const STREAMS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(10);

/// Measures a link: the median round trip of 64 bytes, and bytes each second in both directions,
/// by one connection and by four.
///
/// # Errors
/// [`MachineError::Limit`] when the server cannot be reached, refuses, or goes away.
pub fn link(options: &LinkOptions<'_>) -> Result<Vec<Limit>, MachineError> {
    let mut limits = vec![("link-round-trip", round_trip(options))];
    for (name, mode, streams) in [
        ("link-send-1", Mode::Send, 1),
        ("link-send-4", Mode::Send, STREAMS),
        ("link-receive-1", Mode::Receive, 1),
        ("link-receive-4", Mode::Receive, STREAMS),
    ] {
        limits.push((name, rate(options, mode, streams)));
    }
    limits
        .into_iter()
        .map(|(name, measured)| {
            let measured = measured.map_err(|error| MachineError::limit(name, error))?;
            Ok(measured.into_limit(name, (options.now_utc)()))
        })
        .collect()
}

impl LinkOptions<'_> {
    /// How long one repetition lasts. A connection begins slowly and takes several round trips to
    /// reach its rate, so these are longer than those of limits within a machine.
    fn repetition(&self) -> Duration {
        match self.size {
            Size::Tiny => Duration::from_millis(10),
            Size::Quick => Duration::from_secs(1),
            Size::Full => Duration::from_secs(5),
        }
    }

    fn connect(&self, mode: Mode) -> io::Result<TcpStream> {
        let mut socket = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let token = self.token.as_ref().map_or(&[][..], Token::expose);
        let length = u16::try_from(token.len()).map_err(io::Error::other)?;
        let hello = [MAGIC, &[mode as u8][..], &length.to_le_bytes(), token].concat();
        socket.write_all(&hello)?;
        let mut answer = [0];
        socket.read_exact(&mut answer).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("{} does not answer as a link server: {error}", self.address),
            )
        })?;
        match Answer::reason(answer[0]) {
            None => Ok(socket),
            Some(reason) => Err(io::Error::other(reason)),
        }
    }
}

fn round_trip(options: &LinkOptions<'_>) -> io::Result<Measured> {
    let mut socket = options.connect(Mode::RoundTrip)?;
    let mut medians = Vec::with_capacity(REPETITIONS);
    let mut round = 0_u8;
    for _ in 0..REPETITIONS {
        let begun = Instant::now();
        let mut times = Vec::new();
        while times.is_empty() || begun.elapsed() < options.repetition() {
            round = round.wrapping_add(1);
            let question = [round; MESSAGE_BYTES];
            let mut answer = [0; MESSAGE_BYTES];
            let started = Instant::now();
            socket.write_all(&question)?;
            let open = read_message(&mut socket, &mut answer)?;
            times.push(started.elapsed().as_nanos() as f64);
            if !open || answer != question {
                return Err(io::Error::other("the answer is not the question"));
            }
        }
        medians.push(median(&times));
    }
    let method = format!(
        "{MESSAGE_BYTES} bytes there and back over TCP to {}, blocking: medians of {:?} each",
        options.address,
        options.repetition()
    );
    Ok(Measured::time_ns(medians, method))
}

fn rate(options: &LinkOptions<'_>, mode: Mode, streams: usize) -> io::Result<Measured> {
    let mut rates = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        rates.push(repetition(options, mode, streams)?);
    }
    let direction = match mode {
        Mode::Send => "to",
        _ => "from",
    };
    let method = format!(
        "bytes {direction} {} by {streams} TCP connection{}, for {:?} each time, the beginning of a connection included",
        options.address,
        if streams == 1 { "" } else { "s" },
        options.repetition()
    );
    Ok(Measured::rate(rates, "B/s", method))
}

/// Bytes each second of all connections together, from the common start to the last byte.
fn repetition(options: &LinkOptions<'_>, mode: Mode, streams: usize) -> io::Result<f64> {
    let sockets = (0..streams)
        .map(|_| options.connect(mode))
        .collect::<io::Result<Vec<TcpStream>>>()?;
    let start = Barrier::new(streams);
    let lasts = options.repetition();
    let chunk = incompressible();
    let moved = thread::scope(|scope| {
        let threads: Vec<_> = sockets
            .into_iter()
            .map(|socket| {
                scope.spawn(|| {
                    start.wait();
                    let begun = Instant::now();
                    let bytes = match mode {
                        Mode::Send => send(socket, chunk, begun + lasts),
                        _ => receive(socket, begun + lasts),
                    };
                    bytes.map(|bytes| (bytes, begun.elapsed()))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .map_err(|_| io::Error::other("a thread of the test panicked"))?
            })
            .collect::<io::Result<Vec<(u64, Duration)>>>()
    })?;
    let bytes: u64 = moved.iter().map(|(bytes, _)| bytes).sum();
    let longest = moved.iter().map(|(_, time)| *time).max();
    Ok(bytes as f64 / longest.unwrap_or_default().as_secs_f64())
}

/// Sends until the time is over, and returns what the server says has arrived. What lies in buffers
/// at the end still counts, because the time runs until that answer.
fn send(mut socket: TcpStream, chunk: &[u8], until: Instant) -> io::Result<u64> {
    let mut sent = 0;
    while sent == 0 || Instant::now() < until {
        socket.write_all(chunk)?;
        sent += chunk.len() as u64;
    }
    socket.shutdown(Shutdown::Write)?;
    let mut received = [0; 8];
    socket.read_exact(&mut received)?;
    match u64::from_le_bytes(received) {
        received if received == sent => Ok(sent),
        received => Err(io::Error::other(format!(
            "{received} of {sent} bytes have arrived"
        ))),
    }
}

fn receive(mut socket: TcpStream, until: Instant) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut received = 0;
    while received == 0 || Instant::now() < until {
        match socket.read(&mut chunk)? {
            0 => {
                return Err(io::Error::other(
                    "the server closed before the time was over",
                ));
            }
            n => received += n as u64,
        }
    }
    Ok(received)
}
