//! Several brokers share a log: leases, and what happens when one is killed, or wakes up too late.

mod served;

use std::collections::HashMap;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::Code;
use dyno_pubsub_broker::Broker;
use served::{
    LEASE, Served, client, new_producer, produce_of, produced, read_all, served, topic_is, until,
};

const CHILD: &str = "DYNO_TEST_BROKER";

/// Not a test: the broker of another process, which the tests below start and kill.
#[test]
fn a_broker_in_a_process_of_its_own() {
    let Ok(text) = std::env::var(CHILD) else {
        return;
    };
    let (cluster, path) = text.split_once('|').unwrap();
    let address = dyno_net::Address::Unix(path.into());
    let dsn = dyno_postgres::attach(cluster.as_ref()).unwrap();
    let mut options = dyno_pubsub_broker::Options::new(dsn, address);
    options.lease = LEASE;
    let _broker = Broker::start(options).unwrap();
    loop {
        thread::park();
    }
}

struct Killed(Child);

impl Killed {
    fn start(served: &Served, socket: &str) -> Killed {
        let program = std::env::current_exe().expect("this test");
        let text = format!(
            "{}|{}",
            served.cluster.dir().display(),
            served.socket(socket).display()
        );
        let child = Command::new(program)
            .args(["--exact", "a_broker_in_a_process_of_its_own", "--nocapture"])
            .env(CHILD, text)
            .spawn()
            .expect("a process");
        Killed(child)
    }

    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        let status = Command::new("kill")
            .args([name, &pid])
            .status()
            .expect("kill");
        assert!(status.success());
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn held_by(served: &Served, topic_id: i32) -> Vec<Option<String>> {
    let partitions = served
        .connection()
        .partitions(topic_id)
        .expect("partitions");
    partitions.into_iter().map(|is| is.broker_address).collect()
}

#[test]
fn brokers_share_partitions_fairly_and_give_them_back() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 4);
    let mut first = served.broker("s1", 4);
    let second = served.broker("s2", 2);
    until(|| first.partitions().len() == 2);
    let mut addresses = held_by(&served, topic_id);
    addresses.sort();
    assert!(addresses[0] == addresses[1] && addresses[1] != addresses[2] && addresses[3].is_some());
    first.stop();
    until(|| second.partitions().len() == 4);
    assert!(second.partitions().iter().any(|(_, epoch)| *epoch >= 2));
}

#[test]
fn a_killed_brokers_partitions_are_taken_over() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 2);
    let killed = Killed::start(&served, "s1");
    until(|| held_by(&served, topic_id).iter().all(Option::is_some));
    let second = Broker::start(served.options("s2")).unwrap();
    until(|| second.partitions().len() == 1);
    killed.signal("-KILL");
    // When its lease has ended; how soon is measured by the check with kills, not here.
    until(|| second.partitions().len() == 2);
    let client = client(&second);
    let id = new_producer(&client);
    for partition in 0..2 {
        assert_eq!(
            produced(&client, &produce_of(topic_id, partition, id, 0, &[b"a"])).base_offset,
            0
        );
    }
}

/// The transaction has the row of one partition locked. A lease that was renewed there would lapse
/// for all, and appends to others would wait for that renewal.
#[test]
fn a_transaction_that_stays_open_takes_no_partition_from_its_broker() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 3);
    let broker = served.broker("s", 3);
    let held = || -> HashMap<_, _> { broker.partitions().into_iter().collect() };
    let before = held();
    let mut session = served.connection();
    let send = "BEGIN; SELECT pubsub.send('t', 'x', part => 1)";
    session.client().batch_execute(send).unwrap();
    let client = client(&broker);
    let id = new_producer(&client);
    let began = Instant::now();
    let mut sequence = 0;
    while began.elapsed() < 2 * LEASE {
        for partition in [0, 2] {
            let produce = produce_of(topic_id, partition, id, sequence, &[b"a"]);
            assert_eq!(produced(&client, &produce).base_offset, sequence);
        }
        sequence += 1;
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(held(), before);
    session.client().batch_execute("COMMIT").unwrap();
    let produce = produce_of(topic_id, 1, id, 0, &[b"a"]);
    assert_eq!(produced(&client, &produce).base_offset, 1);
}

#[test]
fn a_broker_that_slept_past_its_lease_appends_nothing_more() {
    let Some(served) = served("broker") else {
        return;
    };
    let topic_id = served.topic("t", 1);
    let sleeper = Killed::start(&served, "s1");
    until(|| held_by(&served, topic_id).iter().all(Option::is_some));
    let address = held_by(&served, topic_id)[0].clone().unwrap();
    let to_sleeper = dyno_pubsub::wire::Client::connect(&address, &Default::default()).unwrap();
    let id = new_producer(&to_sleeper);
    produced(&to_sleeper, &produce_of(topic_id, 0, id, 0, &[b"a"]));
    sleeper.signal("-STOP");
    let second = Broker::start(served.options("s2")).unwrap();
    until(|| second.partitions().len() == 1);
    let to_second = client(&second);
    assert_eq!(
        produced(&to_second, &produce_of(topic_id, 0, id, 1, &[b"b"])).base_offset,
        1
    );
    // What waits in its socket is the first thing that it sees when it wakes.
    let (answers, answered) = std::sync::mpsc::channel();
    to_sleeper.send(&produce_of(topic_id, 0, id, 1, &[b"late"]), move |answer| {
        answers.send(answer).unwrap();
    });
    sleeper.signal("-CONT");
    let late = answered.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(late.unwrap_err().kind(), Code::Fenced);
    let all = read_all(&to_second, topic_id, 0, 0, 2);
    assert_eq!(all, [(0, b"a".to_vec()), (1, b"b".to_vec())]);
    assert_eq!(topic_is(&to_second, "t").partitions[0].next_offset, 2);
}
