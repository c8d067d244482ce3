//! Jobs as their callers give them: files, parts, threads, what is kept and what is refused.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use dyno_io::SinkKind;
use dyno_tpch::{Batch, Generator, Scale, Table, TextPool, tbl};
use dyno_tpch_files::format::{self, Append, Encode, Out, Refused};
use dyno_tpch_files::{
    Compression, Destination, Error, Format, Job, Mode, Progress, Report, Split, run, run_with,
};

const SCALE: f64 = 0.01;

fn job(format: Format, folder: &Path) -> Job {
    let scale = Scale::new(SCALE).expect("in range");
    let mut job = Job::new(scale, format, Destination::Folder(folder.to_path_buf()));
    job.jobs = 2;
    job.sink = SinkKind::Std;
    job
}

fn write(job: &Job) -> Report {
    run(job, &Progress::default()).expect("a good job")
}

fn refusal(job: &Job) -> String {
    run(job, &Progress::default())
        .expect_err("a bad job")
        .to_string()
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).expect("a finished file")
}

/// The table by the obvious way.
fn expected(table: Table) -> Vec<u8> {
    let generator = Generator::new(Scale::new(SCALE).expect("in range"));
    let mut batch = Batch::new(table);
    let units = generator.scale().units(table);
    generator.fill(&mut batch, 0..units).expect("all units");
    let mut text = Vec::new();
    tbl::append(&batch, TextPool::shared(), &mut text);
    text
}

#[test]
fn tbl_is_dbgens_in_every_mode_and_in_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    for mode in Mode::ALL {
        let whole = folder.path().join(mode.name());
        let mut job = job(Format::Tbl, &whole);
        job.mode = mode;
        // Small pieces, so that several threads have some.
        job.layout.group_rows = Some(5_000);
        write(&job);
        for table in Table::ALL {
            let bytes = read(&whole, &format!("{table}.tbl"));
            assert!(bytes == expected(table), "{table} in {mode}");
        }
    }
    let mut parts = job(Format::Tbl, &folder.path().join("parts"));
    parts.split = Split::Parts(7);
    write(&parts);
    for table in Table::ALL {
        let name = |part| format!("parts/{table}/{table}.{part}.tbl");
        let parts = (1..=7).map(|part| read(folder.path(), &name(part)));
        assert!(
            parts.collect::<Vec<_>>().concat() == expected(table),
            "{table}"
        );
    }
}

#[test]
fn bytes_do_not_depend_on_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    for format in Format::ALL {
        for mode in [Mode::ZeroCopy, Mode::TrueZeroCopy] {
            let mut before: Option<Vec<Vec<u8>>> = None;
            for jobs in [1, 3] {
                let here = folder.path().join(format!("{format}-{mode}-{jobs}"));
                let mut job = job(format, &here);
                job.tables = vec![Table::Orders, Table::Supplier];
                job.mode = mode;
                job.jobs = jobs;
                job.layout.group_rows = Some(2_000);
                let report = write(&job);
                assert_eq!(report.rows(), 15_000 + 100);
                let bytes: Vec<Vec<u8>> = ["orders", "supplier"]
                    .map(|table| read(&here, &format!("{table}.{format}")))
                    .into();
                let length: u64 = bytes.iter().map(|bytes| bytes.len() as u64).sum();
                assert_eq!(report.bytes(), length);
                assert!(
                    before.is_none_or(|before| before == bytes),
                    "{format} {mode}"
                );
                before = Some(bytes);
            }
        }
    }
}

/// At this scale factor there are as many suppliers as nations, so their files are equal work.
#[test]
fn a_table_that_is_named_twice_is_written_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut job = job(Format::Csv, folder.path());
    job.scale = Scale::new(0.0025).expect("in range");
    job.tables = vec![Table::Nation, Table::Supplier, Table::Nation];
    let report = write(&job);
    assert_eq!((report.files.len(), report.rows()), (2, 25 + 25));
}

#[test]
fn a_part_can_be_written_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut all = job(Format::Parquet, &folder.path().join("all"));
    all.split = Split::Parts(3);
    write(&all);
    for part in 1..=3 {
        let mut one = job(Format::Parquet, &folder.path().join("one"));
        one.split = Split::Part { part, parts: 3 };
        write(&one);
    }
    for table in Table::ALL {
        for part in 1..=3 {
            let name = format!("{table}/{table}.{part}.parquet");
            let same =
                read(&folder.path().join("all"), &name) == read(&folder.path().join("one"), &name);
            assert!(same, "{name}");
        }
    }
}

#[test]
fn what_is_finished_is_kept_and_what_is_missing_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = job(Format::Orc, folder.path());
    write(&job);
    let lineitem = read(folder.path(), "lineitem.orc");
    fs::remove_file(folder.path().join("lineitem.orc")).expect("it is there");
    let report = write(&job);
    let kept = report.files.iter().filter(|file| file.kept).count();
    assert_eq!((kept, report.files.len()), (7, 8));
    assert_eq!(read(folder.path(), "lineitem.orc"), lineitem);
    assert_eq!(write(&job).rows(), 0, "all of it is there");
}

#[test]
fn other_files_are_not_touched_unless_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let mine = folder.path().join("nation.csv");
    fs::write(&mine, "mine").expect("a file");
    let mut job = job(Format::Csv, folder.path());
    job.tables = vec![Table::Nation, Table::Region];
    let said = refusal(&job);
    assert!(said.contains("nation.csv is there already"), "{said}");
    assert!(said.contains("it has no receipt"), "{said}");
    assert_eq!(fs::read(&mine).expect("still there"), b"mine");
    assert!(!folder.path().join("region.csv").exists());

    job.overwrite = true;
    write(&job);
    assert_ne!(fs::read(&mine).expect("replaced"), b"mine");
    job.overwrite = false;
    job.scale = Scale::new(0.02).expect("in range");
    let said = refusal(&job);
    assert!(said.contains("--sf 0.01"), "{said}");
}

/// Readers take all parts from 1 on, so the old third part would be read as well.
#[test]
fn fewer_parts_are_refused_while_later_ones_are_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut job = job(Format::Csv, folder.path());
    job.tables = vec![Table::Nation];
    job.split = Split::Parts(3);
    write(&job);
    let first = read(folder.path(), "nation/nation.1.csv");
    job.overwrite = true;
    for split in [Split::Parts(2), Split::Part { part: 1, parts: 2 }] {
        job.split = split;
        let said = refusal(&job);
        assert!(said.contains("nation.3.csv is there"), "{said}");
    }
    assert_eq!(read(folder.path(), "nation/nation.1.csv"), first);

    fs::remove_file(folder.path().join("nation/nation.3.csv")).expect("it is there");
    job.split = Split::Parts(2);
    assert_eq!(write(&job).rows(), 25);
}

/// A format whose files take only the pieces of their own encoders.
struct Numbered(u64);

struct NumberedFile(u64, Out);

impl format::Format for Numbered {
    type Encoder = Numbered;
    type File = NumberedFile;

    fn encoder(&self) -> Result<Numbered, Refused> {
        Ok(Numbered(self.0))
    }

    fn file(&self, out: Out) -> Result<NumberedFile, Refused> {
        Ok(NumberedFile(self.0, out))
    }
}

impl Encode for Numbered {
    type Piece = u64;

    fn append(&mut self, _batch: &Batch, _pool: &TextPool) -> Result<(), Refused> {
        Ok(())
    }

    fn finish(&mut self) -> Result<u64, Refused> {
        Ok(self.0)
    }
}

impl Append for NumberedFile {
    type Piece = u64;

    fn append(&mut self, piece: u64) -> Result<u64, Refused> {
        if piece != self.0 {
            let reason = format!("a piece for file {piece} came to file {}", self.0);
            return Err(Refused::Reason(reason));
        }
        Ok(0)
    }

    fn finish(self) -> Result<Out, Refused> {
        Ok(self.1)
    }
}

/// The buffers of a piece go back to the format of its file, so only encoders of that format may
/// take them from there.
#[test]
fn a_file_gets_pieces_of_its_own_encoders_only() {
    let scale = Scale::new(SCALE).expect("in range");
    let mut job = Job::new(scale, Format::Parquet, Destination::Nowhere);
    job.tables = vec![Table::Orders];
    job.split = Split::Parts(3);
    job.sink = SinkKind::Null;
    job.jobs = 1;
    let made = Cell::new(0);
    let report = run_with(&job, &Progress::default(), |_| {
        Ok(Numbered(made.replace(made.get() + 1)))
    });
    let report = report.expect("each file has encoders of its own");
    assert_eq!((report.files.len(), report.rows()), (3, 15_000));
}

/// TBL is the same in all modes; pages of codes are not those of values.
#[test]
fn a_file_of_another_mode_is_kept_only_where_its_bytes_are_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    for (format, mode) in [
        (Format::Tbl, Mode::Baseline),
        (Format::Tbl, Mode::ZeroCopy),
        (Format::Parquet, Mode::ZeroCopy),
    ] {
        let mut job = job(format, &folder.path().join(format!("{format}-{mode}")));
        job.tables = vec![Table::Supplier];
        job.mode = mode;
        write(&job);
        job.mode = Mode::TrueZeroCopy;
        match format {
            Format::Tbl => assert!(write(&job).files[0].kept),
            _ => assert!(refusal(&job).contains("--mode zero-copy"), "{format}"),
        }
    }
}

#[test]
fn a_mode_of_another_program_is_refused_with_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    for format in [Format::Parquet, Format::Orc, Format::Csv] {
        let mut job = job(format, folder.path());
        job.mode = Mode::Baseline;
        let said = refusal(&job);
        assert!(said.contains("dyno-sql"), "{said}");
        assert!(said.contains(format.name()), "{said}");
    }
    let left = fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(left, 0);
}

#[test]
fn a_job_that_is_stopped_leaves_no_half_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let progress = Progress::default();
    progress.stop();
    let job = job(Format::Parquet, folder.path());
    let stopped = run(&job, &progress);
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    let left = fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(left, 0);
}

#[test]
fn bad_jobs_are_refused_with_what_and_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let with = |change: &dyn Fn(&mut Job)| {
        let mut job = job(Format::Parquet, folder.path());
        change(&mut job);
        refusal(&job)
    };
    let said = with(&|job| job.memory_bytes = 1 << 20);
    assert!(said.contains("2 threads need at least"), "{said}");
    let said = with(&|job| job.split = Split::Part { part: 9, parts: 8 });
    assert!(said.contains("part 9 of 8"), "{said}");
    let said = with(&|job| job.layout.compression = Compression::Zlib);
    assert!(said.contains("zlib is for ORC"), "{said}");
    let said = with(&|job| job.layout.columns = vec![("l_comment".into(), "zstd:99".into())]);
    assert!(said.contains("from 1 to 22"), "{said}");
    let said = with(&|job| job.layout.columns = vec![("l_colour".into(), "plain".into())]);
    assert!(said.contains("l_colour"), "{said}");
    let said = with(&|job| job.sink = SinkKind::Stdout);
    assert!(said.contains("one file"), "{said}");
    let said = with(&|job| job.tables.clear());
    assert!(said.contains("no table"), "{said}");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let said = with(&|job| job.destination = Destination::Folder(file.clone()));
    assert!(said.contains("file"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
}
