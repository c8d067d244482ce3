//! Which sink a target gets, and what a stream does. Has `unsafe`: a test takes io_uring away from
//! its own thread by a seccomp filter.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use dyno_io::{
    Buffering, Durability, IoError, Sink, SinkKind, SinkWriter, StdoutSink, UringSink, open,
};

#[test]
fn names_come_back() {
    for kind in SinkKind::ALL {
        assert_eq!(kind.to_string().parse::<SinkKind>().unwrap(), kind);
    }
    let error = "disk".parse::<SinkKind>().unwrap_err().to_string();
    assert_eq!(
        error,
        "\"disk\" is not a sink: give auto, std, direct, uring, null or stdout"
    );
}

/// The kernel's null device has no direct I/O.
#[test]
fn auto_falls_back_with_the_reason_and_others_are_refused() {
    let path = Path::new("/dev/null");
    let (mut sink, chosen) = open(SinkKind::Auto, path, &Buffering::default()).unwrap();
    assert_eq!(
        chosen.to_string(),
        "std: through the page cache, as /dev/null cannot be opened past the page cache: its file \
         system refuses O_DIRECT"
    );
    sink.write(b"gone").unwrap();
    sink.finish(Durability::Handed).unwrap();
    for kind in [SinkKind::Direct, SinkKind::Uring] {
        let refused = open(kind, path, &Buffering::default());
        assert!(matches!(refused, Err(IoError::DirectRefused { .. })));
    }
}

#[test]
fn a_full_disk_is_named() {
    let path = Path::new("/dev/full");
    let (mut sink, _) = open(SinkKind::Std, path, &Buffering::default()).unwrap();
    let error = sink.write(&vec![0; 2 << 20]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    let text = error.to_string();
    assert!(
        text.starts_with("cannot write to /dev/full: No space left"),
        "{text}"
    );
}

/// Makes io_uring_setup fail with EPERM in this thread, as containers do.
fn forbid_io_uring() {
    let load = libc::sock_filter {
        code: 0x20,
        jt: 0,
        jf: 0,
        k: 0,
    };
    let number = libc::SYS_io_uring_setup as u32;
    let unless = libc::sock_filter {
        code: 0x15,
        jt: 0,
        jf: 1,
        k: number,
    };
    let refuse = |k| libc::sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k,
    };
    let mut filter = [
        load,
        unless,
        refuse(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        refuse(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program and its filter outlive both calls, which copy them.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(
            libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program),
            0
        );
    }
}

#[test]
fn without_io_uring_auto_takes_direct_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let probe = open(SinkKind::Direct, &path, &Buffering::default());
    if let Err(error) = probe {
        println!("skipped: sink direct: {error}");
        return;
    }
    let refused = std::thread::spawn(move || {
        forbid_io_uring();
        let refused = UringSink::create(&path, 4096, 4).unwrap_err();
        let (_, chosen) = open(SinkKind::Auto, &path, &Buffering::default()).unwrap();
        assert_eq!(chosen.kind, SinkKind::Direct);
        (refused, chosen.to_string())
    });
    let (refused, chosen) = refused.join().unwrap();
    assert!(matches!(refused, IoError::UringRefused { .. }));
    let reason = "cannot be written through io_uring: it is forbidden here, by \
                  kernel.io_uring_disabled or a seccomp filter (Operation not permitted";
    assert!(refused.to_string().contains(reason), "{refused}");
    assert!(chosen.starts_with("direct: with O_DIRECT, as "), "{chosen}");
    assert!(chosen.contains(reason), "{chosen}");
}

/// Dropping a sink whose writes go on waits for them; the file may then be read or removed.
#[test]
fn a_ring_is_dropped_with_writes_in_flight() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    for _ in 0..50 {
        match UringSink::create(&path, 64 << 10, 8) {
            Ok(mut sink) => sink.write(&vec![1; 640 << 10]).unwrap(),
            Err(error) => return println!("skipped: sink uring: {error}"),
        }
    }
}

/// A file of no more than 1 MiB: the kernel cuts the write that crosses the line short, and refuses
/// the next. Runs in a process of its own, since the limit is one of processes.
#[test]
fn errors_of_writes_in_flight_are_not_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    if let Ok(path) = std::env::var("DYNO_IO_LIMITED") {
        return limited(Path::new(&path));
    }
    if let Err(error) = UringSink::create(&path, 4096, 4) {
        return println!("skipped: sink uring: {error}");
    }
    let limited = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "errors_of_writes_in_flight_are_not_lost"])
        .env("DYNO_IO_LIMITED", &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&limited.stdout);
    assert!(limited.status.success(), "{text}");
}

fn limited(path: &Path) {
    let mut sink = UringSink::create(path, 300 << 10, 4).unwrap();
    let written = (0..40).try_for_each(|_| sink.write(&[5; 100_000]));
    let failed = written.and_then(|()| sink.finish(Durability::Handed).map(drop));
    let error = failed.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
    let again = sink.finish(Durability::Handed).unwrap_err();
    assert!(matches!(again, IoError::Broken { .. }), "{again}");
}

#[test]
fn a_stream_takes_all_and_a_closed_one_says_so() {
    let (mut reader, writer) = io::pipe().unwrap();
    let mut sink = StdoutSink::over(File::from(OwnedFd::from(writer)), "the pipe", 10);
    sink.write(b"small,").unwrap();
    sink.write(b"and larger than the buffer").unwrap();
    assert_eq!(sink.finish(Durability::Stable).unwrap(), 32);
    let mut taken = [0; 32];
    reader.read_exact(&mut taken).unwrap();
    assert_eq!(&taken, b"small,and larger than the buffer");
    drop(reader);
    let error = sink.write(&[0; 100]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot write to the pipe: its reader has closed it"
    );
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn a_writer_keeps_the_error() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let sink = StdoutSink::over(File::from(OwnedFd::from(writer)), "the pipe", 0);
    let mut writer = SinkWriter::new(sink);
    let error = writer.write_all(b"x").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    let below = IoError::below(error).unwrap();
    assert!(matches!(below, IoError::ClosedPipe { .. }));
    assert!(IoError::below(io::Error::other("else")).is_err());
}
