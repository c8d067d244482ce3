//! Records and rows without a server: what goes in comes out, and bytes from anywhere do no harm.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use dyno_pubsub::record::{
    self, Batch, Codec, PAGE_BODY_BYTES, RAW_BODY_BYTES_MAX, RUN_BYTES, Records, Run, compress,
    decompress,
};
use dyno_pubsub::{Error, Record};
use proptest::prelude::*;

fn bytes(most: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..most).prop_map(Bytes::from)
}

fn record(most: usize) -> impl Strategy<Value = Record> {
    let headers = prop::collection::vec(("[a-zé]{0,9}", prop::option::of(bytes(20))), 0..4);
    (
        any::<i64>(),
        prop::option::of(bytes(30)),
        headers,
        bytes(most),
    )
        .prop_map(|(time_us, key, headers, value)| Record {
            time_us,
            key,
            headers,
            value,
        })
}

fn encoded(records: &[Record]) -> Vec<u8> {
    let mut body = Vec::new();
    for record in records {
        let headers: Vec<(&str, Option<&[u8]>)> = record
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_deref()))
            .collect();
        let before = body.len();
        record::encode(
            &mut body,
            record.time_us,
            record.key.as_deref(),
            &headers,
            &record.value,
        )
        .unwrap();
        let promised = record::encoded_bytes(record.key.as_deref(), &headers, &record.value);
        assert_eq!(body.len() - before, promised);
    }
    body
}

fn decoded(body: impl Into<Bytes>) -> Result<Vec<Record>, Error> {
    Records::new(body.into()).collect()
}

proptest! {
    #[test]
    fn records_come_back(records in prop::collection::vec(record(300), 0..40)) {
        let body = encoded(&records);
        prop_assert_eq!(&decoded(body.clone()).unwrap(), &records);
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
            let packed = compress(codec, &body).unwrap();
            prop_assert_eq!(&decompress(codec, packed.into()).unwrap()[..], &body[..]);
        }
    }

    #[test]
    fn any_bytes_are_records_or_an_error(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decoded(body.clone());
        for codec in [Codec::Lz4, Codec::Zstd] {
            if let Ok(raw) = decompress(codec, body.clone().into()) {
                prop_assert!(raw.len() <= RAW_BODY_BYTES_MAX);
            }
        }
        let _ = Batch::new().push(Run { producer_id: 1, first_sequence: 0 }, &body);
    }

    #[test]
    fn a_damaged_body_does_no_harm(
        records in prop::collection::vec(record(60), 1..8), at in any::<prop::sample::Index>(), bit in 0..8_u32, cut in any::<prop::sample::Index>(),
    ) {
        let mut body = encoded(&records);
        let at = at.index(body.len());
        body[at] ^= 1 << bit;
        let _ = decoded(body.clone());
        let packed = compress(Codec::Zstd, &body).unwrap();
        let cut = cut.index(packed.len());
        prop_assert!(decompress(Codec::Zstd, packed[..cut].to_vec().into()).is_err());
        body.truncate(at);
        let whole = decoded(body).map_or(0, |records| records.len());
        prop_assert!(whole < records.len());
    }

    #[test]
    fn rows_hold_all_records_and_fit_a_page(
        runs in prop::collection::vec((1..4_i64, prop::collection::vec(record(2500), 1..20)), 1..8),
    ) {
        let mut batch = Batch::new();
        let mut all = Vec::new();
        let mut whose = Vec::new();
        for (at, (producer, records)) in runs.iter().enumerate() {
            // Producers of their own, so that none comes twice.
            let run = Run { producer_id: producer + 10 * at as i64, first_sequence: 7 * producer };
            let body = encoded(records);
            prop_assert_eq!(batch.push(run, &body).unwrap(), records.len() as i64);
            all.extend_from_slice(&body);
            whose.extend((0..records.len() as i64).map(|i| (run.producer_id, run.first_sequence + i)));
        }
        prop_assert_eq!(batch.bodies().collect::<Vec<_>>().concat(), all);
        prop_assert_eq!(batch.records(), whose.len() as i64);
        let mut at = 0;
        for ((head, runs), body) in batch.heads().zip(batch.row_runs()).zip(batch.bodies()) {
            let records = decoded(body.to_vec()).unwrap();
            prop_assert_eq!((head.relative, head.count as usize), (at as i64, records.len()));
            prop_assert!(head.count == 1 || body.len() + (runs.len() / 3 - 1) * RUN_BYTES <= PAGE_BODY_BYTES);
            prop_assert_eq!(head.first_time_us, records.iter().map(|r| r.time_us).min().unwrap());
            prop_assert_eq!(head.last_time_us, records.iter().map(|r| r.time_us).max().unwrap());
            let listed: Vec<(i64, i64)> = runs.chunks(3).flat_map(|run| (0..run[2]).map(|i| (run[0], run[1] + i))).collect();
            prop_assert_eq!(&listed[..], &whose[at..at + records.len()]);
            at += records.len();
        }
    }
}

#[test]
fn a_length_that_lies_takes_no_memory() {
    for codec in [Codec::Lz4, Codec::Zstd] {
        let mut packed = compress(codec, b"short").unwrap();
        packed[..4].copy_from_slice(&u32::MAX.to_be_bytes());
        let error = decompress(codec, packed.into()).unwrap_err();
        assert_eq!(error.code(), "damaged");
        assert!(error.text().contains("4294967295"), "{error}");
    }
}

#[test]
fn one_producer_comes_once() {
    let body = encoded(&[Record {
        time_us: 0,
        key: None,
        headers: Vec::new(),
        value: Bytes::from_static(b"x"),
    }]);
    let run = |producer_id, first_sequence| Run {
        producer_id,
        first_sequence,
    };
    let mut batch = Batch::new();
    batch.push(run(1, 0), &body).unwrap();
    batch.push(run(1, 1), &body).unwrap();
    batch.push(run(0, 0), &body).unwrap();
    batch.push(run(2, 5), &body).unwrap();
    assert_eq!((batch.records(), batch.rows()), (4, 1));
    assert_eq!(
        batch.push(run(1, 2), &body).unwrap_err().code(),
        "bad-argument"
    );
    assert_eq!(
        Batch::new().push(run(1, 0), &[]).unwrap_err().code(),
        "damaged"
    );
}
