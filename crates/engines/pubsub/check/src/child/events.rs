//! A child's connection to the checker: it writes lines to standard output, and stops at the end of
//! standard input.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::clock::now_us;
use crate::history::{Event, What};

/// Collects events and writes them in one piece.
#[derive(Debug)]
pub struct Events {
    lines: Vec<u8>,
    stopping: Arc<AtomicBool>,
}

impl Events {
    /// Begins to watch standard input.
    pub fn start() -> Self {
        let stopping = Arc::new(AtomicBool::new(false));
        let ended = stopping.clone();
        thread::spawn(move || {
            let mut byte = [0];
            // The checker's end is closed when it asks to stop and also when it dies, so no child
            // outlives it.
            while matches!(io::stdin().read(&mut byte), Ok(1..)) {}
            ended.store(true, Ordering::Release);
        });
        Self {
            lines: Vec::new(),
            stopping,
        }
    }

    /// Whether the checker asked to stop, or is gone.
    pub fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Notes what happens now. [`Events::flush`] writes it.
    pub fn add(&mut self, what: What) -> io::Result<()> {
        let event = Event {
            at_us: now_us(),
            what,
        };
        serde_json::to_writer(&mut self.lines, &event)?;
        self.lines.push(b'\n');
        Ok(())
    }

    /// Writes all that was noted. When it returns, the checker will read it even if this process is
    /// killed.
    pub fn flush(&mut self) -> io::Result<()> {
        // The pipe belongs to the kernel, which keeps what was written when the process dies. What
        // is still in `lines` is lost, so each caller flushes before it takes the step that the
        // events announce.
        let mut out = io::stdout().lock();
        out.write_all(&self.lines)?;
        out.flush()?;
        self.lines.clear();
        Ok(())
    }
}
