//! A child's way to the checker: lines on standard output, and the end of standard input as the
//! word to stop.

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

    /// Notes what happened now; [`Events::flush`] tells it.
    pub fn add(&mut self, what: What) -> io::Result<()> {
        let event = Event {
            at_us: now_us(),
            what,
        };
        serde_json::to_writer(&mut self.lines, &event)?;
        self.lines.push(b'\n');
        Ok(())
    }

    /// Tells all that was noted. When it returns, the checker has it even if this process is
    /// killed.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(&self.lines)?;
        out.flush()?;
        self.lines.clear();
        Ok(())
    }
}
