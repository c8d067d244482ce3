//! The errors of a writer that is given what it cannot write.

use std::sync::Arc;

use dyno_formats::columns::{Codes, Field, Kind, Values, Words};
use dyno_formats::orc_write::{Compression, Layout, Options, StripeWriter};

fn field(kind: Kind) -> Field {
    Field { name: "it", kind }
}

/// The error of the last of some batches of one column.
fn refused(kind: Kind, batches: &[Values<'_>]) -> String {
    let layout = Arc::new(Layout::new(&[field(kind)], Options::default()).unwrap());
    let mut stripe = StripeWriter::new(&layout).unwrap();
    let (last, before) = batches.split_last().unwrap();
    for batch in before {
        stripe.append(&[*batch]).unwrap();
    }
    let error = stripe.append(&[*last]).unwrap_err().to_string();
    let again = stripe.finish().err().map(|error| error.to_string());
    assert!(!error.starts_with("the values") && again.is_some() || again.is_none());
    error
}

#[test]
fn batches_that_do_not_fit_are_refused() {
    let words = Words::new(["a", "b"]);
    let others = Words::new(["a", "c"]);
    let coded = |codes, words| Values::CodedText {
        codes: Codes::U8(codes),
        words,
    };
    let text = |offsets, bytes| Values::Text { offsets, bytes };
    let money = Kind::Decimal {
        precision: 4,
        scale: 2,
    };
    let cases = [
        (
            refused(Kind::Text, &[coded(&[0, 2], &words)]),
            "column it has code 2, its dictionary 2 entries",
        ),
        (
            refused(Kind::Text, &[coded(&[0], &words), coded(&[0], &others)]),
            "column it came with another dictionary after a first one in one stripe",
        ),
        (
            refused(Kind::Text, &[text(&[0, 1], b"a"), coded(&[0], &words)]),
            "column it came with 8-bit codes after text without codes in one stripe",
        ),
        (
            refused(Kind::Text, &[text(&[0, 3], b"ab")]),
            "column it has text at bytes 0..3 of 2",
        ),
        (
            refused(Kind::Text, &[text(&[2, 1], b"ab")]),
            "column it has text at bytes 2..1 of 2",
        ),
        (
            refused(Kind::Varchar(1), &[text(&[0, 2], b"ab")]),
            "column it has a text of 2 characters, its type allows 1",
        ),
        (
            refused(money, &[Values::Int64(&[9999, -10_000])]),
            "column it has the decimal -10000 in units of its scale, beyond 4 digits",
        ),
        (
            refused(Kind::Int32, &[Values::Int64(&[1])]),
            "the values given for column it cannot be Int32",
        ),
    ];
    for (error, expected) in cases {
        assert_eq!(error, expected);
    }
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    let refused =
        |fields: &[Field], options| Layout::new(fields, options).err().unwrap().to_string();
    let decimal = Kind::Decimal {
        precision: 19,
        scale: 2,
    };
    assert_eq!(
        refused(&[field(decimal)], Options::default()),
        "field it cannot be in an ORC file: decimal(19,2) does not have 1 to 18 digits"
    );
    assert_eq!(
        refused(
            &[field(Kind::Int32), field(Kind::Int32)],
            Options::default()
        ),
        "field it cannot be in an ORC file: there are two of this name"
    );
    assert_eq!(
        refused(&[], Options::default()),
        "field (none) cannot be in an ORC file: a file has at least one column"
    );
    let tiny = Options {
        chunk_bytes: 5,
        ..Options::default()
    };
    assert_eq!(
        refused(&[field(Kind::Int32)], tiny),
        "option chunk_bytes cannot be 5: a chunk has 1 KiB to 4 MiB"
    );
}

#[test]
fn codecs_are_read_from_text() {
    for text in ["none", "zlib:6", "snappy", "lz4", "zstd:22"] {
        assert_eq!(text.parse::<Compression>().unwrap().to_string(), text);
    }
    for text in ["", "lzo", "snappy:1", "zstd:0", "zlib:10", "zstd:x"] {
        assert!(text.parse::<Compression>().is_err(), "{text}");
    }
}
