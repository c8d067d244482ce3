//! One connection through the proxy: a thread for each direction.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dyno_net::Stream;

use super::Watch;
use super::cut::Control;

/// How long the server has for a commit whose answer is dropped, before its connection ends, too.
const COMMIT_GRACE: Duration = Duration::from_millis(20);
const BUFFER_BYTES: usize = 64 << 10;

/// Starts to pass bytes between both ends.
///
/// # Errors
/// When the connection cannot be cloned or a thread cannot be started. Both ends are closed then.
pub fn start(
    client: Stream,
    server: Stream,
    control: Arc<Control>,
    watch: Watch,
) -> io::Result<()> {
    start_by(spawn, client, server, control, watch)
}

type Run = Box<dyn FnOnce() + Send>;

fn spawn(name: String, run: Run) -> io::Result<()> {
    thread::Builder::new().name(name).spawn(run).map(|_| ())
}

fn start_by(
    spawn: impl FnMut(String, Run) -> io::Result<()>,
    client: Stream,
    server: Stream,
    control: Arc<Control>,
    watch: Watch,
) -> io::Result<()> {
    let number = control.keep(&client, &server)?;
    let started = spawn_both(spawn, number, client, server, &control, watch);
    if started.is_err() {
        // The thread for answers may run already, and the kept ends are open. Without the thread
        // for requests the client would wait for an answer for good.
        control.cut_off(number);
    }
    started
}

fn spawn_both(
    mut spawn: impl FnMut(String, Run) -> io::Result<()>,
    number: u64,
    client: Stream,
    server: Stream,
    control: &Arc<Control>,
    watch: Watch,
) -> io::Result<()> {
    let muted = Arc::new(AtomicBool::new(false));
    let back = Back {
        from: server.try_clone()?,
        to: client.try_clone()?,
        control: control.clone(),
        muted: muted.clone(),
    };
    let forth = Forth {
        from: client,
        to: server,
        control: control.clone(),
        muted,
        watch,
        number,
    };
    spawn(format!("proxy {number} back"), Box::new(move || back.run()))?;
    spawn(
        format!("proxy {number} forth"),
        Box::new(move || forth.run()),
    )
}

/// Answers, from the server to the client.
struct Back {
    from: Stream,
    to: Stream,
    control: Arc<Control>,
    muted: Arc<AtomicBool>,
}

impl Back {
    fn run(mut self) {
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Some(bytes) = read(&mut self.from, &mut buffer) {
            wait(&self.control);
            // The flag was set before the commit went out, so no answer to it can have passed here.
            let muted = self.muted.load(Ordering::Acquire);
            if !muted && self.to.write_all(bytes).is_err() {
                break;
            }
        }
        self.to.shutdown();
        self.from.shutdown();
    }
}

/// Requests, from the client to the server.
struct Forth {
    from: Stream,
    to: Stream,
    control: Arc<Control>,
    muted: Arc<AtomicBool>,
    watch: Watch,
    number: u64,
}

impl Forth {
    fn run(mut self) {
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Some(bytes) = read(&mut self.from, &mut buffer) {
            wait(&self.control);
            let end = self.watch.commit_end(bytes);
            if let Some(end) = end
                && self.control.take_armed()
            {
                // The flag is set before the commit is passed on. Set after, it could be too late
                // for an answer that comes back at once.
                self.muted.store(true, Ordering::Release);
                // Whether the commit reaches the server or not, the client cannot know.
                let _ = self.to.write_all(&bytes[..end]);
                self.from.shutdown();
                // Both directions end together. A server whose connection ends while it reads may
                // drop the commit, and then nothing would be in doubt.
                thread::sleep(COMMIT_GRACE);
                break;
            }
            if self.to.write_all(bytes).is_err() {
                break;
            }
        }
        self.to.shutdown();
        self.from.shutdown();
        self.control.forget(self.number);
    }
}

/// The next bytes; `None` at the end, however it came.
fn read<'a>(from: &mut Stream, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    loop {
        match from.read(buffer) {
            Ok(0) => return None,
            Ok(bytes) => return Some(&buffer[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

fn wait(control: &Control) {
    let delay = control.delay();
    if !delay.is_zero() {
        thread::sleep(delay);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use dyno_net::{Address, Listener};

    use super::super::Protocol;
    use super::*;

    const WAIT: Duration = Duration::from_secs(10);

    /// Whether the other end of a connection closes it soon.
    fn is_closed(mut stream: Stream) -> bool {
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || done.send(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_))));
        is_done.recv_timeout(WAIT).unwrap_or(false)
    }

    #[test]
    fn a_connection_whose_second_thread_cannot_start_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let listen = |name| Listener::bind(&Address::Unix(dir.path().join(name))).unwrap();
        let (clients, servers) = (listen("clients"), listen("servers"));
        let client = Stream::connect(clients.address(), WAIT).unwrap();
        let server = Stream::connect(servers.address(), WAIT).unwrap();
        let target = servers.accept().unwrap();
        let control = Arc::new(Control::new(servers.address().clone()));
        let committing = Vec::new();
        let watch = Watch::new(&Protocol::Frames { committing });
        let mut spawned = 0;
        let second_fails = |name, run| {
            spawned += 1;
            match spawned {
                1 => spawn(name, run),
                _ => Err(io::Error::other("no more threads")),
            }
        };
        let accepted = clients.accept().unwrap();
        let started = start_by(second_fails, accepted, server, control, watch);
        assert!(started.is_err());
        assert!(is_closed(client), "the client waits for answers");
        assert!(is_closed(target), "the server waits for requests");
    }
}
