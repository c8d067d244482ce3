//! The fast writer against the careful one, and both against text written down here.

use std::sync::Arc;

use proptest::prelude::*;

use super::careful::Rows;
use super::passages::Texts;
use super::{Block, BlockWriter, Column, Dialect, FileWriter, Layout, Options, Quote, TextError};
use crate::columns::{Codes, Field, Kind, Slices, Values, Words};

fn column(name: &'static str, kind: Kind) -> Column {
    Column::new(Field { name, kind })
}

fn decimal(scale: u8) -> Kind {
    Kind::Decimal {
        precision: 18,
        scale,
    }
}

/// Pieces of text, the last one first.
struct Pieces {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    lengths: Vec<u8>,
}

impl Pieces {
    fn new(texts: &[String]) -> Pieces {
        let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
        for text in texts.iter().rev() {
            offsets.insert(0, bytes.len() as u32);
            bytes.extend_from_slice(text.as_bytes());
        }
        Pieces {
            bytes,
            offsets,
            lengths: texts.iter().map(|text| text.len() as u8).collect(),
        }
    }
}

impl Slices for Pieces {
    fn lengths(&self) -> &[u8] {
        &self.lengths
    }

    fn total_bytes(&self) -> usize {
        self.lengths.iter().map(|&length| usize::from(length)).sum()
    }

    fn padding_bytes(&self) -> usize {
        0
    }

    fn copy_to(&self, out: &mut [u8]) -> usize {
        let mut at = 0;
        for (&from, &length) in self.offsets.iter().zip(&self.lengths) {
            let (from, length) = (from as usize, usize::from(length));
            out[at..at + length].copy_from_slice(&self.bytes[from..from + length]);
            at += length;
        }
        at
    }
}

/// Values of every kind, and what they are made of.
#[derive(Debug, Clone)]
struct Rowset {
    numbers: Vec<i64>,
    small: Vec<i32>,
    texts: Vec<String>,
    words: Vec<String>,
    codes: Vec<u8>,
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -1_000_000..1_000_000_i64,
        2 => any::<i64>(),
        1 => (0..19_u32, -1..=1_i64).prop_map(|(power, off)| 10_i64.pow(power) + off),
        1 => (0..19_u32, -1..=1_i64).prop_map(|(power, off)| off - 10_i64.pow(power)),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), Just(-1)],
    ]
}

fn small() -> impl Strategy<Value = i32> {
    prop_oneof![4 => 8000..11_000, 1 => any::<i32>(), 1 => -2_000_000..4_000_000]
}

/// Mostly plain; now and then what needs quotes.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z .]{0,80}",
        1 => "[a-c,|\"\r\n]{0,9}",
        1 => "[ä-ü]{0,60}",
    ]
}

fn rowset() -> impl Strategy<Value = Rowset> {
    (1..200_usize).prop_flat_map(|rows| {
        let words = prop_oneof![
            prop::collection::vec("[A-Z ]{0,12}", 1..20),
            prop::collection::vec("[A-Z,\"]{0,28}", 1..20),
            prop::collection::vec("[A-Z,\"|]{0,60}", 1..20),
        ];
        (
            prop::collection::vec(number(), rows),
            prop::collection::vec(small(), rows),
            prop::collection::vec(text(), rows),
            words,
            prop::collection::vec(any::<u8>(), rows),
        )
            .prop_map(|(numbers, small, texts, words, mut codes)| {
                codes.iter_mut().for_each(|code| *code %= words.len() as u8);
                Rowset {
                    numbers,
                    small,
                    texts,
                    words,
                    codes,
                }
            })
    })
}

/// All kinds of columns, long text first, last and in between.
fn columns(quote: Quote) -> Vec<Column> {
    vec![
        column("first", Kind::Text).quote(quote),
        column("key", Kind::Int64),
        column("small", Kind::Int32),
        column("day", Kind::Date),
        column("money", decimal(2)),
        column("fine", decimal(18)),
        column("count", decimal(2)).whole(true),
        column("pieces", Kind::Varchar(255)).quote(quote),
        column("dictionary", decimal(2)).whole(true),
        column("word", Kind::Char(60)).quote(quote),
        column("wide", Kind::Varchar(60)),
        column("zero", decimal(0)),
        column("text", Kind::Text),
    ]
}

fn check(rows: &Rowset, options: Options, quote: Quote) -> Result<(), TestCaseError> {
    let layout = Arc::new(Layout::new(columns(quote), options).expect("sound columns"));
    let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
    for text in &rows.texts {
        bytes.extend_from_slice(text.as_bytes());
        offsets.push(bytes.len() as u32);
    }
    let text = Values::Text {
        offsets: &offsets,
        bytes: &bytes,
    };
    let pieces = Pieces::new(&rows.texts);
    let words = Words::new(&rows.words);
    let wide: Vec<u32> = rows.codes.iter().map(|&code| code.into()).collect();
    let dictionary: Vec<i64> = (0..20).map(|at| rows.numbers[0].wrapping_mul(at)).collect();
    let values = [
        text,
        Values::Int64(&rows.numbers),
        Values::Int32(&rows.small),
        Values::Int32(&rows.small),
        Values::Int64(&rows.numbers),
        Values::Int64(&rows.numbers),
        Values::Int64(&rows.numbers),
        Values::Slices(&pieces),
        Values::CodedInt64 {
            codes: Codes::U8(&rows.codes),
            values: &dictionary,
        },
        Values::CodedText {
            codes: Codes::U8(&rows.codes),
            words: &words,
        },
        Values::CodedText {
            codes: Codes::U32(&wide),
            words: &words,
        },
        Values::Int64(&rows.numbers),
        text,
    ];
    compare(&layout, &values, text)
}

/// Writes a batch both ways; `text` is what lies behind its slices too.
fn compare(layout: &Arc<Layout>, values: &[Values], text: Values) -> Result<(), TestCaseError> {
    let Values::Text { offsets, bytes } = text else {
        panic!("text is text");
    };
    let rows = text.len();
    let copied = Texts::Run { offsets, bytes };
    let texts: Vec<Option<Texts>> = values
        .iter()
        .map(|values| match values {
            Values::Text { .. } | Values::Slices(_) => Some(copied),
            _ => None,
        })
        .collect();
    let careful = Rows {
        layout,
        columns: values,
        texts: &texts,
        rows_before: 0,
    };
    let mut expected = Vec::new();
    let possible = (0..rows).try_for_each(|row| careful.append(row, &mut expected));
    let mut writer = BlockWriter::new(layout);
    let written = writer.append(values);
    match possible {
        Ok(()) => {
            prop_assert!(written.is_ok());
            // Once more, with what was kept from before.
            prop_assert!(writer.append(values).is_ok());
            let block = writer.finish();
            prop_assert_eq!(block.rows, 2 * rows as u64);
            let text = String::from_utf8_lossy(&block.bytes);
            let twice = expected.repeat(2);
            prop_assert_eq!(text, String::from_utf8_lossy(&twice));
        }
        Err(refused) => {
            let refused = refused.to_string();
            prop_assert_eq!(written.expect_err("refused").to_string(), refused);
            prop_assert_eq!(writer.finish(), Block::default());
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_fast_writer_prints_what_the_careful_one_prints(rows in rowset()) {
        check(&rows, Options::csv(), Quote::WhenNeeded)?;
        check(&rows, Options::csv(), Quote::Always)?;
        check(&rows, Options { separator: '\t', header: false, ..Options::csv() }, Quote::Always)?;
        check(&rows, Options::tbl(), Quote::WhenNeeded)?;
    }

    #[test]
    fn tbl_of_plain_text_is_written_too(mut rows in rowset()) {
        for text in rows.texts.iter_mut().chain(&mut rows.words) {
            text.retain(|character| !"|\n".contains(character));
        }
        check(&rows, Options::tbl(), Quote::Always)?;
    }
}

fn lines(columns: Vec<Column>, options: Options, values: &[Values]) -> String {
    let layout = Arc::new(Layout::new(columns, options).expect("sound columns"));
    let mut writer = BlockWriter::new(&layout);
    writer.append(values).expect("printable");
    let mut file = FileWriter::new(Vec::new(), layout).expect("memory takes all");
    file.append(&writer.finish()).expect("memory takes all");
    let (bytes, summary) = file.finish().expect("memory takes all");
    assert_eq!(summary.bytes, bytes.len() as u64);
    String::from_utf8(bytes).expect("text")
}

#[test]
fn numbers_and_days_look_as_written_here() {
    let columns = vec![
        column("n", Kind::Int64),
        column("money", decimal(2)),
        column("fine", decimal(18)),
        column("count", decimal(2)).whole(true),
        column("day", Kind::Date),
    ];
    let numbers = [0, -1, 1700, 99_999_999, i64::MIN, i64::MAX];
    let values = Values::Int64(&numbers);
    let days = [0, 8035, 10_591, 2_932_897, i32::MIN, i32::MAX];
    let printed = lines(
        columns,
        Options::tbl(),
        &[values, values, values, values, Values::Int32(&days)],
    );
    assert_eq!(
        printed,
        "0|0.00|0.000000000000000000|0|1970-01-01|\n\
         -1|-0.01|-0.000000000000000001|-0.01|1992-01-01|\n\
         1700|17.00|0.000000000000001700|17|1998-12-31|\n\
         99999999|999999.99|0.000000000099999999|999999.99|10000-01-01|\n\
         -9223372036854775808|-92233720368547758.08|-9.223372036854775808|-92233720368547758.08|-5877641-06-23|\n\
         9223372036854775807|92233720368547758.07|9.223372036854775807|92233720368547758.07|5881580-07-11|\n"
    );
}

#[test]
fn csv_quotes_what_needs_it() {
    let columns = vec![
        column("plain", Kind::Text),
        column("a,\"b\"", Kind::Text).quote(Quote::Always),
    ];
    let values = Values::Text {
        offsets: &[0, 1, 1, 4, 7, 10, 11],
        bytes: b"aa,bc\"d\r\nef",
    };
    assert_eq!(
        lines(columns, Options::csv(), &[values, values]),
        "plain,\"a,\"\"b\"\"\"\na,\"a\"\n\"\",\"\"\n\"a,b\",\"a,b\"\n\"c\"\"d\",\"c\"\"d\"\n\"\r\ne\",\"\r\ne\"\nf,\"f\"\n"
    );
}

#[test]
fn bad_options_are_refused_by_name() {
    let refused = |columns, options| {
        let layout = Layout::new(columns, options);
        layout.expect_err("refused").to_string()
    };
    let options = Options::csv();
    assert_eq!(
        refused(vec![], options),
        "a text file needs at least one column"
    );
    for separator in ['"', '\n', '-', '7', 'x', '\0', 'é'] {
        let options = Options {
            separator,
            ..options
        };
        let said = refused(vec![column("n", Kind::Int64)], options);
        assert!(
            said.starts_with(&format!("separator {separator:?} cannot")),
            "{said}"
        );
    }
    let wide = Kind::Decimal {
        precision: 19,
        scale: 2,
    };
    assert_eq!(
        refused(vec![column("n", wide)], options),
        "column n: decimal(19, 2) cannot be printed: the precision must be 1 to 18"
    );
    assert_eq!(
        refused(vec![column("n", Kind::Int64).quote(Quote::Always)], options),
        "column n: quote is for text, not for Int64"
    );
    assert_eq!(
        refused(vec![column("n", Kind::Text).whole(true)], options),
        "column n: whole is for decimals, not for Text"
    );
}

#[test]
fn bad_batches_are_refused_and_leave_the_block_as_it_was() {
    let columns = vec![column("word", Kind::Text), column("n", Kind::Int64)];
    let layout = Arc::new(Layout::new(columns, Options::tbl()).expect("sound columns"));
    let mut writer = BlockWriter::new(&layout);
    let words = Words::new(["a", "b|c"]);
    let word = |codes| Values::CodedText {
        codes: Codes::U8(codes),
        words: &words,
    };
    writer
        .append(&[word(&[0]), Values::Int64(&[1])])
        .expect("printable");
    let refused = writer.append(&[word(&[0, 2]), Values::Int64(&[1, 2])]);
    assert!(matches!(
        refused,
        Err(TextError::Code {
            name: "word",
            code: 2,
            entries: 2
        })
    ));
    let refused = writer.append(&[word(&[0, 1]), Values::Int64(&[1, 2])]);
    assert_eq!(
        refused.expect_err("refused").to_string(),
        "column word, row 2 of the block: '|' in a value, and this dialect has no quotes"
    );
    let refused = writer.append(&[word(&[0, 1]), Values::Int64(&[1])]);
    assert!(matches!(refused, Err(TextError::Batch(_))));
    assert_eq!(layout.options.dialect, Dialect::Tbl);
    assert_eq!(writer.finish().bytes, b"a|1|\n");
}

#[test]
fn offsets_that_do_not_lie_within_the_text_are_refused() {
    let columns = vec![column("text", Kind::Text)];
    let layout = Arc::new(Layout::new(columns, Options::csv()).expect("sound columns"));
    let mut writer = BlockWriter::new(&layout);
    let bytes = &[b'x'; 100];
    for (offsets, said) in [
        (&[0, 60, 52, 100][..], "at bytes 60..52 of 100"),
        (&[0, 101], "at bytes 0..101 of 100"),
        (&[0, u32::MAX, 100], "at bytes 0..4294967295 of 100"),
    ] {
        let refused = writer.append(&[Values::Text { offsets, bytes }]);
        let refused = refused.expect_err("refused").to_string();
        assert!(refused.contains(said), "{refused}");
    }
    assert_eq!(writer.finish(), Block::default());
}
