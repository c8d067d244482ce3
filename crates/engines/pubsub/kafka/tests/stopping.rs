//! A server that stops answers what it has read.

#[path = "clients/served.rs"]
#[allow(dead_code, reason = "this program uses its part of it")]
mod served;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{ProduceRequest, ProduceResponse, RequestHeader, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kafka_protocol::records::{
    Compression, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Record,
    RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use served::{Served, leased, until};

/// The version of Produce in which all of this is said.
const VERSION: i16 = 3;
/// Far longer than the test takes. The broker cannot renew it while an append is held up.
const LEASE: Duration = Duration::from_secs(60);

/// A batch of one record by a producer that is not idempotent.
fn batch() -> Bytes {
    let record = Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
        producer_id: NO_PRODUCER_ID,
        producer_epoch: NO_PRODUCER_EPOCH,
        timestamp_type: TimestampType::Creation,
        offset: 0,
        sequence: 0,
        timestamp: 1_700_000_000_000,
        key: None,
        value: Some(Bytes::from_static(b"once")),
        headers: Default::default(),
    };
    let options = RecordEncodeOptions {
        version: 2,
        compression: Compression::None,
    };
    let mut bytes = BytesMut::new();
    RecordBatchEncoder::encode(&mut bytes, [&record], &options).expect("a batch");
    bytes.freeze()
}

/// A request that appends the batch to partition 0, its length in front.
fn produce(topic: &'static str) -> Vec<u8> {
    let partition = PartitionProduceData::default()
        .with_index(0)
        .with_records(Some(batch()));
    let topic = TopicProduceData::default()
        .with_name(TopicName(StrBytes::from_static_str(topic)))
        .with_partition_data(vec![partition]);
    let request = ProduceRequest::default()
        .with_acks(1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic]);
    let header = RequestHeader::default()
        .with_request_api_key(0)
        .with_request_api_version(VERSION)
        .with_correlation_id(7);
    let mut bytes = BytesMut::new();
    header.encode(&mut bytes, 1).expect("a header");
    request.encode(&mut bytes, VERSION).expect("a request");
    [&(bytes.len() as u32).to_be_bytes(), &bytes[..]].concat()
}

fn response(socket: &mut TcpStream) -> std::io::Result<ProduceResponse> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    socket.read_exact(&mut answer)?;
    // The number of the request is in front.
    let mut body = Bytes::from(answer).slice(4..);
    Ok(ProduceResponse::decode(&mut body, VERSION).expect("a response"))
}

/// Without the answer the client would send its record again, and it would be in the log twice.
#[test]
fn records_that_were_read_before_a_stop_are_acknowledged() {
    let what = "a stop of Kafka's server acknowledges";
    let Some(mut served) = Served::start(what, None) else {
        return;
    };
    served.topic("slow", 1);
    served.kafka.stop();
    served.broker.stop();
    let (dsn, folder) = (served.cluster.dsn(), served.folder.path().to_owned());
    (served.broker, served.kafka) = leased(&dsn, &folder, "slow.sock", None, LEASE);
    until(|| served.broker.partitions().len() == 1);

    let mut holder = served.connection();
    let mut held = holder.client().transaction().expect("a transaction");
    held.execute("SELECT FROM pubsub.partitions FOR UPDATE", &[])
        .expect("a lock");
    let address = served.kafka.address();
    let mut socket = TcpStream::connect(address).expect("a listener");
    socket.write_all(&produce("slow")).expect("written");
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity \
                  WHERE wait_event_type = 'Lock' AND query LIKE '%append_%')";
    until(|| {
        let row = served.connection().client().query_one(waits, &[]);
        row.expect("an answer").get(0)
    });
    std::thread::scope(|scope| {
        scope.spawn(|| served.kafka.stop());
        until(|| TcpStream::connect(address).is_err());
        held.rollback().expect("the lock goes");
    });
    let answered = response(&mut socket).expect("an answer");
    let partition = &answered.responses[0].partition_responses[0];
    assert_eq!((partition.error_code, partition.base_offset), (0, 0));
}
