//! The three pipes of a child, served from one thread so that neither side can block the other.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::time::Duration;

use super::ChildLimits;
use super::kernel::{poll, set_nonblocking};

/// What a child wrote to one of its outputs: the last bytes, up to the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The end of the output; all of it when `dropped_bytes` is zero.
    pub bytes: Vec<u8>,
    /// Bytes before that were read and let go.
    pub dropped_bytes: u64,
}

impl Captured {
    /// The output as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The last line that is not blank, trimmed: where the protocol puts the answer.
    pub fn last_line(&self) -> Option<String> {
        let text = self.text();
        text.lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .map(str::to_owned)
    }

    fn append(&mut self, part: &[u8], bytes_max: usize) {
        self.bytes.extend_from_slice(part);
        // Trimming at twice the limit keeps the cost of moving bytes at one move per byte.
        if self.bytes.len() > bytes_max.saturating_mul(2) {
            self.trim(bytes_max);
        }
    }

    fn trim(&mut self, bytes_max: usize) {
        let surplus = self.bytes.len().saturating_sub(bytes_max);
        self.bytes.drain(..surplus);
        self.dropped_bytes += surplus as u64;
    }
}

/// The pipes that are still open, and what came through them.
pub(super) struct Pipes<'a> {
    stdin: Option<ChildStdin>,
    unsent: &'a [u8],
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    pub out: Captured,
    pub err: Captured,
    limits: ChildLimits<'a>,
    buffer: Vec<u8>,
}

impl<'a> Pipes<'a> {
    pub fn from_child(
        child: &mut Child,
        stdin: &'a [u8],
        limits: ChildLimits<'a>,
    ) -> io::Result<Self> {
        let pipes = Self {
            stdin: child.stdin.take(),
            unsent: stdin,
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            out: Captured::default(),
            err: Captured::default(),
            limits,
            buffer: vec![0; 64 << 10],
        };
        pipes.stdin.as_ref().map_or(Ok(()), set_nonblocking)?;
        pipes.stdout.as_ref().map_or(Ok(()), set_nonblocking)?;
        pipes.stderr.as_ref().map_or(Ok(()), set_nonblocking)?;
        Ok(pipes)
    }

    pub fn outputs_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Waits up to `timeout` for the child to end, read or write, then moves what can be moved.
    pub fn serve(&mut self, pidfd: Option<&OwnedFd>, timeout: Duration) -> io::Result<()> {
        // The child sees the end of its input only when our end is closed.
        if self.unsent.is_empty() {
            self.stdin = None;
        }
        let slot = |fd: Option<RawFd>, events| libc::pollfd {
            fd: fd.unwrap_or(-1),
            events,
            revents: 0,
        };
        let mut fds = [
            slot(pidfd.map(AsRawFd::as_raw_fd), libc::POLLIN),
            slot(self.stdin.as_ref().map(AsRawFd::as_raw_fd), libc::POLLOUT),
            slot(self.stdout.as_ref().map(AsRawFd::as_raw_fd), libc::POLLIN),
            slot(self.stderr.as_ref().map(AsRawFd::as_raw_fd), libc::POLLIN),
        ];
        poll(&mut fds, timeout)?;
        // Any event counts, hang-up and error included: the read or write that follows returns at
        // once in each case and says which it was. Waiting for data alone would spin on a closed
        // pipe.
        if fds[1].revents != 0 {
            self.send()?;
        }
        if fds[2].revents != 0 {
            let part = receive(&mut self.stdout, &mut self.buffer)?;
            self.out.append(part, self.limits.stdout_bytes_max);
        }
        if fds[3].revents != 0 {
            let part = receive(&mut self.stderr, &mut self.buffer)?;
            self.err.append(part, self.limits.stderr_bytes_max);
            if let Some(listener) = self.limits.listener {
                listener.0(part);
            }
        }
        Ok(())
    }

    /// Cuts the captured outputs to their limits.
    pub fn finish(mut self) -> (Captured, Captured) {
        self.out.trim(self.limits.stdout_bytes_max);
        self.err.trim(self.limits.stderr_bytes_max);
        (self.out, self.err)
    }

    fn send(&mut self) -> io::Result<()> {
        let Some(stdin) = &mut self.stdin else {
            return Ok(());
        };
        match stdin.write(self.unsent) {
            Ok(sent) => self.unsent = &self.unsent[sent..],
            Err(e) if retry(&e) => {}
            // The child needs no more input; whether that is an error shows in its exit.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.unsent = &[],
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

/// One read: a child that writes without end must not keep us from looking at the clock.
fn receive<'b>(pipe: &mut Option<impl Read>, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let Some(open) = pipe else { return Ok(&[]) };
    match open.read(buffer) {
        Ok(n) => {
            if n == 0 {
                *pipe = None;
            }
            Ok(&buffer[..n])
        }
        Err(e) if retry(&e) => Ok(&[]),
        Err(e) => Err(e),
    }
}

fn retry(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
