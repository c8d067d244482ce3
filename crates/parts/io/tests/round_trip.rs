//! What goes into a sink comes out of a source, whatever the sizes.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

use std::path::Path;

use dyno_io::{
    Access, BlockFile, Caching, Counting, DirectSink, DirectSource, Durability, FileSink,
    FileSource, IoError, NullSink, Ring, Sink, Source, UringSink, ZeroSource,
};
use proptest::prelude::*;

/// `None` where the file system of the test has no direct I/O; the cached forms are tested anyway.
fn sinks_and_sources(
    path: &Path,
    data: &[u8],
    part_bytes: usize,
    block_bytes: usize,
) -> Vec<Box<dyn Source>> {
    let write = |sink: &mut dyn Sink| {
        for part in data.chunks(part_bytes) {
            sink.write(part).unwrap();
        }
        assert_eq!(sink.finish(Durability::Stable).unwrap(), data.len() as u64);
        assert_eq!(std::fs::metadata(path).unwrap().len(), data.len() as u64);
    };
    write(&mut FileSink::create(path, block_bytes).unwrap());
    let mut sources: Vec<Box<dyn Source>> = vec![Box::new(FileSource::open(path).unwrap())];
    match DirectSink::create(path, block_bytes) {
        Ok(mut sink) => {
            write(&mut sink);
            sources.push(Box::new(DirectSource::open(path, block_bytes).unwrap()));
        }
        Err(IoError::DirectRefused { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let file = || BlockFile::open(path, Access::Create, Caching::Direct);
    if let Ok(file) = file() {
        // Too little room and too much are cut to what was written.
        let expected_bytes = Some(data.len() as u64 / 2 + part_bytes as u64);
        write(&mut DirectSink::over(
            Box::new(file),
            block_bytes,
            expected_bytes,
        ));
        sources.push(Box::new(FileSource::open(path).unwrap()));
    }
    match file().and_then(|file| Ring::new(file, part_bytes % 5)) {
        Ok(ring) => {
            write(&mut UringSink::over(ring, block_bytes, Some(10_000)));
            sources.push(Box::new(FileSource::open(path).unwrap()));
        }
        Err(IoError::DirectRefused { .. } | IoError::UringRefused { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    sources
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn bytes_come_back(
        len in 0usize..40_000, part_bytes in 1usize..9_000, block_bytes in 1usize..20_000,
        offset in 0usize..45_000, want in 0usize..45_000,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let data: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
        let path = directory.path().join("data");
        for mut source in sinks_and_sources(&path, &data, part_bytes, block_bytes) {
            prop_assert_eq!(source.len_bytes(), len as u64);
            let mut into = vec![0xee; want];
            let filled = source.read_at(offset as u64, &mut into).unwrap();
            let expected = &data[offset.min(len)..(offset + want).min(len).max(offset.min(len))];
            prop_assert_eq!(&into[..filled], expected);
        }
    }
}

#[test]
fn writing_may_go_on_after_finish() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let go_on = |sink: &mut dyn Sink| {
        sink.write(b"one").unwrap();
        sink.finish(Durability::Handed).unwrap();
        sink.write(b"two").unwrap();
        sink.finish(Durability::Handed).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"onetwo");
    };
    if let Ok(mut sink) = DirectSink::create(&path, 4096) {
        go_on(&mut sink);
    }
    if let Ok(mut sink) = UringSink::create(&path, 4096, 2) {
        go_on(&mut sink);
    }
}

#[test]
fn unaligned_direct_io_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let Ok(file) = BlockFile::open(&path, Access::Create, Caching::Direct) else {
        return;
    };
    let error = file.write_at(512, &[0; 100]).unwrap_err().to_string();
    assert!(
        error.ends_with("data of 100 bytes at 512 is not aligned to 4096 bytes"),
        "{error}"
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = FileSource::open(Path::new("/no/such/file"))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("cannot open /no/such/file: "), "{error}");
}

#[test]
fn counting_sees_what_passes() {
    let mut sink = Counting::new(NullSink::default());
    sink.write(&[0; 10]).unwrap();
    sink.write(&[0; 5]).unwrap();
    assert_eq!(sink.finish(Durability::Stable).unwrap(), 15);
    let counts = sink.counts();
    assert_eq!(
        (counts.writes, counts.written_bytes, counts.syncs),
        (2, 15, 1)
    );
    let mut source = Counting::new(ZeroSource::new(7));
    assert_eq!(source.read_at(4, &mut [1; 10]).unwrap(), 3);
    assert_eq!(source.counts().read_bytes, 3);
}
