//! Tuples as bytes are in the order of the tuples, and come back.

use dyno_txn_api::{Tuple, TupleReader, prefix_end};
use proptest::prelude::*;

type Parts = (u64, i64, Vec<u8>, String, u16);

fn encode((a, b, c, d, e): &Parts) -> Vec<u8> {
    let tuple = Tuple::new().u64(*a).i64(*b).bytes(c).text(d).u16(*e);
    tuple.finish()
}

/// Few different bytes, zeros and 0xff among them, so that escapes and equal prefixes happen.
fn awkward() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0, 1, 0xfe, 0xff]), 0..5)
}

fn parts() -> impl Strategy<Value = Parts> {
    let text = prop::collection::vec(prop::sample::select(vec!['\0', 'a', 'é']), 0..4);
    let text = text.prop_map(|text| text.into_iter().collect::<String>());
    let few = prop::sample::select(vec![0u64, 1, u64::MAX]);
    let signed = prop::sample::select(vec![i64::MIN, -1, 0, 1, i64::MAX]);
    (few, signed, awkward(), text, 0..3u16)
}

proptest! {
    #[test]
    fn bytes_are_in_the_order_of_tuples(a in parts(), b in parts()) {
        prop_assert_eq!(encode(&a).cmp(&encode(&b)), a.cmp(&b));
    }

    #[test]
    fn any_numbers_are_in_order(a: (u64, i64), b: (u64, i64)) {
        let encode = |(n, m)| Tuple::new().u64(n).i64(m).finish();
        prop_assert_eq!(encode(a).cmp(&encode(b)), a.cmp(&b));
    }

    #[test]
    fn doubles_are_in_total_order(a: f64, b: f64) {
        let encode = |x| Tuple::new().f64(x).finish();
        prop_assert_eq!(encode(a).cmp(&encode(b)), a.total_cmp(&b));
        let back = TupleReader::new(&encode(a)).f64().expect("just written");
        prop_assert_eq!(back.to_bits(), a.to_bits());
    }

    #[test]
    fn tuples_come_back(parts in parts(), rest: Vec<u8>) {
        let mut bytes = encode(&parts);
        bytes.extend_from_slice(&rest);
        let mut reader = TupleReader::new(&bytes);
        let (a, b) = (reader.u64().expect("a"), reader.i64().expect("b"));
        let (c, d) = (reader.bytes().expect("c"), reader.text().expect("d"));
        let e = reader.u16().expect("e");
        prop_assert_eq!((a, b, c, d, e), parts);
        prop_assert_eq!(reader.rest(), &*rest);
    }

    #[test]
    fn hostile_bytes_are_errors(bytes in awkward()) {
        let mut reader = TupleReader::new(&bytes);
        let _ = reader.bytes();
        let _ = reader.text();
        let _ = reader.u64();
    }

    #[test]
    fn the_end_of_a_prefix_is_after_all_that_begin_so(prefix in awkward(), more in awkward()) {
        let inside = [&prefix[..], &more[..]].concat();
        match prefix_end(&prefix) {
            Some(end) => {
                prop_assert!(inside < end);
                prop_assert!(!end.starts_with(&prefix));
            }
            None => prop_assert!(prefix.iter().all(|&byte| byte == 0xff)),
        }
    }
}
