//! Our client library, directly over SQL or through a broker: the producer and the consumer that
//! any program would use, with their defaults.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use dyno_postgres::SslMode;
use dyno_pubsub::{
    Acknowledge, Address, Connection, Consumer, ConsumerOptions, Dsn, Message, Producer,
    ProducerOptions, Receipt, Retry, Start, TopicOptions,
};

use super::FlowError;
use super::server::process_cpu_s;
use super::way::{Reader, Way, Writer};

const TOPIC: &str = "flow";
/// The consumers' lease. Members hear of each other every third of it, so it decides how soon a new
/// group is settled.
const LEASE: Duration = Duration::from_secs(3);
/// The same with more readers in a group than [`FEW`]. They wait for the processor in turn, and a
/// member that is silent for its lease would lose its partitions in the middle of a flow.
const LEASE_OF_MANY: Duration = Duration::from_secs(10);
const FEW: usize = 16;
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// How often a reader with relaxed cursors commits.
const COMMIT_EVERY: Duration = Duration::from_millis(100);
/// How long a reader waits for messages before it checks whether the flow has ended.
const WAIT: Duration = Duration::from_millis(20);

/// Producers and consumers of our library.
pub(super) struct Library {
    pub dsn: Dsn,
    pub partitions: usize,
    /// Readers in each group.
    pub readers: usize,
    /// Batches of a writer that may be unacknowledged at once.
    pub window: usize,
    /// When and how readers commit.
    pub cursors: Cursors,
    /// Bytes that a reader requests at once.
    pub read_bytes: usize,
    /// Path of the broker's socket; `None` if clients speak SQL.
    pub broker: Option<PathBuf>,
    /// The broker, once it has been started.
    pub process: Mutex<Option<BrokerProcess>>,
}

/// When readers store their positions, and whether they wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cursors {
    /// After every poll that found something, on stable storage, as the original's readers do.
    EveryPoll,
    /// At intervals, without waiting for the disk, which is the library's default.
    Relaxed,
}

impl Cursors {
    pub fn named(name: &str) -> Option<Cursors> {
        match name {
            "every-poll" => Some(Cursors::EveryPoll),
            "relaxed" => Some(Cursors::Relaxed),
            _ => None,
        }
    }
}

/// A broker process that its public command started. Dropping it stops the process.
pub(super) struct BrokerProcess {
    child: Child,
    socket: PathBuf,
}

impl Drop for BrokerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A killed broker leaves its socket behind, and the next one would be taken to be
        // listening.
        let _ = fs::remove_file(&self.socket);
    }
}

impl Library {
    fn address(&self) -> Result<Address, FlowError> {
        Ok(match &self.broker {
            Some(socket) => Address::parse(&format!("unix:{}", socket.display()))?,
            None => Address::from(&self.dsn),
        })
    }

    /// Waits until the members of the group have shared the partitions out, because the first to
    /// join had all of them. The fixed readers of the original share nothing. Returns the messages
    /// that arrived meanwhile, if the log held some before.
    fn settle(&self, consumer: &mut Consumer) -> Result<Vec<Message>, FlowError> {
        let fair = self.partitions.div_ceil(self.readers);
        let least = usize::from(self.readers <= self.partitions);
        let until = Instant::now() + SETTLE_MAX;
        let mut pending = Vec::new();
        while !(least..=fair).contains(&consumer.assigned().len()) {
            if Instant::now() > until {
                return Err(FlowError::Way("the group does not settle".to_string()));
            }
            pending.extend(poll(consumer)?);
        }
        Ok(pending)
    }

    fn start_broker(&self, socket: &Path) -> Result<BrokerProcess, FlowError> {
        let program = std::env::current_exe().map_err(|e| FlowError::Way(e.to_string()))?;
        // The broker gets the text of the connection string, and the password in its environment.
        // Neither says how a certificate is to be checked.
        if !matches!(self.dsn.ssl_mode(), SslMode::Disable | SslMode::Prefer) {
            let reason = "a broker of a bench is not handed sslmode; serve one yourself";
            return Err(FlowError::Way(reason.to_string()));
        }
        let mut command = Command::new(program);
        if let Some(password) = self.dsn.config().get_password() {
            command.env("PGPASSWORD", OsStr::from_bytes(password));
        }
        let child = command
            .args(["pubsub", "serve", "--dsn", &self.dsn.text(), "--listen"])
            .arg(format!("unix:{}", socket.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| FlowError::Way(format!("the broker could not be started: {e}")))?;
        let mut process = BrokerProcess {
            child,
            socket: socket.to_owned(),
        };
        let until = Instant::now() + Duration::from_secs(30);
        // The socket file exists a moment before the broker listens on it, and one may be left from
        // a process that was killed.
        while UnixStream::connect(socket).is_err() {
            if let Ok(Some(status)) = process.child.try_wait() {
                return Err(FlowError::Way(format!("the broker ended: {status}")));
            }
            if Instant::now() > until {
                return Err(FlowError::Way("the broker does not listen".to_string()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(process)
    }
}

impl Way for Library {
    fn prepare(&self) -> Result<(), FlowError> {
        let mut connection = Connection::open(&self.dsn)?;
        connection.install()?;
        let options = TopicOptions {
            partitions: u32::try_from(self.partitions).unwrap_or(u32::MAX),
            ..TopicOptions::default()
        };
        connection.create_topic(TOPIC, &options)?;
        if let Some(socket) = &self.broker
            && let Ok(mut process) = self.process.lock()
        {
            *process = Some(self.start_broker(socket)?);
        }
        Ok(())
    }

    fn writer(&self, writer: usize) -> Result<Box<dyn Writer>, FlowError> {
        // A writer has one partition, like those of the original, and so one connection.
        let options = ProducerOptions {
            connections: 1,
            ..ProducerOptions::default()
        };
        Ok(Box::new(LibraryWriter {
            producer: Producer::open(self.address()?, TOPIC, options)?,
            partition: (writer % self.partitions) as u32,
            window: self.window,
            under_way: VecDeque::new(),
        }))
    }

    fn reader(&self, group: usize, reader: usize) -> Result<Box<dyn Reader>, FlowError> {
        let options = ConsumerOptions {
            member: Some(format!("reader-{reader}")),
            start: Start::Earliest,
            lease: match self.readers {
                ..=FEW => LEASE,
                _ => LEASE_OF_MANY,
            },
            fetch_bytes: self.read_bytes,
            commits: match self.cursors {
                Cursors::EveryPoll => Acknowledge::Committed,
                Cursors::Relaxed => Acknowledge::Async,
            },
            ..ConsumerOptions::default()
        };
        let group = format!("group-{group}");
        let mut consumer = Consumer::open(self.address()?, TOPIC, &group, options)?;
        let pending = self.settle(&mut consumer)?;
        Ok(Box::new(LibraryReader {
            pending,
            consumer: Some(consumer),
            cursors: self.cursors,
            committed_at: Instant::now(),
        }))
    }

    fn helpers_cpu_s(&self) -> f64 {
        let process = self.process.lock();
        let child = process.as_ref().ok().and_then(|process| process.as_ref());
        child.map_or(0.0, |process| process_cpu_s(process.child.id()))
    }
}

struct LibraryWriter {
    producer: Producer,
    partition: u32,
    window: usize,
    /// The length of each unacknowledged batch, and the receipt of its last message.
    under_way: VecDeque<(usize, Receipt)>,
}

impl LibraryWriter {
    /// Waits until at most `most` batches are unacknowledged.
    fn settle(&mut self, most: usize, done: &mut dyn FnMut(usize)) -> Result<(), FlowError> {
        while let Some((count, receipt)) = self.under_way.front() {
            // A receipt whose outcome is known is taken even below the bound, so that a latency
            // ends when the answer came and not when the window is full.
            if self.under_way.len() <= most && receipt.outcome().is_none() {
                break;
            }
            receipt.wait()?;
            done(*count);
            self.under_way.pop_front();
        }
        Ok(())
    }
}

impl Writer for LibraryWriter {
    fn write(
        &mut self,
        messages: &[Vec<u8>],
        done: &mut dyn FnMut(usize),
    ) -> Result<(), FlowError> {
        let mut receipts = self.producer.send_all(messages, Some(self.partition))?;
        if let Some(receipt) = receipts.pop() {
            // Batches of a partition are acknowledged in order, so the last message stands for all
            // of them.
            self.under_way.push_back((messages.len(), receipt));
        }
        self.settle(self.window - 1, done)
    }

    fn flush(&mut self, done: &mut dyn FnMut(usize)) -> Result<(), FlowError> {
        self.settle(0, done)
    }
}

/// Polls once. While a broker or server is away for a moment it returns nothing.
fn poll(consumer: &mut Consumer) -> Result<Vec<Message>, FlowError> {
    match consumer.poll(WAIT) {
        Err(error) if error.retry() == Retry::Safe => Ok(Vec::new()),
        polled => Ok(polled?),
    }
}

struct LibraryReader {
    /// Messages that arrived before the flow began, which are returned first.
    pending: Vec<Message>,
    consumer: Option<Consumer>,
    cursors: Cursors,
    committed_at: Instant,
}

impl Reader for LibraryReader {
    fn poll(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> Result<usize, FlowError> {
        let Some(consumer) = &mut self.consumer else {
            return Ok(0);
        };
        let messages = if self.pending.is_empty() {
            poll(consumer)?
        } else {
            std::mem::take(&mut self.pending)
        };
        for message in &messages {
            each(message.partition.unsigned_abs(), &message.value);
        }
        let due = match self.cursors {
            Cursors::EveryPoll => !messages.is_empty(),
            Cursors::Relaxed => self.committed_at.elapsed() > COMMIT_EVERY,
        };
        if due {
            consumer.commit()?;
            self.committed_at = Instant::now();
        }
        Ok(messages.len())
    }

    fn close(&mut self) -> Result<(), FlowError> {
        match self.consumer.take() {
            Some(mut consumer) => {
                consumer.commit()?;
                Ok(consumer.close()?)
            }
            None => Ok(()),
        }
    }
}
