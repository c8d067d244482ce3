//! A server whose database is held up by others, or changes between two questions.

#[path = "clients/served.rs"]
#[allow(dead_code, reason = "this program uses its part of it")]
mod served;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use served::{Served, until};

/// Far longer than anything here takes on a busy machine.
const SOON: Duration = Duration::from_secs(30);
const COORDINATOR_NOT_AVAILABLE: i16 = 15;

/// Sends a request without a client id over a connection of its own.
fn send(served: &Served, key: i16, version: i16, body: &[u8]) -> TcpStream {
    let mut request = [key.to_be_bytes(), version.to_be_bytes()].concat();
    request.extend(7_i32.to_be_bytes());
    request.extend((-1_i16).to_be_bytes());
    request.extend(body);
    let length = (request.len() as u32).to_be_bytes();
    let mut socket = TcpStream::connect(served.kafka.address()).expect("a listener");
    socket.set_read_timeout(Some(SOON)).expect("a timeout");
    let framed = [&length[..], &request].concat();
    socket.write_all(&framed).expect("written");
    socket
}

/// A response from the number of its request on.
fn response(mut socket: TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    socket.read_exact(&mut length).expect("an answer");
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    socket.read_exact(&mut answer).expect("a whole answer");
    answer
}

/// Waits until so many statements that name this wait for a lock.
fn until_waiting(served: &Served, named: &str, statements: i64) {
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                    WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1::text || '%'";
    until(|| {
        let row = served.connection().client().query_one(waiting, &[&named]);
        row.expect("an answer").get::<_, i64>(0) == statements
    });
}

/// Four requests wait for a lock, in all the sessions that requests have.
#[test]
fn a_transaction_that_stays_open_stops_neither_the_lease_nor_requests_for_ever() {
    let Some(served) = Served::start("a lock that stays", None) else {
        return;
    };
    // InitProducerId in version 0: a transactional id, and a minute for its transactions.
    let init = || {
        let mut body = vec![0_u8, 6];
        body.extend(b"teller");
        body.extend(60_000_i32.to_be_bytes());
        send(&served, 22, 0, &body)
    };
    let code = |answer: &[u8]| i16::from_be_bytes([answer[8], answer[9]]);
    assert_eq!(code(&response(init())), 0);
    let mut holder = served.connection();
    let mut held = holder.client().transaction().expect("a transaction");
    held.execute("SELECT FROM pubsub.kafka_transactions FOR UPDATE", &[])
        .expect("a lock");
    let first = init();
    until_waiting(&served, "kafka_init_producer", 1);
    let others: Vec<TcpStream> = (0..3).map(|_| init()).collect();
    until_waiting(&served, "kafka_init_producer", 4);
    let leased_until = || {
        let query = "SELECT lease_until::text FROM pubsub.kafka_nodes";
        let row = served.connection().client().query_one(query, &[]);
        row.expect("a server").get::<_, String>(0)
    };
    let before = leased_until();
    until(|| leased_until() != before);
    // The client is told to ask again while the lock is still there.
    assert_eq!(code(&response(first)), COORDINATOR_NOT_AVAILABLE);
    held.rollback().expect("the lock goes");
    drop(others);
}

/// Neither was found when the offsets that are stored were asked for first, and a member went on
/// from where its predecessor had begun.
#[test]
fn offsets_of_a_transaction_that_ends_meanwhile_are_found() {
    let Some(served) = Served::start("offsets of a transaction that ends", None) else {
        return;
    };
    served.topic("t", 1);
    // OffsetFetch in version 7: group g, all of its partitions, stable offsets only.
    let ask = || send(&served, 9, 7, &[0, 2, b'g', 0, 1, 0]);
    // The first request makes the group.
    response(ask());
    let mut connection = served.connection();
    let row = connection.client().query_one(
        "SELECT t.topic_id, n.node_id, p.producer_id, p.producer_epoch \
           FROM pubsub.topics AS t, pubsub.kafka_nodes AS n, \
                pubsub.kafka_init_producer('teller', 60000, -1, -1) AS p",
        &[],
    );
    let row = row.expect("a producer");
    let (topic, node): (i32, i32) = (row.get(0), row.get(1));
    let (producer_id, epoch): (i64, i32) = (row.get(2), row.get(3));
    let producer = format!("'teller', {producer_id}, {epoch}");
    let before = format!("ARRAY[{topic}], ARRAY[0], ARRAY[2::bigint], ARRAY[''::bytea]");
    let after = format!("ARRAY[{topic}], ARRAY[0], ARRAY[5::bigint], ARRAY[''::bytea]");
    let statements = format!(
        "SELECT pubsub.kafka_commit('g', {node}, {before}); \
         SELECT pubsub.kafka_begin({producer}); \
         SELECT pubsub.kafka_stage_offsets({producer}, 'g', {after});"
    );
    connection
        .client()
        .batch_execute(&statements)
        .expect("a transaction");

    let mut held = connection.client().transaction().expect("a transaction");
    held.batch_execute("LOCK TABLE pubsub.kafka_staged_offsets IN ACCESS EXCLUSIVE MODE")
        .expect("a lock");
    let asked = ask();
    until_waiting(&served, "kafka_staged_offsets", 1);
    held.batch_execute(&format!("SELECT pubsub.kafka_end({producer}, true)"))
        .expect("an end");
    held.commit().expect("a commit");
    let answer = response(asked);
    // Behind the name of the topic and the number of the partition.
    let offset = answer[17..].first_chunk().expect("an offset");
    assert_eq!(i64::from_be_bytes(*offset), 5);
}
