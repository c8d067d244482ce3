//! Jobs of the mode `baseline`, in every format.

use std::fs;
use std::path::Path;

use dyno_tpch::{Scale, Table};
use dyno_tpch_baseline::run;
use dyno_tpch_files::{Destination, Error, Format, Job, Mode, Progress, Report, SinkKind};

fn job(format: Format, folder: &Path) -> Job {
    let scale = Scale::new(0.01).expect("in range");
    let mut job = Job::new(scale, format, Destination::Folder(folder.to_path_buf()));
    job.sink = SinkKind::Std;
    job.mode = Mode::Baseline;
    job
}

fn write(job: &Job) -> Report {
    run(job, &Progress::default()).expect("a good job")
}

#[test]
fn bytes_do_not_depend_on_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    for format in Format::ALL {
        let mut before: Option<Vec<Vec<u8>>> = None;
        for jobs in [1, 3] {
            let here = folder.path().join(format!("{format}-{jobs}"));
            let mut job = job(format, &here);
            job.tables = vec![Table::Orders, Table::Supplier];
            job.jobs = jobs;
            job.layout.group_rows = Some(2_000);
            let report = write(&job);
            assert_eq!(report.rows(), 15_000 + 100);
            let read = |table| fs::read(here.join(format!("{table}.{format}")));
            let bytes = ["orders", "supplier"].map(|table| read(table).expect("a finished file"));
            let length: u64 = bytes.iter().map(|bytes| bytes.len() as u64).sum();
            assert_eq!(report.bytes(), length);
            assert!(before.is_none_or(|before| before == bytes), "{format}");
            before = Some(bytes.into());
        }
    }
}

/// TBL is the same in all modes; the library that writes CSV quotes less of it.
#[test]
fn a_file_of_another_mode_is_kept_only_where_its_bytes_are_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    for format in Format::ALL {
        let mut job = job(format, folder.path());
        job.tables = vec![Table::Supplier];
        write(&job);
        job.mode = Mode::TrueZeroCopy;
        let again = dyno_tpch_files::run(&job, &Progress::default());
        match (format, again) {
            (Format::Tbl, Ok(report)) => assert!(report.files[0].kept),
            (_, Err(error)) => {
                assert!(error.to_string().contains("--mode baseline"), "{error}");
            }
            (_, Ok(_)) => panic!("{format} was kept"),
        }
    }
}

#[test]
fn a_job_of_another_mode_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut job = job(Format::Parquet, folder.path());
    job.mode = Mode::ZeroCopy;
    let refused = run(&job, &Progress::default()).expect_err("another mode");
    assert!(matches!(refused, Error::Together(_)), "{refused}");
}
