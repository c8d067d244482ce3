//! The scanner against the slow parser: on generated months with every quirk, on damaged ones, and
//! on lines made to lie at the edges of the rules.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod oracle;
mod scan_agrees;

use std::ops::ControlFlow;

use dyno_ingest::generate::{Form, Generator};
use proptest::prelude::*;
use scan_agrees::check;

fn month(rows: u64, quirks: f64) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator {
        rows,
        quirks,
        form: Form::Plain,
        ..Generator::default()
    };
    let go_on = |_| ControlFlow::Continue(());
    let summary = generator.write(folder.path(), 1, &go_on).unwrap();
    std::fs::read(&summary.files[0]).unwrap()
}

#[test]
fn months_without_and_with_quirks() {
    check(&month(20_000, 0.0), 1 << 20);
    let odd = month(20_000, 0.2);
    for block_bytes in [1, 1000, 1 << 20, usize::MAX] {
        check(&odd, block_bytes);
    }
}

/// The corpus of the fuzz target, damaged a few thousand times from a seed.
#[test]
fn damaged_lines() {
    let odd = month(3_000, 1.0);
    let lines: Vec<&[u8]> = odd
        .split_inclusive(|&b| b == b'\n')
        .filter(|line| line.len() < 1000)
        .collect();
    let mut state = 1u64;
    let mut draw = |bound: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % bound
    };
    for _ in 0..3_000 {
        let first = draw(lines.len());
        let mut text = lines[first..(first + 1 + draw(20)).min(lines.len())].concat();
        for _ in 0..1 + draw(4) {
            let at = draw(text.len());
            const BYTES: &[u8] = b"\"\\,\n\r-.+09 \0\xc3\xa9\xff";
            match draw(3) {
                0 => text[at] = BYTES[draw(BYTES.len())],
                1 => text.insert(at, BYTES[draw(BYTES.len())]),
                _ if text.len() > 1 => drop(text.remove(at)),
                _ => {}
            }
        }
        check(&text, 1 + draw(500));
    }
}

/// Fields near the edges of what is allowed.
fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "-?[0-9]{1,3}",
        2 => "-?0{0,19}[0-9]{1,3}",
        2 => "[0-9]{7,21}",
        2 => "[0-9]{1,13}\\.[0-9]{0,10}",
        2 => "[A-Z0-9]{3,6}(/P)?",
        1 => "\"[A-Z,\\\\\"]{0,5}\"?",
        1 => "[A-Zé\\\\\" ]{0,18}",
    ]
}

fn lines() -> impl Strategy<Value = Vec<u8>> {
    const GOOD: [&str; 15] = [
        "5162000001",
        "1672531200",
        "DK6UG",
        "JN49cm",
        "-21",
        "14.097037",
        "TA4/G8SCU",
        "KM56",
        "23",
        "-1",
        "2345",
        "297",
        "14",
        "2.6.1",
        "0",
    ];
    let line = (
        proptest::collection::vec((0usize..15, field()), 0..3),
        "(|\r|,0|,)\n",
    )
        .prop_map(|(changes, end)| {
            let mut fields = GOOD.map(str::to_owned);
            for (at, text) in changes {
                fields[at] = text;
            }
            fields.join(",") + &end
        });
    proptest::collection::vec(line, 1..40).prop_map(|lines| lines.concat().into_bytes())
}

proptest! {
    #[test]
    fn lines_at_the_edges_of_the_rules(text in lines(), block_bytes in 1usize..4000) {
        check(&text, block_bytes);
    }

    #[test]
    fn any_bytes(text in proptest::collection::vec(any::<u8>(), 0..300)) {
        check(&text, 64);
    }
}
