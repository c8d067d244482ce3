//! The Python client over librdkafka that its makers ship today, and one in pure Python.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use dyno_pubsub::{Address, Producer, ProducerOptions};

use crate::served::{Served, front, interpreter, ok, until};

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/clients")
        .join(name)
}

fn python(what: &str) -> Option<PathBuf> {
    interpreter("kafka-clients", what)
}

#[test]
fn a_client_administers_produces_consumes_and_commits() {
    let what = "confluent-kafka works";
    let (Some(python), Some(served)) = (python(what), Served::start(what, None)) else {
        return;
    };
    let mut command = Command::new(&python);
    command.arg(script("confluent.py")).arg(served.address());
    let said = ok(&mut command, "");
    assert!(said.ends_with("good\n"), "{said}");
}

#[test]
fn a_client_in_another_language_of_the_protocol_agrees() {
    let what = "kafka-python works";
    let (Some(python), Some(served)) = (python(what), Served::start(what, None)) else {
        return;
    };
    let mut command = Command::new(&python);
    command.arg(script("pure.py")).arg(served.address());
    let said = ok(&mut command, "");
    assert!(said.ends_with("good\n"), "{said}");
}

/// A server that ends gives its groups and partitions to the other one, and members that knew both
/// go on there.
#[test]
fn a_group_goes_on_at_another_server() {
    let what = "confluent-kafka outlives a server";
    let (Some(python), Some(served)) = (python(what), Served::start(what, None)) else {
        return;
    };
    served.topic("moving", 4);
    let (broker, kafka) = front(
        &served.cluster.dsn(),
        served.folder.path(),
        "second.sock",
        None,
    );
    until(|| broker.partitions().len() == 2);
    let mut command = Command::new(&python);
    let both = format!("{},{}", served.address(), kafka.address());
    command.arg(script("moving.py")).arg(both);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut said = std::io::BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    // It says when the first half has been read and committed.
    std::io::BufRead::read_line(&mut said, &mut line).expect("a line");
    assert_eq!(line, "half\n");
    let Served {
        kafka: first,
        broker: first_broker,
        cluster: _cluster,
        folder: _folder,
    } = served;
    drop(first);
    drop(first_broker);
    drop(child.stdin.take());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut said, &mut rest).expect("text");
    assert!(child.wait().expect("it ends").success(), "{rest}");
    assert!(rest.ends_with("good\n"), "{rest}");
}

/// kafka-python and librdkafka choose partitions by themselves. What they choose is what the
/// library, with and without a broker, and SQL choose for the same topic.
#[test]
fn a_key_goes_to_the_same_partition_from_every_side() {
    let what = "clients and SQL choose the same partitions";
    let (Some(python), Some(served)) = (python(what), Served::start(what, None)) else {
        return;
    };
    let mut command = Command::new(&python);
    command.arg(script("partitions.py")).arg(served.address());
    let said = ok(&mut command, "");
    assert!(said.ends_with("good\n"), "{said}");
    let chosen: Vec<(&str, i32)> = said
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(key, partition)| (key, partition.parse().expect("a number")))
        .collect();
    let all: BTreeSet<i32> = chosen.iter().map(|(_, partition)| *partition).collect();
    assert_eq!(all, (0..5).collect(), "keys that tell partitions apart");

    let broker = Address::Broker(served.broker.addresses()[0].to_string());
    let direct = Address::Server(Box::new(served.cluster.dsn()));
    for address in [broker, direct] {
        let producer =
            Producer::open(address, "shared", ProducerOptions::default()).expect("a producer");
        for (key, partition) in &chosen {
            let receipt = producer.send(Some(key.as_bytes()), b"x").expect("room");
            let place = receipt.wait().expect("an acknowledgement");
            assert_eq!(place.partition, *partition, "{key:?}");
        }
    }
    let mut connection = served.connection();
    let send = "SELECT partition FROM pubsub.send('shared', 'x', key => convert_to($1, 'UTF8'))";
    let batch = "SELECT partition FROM pubsub.send_batch('shared', ARRAY['x'::bytea], \
                 keys => ARRAY[convert_to($1, 'UTF8')])";
    for (key, partition) in &chosen {
        for query in [send, batch] {
            let row = connection.client().query_one(query, &[key]);
            let row = row.expect("a partition");
            assert_eq!(row.get::<_, i32>(0), *partition, "{key:?}");
        }
    }
}

#[test]
fn records_are_deleted_up_to_an_offset_and_the_beginning_follows() {
    let what = "kafka-python and confluent-kafka delete records";
    let (Some(python), Some(served)) = (python(what), Served::start(what, None)) else {
        return;
    };
    let mut command = Command::new(&python);
    command.arg(script("deletion.py")).arg(served.address());
    let said = ok(&mut command, "");
    assert!(said.ends_with("good\n"), "{said}");
}

#[test]
fn a_restarted_static_member_keeps_its_partitions() {
    let what = "confluent-kafka's static members keep their partitions";
    let (Some(python), Some(served)) = (python(what), Served::start(what, None)) else {
        return;
    };
    let mut command = Command::new(&python);
    command.arg(script("static.py")).arg(served.address());
    let said = ok(&mut command, "");
    assert!(said.ends_with("good\n"), "{said}");
}

#[test]
fn a_transaction_is_read_as_a_whole_or_not_at_all() {
    let what = "confluent-kafka's transactions are committed as a whole";
    let (Some(python), Some(served)) = (python(what), Served::start(what, None)) else {
        return;
    };
    let mut command = Command::new(&python);
    command.arg(script("transactions.py")).arg(served.address());
    let said = ok(&mut command, "");
    assert!(said.ends_with("good\n"), "{said}");
}
