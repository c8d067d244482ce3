//! One connection through the proxy: a thread for each direction.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dyno_net::Stream;

use super::Watch;
use super::cut::Control;

/// How long the server has for a commit whose answer will not be seen, before its connection ends
/// too.
const COMMIT_GRACE: Duration = Duration::from_millis(20);
const BUFFER_BYTES: usize = 64 << 10;

/// Starts to pass bytes between both ends.
pub fn start(
    client: Stream,
    server: Stream,
    control: Arc<Control>,
    watch: Watch,
) -> io::Result<()> {
    let number = control.keep(&client, &server)?;
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
    let answers = thread::Builder::new()
        .name(format!("proxy {number} back"))
        .spawn(move || back.run());
    let requests = answers.and_then(|_| {
        thread::Builder::new()
            .name(format!("proxy {number} forth"))
            .spawn(move || forth.run())
    });
    if requests.is_err() {
        control.forget(number);
    }
    requests.map(|_| ())
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
            // Muted before the commit went out, so no answer to it can have passed this line.
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
                self.muted.store(true, Ordering::Release);
                // Whether it reaches the server or not, the client will never know.
                let _ = self.to.write_all(&bytes[..end]);
                self.from.shutdown();
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
