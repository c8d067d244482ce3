//! Generated archives against the slow parser, a gzip reader that is not ours where one is
//! installed, and the look of the published ones.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod oracle;
mod planted_list;

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use dyno_ingest::generate::{Form, Generator, Month, Order, Outcome, Summary};
use flate2::bufread::MultiGzDecoder;
use oracle::{Row, parse_lines};
use planted_list::as_expected;

fn generate(generator: &Generator, folder: &Path, workers: usize) -> Summary {
    generator
        .write(folder, workers, &|_| ControlFlow::Continue(()))
        .unwrap()
}

fn inflate(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    MultiGzDecoder::new(bytes).read_to_end(&mut text).unwrap();
    text
}

#[test]
fn bytes_do_not_depend_on_workers() {
    let generator = Generator {
        rows: 30_001,
        months: 4,
        quirks: 0.01,
        ..Generator::default()
    };
    let (one, three) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let a = generate(&generator, one.path(), 1);
    let b = generate(&generator, three.path(), 3);
    assert_eq!(
        (a.bytes, a.file_bytes, a.planted),
        (b.bytes, b.file_bytes, b.planted)
    );
    let mut names = Vec::new();
    for entry in std::fs::read_dir(one.path()).unwrap() {
        let name = entry.unwrap().file_name();
        let read = |folder: &Path| std::fs::read(folder.join(&name)).unwrap();
        assert!(read(one.path()) == read(three.path()), "{name:?} differs");
        names.push(name);
    }
    assert_eq!(names.len(), 8, "four archives and four lists: {names:?}");
    assert!(one.path().join("wsprspots-2023-04.csv.gz").exists());
}

#[test]
fn a_shuffled_month_has_the_same_lines_in_another_order() {
    let lines = |order| {
        let folder = tempfile::tempdir().unwrap();
        let generator = Generator {
            rows: 5_000,
            form: Form::Plain,
            order,
            ..Generator::default()
        };
        let summary = generate(&generator, folder.path(), 1);
        let text = std::fs::read_to_string(&summary.files[0]).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (mut uploads, mut random) = (lines(Order::Uploads), lines(Order::Random));
    assert_eq!(random, lines(Order::Random), "a seed makes one order");
    let reporter = |line: &String| line.split(',').nth(2).map(str::to_owned);
    let repeats = |lines: &[String]| {
        let pairs = lines.windows(2);
        pairs
            .filter(|pair| reporter(&pair[0]) == reporter(&pair[1]))
            .count()
    };
    let (in_batches, at_random) = (repeats(&uploads), repeats(&random));
    assert!(
        in_batches > 3_000,
        "{in_batches} of 5,000 rows repeat their reporter"
    );
    assert!(
        at_random < 500,
        "{at_random} of 5,000 rows repeat their reporter"
    );
    uploads.sort();
    random.sort();
    assert_eq!(uploads, random);
}

#[test]
fn a_plain_month_has_the_same_lines() {
    let folder = tempfile::tempdir().unwrap();
    let gzip = Generator {
        rows: 5_000,
        ..Generator::default()
    };
    generate(&gzip, folder.path(), 1);
    let summary = generate(
        &Generator {
            form: Form::Plain,
            ..gzip
        },
        folder.path(),
        1,
    );
    let packed = std::fs::read(folder.path().join("wsprspots-2023-01.csv.gz")).unwrap();
    let plain = std::fs::read(&summary.files[0]).unwrap();
    assert!(inflate(&packed) == plain);
    assert_eq!(summary.bytes, plain.len() as u64);
    assert_eq!(summary.file_bytes, summary.bytes);
}

#[test]
fn an_archive_looks_like_the_published_ones() {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator {
        rows: 400_000,
        months: 2,
        seed: 11,
        ..Generator::default()
    };
    let summary = generate(&generator, folder.path(), 2);
    let row_bytes = summary.bytes as f64 / summary.rows as f64;
    let ratio = summary.bytes as f64 / summary.file_bytes as f64;
    println!("{row_bytes:.2} bytes a row, gzip ratio {ratio:.3}");
    let packed = std::fs::read(&summary.files[0]).unwrap();
    let parsed = parse_lines(&inflate(&packed));
    assert!(parsed.bad.is_empty() && parsed.blank.is_empty());
    let rows: Vec<Row> = parsed.rows.into_iter().map(|(_, row)| row).collect();
    assert_eq!(rows.len(), 200_000);
    let share = |test: &dyn Fn(&Row) -> bool| {
        rows.iter().filter(|row| test(row)).count() as f64 / rows.len() as f64
    };
    let mut senders: HashMap<&str, u32> = HashMap::new();
    let mut bands: BTreeMap<i32, u32> = BTreeMap::new();
    for row in &rows {
        *senders.entry(&row.callsign).or_default() += 1;
        *bands.entry(row.band).or_default() += 1;
    }
    let top = f64::from(*senders.values().max().unwrap()) / rows.len() as f64;
    println!(
        "top sender {top:.4}, {} senders, bands {bands:?}",
        senders.len()
    );
    println!(
        "snr -25..-15 {:.3}",
        share(&|row| (-25..=-15).contains(&row.snr))
    );
    assert!(
        (81.0..=85.0).contains(&row_bytes),
        "{row_bytes} bytes a row"
    );
    assert!((4.4..=4.6).contains(&ratio), "gzip ratio {ratio}");
    assert!((0.006..=0.014).contains(&top), "top sender {top}");
    assert!(share(&|row| row.band >= 105 && row.band <= 107) > 0.6);
    assert!(share(&|row| row.drift == 0) > 0.8);
    assert!(share(&|row| row.code == 0) > 0.99);
    assert!((0.4..0.8).contains(&share(&|row| (-25..=-15).contains(&row.snr))));
    assert!((0.6..0.9).contains(&share(&|row| row.grid.len() == 4)));
    assert!(
        rows.iter()
            .all(|row| (-33..=20).contains(&row.snr) && row.azimuth < 360)
    );
    assert!(
        rows.iter()
            .all(|row| row.band != 0 && row.distance < 20_020)
    );
    let again = rows
        .windows(2)
        .filter(|pair| pair[0].reporter == pair[1].reporter)
        .count();
    assert!(
        again as f64 / rows.len() as f64 > 0.7,
        "reporters repeat in runs"
    );
    assert!(rows.windows(2).all(|pair| pair[0].id < pair[1].id));
}

#[test]
fn every_planted_oddity_is_what_its_list_says() {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator {
        rows: 20_000,
        quirks: 0.05,
        seed: 5,
        ..Generator::default()
    };
    let summary = generate(&generator, folder.path(), 1);
    let packed = std::fs::read(&summary.files[0]).unwrap();
    let list = planted_list::beside(&summary.files[0]);
    assert_eq!(list.len() as u64, summary.planted);
    let garbage = list.last().unwrap();
    let Outcome::Garbage { offset, bytes } = garbage.outcome else {
        panic!("{garbage:?}")
    };
    assert_eq!(offset + bytes, packed.len() as u64);
    let text = inflate(&packed[..offset as usize]);
    assert_eq!(text.len() as u64, summary.bytes);

    let parsed = parse_lines(&text);
    let rows: HashMap<u64, &Row> = parsed.rows.iter().map(|(line, row)| (*line, row)).collect();
    let bad: HashMap<u64, &str> = parsed
        .bad
        .iter()
        .map(|bad| (bad.line, bad.reason.name()))
        .collect();
    let mut kinds: BTreeMap<&str, u32> = BTreeMap::new();
    for planted in &list {
        *kinds.entry(&planted.kind).or_default() += 1;
        let line = planted.line;
        match &planted.outcome {
            Outcome::Kept { row } => assert_eq!(&as_expected(rows[&line]), row, "{planted:?}"),
            Outcome::Bad { reason } => assert_eq!(bad[&line], reason, "{planted:?}"),
            Outcome::Blank => assert!(parsed.blank.contains(&line), "{planted:?}"),
            Outcome::Garbage { .. } => {}
        }
    }
    assert!(kinds.len() > 45, "{kinds:?}");
    let count = |test: &dyn Fn(&Outcome) -> bool| list.iter().filter(|p| test(&p.outcome)).count();
    assert_eq!(
        parsed.bad.len(),
        count(&|o| matches!(o, Outcome::Bad { .. }))
    );
    assert_eq!(parsed.blank.len(), count(&|o| matches!(o, Outcome::Blank)));
    assert_eq!(rows.len() + bad.len(), 20_000);
}

#[test]
fn a_stopped_generator_leaves_no_half_file() {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator {
        rows: 50_000,
        ..Generator::default()
    };
    let stopped = generator.write(folder.path(), 1, &|_| ControlFlow::Break(()));
    assert_eq!(
        stopped.unwrap_err().to_string(),
        "stopped on request; archives already committed stay"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn senseless_requests_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |generator: Generator| {
        let refused = generator.write(folder.path(), 1, &|_| ControlFlow::Continue(()));
        let text = refused.unwrap_err().to_string();
        text.split_once(": ").unwrap().1.to_owned()
    };
    let base = Generator::default();
    let text = refused(Generator {
        start: Month {
            year: 2007,
            month: 1,
        },
        ..base.clone()
    });
    assert_eq!(text, "2007-01 is not a month from 2008-03 to 2100");
    let text = refused(Generator {
        months: 0,
        ..base.clone()
    });
    assert_eq!(text, "0 months: 1 to 600 can be generated");
    let text = refused(Generator {
        quirks: 1.5,
        ..base.clone()
    });
    assert_eq!(text, "a quirk rate of 1.5 is not between 0 and 1");
    let text = refused(Generator {
        rows: 1,
        months: 2,
        ..base
    });
    assert_eq!(
        text,
        "each month needs a row, and there are more months (2) than rows (1)"
    );
}
