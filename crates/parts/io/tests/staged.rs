//! A file has its final name when it is complete, and not before. What a crash leaves is in
//! `dyno-sim`'s tests.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

use std::path::Path;

use dyno_io::{Buffering, Existing, IoError, Output, Sink, SinkKind, stage};

const KINDS: [SinkKind; 4] = [
    SinkKind::Auto,
    SinkKind::Std,
    SinkKind::Direct,
    SinkKind::Uring,
];

/// `None`, with the line that counts it, where this machine refuses the kind.
fn staged(kind: SinkKind, path: &Path, existing: Existing) -> Option<Box<dyn Output>> {
    match stage(kind, path, existing, &Buffering::default()) {
        Ok((output, _)) => Some(output),
        Err(e @ (IoError::DirectRefused { .. } | IoError::UringRefused { .. })) => {
            println!("skipped: sink {kind}: {e}");
            None
        }
        Err(error) => panic!("{kind}: {error}"),
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_appears_when_it_is_published() {
    for kind in KINDS {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lineitem.parquet");
        let Some(mut output) = staged(kind, &path, Existing::Refuse) else {
            continue;
        };
        let data: Vec<u8> = (0..5_000_001u32).map(|i| (i % 251) as u8).collect();
        for part in data.chunks(700_001) {
            output.write(part).unwrap();
        }
        assert_eq!(names(directory.path()), [".lineitem.parquet.partial"]);
        assert_eq!(output.publish().unwrap(), data.len() as u64);
        assert_eq!(names(directory.path()), ["lineitem.parquet"]);
        assert!(std::fs::read(&path).unwrap() == data, "{kind}");
    }
}

#[test]
fn what_is_not_published_is_removed() {
    for kind in KINDS {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        if let Some(mut output) = staged(kind, &path, Existing::Refuse) {
            output.write(&vec![7; 3 << 20]).unwrap();
        }
        assert_eq!(names(directory.path()), [""; 0]);
    }
}

#[test]
fn an_existing_file_is_refused_unless_it_may_be_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    std::fs::write(&path, b"old").unwrap();
    let refused = stage(
        SinkKind::Std,
        &path,
        Existing::Refuse,
        &Buffering::default(),
    );
    let error = refused.unwrap_err();
    let expected = format!("{} exists, and may not be replaced", path.display());
    assert_eq!(error.to_string(), expected);
    let mut output = staged(SinkKind::Std, &path, Existing::Replace).unwrap();
    output.write(b"new").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    output.publish().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert_eq!(names(directory.path()), ["a"]);
}

#[test]
fn a_name_taken_meanwhile_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let output = staged(SinkKind::Std, &path, Existing::Refuse).unwrap();
    std::fs::write(&path, b"theirs").unwrap();
    assert!(matches!(output.publish(), Err(IoError::Exists { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    assert_eq!(names(directory.path()), ["a"]);
}

#[test]
fn a_leftover_is_overwritten_and_a_second_writer_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    std::fs::write(directory.path().join(".a.partial"), [1; 100]).unwrap();
    let mut first = staged(SinkKind::Std, &path, Existing::Refuse).unwrap();
    first.write(b"short").unwrap();
    let second = stage(
        SinkKind::Std,
        &path,
        Existing::Refuse,
        &Buffering::default(),
    );
    assert!(matches!(second, Err(IoError::Busy { .. })));
    first.publish().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"short");
    assert_eq!(names(directory.path()), ["a"]);
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let missing = Path::new("/no/such/directory/a");
    let error = stage(
        SinkKind::Auto,
        missing,
        Existing::Refuse,
        &Buffering::default(),
    );
    let text = error.unwrap_err().to_string();
    assert!(
        text.starts_with("cannot create /no/such/directory/.a.partial: No such file"),
        "{text}"
    );
    let nameless = stage(
        SinkKind::Auto,
        Path::new("/"),
        Existing::Refuse,
        &Buffering::default(),
    );
    let text = nameless.unwrap_err().to_string();
    assert_eq!(text, "cannot create /: it names no file");
}
