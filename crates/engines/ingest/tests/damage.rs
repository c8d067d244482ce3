//! Damaged inputs: the error names the file and what it knows of the place, the table is as it was,
//! and a good load works afterwards.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod oracle;
mod table_of;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Int64Array, StringArray, TimestampMillisecondArray};
use dyno_ingest::Error;
use dyno_ingest::generate::Generator;
use dyno_ingest::load::{Engine, Options, Outcome};
use dyno_ingest::scan::Block;
use dyno_ingest::source::{Source, open_path};
use dyno_ingest::table::Snapshot;
use oracle::{Row, checksum};
use table_of::arrow_file::{columns, with, write};
use table_of::zip_file::{Entry, zip};
use table_of::{
    checksum_of, failure, file, files_in, generate, good_rows, gunzip, gzip, lenient, load_file,
    loaded_rows,
};

/// A table that holds an older state of the archive that will come damaged.
struct Scene {
    folder: tempfile::TempDir,
    table: PathBuf,
    text: Vec<u8>,
    rows: Vec<Row>,
    before: std::collections::BTreeMap<String, Vec<u8>>,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let generator = Generator {
            rows: 4_000,
            ..Generator::default()
        };
        let archive = generate(&generator, folder.path()).remove(0);
        let text = gunzip(&archive, 0);
        let table = folder.path().join("table");
        let half = text.len() / 2;
        let older = 1 + half + text[half..].iter().position(|&b| b == b'\n').unwrap();
        let older = file(folder.path(), "wsprspots-2023-01.csv", &text[..older]);
        loaded_rows(&load_file(&older, &table, &lenient()));
        Scene {
            rows: good_rows(&text),
            before: files_in(&table),
            folder,
            table,
            text,
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Loads `bytes` under the archive's name, which must fail and change nothing.
    fn refuses(&self, extension: &str, bytes: &[u8], options: &Options) -> (Error, String) {
        let name = format!("wsprspots-2023-01.{extension}");
        let report = load_file(&file(self.path(), &name, bytes), &self.table, options);
        let text = failure(&report);
        assert!(files_in(&self.table) == self.before, "changed by: {text}");
        let Outcome::Failed(error) = report.outcome else {
            unreachable!("it failed");
        };
        (error, text)
    }

    /// The good archive, after all that.
    fn ends_well(&self) {
        let good = file(self.path(), "wsprspots-2023-01.csv.gz", &gzip(&self.text));
        let report = load_file(&good, &self.table, &lenient());
        assert_eq!(loaded_rows(&report), self.rows.len() as u64);
        assert_eq!(checksum_of(&self.table), checksum(&self.rows));
    }
}

fn both_engines() -> [Options; 2] {
    [(Engine::Native, 2), (Engine::Portable, 1)].map(|(engine, workers)| Options {
        engine,
        workers,
        ..lenient()
    })
}

#[test]
fn a_truncated_gzip_is_an_error_wherever_it_ends() {
    let scene = Scene::new();
    let packed = gzip(&scene.text);
    let ends = (1..25).chain((0..12).map(|n| packed.len() * n / 12 + 40));
    for end in ends.chain((1..=9).map(|back| packed.len() - back)) {
        for options in both_engines() {
            let (error, text) = scene.refuses("csv.gz", &packed[..end], &options);
            let Error::Input { offset, .. } = error else {
                panic!("cut at {end}: {text}");
            };
            assert!(offset <= end as u64, "cut at {end}: {text}");
            assert!(text.contains("truncated"), "cut at {end}: {text}");
        }
    }
    // The second member is cut, the first is whole.
    let mut members = packed.clone();
    members.extend(&packed[..packed.len() / 2]);
    let (_, text) = scene.refuses("csv.gz", &members, &lenient());
    assert!(text.contains("truncated"), "{text}");
    scene.ends_well();
}

#[test]
fn a_flipped_bit_is_an_error_wherever_it_is() {
    let scene = Scene::new();
    let packed = gzip(&scene.text);
    for flip in 0..60 {
        let at = 10 + (packed.len() - 10) * flip / 60;
        let mut damaged = packed.clone();
        damaged[at] ^= 1 << (flip % 8);
        let (error, text) = scene.refuses("csv.gz", &damaged, &both_engines()[flip % 2]);
        assert!(matches!(error, Error::Input { .. }), "byte {at}: {text}");
    }
    let n = packed.len();
    for (back, words) in [(8, "CRC-32"), (5, "CRC-32"), (4, "length"), (1, "length")] {
        let mut damaged = packed.clone();
        damaged[n - back] ^= 1;
        let (error, text) = scene.refuses("csv.gz", &damaged, &lenient());
        assert!(text.contains(words), "{text}");
        assert!(matches!(error, Error::Input { offset, .. } if offset == n as u64));
    }
    let mut method = packed;
    method[2] = 7;
    let (_, text) = scene.refuses("csv.gz", &method, &lenient());
    assert!(text.contains("compression method"), "{text}");
    scene.ends_well();
}

#[test]
fn what_is_no_archive_is_refused() {
    let scene = Scene::new();
    for extension in ["csv.gz", "csv", "zip"] {
        let (error, text) = scene.refuses(extension, b"", &lenient());
        assert!(matches!(error, Error::Input { offset: 0, .. }), "{text}");
        assert!(text.contains("empty"), "{text}");
    }
    let page = b"<html>\n<body>404 not found</body>\n</html>\n";
    let strict = Options {
        max_bad: 0.001,
        ..lenient()
    };
    let name = "wsprspots-2023-01.csv.gz";
    let report = load_file(&file(scene.path(), name, page), &scene.table, &strict);
    let text = failure(&report);
    assert!(text.contains("3 of 3 rows are bad"), "{text}");
    scene.ends_well();
}

#[test]
fn a_damaged_zip_is_refused() {
    let scene = Scene::new();
    let whole = Entry::deflated("spots.csv", &scene.text);
    let entry = |change: &dyn Fn(&mut Entry<'_>)| {
        let mut entry = Entry::deflated("b.csv", &scene.text);
        change(&mut entry);
        zip(&[Entry::deflated("a.csv", &scene.text[..0]), entry])
    };
    for (bytes, words) in [
        (entry(&|e| e.crc_damage = 1), "CRC-32"),
        (entry(&|e| (e.method, e.crc_damage) = (0, 1)), "CRC-32"),
        (entry(&|e| e.flags = 1), "encrypted"),
        (entry(&|e| e.method = 12), "compressed with"),
        (entry(&|e| e.cut = 30), "truncated"),
        (entry(&|e| (e.method, e.cut) = (0, 30)), "CRC-32"),
        (zip(&[]), "no file in it"),
        (zip(&[whole])[..5_000].to_vec(), "not a usable ZIP"),
    ] {
        let (error, text) = scene.refuses("zip", &bytes, &lenient());
        assert!(text.contains(words), "{words}: {text}");
        if let Error::Input { offset, .. } = error {
            assert!(offset > 0 && offset <= bytes.len() as u64, "{text}");
            assert!(text.contains("b.csv"), "{text}");
        }
    }
    scene.ends_well();
}

#[test]
fn a_parquet_file_of_another_form_is_refused() {
    let scene = Scene::new();
    let written = |columns| {
        let path = scene.path().join("written.parquet");
        write(&path, columns);
        std::fs::read(path).unwrap()
    };
    let n = scene.rows.len();
    let texts = || Arc::new(StringArray::from_iter_values((0..n).map(|i| i.to_string())));
    let numbers = || Arc::new(Int64Array::from_iter_values(0..n as i64));
    let good = || columns(&scene.rows);
    let mut lacking = good();
    lacking.retain(|(name, _)| *name != "callsign");
    let whole = written(good());
    let mut flipped = whole.clone();
    flipped[2_000] ^= 4;
    for (bytes, words) in [
        (written(lacking), "it has no column callsign"),
        (
            written(with(good(), "snr", texts())),
            "column snr is not stored as integers",
        ),
        (
            written(with(good(), "grid", numbers())),
            "column grid is not stored as strings",
        ),
        (whole[..whole.len() - 9].to_vec(), ""),
        (whole[..3_000].to_vec(), ""),
    ] {
        let (error, text) = scene.refuses("parquet", &bytes, &lenient());
        assert!(matches!(error, Error::Refused { .. }), "{text}");
        assert!(text.contains(words), "{text}");
    }
    scene.ends_well();
}

/// Our own files have a checksum on every page.
#[test]
fn a_flipped_bit_in_one_of_our_files_is_noticed() {
    let scene = Scene::new();
    let table = scene.path().join("copied");
    let archive = file(scene.path(), "spots.csv", &scene.text);
    loaded_rows(&load_file(&archive, &table, &lenient()));
    let snapshot = Snapshot::open(&table).unwrap();
    let data = snapshot.files().next().unwrap().0;
    let whole = std::fs::read(data).unwrap();
    for at in [500, 20_000, 60_000] {
        let mut flipped = whole.clone();
        flipped[at] ^= 16;
        let (_, text) = scene.refuses("parquet", &flipped, &lenient());
        assert!(text.contains("CRC"), "{text}");
    }
    scene.ends_well();
}

/// The end of a text that is cut while it is read looks like its end, and must not count as such.
#[test]
fn a_text_that_is_cut_or_overwritten_while_it_is_read_is_an_error() {
    let scene = Scene::new();
    let path = file(scene.path(), "long.csv", &scene.text.repeat(4));
    let whole = std::fs::read(&path).unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let change = || std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let cut = || change().set_len(whole.len() as u64 / 2).unwrap();
    let overwrite = || std::fs::write(&path, &whole).unwrap();
    for (meanwhile, words) in [
        (
            &cut as &dyn Fn(),
            "the file became shorter while it was read",
        ),
        (&overwrite, "the file was changed while it was read"),
    ] {
        std::fs::write(&path, &whole).unwrap();
        change().set_modified(long_ago).unwrap();
        let Source::Text(mut text) = open_path(&path, Engine::Native, None).unwrap() else {
            panic!("it is text");
        };
        let mut block = Block::default();
        assert!(text.next_block(&mut block).unwrap());
        meanwhile();
        let error = loop {
            match text.next_block(&mut block) {
                Ok(true) => {}
                Ok(false) => panic!("{words}: the end was believed"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains(words), "{error}");
    }
}

/// Opening a pipe waits for a writer, so it is refused before it is opened.
#[test]
fn a_pipe_and_a_directory_are_refused_by_name() {
    let scene = Scene::new();
    let pipe = scene.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for (path, words) in [
        (pipe, "it is a pipe, which can be read only once"),
        (scene.path().join("table"), "it is a directory"),
    ] {
        let report = load_file(&path, &scene.table, &lenient());
        assert!(failure(&report).contains(words), "{report:?}");
    }
    scene.ends_well();
}

/// Pages in a codec that is not built in are refused by the codec's name, and those that are read
/// by theirs.
#[test]
fn a_codec_that_is_not_read_is_named() {
    let scene = Scene::new();
    let path = scene.path().join("gzip.parquet");
    // arrow-rs cannot write GZIP here either, so the footer says it of pages that are stored.
    write(&path, columns(&scene.rows));
    let mut bytes = std::fs::read(&path).unwrap();
    name_codec(&mut bytes, 2);
    let (error, text) = scene.refuses("parquet", &bytes, &lenient());
    assert!(matches!(error, Error::Refused { .. }), "{text}");
    let words = "is compressed with GZIP; uncompressed, SNAPPY, ZSTD, LZ4 and LZ4_RAW are read";
    assert!(text.contains(words), "{text}");
    scene.ends_well();
}

/// Sets the codec of every column chunk in the footer of a Parquet file: field 4 of
/// `ColumnMetaData`, which stands behind field 3, the path in the schema.
fn name_codec(file: &mut [u8], codec: u8) {
    let mut changed = 0;
    for (name, _) in columns(&[]) {
        let name = name.as_bytes();
        // A list of one string, the string, then the header of the next field: an i32 of the
        // compact protocol.
        let mut before = vec![0x19, 0x18, name.len() as u8];
        before.extend_from_slice(name);
        before.push(0x15);
        let mut at = 0;
        while let Some(found) = file[at..].windows(before.len()).position(|w| w == before) {
            at += found + before.len();
            file[at] = codec << 1;
            changed += 1;
        }
    }
    assert!(changed > 0, "the footer has another form");
}

#[test]
fn values_that_the_table_cannot_hold_go_to_quarantine() {
    let scene = Scene::new();
    let n = scene.rows.len();
    let table = scene.path().join("fresh");
    let snr = |i: usize| match i {
        0 => None,
        1 => Some(200),
        i => Some(i64::from(scene.rows[i].snr)),
    };
    let snr = Arc::new((0..n).map(snr).collect::<Int64Array>());
    // An id below 0 in a signed column, and a moment between two seconds.
    let id = |i: usize| match i {
        2 => -1,
        i => scene.rows[i].id as i64,
    };
    let id = Arc::new(Int64Array::from_iter_values((0..n).map(id)));
    let time = |i: usize| i64::from(scene.rows[i].timestamp) * 1000 + i64::from(i == 3) * 250;
    let time = Arc::new(TimestampMillisecondArray::from_iter_values(
        (0..n).map(time),
    ));
    let path = scene.path().join("spots.parquet");
    let changed = with(columns(&scene.rows), "snr", snr);
    write(&path, with(with(changed, "id", id), "timestamp", time));
    let report = load_file(&path, &table, &lenient());
    assert_eq!(loaded_rows(&report), n as u64 - 4);
    assert_eq!(checksum_of(&table), checksum(&scene.rows[4..]));
    let snapshot = Snapshot::open(&table).unwrap();
    let aside = snapshot.manifest().archives["spots"].quarantine.clone();
    let aside = std::fs::read_to_string(table.join(aside.unwrap())).unwrap();
    let reasons: Vec<(u64, String)> = aside
        .lines()
        .map(|line| {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            let reason = object["reason"].as_str().unwrap().to_owned();
            (object["line"].as_u64().unwrap(), reason)
        })
        .collect();
    let expected = [
        (1, "column snr is NULL".to_owned()),
        (2, "column snr: 200 is not of type i8".to_owned()),
        (3, "column id: -1 is not of type u64".to_owned()),
        (
            4,
            format!(
                "column timestamp: {}250 / 1000 is not a whole second from 1970 to 2106",
                scene.rows[3].timestamp
            ),
        ),
    ];
    assert_eq!(reasons, expected);
}
