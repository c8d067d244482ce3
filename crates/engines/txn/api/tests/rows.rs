//! Rows come back column by column, and hostile bytes are errors.

use dyno_txn_api::{Assignment, Code, Row, Value, ValueRef, encode_row};
use proptest::prelude::*;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<u64>().prop_map(Value::U64),
        any::<i64>().prop_map(Value::I64),
        any::<i32>().prop_map(|number| Value::F64(f64::from(number) / 8.0)),
        "[a-zé]{0,9}".prop_map(Value::Text),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(Value::Bytes),
    ]
}

fn encode(values: &[Value]) -> Vec<u8> {
    encode_row(&values.iter().map(Value::borrowed).collect::<Vec<_>>())
}

/// Two texts that are the same bytes of the row.
#[test]
fn an_update_of_a_row_whose_texts_overlap_changes_one_of_them() {
    let mut bytes = encode(&[Value::from("same"), Value::from("else")]);
    let second = 4 + 2 + 8;
    bytes[second..second + 4].copy_from_slice(&0u32.to_le_bytes());
    let row = Row::parse(&bytes).expect("whole");
    assert_eq!(row.text(1).expect("whole"), "same");
    let updated = row.update(&[Assignment::set(0, "diff")]).expect("whole");
    assert_eq!(updated, encode(&[Value::from("diff"), Value::from("same")]));
}

proptest! {
    #[test]
    fn columns_come_back(values in prop::collection::vec(value(), 0..12)) {
        let bytes = encode(&values);
        let row = Row::parse(&bytes).expect("just written");
        for (at, value) in values.iter().enumerate() {
            prop_assert_eq!(&row.get(at as u16).expect("whole").to_value(), value);
        }
        prop_assert_eq!(row.columns(), values.len());
    }

    #[test]
    fn an_update_changes_its_columns_alone(
        mut values in prop::collection::vec(value(), 1..9),
        news in prop::collection::vec((any::<prop::sample::Index>(), value()), 1..4),
    ) {
        let bytes = encode(&values);
        let mut set = Vec::new();
        for (at, new) in news {
            let at = at.index(values.len());
            set.push(Assignment::set(at as u16, new.clone()));
            values[at] = new;
        }
        let updated = Row::parse(&bytes).expect("whole").update(&set).expect("whole");
        prop_assert_eq!(updated, encode(&values));
    }

    #[test]
    fn hostile_rows_never_panic(mut bytes: Vec<u8>, version: bool) {
        if version && bytes.len() >= 4 {
            let columns = bytes[2] % 4;
            bytes[..4].copy_from_slice(&[1, 0, columns, 0]);
        }
        if let Ok(row) = Row::parse(&bytes) {
            let _ = row.values();
            let _ = row.project(&[0, 3, 700]);
            let _ = row.update(&[Assignment::add(0, 1u64), Assignment::set(2, "x")]);
        }
    }
}

#[test]
fn version_one_stays_readable() {
    // Columns 7u64, null, "ab", -1i64 as version 1 writes them.
    let bytes = b"\x01\0\x04\0\x01\0\x04\x02\
        \x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\xff\xff\xff\xff\xff\xff\xff\xffab";
    let row = Row::parse(bytes).expect("version 1");
    let expected = [
        ValueRef::U64(7),
        ValueRef::Null,
        ValueRef::Text("ab"),
        ValueRef::I64(-1),
    ];
    assert_eq!(row.values().expect("whole"), expected);
    assert_eq!(encode_row(&expected), bytes);
    let newer = Row::parse(b"\x02\0\0\0").expect_err("a later version");
    assert_eq!(newer.kind(), Code::NewerVersion);
}

#[test]
fn sums_are_checked() {
    let bytes = encode_row(&[ValueRef::U64(u64::MAX), ValueRef::I64(5)]);
    let row = Row::parse(&bytes).expect("whole");
    let less = row.update(&[Assignment::add(1, -7i64)]).expect("fits");
    assert_eq!(Row::parse(&less).expect("whole").i64(1), Ok(-2));
    for wrong in [
        Assignment::add(0, 1u64),
        Assignment::add(1, 1u64),
        Assignment::set(u16::MAX, 1u64),
    ] {
        assert_eq!(
            row.update(&[wrong]).expect_err("wrong").kind(),
            Code::BadRow
        );
    }
}
