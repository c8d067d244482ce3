//! A private PostgreSQL server, a broker, and a server for Kafka's clients.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use dyno_net::Address;
use dyno_postgres::{Cluster, Options as ClusterOptions};
use dyno_pubsub::{Connection, Dsn, TopicOptions};
use dyno_pubsub_broker::{Broker, Options as BrokerOptions};
use dyno_pubsub_kafka::{KafkaServer, Options};
use dyno_serve::Token;
use tempfile::TempDir;

/// All of it, gone with the value: the server first, the database last.
pub struct Served {
    pub kafka: KafkaServer,
    pub broker: Broker,
    pub cluster: Cluster,
    pub folder: TempDir,
}

impl Served {
    /// `None`, with a line that says so, where there is no PostgreSQL.
    pub fn start(what: &str, token: Option<&str>) -> Option<Served> {
        let folder = tempfile::Builder::new()
            .prefix("dyno-kafka-")
            .tempdir_in("/tmp")
            .expect("a folder");
        let opened = Cluster::open(&folder.path().join("pg"), ClusterOptions::small());
        let cluster = match opened {
            Ok(cluster) => cluster,
            Err(error) => {
                println!("skipped: {what}: {error}");
                return None;
            }
        };
        Connection::open(&cluster.dsn())
            .expect("a server")
            .install()
            .expect("the schema");
        let (broker, kafka) = front(&cluster.dsn(), folder.path(), "broker.sock", token);
        Some(Served {
            kafka,
            broker,
            cluster,
            folder,
        })
    }

    pub fn address(&self) -> String {
        self.kafka.address().to_string()
    }

    pub fn connection(&self) -> Connection {
        Connection::open(&self.cluster.dsn()).expect("a server")
    }

    /// Creates a topic, and waits until the broker has its partitions.
    pub fn topic(&self, name: &str, partitions: u32) {
        let options = TopicOptions {
            partitions,
            ..TopicOptions::default()
        };
        let before = self.broker.partitions().len();
        self.connection()
            .create_topic(name, &options)
            .expect("a topic");
        until(|| self.broker.partitions().len() == before + partitions as usize);
    }
}

/// A broker and a server in front of it.
pub fn front(dsn: &Dsn, folder: &Path, socket: &str, token: Option<&str>) -> (Broker, KafkaServer) {
    leased(dsn, folder, socket, token, Duration::from_millis(1500))
}

/// The same with another lease.
pub fn leased(
    dsn: &Dsn,
    folder: &Path,
    socket: &str,
    token: Option<&str>,
    lease: Duration,
) -> (Broker, KafkaServer) {
    let token = token.map(|token| Token::new(token).expect("a token"));
    let socket = Address::Unix(folder.join(socket));
    let mut options = BrokerOptions::new(dsn.clone(), socket.clone());
    options.lease = lease;
    options.token.clone_from(&token);
    let broker = Broker::start(options).expect("a broker");
    let kafka = KafkaServer::start(Options {
        token,
        lease,
        ..Options::new(
            dsn.clone(),
            socket,
            "127.0.0.1:0".parse().expect("an address"),
        )
    });
    (broker, kafka.expect("a server for Kafka's clients"))
}

pub fn until(condition: impl Fn() -> bool) {
    for _ in 0..6000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it did not come about within thirty seconds");
}

/// Runs a client to its end with this input, and returns what it prints.
pub fn ok(command: &mut Command, input: &str) -> String {
    let output = run(command, input);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

pub fn run(command: &mut Command, input: &str) -> Output {
    use std::io::Write;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    let writing = std::thread::spawn(move || {
        // A client that ends early does not read all of it.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().expect("it ends");
    writing.join().expect("no panic");
    output
}

/// The Python of an environment that `scripts/test` makes; `None`, with a line that says so, where
/// it did not.
pub fn interpreter(environment: &str, what: &str) -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
    let python = data
        .or_else(home)?
        .join(format!("dynolab/peers/{environment}/venv/bin/python"));
    if !python.exists() {
        println!("skipped: {what}: {} is not there", python.display());
        return None;
    }
    Some(python)
}
