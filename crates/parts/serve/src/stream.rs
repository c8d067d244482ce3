//! A connection with one deadline for all of its reads and writes. With a timeout for each read
//! alone, a client that sends a byte now and then could stay for ever.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A socket whose reads and writes end at a deadline.
#[derive(Debug)]
pub(crate) struct Timed {
    socket: TcpStream,
    deadline: Instant,
}

impl Timed {
    pub fn new(socket: TcpStream, within: Duration) -> Self {
        Self {
            socket,
            deadline: Instant::now() + within,
        }
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // The system takes a timeout of zero for none at all.
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(left.max(Duration::from_millis(1)))
    }
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        // Each call gets what is left of the whole time.
        self.socket.set_read_timeout(Some(self.left()?))?;
        self.socket.read(bytes)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.left()?))?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
