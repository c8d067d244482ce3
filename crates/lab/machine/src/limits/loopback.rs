//! A question and its answer between two threads over a socket on this machine.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::measured::{Measured, median};
use super::{REPETITIONS, Setting};
use crate::error::MachineError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Tcp,
    Unix,
}

/// How the sides wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// In the kernel: the processor is free, and waking costs.
    Block,
    /// Asking again and again: the processor is taken, and waking is free.
    Spin,
}

/// Bounds on one repetition; whichever is reached first ends it.
#[derive(Debug, Clone, Copy)]
struct Effort {
    rounds: u32,
    /// On a busy machine a spinning side waits a whole time slice for the other one.
    duration: Duration,
}

const MESSAGE_BYTES: usize = 64;

/// Median time from a question of 64 bytes to its answer.
pub(super) fn round_trip(
    setting: &Setting<'_>,
    family: Family,
    waiting: Waiting,
) -> Result<Measured, MachineError> {
    let name = match (family, waiting) {
        (Family::Tcp, Waiting::Block) => "loopback-tcp",
        (Family::Tcp, Waiting::Spin) => "loopback-tcp-spin",
        (Family::Unix, Waiting::Block) => "loopback-unix",
        (Family::Unix, Waiting::Spin) => "loopback-unix-spin",
    };
    if waiting == Waiting::Spin && setting.threads < 2 {
        return Err(MachineError::limit(
            name,
            "two spinning sides need two processors",
        ));
    }
    let rounds = setting.pick(20, 5_000, 30_000);
    let effort = Effort {
        rounds,
        duration: setting.repetition() * 4,
    };
    let times = match family {
        Family::Tcp => tcp_pair().and_then(|(near, far)| converse(near, far, waiting, effort)),
        Family::Unix => {
            UnixStream::pair().and_then(|(near, far)| converse(near, far, waiting, effort))
        }
    };
    let times = times.map_err(|error| MachineError::limit(name, error))?;
    let socket = if family == Family::Tcp {
        "TCP on 127.0.0.1"
    } else {
        "a Unix socket pair"
    };
    let how = if waiting == Waiting::Spin {
        "spinning"
    } else {
        "blocking"
    };
    let method = format!(
        "64 bytes there and back between two threads over {socket}, {how}: medians of up to {rounds} round trips"
    );
    Ok(Measured::time_ns(times, method))
}

fn tcp_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    // Nagle's algorithm would hold a message back until the one before it is acknowledged.
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}

/// A socket that can be told not to block.
trait Socket: Read + Write + Send {
    fn spin(&self) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn spin(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl Socket for UnixStream {
    fn spin(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

fn converse<S: Socket>(
    mut near: S,
    mut far: S,
    waiting: Waiting,
    effort: Effort,
) -> io::Result<Vec<f64>> {
    if waiting == Waiting::Spin {
        near.spin()?;
        far.spin()?;
    }
    std::thread::scope(|scope| {
        // The answering side ends when the asking side closes.
        let answers = scope.spawn(move || -> io::Result<()> {
            let mut message = [0; MESSAGE_BYTES];
            while receive(&mut far, &mut message)? {
                send(&mut far, &message)?;
            }
            Ok(())
        });
        let medians = ask(&mut near, effort);
        // Closing this side ends the answering thread, also when asking failed; joining it before
        // would wait for ever.
        drop(near);
        let answered = answers
            .join()
            .map_err(|_| io::Error::other("the answering thread panicked"))?;
        let medians = medians?;
        answered.map(|()| medians)
    })
}

/// The medians of all repetitions; the first round trips of each warm the path and are not counted.
fn ask(socket: &mut impl Socket, effort: Effort) -> io::Result<Vec<f64>> {
    let mut medians = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        let mut times = Vec::with_capacity(effort.rounds as usize);
        let warm = effort.rounds / 10;
        let begun = Instant::now();
        for round in 0..effort.rounds + warm {
            if round > warm && begun.elapsed() > effort.duration {
                break;
            }
            let question = [round as u8; MESSAGE_BYTES];
            let mut answer = [0; MESSAGE_BYTES];
            let started = Instant::now();
            send(socket, &question)?;
            let open = receive(socket, &mut answer)?;
            let time_ns = started.elapsed().as_nanos() as f64;
            if !open || answer != question {
                return Err(io::Error::other("the answer is not the question"));
            }
            if round >= warm {
                times.push(time_ns);
            }
        }
        medians.push(median(&times));
    }
    Ok(medians)
}

fn send(socket: &mut impl Write, mut message: &[u8]) -> io::Result<()> {
    while !message.is_empty() {
        match socket.write(message) {
            Ok(n) => message = &message[n..],
            Err(e) if again(&e) => std::hint::spin_loop(),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// False when the other side closed between two messages.
fn receive(socket: &mut impl Read, message: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < message.len() {
        match socket.read(&mut message[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => filled += n,
            Err(e) if again(&e) => std::hint::spin_loop(),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

fn again(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
