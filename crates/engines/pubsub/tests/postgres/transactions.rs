//! Transactions of Kafka's producers, as the functions in the database keep them.

use std::time::{Duration, Instant};

use dyno_pubsub::{Connection, TopicOptions, TopicPartition, TransactionalProducer};

use super::server::Server;

const NAME: &str = "teller";
const REPEATED_OR_DONE: i32 = 0;
const UNKNOWN_PARTITION: i32 = 3;
const OUT_OF_ORDER: i32 = 45;
const WRONG_EPOCH: i32 = 47;
const NOT_UNDER_WAY: i32 = 48;
const FENCED: i32 = 90;

/// A producer with its sessions.
struct Teller {
    connection: Connection,
    producer_id: i64,
    epoch: i16,
}

impl Teller {
    fn init(connection: Connection) -> Teller {
        let mut teller = Teller {
            connection,
            producer_id: -1,
            epoch: -1,
        };
        teller.init_again(-1, -1);
        teller
    }

    fn init_again(&mut self, had_id: i64, had_epoch: i32) {
        let query = "SELECT error, producer_id, producer_epoch \
                       FROM pubsub.kafka_init_producer($1, 60000, $2, $3)";
        let row = self
            .connection
            .client()
            .query_one(query, &[&NAME, &had_id, &had_epoch])
            .unwrap();
        assert_eq!(row.get::<_, i32>(0), 0);
        self.producer_id = row.get(1);
        self.epoch = i16::try_from(row.get::<_, i32>(2)).unwrap();
    }

    fn ask(&mut self, call: &str) -> i32 {
        let call = format!("SELECT pubsub.kafka_{call}");
        let (producer, epoch) = (self.producer_id, i32::from(self.epoch));
        let row = self
            .connection
            .client()
            .query_one(&call, &[&NAME, &producer, &epoch]);
        row.unwrap().get(0)
    }

    fn begin(&mut self) -> i32 {
        self.ask("begin($1, $2, $3)")
    }

    fn commit(&mut self) -> i32 {
        self.ask("end($1, $2, $3, true)")
    }

    fn abort(&mut self) -> i32 {
        self.ask("end($1, $2, $3, false)")
    }

    fn stage(&mut self, topic_id: i32, partition: i32, first: i64, values: &[&[u8]]) -> i32 {
        let producer = TransactionalProducer {
            transactional_id: NAME,
            producer_id: self.producer_id,
            epoch: self.epoch,
        };
        let key = TopicPartition {
            topic_id,
            partition,
        };
        // The epoch is part of the sequences, as the front makes them.
        let first = (i64::from(self.epoch) << dyno_pubsub::EPOCH_SHIFT) + first;
        let mut batch = super::batch(self.producer_id, first, values);
        self.connection.stage(producer, key, &mut batch).unwrap()
    }
}

fn values(server: &Server, topic_id: i32) -> Vec<Vec<u8>> {
    let all = super::read_all(&mut server.connect(), topic_id, 0, 0).into_iter();
    all.map(|(_, record)| record.value.to_vec()).collect()
}

#[test]
fn what_is_staged_is_appended_once_in_order_or_never() {
    let server = Server::alone();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut teller = Teller::init(server.connect());
    assert_eq!(teller.stage(topic_id, 0, 0, &[b"early"]), NOT_UNDER_WAY);
    assert_eq!(teller.commit(), NOT_UNDER_WAY);
    assert_eq!(teller.begin(), 0);
    assert_eq!(teller.begin(), 0);
    assert_eq!(teller.stage(topic_id, 0, 0, &[b"a", b"b"]), 0);
    assert_eq!(teller.stage(topic_id, 0, 3, &[b"d"]), OUT_OF_ORDER);
    assert_eq!(
        teller.stage(topic_id, 0, 0, &[b"a", b"b"]),
        REPEATED_OR_DONE
    );
    assert_eq!(teller.stage(topic_id, 0, 2, &[b"c"]), 0);
    assert_eq!(teller.stage(topic_id, 99, 0, &[b"x"]), UNKNOWN_PARTITION);
    assert!(values(&server, topic_id).is_empty());
    assert_eq!(teller.commit(), 0);
    // A commit whose answer got lost is asked for again; an abort then comes too late.
    assert_eq!(teller.commit(), REPEATED_OR_DONE);
    assert_eq!(teller.abort(), NOT_UNDER_WAY);
    assert_eq!(values(&server, topic_id), [b"a", b"b", b"c"]);

    // Sequences go on behind those of an aborted transaction.
    assert_eq!(teller.begin(), 0);
    assert_eq!(teller.stage(topic_id, 0, 3, &[b"gone", b"gone"]), 0);
    assert_eq!(teller.abort(), 0);
    assert_eq!(teller.begin(), 0);
    assert_eq!(teller.stage(topic_id, 0, 5, &[b"d"]), 0);
    assert_eq!(teller.commit(), 0);
    assert_eq!(values(&server, topic_id), [b"a", b"b", b"c", b"d"]);
}

#[test]
fn a_later_producer_of_the_name_refuses_the_earlier_one() {
    let server = Server::alone();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut first = Teller::init(server.connect());
    assert_eq!(first.begin(), 0);
    assert_eq!(first.stage(topic_id, 0, 0, &[b"lost"]), 0);
    let mut second = Teller::init(server.connect());
    assert_eq!(
        (second.producer_id, second.epoch),
        (first.producer_id, first.epoch + 1)
    );
    // The earlier one asks for an epoch with its own, and must not be given that of the later one.
    let refused = first.connection.client().query_one(
        "SELECT error FROM pubsub.kafka_init_producer($1, 60000, $2, $3)",
        &[&NAME, &first.producer_id, &i32::from(first.epoch)],
    );
    assert_eq!(refused.unwrap().get::<_, i32>(0), FENCED);
    assert_eq!(first.stage(topic_id, 0, 1, &[b"late"]), WRONG_EPOCH);
    assert_eq!(first.commit(), FENCED);
    assert_eq!(second.begin(), 0);
    // A new epoch counts from 0 again.
    assert_eq!(second.stage(topic_id, 0, 0, &[b"kept"]), 0);
    assert_eq!(second.commit(), 0);
    assert_eq!(values(&server, topic_id), [b"kept"]);
    // A producer that goes on after an error raises its own epoch, once however often it asks.
    let (producer, epoch) = (second.producer_id, second.epoch);
    second.init_again(producer, i32::from(epoch));
    second.init_again(producer, i32::from(epoch));
    assert_eq!((second.producer_id, second.epoch), (producer, epoch + 1));
}

/// A crash of the server empties the tables in which batches are kept aside. A commit that appended
/// what is left would lose acknowledged records.
#[test]
fn a_transaction_that_lost_something_in_a_crash_is_not_committed() {
    let server = Server::alone();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut teller = Teller::init(server.connect());
    assert_eq!(teller.begin(), 0);
    assert_eq!(teller.stage(topic_id, 0, 0, &[b"lost"]), 0);
    let mut victim = server.connect();
    let pid: i32 = victim
        .client()
        .query_one("SELECT pg_backend_pid()", &[])
        .unwrap()
        .get(0);
    // A backend that is killed takes the whole server down, which then recovers by itself.
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status();
    assert!(killed.unwrap().success());
    let until = Instant::now() + Duration::from_secs(30);
    teller.connection = loop {
        std::thread::sleep(Duration::from_millis(200));
        match Connection::open(&server.dsn) {
            Ok(connection) => break connection,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    };
    assert_eq!(teller.stage(topic_id, 0, 1, &[b"rest"]), NOT_UNDER_WAY);
    assert_eq!(teller.commit(), FENCED);
    assert!(values(&server, topic_id).is_empty());
    let mut next = Teller::init(server.connect());
    assert_eq!(next.begin(), 0);
    assert_eq!(next.stage(topic_id, 0, 0, &[b"again"]), 0);
    assert_eq!(next.commit(), 0);
    assert_eq!(values(&server, topic_id), [b"again"]);
}
