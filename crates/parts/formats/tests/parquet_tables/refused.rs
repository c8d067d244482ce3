//! What is refused, and in which words.

use std::sync::Arc;

use dyno_formats::columns::{Codes, Field, Kind, Values, Words};
use dyno_formats::parquet_write::{ColumnOptions, Compression, Layout, Options, RowGroupWriter};

const KEY: Field = Field {
    name: "key",
    kind: Kind::Int64,
};
const MODE: Field = Field {
    name: "mode",
    kind: Kind::Text,
};

fn refused(fields: &[Field], options: Options) -> String {
    Layout::new(fields, options).unwrap_err().to_string()
}

fn column(name: &str, wanted: &str) -> Options {
    Options {
        columns: vec![(name.into(), wanted.parse().unwrap())],
        ..Options::default()
    }
}

#[test]
fn options_that_make_no_sense_are_named() {
    assert_eq!(
        refused(&[KEY, MODE], column("keys", "plain")),
        "there is no column keys; the columns are key, mode"
    );
    assert_eq!(
        refused(&[KEY], column("key", "prefix")),
        "column key cannot be encoded as prefix: only text can"
    );
    let options = Options {
        compression: Compression::Zstd(23),
        ..Options::default()
    };
    assert_eq!(
        refused(&[KEY], options),
        "zstd has levels from 1 to 22, not 23"
    );
    let sum = Field {
        name: "sum",
        kind: Kind::Decimal {
            precision: 19,
            scale: 2,
        },
    };
    assert_eq!(
        refused(&[sum], Options::default()),
        "column sum: decimal(19,2) does not have 1 to 18 digits"
    );
    let wrong = |given: &str| given.parse::<ColumnOptions>().unwrap_err().to_string();
    assert!(wrong("brotli").starts_with("\"brotli\" is not a compression or encoding"));
    assert_eq!(wrong("zstd:x"), "zstd has levels from 1 to 22, not x");
    assert_eq!(
        wrong("plain,auto"),
        "\"plain,auto\" says the encoding twice"
    );
    let both: ColumnOptions = "zstd:3,plain".parse().unwrap();
    assert_eq!(both.compression, Some(Compression::Zstd(3)));
}

fn append(fields: &[Field], options: Options, batches: &[&[Values<'_>]]) -> String {
    let layout = Arc::new(Layout::new(fields, options).unwrap());
    let mut writer = RowGroupWriter::new(&layout);
    let results: Vec<_> = batches.iter().map(|batch| writer.append(batch)).collect();
    let error = results.into_iter().find_map(Result::err).unwrap();
    assert_eq!(writer.rows(), 0, "a failed row group is forgotten");
    error.to_string()
}

#[test]
fn rows_that_are_not_in_the_declared_order_are_found() {
    let sorted = || Options {
        sorted_by: vec!["key".into(), "mode".into()],
        ..Options::default()
    };
    let words = Words::new(["b", "a"]);
    let modes = |codes| Values::CodedText {
        codes: Codes::U8(codes),
        words: &words,
    };
    let said = append(
        &[KEY, MODE],
        sorted(),
        &[&[Values::Int64(&[1, 2, 2]), modes(&[0, 0, 1])]],
    );
    assert_eq!(
        said,
        "the rows are not sorted by key, mode: row 2 of a row group comes before row 1"
    );
    let said = append(
        &[KEY, MODE],
        sorted(),
        &[
            &[Values::Int64(&[1, 2]), modes(&[0, 1])],
            &[Values::Int64(&[1]), modes(&[0])],
        ],
    );
    assert!(
        said.ends_with("row 2 of a row group comes before row 1"),
        "{said}"
    );
}

#[test]
fn codes_and_dictionaries_that_do_not_fit_are_found() {
    let (two, three) = (Words::new(["b", "a"]), Words::new(["b", "a", "c"]));
    let modes = |codes, words| Values::CodedText {
        codes: Codes::U8(codes),
        words,
    };
    assert_eq!(
        append(&[MODE], Options::default(), &[&[modes(&[0, 2], &two)]]),
        "column mode: code 2 is not one of the 2 entries of its dictionary"
    );
    assert_eq!(
        append(
            &[MODE],
            Options::default(),
            &[&[modes(&[0], &two)], &[modes(&[0], &three)]]
        ),
        "column mode: the dictionary is not that of the batch before"
    );
    let keys: Vec<i64> = (0..1_100_000).collect();
    assert_eq!(
        append(
            &[KEY],
            column("key", "dictionary"),
            &[&[Values::Int64(&keys)]]
        ),
        "column key: a dictionary was asked for, but after 1081344 rows of a row group it would have \
         more than 8388608 bytes"
    );
}
