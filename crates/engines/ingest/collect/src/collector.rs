//! Writes what the connection delivers into the files of the hours.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use dyno_ingest_feeds::psk::{Capture, stamp};
use dyno_serve::rustls::ClientConfig;
use tracing::{info, warn};

use crate::listening::{Heard, Listening};
use crate::{Broker, CollectError, Hours, Metrics, Sequence};

/// The most messages that wait between the connection and the files, enough for a slow disk. When
/// they are all waiting, the connection is not read, and the broker waits or drops messages.
const WAITING_MAX: usize = 16 * 1024;
/// The longest that lines stay in memory, and how often the end of the hour is checked.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(50);

/// What to collect, and how to connect.
pub struct Settings {
    /// The broker and its topics.
    pub broker: Broker,
    /// The certificates to trust; given if and only if the broker is reached through TLS.
    pub tls: Option<Arc<ClientConfig>>,
    /// The folder for the files, which is created if it is missing.
    pub folder: PathBuf,
    /// Our client identifier. A broker disconnects an older client that has the same one.
    pub client_id: String,
    /// How long the connection may be silent. We ping twice in this time, and give the connection
    /// up after half as much again.
    pub keep_alive: Duration,
    /// The first and the longest wait between attempts to connect; each wait is twice the one
    /// before.
    pub waits: (Duration, Duration),
    /// Returns the time in milliseconds since 1970.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
}

/// Counts since the collector began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Messages that were written to the files.
    pub messages: u64,
    /// Connections on which the broker accepted the subscription.
    pub connections: u64,
    /// Sequence numbers that were left out, less those that came late.
    pub missing: u64,
}

/// Receives messages and writes them to files until it is stopped.
pub struct Collector {
    settings: Settings,
    hours: Hours,
    sequence: Sequence,
    metrics: Metrics,
    summary: Summary,
}

impl Collector {
    /// Locks the folder, and finishes what an earlier collector left there.
    ///
    /// # Errors
    /// [`CollectError::Trust`], [`CollectError::Busy`], [`CollectError::Io`].
    pub fn new(settings: Settings, metrics: Metrics) -> Result<Collector, CollectError> {
        if settings.broker.tls != settings.tls.is_some() {
            return Err(CollectError::Trust {
                tls: settings.broker.tls,
            });
        }
        let now_ms = (settings.clock)();
        let (hours, recovery) = Hours::open(&settings.folder, now_ms)?;
        let mut collector = Collector {
            settings,
            hours,
            sequence: Sequence::default(),
            metrics,
            summary: Summary::default(),
        };
        let broker = collector.settings.broker.to_string();
        collector.event("started", broker)?;
        if recovery.torn_bytes > 0 {
            let detail = format!(
                "{} bytes of a line that was not finished were cut off",
                recovery.torn_bytes
            );
            collector.event("torn", detail)?;
        }
        collector.hours.flush()?;
        Ok(collector)
    }

    /// Collects until `stop` is set, and logs when the connection is made or lost.
    ///
    /// # Errors
    /// [`CollectError::Refused`], [`CollectError::Io`]; what was received before it is
    /// written.
    pub fn run(self, stop: &AtomicBool) -> Result<Summary, CollectError> {
        self.run_until(&|| stop.load(Ordering::Relaxed))
    }

    /// Does the same until `is_over` returns true.
    ///
    /// # Errors
    /// As [`Collector::run`].
    pub fn run_until(mut self, is_over: &dyn Fn() -> bool) -> Result<Summary, CollectError> {
        // The channel is bounded, so a disk that is slow for long makes the connection wait instead
        // of filling the memory.
        let (sender, heard) = mpsc::sync_channel(WAITING_MAX);
        let ending = Arc::new(AtomicBool::new(false));
        let listening = Listening {
            broker: self.settings.broker.clone(),
            tls: self.settings.tls.clone(),
            client_id: self.settings.client_id.clone(),
            keep_alive: self.settings.keep_alive,
            waits: self.settings.waits,
            clock: Arc::clone(&self.settings.clock),
            stop: Arc::clone(&ending),
        };
        // The thread may sit in a connection attempt that cannot be cut short, so it is not waited
        // for.
        thread::spawn(move || listening.run(&sender));
        let collected = self.collect(&heard, is_over);
        ending.store(true, Ordering::Relaxed);
        // A thread that waits in `send` ends when the receiver is gone.
        drop(heard);
        // The rest is written even after an error, so that the file says how far its messages go.
        self.account()?;
        let last = match &collected {
            Ok(()) => "asked to stop".to_owned(),
            Err(error) => error.to_string(),
        };
        self.event("stopped", last)?;
        self.hours.close()?;
        collected.map(|()| self.summary)
    }

    fn collect(
        &mut self,
        heard: &Receiver<Heard>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), CollectError> {
        let mut flushed = Instant::now();
        while !is_over() {
            match heard.recv_timeout(TICK) {
                Ok(heard) => self.heard(heard)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(CollectError::Refused {
                        reason: "the collector has stopped listening".to_owned(),
                    });
                }
            }
            if flushed.elapsed() >= FLUSH_EVERY {
                flushed = Instant::now();
                // Without messages nothing else would end the hour, and its file would stay open
                // until the next message.
                if self.hours.ends_at(self.now_ms()) {
                    self.account()?;
                    self.hours.end_hour()?;
                }
                self.hours.flush()?;
            }
        }
        Ok(())
    }

    fn heard(&mut self, heard: Heard) -> Result<(), CollectError> {
        match heard {
            Heard::Connected => {
                self.summary.connections += 1;
                self.metrics.connections.add(1);
                self.metrics.connected.set(1);
                let broker = self.settings.broker.to_string();
                info!("connected to {broker}");
                self.event("connected", broker)
            }
            Heard::Disconnected(reason) => {
                self.metrics.disconnections.add(1);
                self.metrics.connected.set(0);
                warn!("not connected: {reason}");
                self.account()?;
                self.event("disconnected", reason)
            }
            Heard::Refused(reason) => Err(CollectError::Refused { reason }),
            Heard::Message {
                received_ms,
                topic,
                payload,
            } => self.message(received_ms, topic, payload),
        }
    }

    fn message(
        &mut self,
        received_ms: i64,
        topic: String,
        payload: Vec<u8>,
    ) -> Result<(), CollectError> {
        // Numbers of the hour that is over belong to its own account.
        if self.hours.ends_at(received_ms) {
            self.account()?;
        }
        let before = *self.sequence.account();
        self.sequence.note(&payload);
        self.metrics.account(&before, self.sequence.account());
        self.metrics.messages.add(1);
        self.metrics.bytes.add(payload.len() as u64);
        self.metrics.last_message_s.set(received_ms / 1000);
        self.summary.messages += 1;
        let (raw, raw_hex) = match String::from_utf8(payload) {
            Ok(text) => (Some(text), None),
            Err(e) => {
                let digits = e.as_bytes().iter().map(|byte| format!("{byte:02x}"));
                (None, Some(digits.collect()))
            }
        };
        let capture = Capture {
            rx: stamp(received_ms),
            topic: Some(topic),
            raw,
            raw_hex,
            ..Capture::default()
        };
        self.hours.append(&capture, received_ms)
    }

    /// Writes the account of the numbers since the last one, if any message came since.
    fn account(&mut self) -> Result<(), CollectError> {
        let account = self.sequence.close();
        if account.received == 0 {
            return Ok(());
        }
        self.summary.missing += account.missing;
        let detail = serde_json::json!(account).to_string();
        let capture = event(self.now_ms(), "sequence", detail);
        // It belongs to the file of the messages that it counts, also a moment after the hour.
        self.hours.append_here(&capture)
    }

    fn event(&mut self, name: &str, detail: String) -> Result<(), CollectError> {
        let now_ms = self.now_ms();
        self.hours.append(&event(now_ms, name, detail), now_ms)
    }

    fn now_ms(&self) -> i64 {
        (self.settings.clock)()
    }
}

fn event(now_ms: i64, name: &str, detail: String) -> Capture {
    Capture {
        rx: stamp(now_ms),
        event: Some(name.to_owned()),
        detail: Some(detail),
        ..Capture::default()
    }
}
