//! Our client library, over SQL alone or through a broker: the producer and the consumer that any program would use, with
//! their defaults.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use dyno_pubsub::{
    Address, Connection, Consumer, ConsumerOptions, Dsn, Producer, ProducerOptions, Receipt, Start,
    TopicOptions,
};

use super::FlowError;
use super::server::process_cpu_s;
use super::way::{Reader, Way, Writer};

const TOPIC: &str = "flow";
/// How long a reader waits for messages before it looks whether the flow has ended.
const WAIT: Duration = Duration::from_millis(20);

/// Producers and consumers of our library.
pub(super) struct Library {
    pub dsn: Dsn,
    pub partitions: usize,
    /// Batches of a writer that may be without acknowledgement.
    pub window: usize,
    /// Where the broker's socket is made; without, clients speak SQL.
    pub broker: Option<PathBuf>,
    /// The server's address as text, for the broker.
    pub dsn_text: String,
    /// The broker, once it runs.
    pub process: Mutex<Option<BrokerProcess>>,
}

/// A broker as a process of its own, as its command starts it. It is stopped when dropped.
pub(super) struct BrokerProcess(Child);

impl Drop for BrokerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Library {
    fn address(&self) -> Result<Address, FlowError> {
        Ok(match &self.broker {
            Some(socket) => Address::parse(&format!("unix:{}", socket.display()))?,
            None => Address::from(&self.dsn),
        })
    }

    fn start_broker(&self, socket: &Path) -> Result<BrokerProcess, FlowError> {
        let program = std::env::current_exe().map_err(|e| FlowError::Way(e.to_string()))?;
        let child = Command::new(program)
            .args(["pubsub", "serve", "--dsn", &self.dsn_text, "--listen"])
            .arg(format!("unix:{}", socket.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| FlowError::Way(format!("the broker could not be started: {e}")))?;
        let mut process = BrokerProcess(child);
        let until = Instant::now() + Duration::from_secs(30);
        while !socket.exists() {
            if let Ok(Some(status)) = process.0.try_wait() {
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
        // A writer has one partition, as those of the original, and so one connection.
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
            ..ConsumerOptions::default()
        };
        let group = format!("group-{group}");
        Ok(Box::new(LibraryReader {
            consumer: Some(Consumer::open(self.address()?, TOPIC, &group, options)?),
        }))
    }

    fn helpers_cpu_s(&self) -> f64 {
        let process = self.process.lock();
        let child = process.as_ref().ok().and_then(|process| process.as_ref());
        child.map_or(0.0, |process| process_cpu_s(process.0.id()))
    }
}

struct LibraryWriter {
    producer: Producer,
    partition: u32,
    window: usize,
    /// Messages of a batch, and the receipt of its last.
    under_way: VecDeque<(usize, Receipt)>,
}

impl LibraryWriter {
    /// Waits until at most `most` batches are without acknowledgement.
    fn settle(&mut self, most: usize, done: &mut dyn FnMut(usize)) -> Result<(), FlowError> {
        while let Some((count, receipt)) = self.under_way.front() {
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
        let mut last = None;
        for message in messages {
            let partition = Some(self.partition);
            last = Some(self.producer.send_with(None, message, &[], partition)?);
        }
        if let Some(receipt) = last {
            // Batches of a partition are acknowledged in order, so the last message stands for all.
            self.under_way.push_back((messages.len(), receipt));
        }
        self.settle(self.window - 1, done)
    }

    fn flush(&mut self, done: &mut dyn FnMut(usize)) -> Result<(), FlowError> {
        self.settle(0, done)
    }
}

struct LibraryReader {
    consumer: Option<Consumer>,
}

impl Reader for LibraryReader {
    fn poll(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> Result<usize, FlowError> {
        let Some(consumer) = &mut self.consumer else {
            return Ok(0);
        };
        let messages = consumer.poll(WAIT)?;
        for message in &messages {
            each(message.partition.unsigned_abs(), &message.value);
        }
        if !messages.is_empty() {
            consumer.commit()?;
        }
        Ok(messages.len())
    }

    fn close(&mut self) -> Result<(), FlowError> {
        match self.consumer.take() {
            Some(consumer) => Ok(consumer.close()?),
            None => Ok(()),
        }
    }
}
