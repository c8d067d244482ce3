//! The processes of a run, and the replacement of those that are killed.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::servers::{self, NAME};
use super::{Mode, Options, Recorder, RunError};
use crate::child::{
    BrokerJob, ConsumeJob, Ended, Job, Process, ProduceJob, SendJob, Speech, WorkJob, kafka,
};

const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// All processes that can be killed.
#[derive(Debug)]
pub struct Clients {
    program: Vec<String>,
    /// What producers and consumers run, which for Kafka is not our program.
    client: Vec<String>,
    dir: PathBuf,
    recorder: Arc<Recorder>,
    template: Template,
    /// The number of processes started so far, which numbers each of them.
    lives: u32,
    pub brokers: Vec<Process>,
    pub producers: Vec<Process>,
    pub consumers: Vec<Process>,
}

/// What jobs are made of.
#[derive(Debug)]
struct Template {
    mode: Mode,
    server: String,
    partitions: u32,
    groups: u32,
    rate: u32,
    value_bytes: usize,
    lease_ms: u64,
    brokers: usize,
    careless: bool,
    /// Where each broker serves clients of Kafka, if that is judged.
    kafka: Vec<SocketAddr>,
}

impl Clients {
    /// Starts brokers, then consumers, then producers.
    pub fn start(
        options: &Options,
        server: &str,
        recorder: &Arc<Recorder>,
    ) -> Result<Self, RunError> {
        let (client, kafka) = match options.mode {
            Mode::Kafka => (kafka_client(options)?, kafka_addresses(options)?),
            _ => (options.program.clone(), Vec::new()),
        };
        let mut clients = Self {
            program: options.program.clone(),
            client,
            dir: options.dir.clone(),
            recorder: recorder.clone(),
            template: Template {
                mode: options.mode,
                server: server.to_owned(),
                partitions: options.partitions,
                groups: options.groups,
                rate: options.rate,
                value_bytes: options.value_bytes,
                lease_ms: options.lease_ms,
                brokers: options.brokers,
                careless: options.careless,
                kafka,
            },
            lives: 0,
            brokers: Vec::new(),
            producers: Vec::new(),
            consumers: Vec::new(),
        };
        if options.mode.has_brokers() {
            for at in 0..options.brokers {
                let broker = clients.broker(at)?;
                clients.brokers.push(broker);
            }
        }
        for at in 0..clients.consumer_count(options) {
            let consumer = clients.consumer(at)?;
            clients.consumers.push(consumer);
        }
        for at in 0..options.producers {
            let producer = clients.producer(at)?;
            clients.producers.push(producer);
        }
        Ok(clients)
    }

    fn consumer_count(&self, options: &Options) -> usize {
        match options.mode {
            Mode::Queue => options.consumers,
            _ => options.consumers * options.groups as usize,
        }
    }

    /// Kills a producer with SIGKILL and starts another in its place.
    pub fn replace_producer(&mut self, at: usize) -> Result<(), RunError> {
        // One that has ended by itself must not pass for one that was killed.
        self.look();
        self.producers.swap_remove(at).kill()?;
        let new = self.producer(at)?;
        self.producers.push(new);
        Ok(())
    }

    /// Kills a consumer with SIGKILL and starts another of its group in its place.
    pub fn replace_consumer(&mut self, at: usize) -> Result<(), RunError> {
        self.look();
        // The new one is started first, so it may join while the dead one still owns partitions,
        // which the group then has to take away.
        let new = self.consumer(at)?;
        std::mem::replace(&mut self.consumers[at], new).kill()?;
        Ok(())
    }

    /// Kills a broker with SIGKILL, and starts another in its place after `away`.
    pub fn kill_broker(&mut self, at: usize, away: Duration) -> Result<(), RunError> {
        self.look();
        let broker = self.brokers.remove(at);
        broker.kill()?;
        std::thread::sleep(away);
        let new = self.broker(at)?;
        self.brokers.insert(at, new);
        Ok(())
    }

    /// Records as a trouble every process that has ended by itself.
    pub fn look(&mut self) {
        let all = self.producers.iter_mut().chain(&mut self.consumers);
        for process in all.chain(&mut self.brokers) {
            if let Some(complaint) = process.complaint() {
                self.recorder.trouble(complaint);
            }
        }
    }

    /// Asks processes to stop and waits until they have.
    pub fn stop(recorder: &Recorder, mut processes: Vec<Process>) -> Result<(), RunError> {
        // All are asked before the first is waited for, so that they stop side by side.
        processes.iter_mut().for_each(Process::ask);
        for process in processes {
            if let Ended::ByItself(words) = process.wait(STOP_TIMEOUT)? {
                recorder.trouble(words);
            }
        }
        Ok(())
    }

    fn life(&mut self) -> u32 {
        self.lives += 1;
        self.lives
    }

    fn spawn(&self, name: &str, job: &Job) -> Result<Process, RunError> {
        let program = match job {
            Job::Broker(_) => &self.program,
            _ => &self.client,
        };
        let started = Process::start(program, job, name, &self.dir, &self.recorder);
        Ok(started?)
    }

    /// The address that client number `at` connects to, and the interface that it uses.
    fn way(&self, at: usize) -> (String, Speech) {
        let template = &self.template;
        match template.mode {
            Mode::Broker => {
                let broker = servers::broker_socket(&self.dir, at % template.brokers.max(1));
                (format!("unix:{}", broker.display()), Speech::Library)
            }
            Mode::Sql | Mode::Queue => (template.server.clone(), Speech::Sql),
            Mode::Direct => (template.server.clone(), Speech::Library),
            Mode::Kafka => {
                let all: Vec<String> = template.kafka.iter().map(ToString::to_string).collect();
                (all.join(","), Speech::Kafka)
            }
        }
    }

    fn producer(&mut self, at: usize) -> Result<Process, RunError> {
        let life = self.life();
        let (endpoint, speech) = self.way(at);
        let Template {
            rate, value_bytes, ..
        } = self.template;
        let job = if self.template.mode == Mode::Queue {
            Job::Send(SendJob {
                endpoint,
                queue: NAME.to_owned(),
                producer: life,
                rate,
                value_bytes,
            })
        } else {
            Job::Produce(ProduceJob {
                speech,
                endpoint,
                topic: NAME.to_owned(),
                partitions: self.template.partitions,
                producer: life,
                rate,
                value_bytes,
                careless: self.template.careless,
            })
        };
        self.spawn(&format!("producer{life}"), &job)
    }

    fn consumer(&mut self, at: usize) -> Result<Process, RunError> {
        let life = self.life();
        let (endpoint, speech) = self.way(at);
        let job = if self.template.mode == Mode::Queue {
            Job::Work(WorkJob {
                endpoint,
                queue: NAME.to_owned(),
                worker: life,
            })
        } else {
            let group = at as u32 % self.template.groups;
            Job::Consume(ConsumeJob {
                speech,
                endpoint,
                topic: NAME.to_owned(),
                group,
                group_name: format!("g{group}"),
                member: life,
                lease_ms: self.template.lease_ms,
                careless: self.template.careless,
            })
        };
        self.spawn(&format!("consumer{life}"), &job)
    }

    fn broker(&mut self, at: usize) -> Result<Process, RunError> {
        let life = self.life();
        let unix = |path: PathBuf| format!("unix:{}", path.display());
        let job = Job::Broker(BrokerJob {
            dsn: self.template.server.clone(),
            listen: unix(servers::behind_front(&self.dir, at)),
            advertise: unix(servers::broker_socket(&self.dir, at)),
            kafka: self.template.kafka.get(at).copied(),
            lease_ms: self.template.lease_ms,
        });
        self.spawn(&format!("broker{life}"), &job)
    }
}

/// The program that is a client of Kafka.
fn kafka_client(options: &Options) -> Result<Vec<String>, RunError> {
    let python = &options.python;
    let failed = |reason: String| {
        let text = format!("{} is not a client of Kafka: {reason}", python.display());
        RunError::Options(text)
    };
    // Without the package every client would end by itself, each with a trace instead of a reason.
    let imported = Command::new(python)
        .args(["-c", "import confluent_kafka"])
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !imported.status.success() {
        return Err(failed("it has no package confluent-kafka".to_owned()));
    }
    kafka::program(python, &options.dir).map_err(|error| failed(error.to_string()))
}

/// An address for each broker, which it keeps over its lives, as the clients are told all of them
/// at the beginning.
fn kafka_addresses(options: &Options) -> Result<Vec<SocketAddr>, RunError> {
    let address = |_| Ok(SocketAddr::from(([127, 0, 0, 1], dyno_ports::free()?)));
    let all: io::Result<Vec<SocketAddr>> = (0..options.brokers).map(address).collect();
    all.map_err(|error| RunError::Options(format!("no port for a broker: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Replace = fn(&mut Clients) -> Result<(), RunError>;

    /// Clients whose every process ends by itself.
    fn failing(dir: PathBuf, recorder: &Arc<Recorder>) -> Clients {
        let program: Vec<String> = ["sh", "-c", "exit 3"].map(str::to_owned).into();
        Clients {
            client: program.clone(),
            program,
            dir,
            recorder: recorder.clone(),
            template: Template {
                mode: Mode::Direct,
                server: String::new(),
                partitions: 1,
                groups: 1,
                rate: 1,
                value_bytes: 100,
                lease_ms: 1000,
                brokers: 1,
                careless: false,
                kafka: Vec::new(),
            },
            lives: 0,
            brokers: Vec::new(),
            producers: Vec::new(),
            consumers: Vec::new(),
        }
    }

    #[test]
    fn a_process_that_ended_by_itself_is_a_trouble_and_not_a_kill() {
        let replacements: [(&str, Replace); 3] = [
            ("producer1", |clients| clients.replace_producer(0)),
            ("consumer2", |clients| clients.replace_consumer(0)),
            ("broker3", |clients| clients.kill_broker(0, Duration::ZERO)),
        ];
        for (at, (name, replace)) in replacements.into_iter().enumerate() {
            let dir = tempfile::tempdir().expect("a folder");
            let recorder = Arc::new(Recorder::new(10));
            let mut clients = failing(dir.path().to_owned(), &recorder);
            let mut all = [
                clients.producer(0).expect("a producer"),
                clients.consumer(0).expect("a consumer"),
                clients.broker(0).expect("a broker"),
            ];
            while all[at].complaint().is_none() {
                std::thread::sleep(Duration::from_millis(2));
            }
            let [producer, consumer, broker] = all;
            clients.producers.push(producer);
            clients.consumers.push(consumer);
            clients.brokers.push(broker);
            replace(&mut clients).expect("another process");
            let troubles = recorder.troubles();
            let text = format!("{name} ended by itself (exit status: 3)");
            let told = troubles.iter().any(|trouble| trouble.starts_with(&text));
            assert!(told, "{troubles:?}");
        }
    }
}
