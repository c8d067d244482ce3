//! Batches against those of the crate `kafka-protocol`, with other libraries' compression.

use std::io::Write;

use bytes::{Bytes, BytesMut};
use dyno_pubsub::Record;
use dyno_pubsub::record::{Records, views};
use kafka_protocol::records::{
    Compression, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Record as Theirs,
    RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};

use super::*;

const MOST: usize = 1 << 20;

fn theirs(offset: i64, key: Option<&'static str>, value: Option<&'static str>) -> Theirs {
    let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
    Theirs {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
        producer_id: NO_PRODUCER_ID,
        producer_epoch: NO_PRODUCER_EPOCH,
        timestamp_type: TimestampType::Creation,
        offset,
        // The other crate begins a batch where sequences do not go with offsets.
        sequence: offset as i32,
        timestamp: 1_700_000_000_000 + offset,
        key: key.map(bytes),
        value: value.map(bytes),
        headers: [("trace".to_owned().into(), Some(bytes("abc")))]
            .into_iter()
            .collect(),
    }
}

fn samples() -> Vec<Theirs> {
    vec![
        theirs(0, Some("customer-7"), Some("two chairs")),
        theirs(1, None, Some("")),
        theirs(2, Some(""), None),
        theirs(3, Some("k"), Some("v")),
    ]
}

fn encoded(records: &[Theirs]) -> Bytes {
    let mut bytes = BytesMut::new();
    let options = RecordEncodeOptions {
        version: 2,
        compression: Compression::None,
    };
    RecordBatchEncoder::encode(&mut bytes, records, &options).unwrap();
    bytes.freeze()
}

fn body(batch: Bytes) -> Bytes {
    let (head, packed) = read_head(batch).unwrap();
    from_batch(&head, packed, 0, MOST).unwrap().into()
}

fn ours(batch: Bytes) -> Vec<Record> {
    Records::new(body(batch)).collect::<Result<_, _>>().unwrap()
}

/// The same batch with its records packed by `pack`, under the number of that compression.
fn packed(batch: &Bytes, number: u8, pack: impl FnOnce(&[u8]) -> Vec<u8>) -> Bytes {
    let mut bytes = batch[..61].to_vec();
    bytes[22] = number;
    bytes.extend(pack(&batch[61..]));
    let length = (bytes.len() - 12) as u32;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    let crc = dyno_checksum::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes.into()
}

#[test]
fn keys_values_headers_and_times_survive_in_both_directions() {
    let sent = samples();
    let body = body(encoded(&sent));
    let records: Vec<_> = views(&body).collect::<Result<_, _>>().unwrap();
    assert_eq!(records[0].time_us, 1_700_000_000_000_000);
    assert_eq!(records[0].key, Some(&b"customer-7"[..]));
    let mut written = BatchWriter::with_body_bytes(body.len());
    for (offset, record) in (40..).zip(&records) {
        written.push(offset, record);
    }
    let sets = RecordBatchDecoder::decode_all(&mut written.finish()).unwrap();
    let [set] = &sets[..] else {
        panic!("{} batches", sets.len());
    };
    for (index, (sent, got)) in sent.iter().zip(&set.records).enumerate() {
        assert_eq!(got.offset, 40 + index as i64);
        assert_eq!(got.timestamp, sent.timestamp);
        assert_eq!((&got.key, &got.value), (&sent.key, &sent.value));
        assert_eq!(got.headers, sent.headers);
    }
}

#[test]
fn every_compression_is_undone() {
    let plain = encoded(&samples());
    let expected = ours(plain.clone());
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let bare = |bytes: &[u8]| snap::raw::Encoder::new().compress_vec(bytes).unwrap();
    let framed = |bytes: &[u8]| {
        let mut out = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
        for half in bytes.chunks(bytes.len() / 2 + 1) {
            let block = bare(half);
            out.extend((block.len() as u32).to_be_bytes());
            out.extend(block);
        }
        out
    };
    let lz4 = |bytes: &[u8]| {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    for batch in [
        packed(&plain, 1, gzip),
        packed(&plain, 2, bare),
        packed(&plain, 2, framed),
        packed(&plain, 3, lz4),
        packed(&plain, 4, zstd),
    ] {
        assert_eq!(ours(batch), expected);
    }
}

#[test]
fn a_batch_that_would_become_too_long_is_refused_before_it_does() {
    let plain = encoded(&samples());
    let bomb = |_: &[u8]| zstd::encode_all(&vec![0_u8; 64 << 20][..], 3).unwrap();
    let (head, records) = read_head(packed(&plain, 4, bomb)).unwrap();
    let error = from_batch(&head, records, 0, MOST).unwrap_err();
    assert!(
        matches!(error, RecordsError::TooLong { most_bytes: MOST }),
        "{error}"
    );
}

/// None of these headers is there: a record that states too many is refused before they are read.
#[test]
fn a_record_that_states_too_many_headers_is_refused_by_their_number() {
    let stated = |headers: i64| {
        move |_: &[u8]| {
            // No attributes, no difference in time, the first offset, no key and no value.
            let mut record = vec![0, 0, 0, 1, 1];
            varint::write(&mut record, headers);
            let mut records = Vec::new();
            varint::write(&mut records, record.len() as i64);
            [records, record].concat()
        }
    };
    let plain = encoded(&samples()[..1]);
    let refusal = |headers| {
        let (head, records) = read_head(packed(&plain, 0, stated(headers))).unwrap();
        from_batch(&head, records, 0, MOST).unwrap_err()
    };
    assert!(matches!(refusal(65_535), RecordsError::Damaged(_)));
    assert!(matches!(refusal(65_536), RecordsError::Refused(_)));
}

#[test]
fn damage_is_found() {
    let plain = encoded(&samples());
    for at in 0..plain.len() {
        let mut bytes = plain.to_vec();
        bytes[at] ^= 0x10;
        let done =
            read_head(bytes.into()).and_then(|(head, records)| from_batch(&head, records, 0, MOST));
        // The offset and the leader's epoch are not under the checksum, and mean nothing here.
        let means_nothing = at < 8 || (12..16).contains(&at);
        assert_eq!(done.is_ok(), means_nothing, "byte {at}");
    }
    for length in 0..plain.len() {
        assert!(read_head(plain.slice(..length)).is_err(), "{length} bytes");
    }
    let two = [plain.clone(), plain.clone()].concat();
    assert!(read_head(two.into()).is_err());
}

#[test]
fn batches_of_transactions_are_marked_and_control_records_are_refused() {
    let mut record = theirs(0, None, Some("x"));
    assert!(
        !read_head(encoded(&[record.clone()]))
            .unwrap()
            .0
            .is_transactional
    );
    record.transactional = true;
    record.producer_id = 7;
    record.producer_epoch = 0;
    record.sequence = 0;
    assert!(
        read_head(encoded(&[record.clone()]))
            .unwrap()
            .0
            .is_transactional
    );
    record.control = true;
    let error = read_head(encoded(&[record])).unwrap_err();
    assert!(error.to_string().contains("control"), "{error}");
}
