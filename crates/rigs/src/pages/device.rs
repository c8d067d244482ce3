//! `pages-device`: a block device under fio, with an asynchronous engine and direct I/O, filled
//! with real pages first. Our device is made by this program's public commands. What fio reports to
//! have read and written is compared with what the process behind the device served.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use dyno_record::Answer;
use dyno_suite::protocol::{Reply, Request};
use serde_json::Value;

use super::fio::{self, Target, VERIFYING};
use super::own::{Server, own, store_name};
use super::passes::SLICE;
use super::source::{Source, hash_of};
use super::system::{Worker, aligned};
use super::zram::Zram;
use super::{PagesError, bytes_of, files, store};
use crate::{Params, RigError};

/// The device under test, which is removed when this is dropped.
enum Device {
    Attached(Attached),
    Served(Served),
    Zram(Zram),
    Memory { _file: File, path: PathBuf },
}

/// A device that `dyno pages attach` made.
struct Attached {
    name: String,
    path: PathBuf,
    null: bool,
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Err(error) = own(&["pages", "detach", "--name", &self.name]) {
            eprintln!("{} stays: {error}", self.path.display());
        }
    }
}

/// A device that `dyno pages serve` serves.
struct Served {
    name: String,
    socket: PathBuf,
    _process: Server,
}

impl Device {
    fn open(
        peer: Option<&str>,
        front: &str,
        pages: u64,
        scratch: &Path,
    ) -> Result<Device, PagesError> {
        match (peer, front) {
            (None, "device") => attach(pages, false),
            (None, "null") => attach(pages, true),
            (None, "nbd") => serve(pages, scratch),
            (None, other) => Err(PagesError::Refused(format!(
                "no front is called `{other}`; there are: device, null, nbd"
            ))),
            (Some("tmpfs"), _) => {
                let file = files::in_memory(bytes_of(pages))?;
                let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
                let path = PathBuf::from(format!("/proc/{}/fd/{fd}", std::process::id()));
                Ok(Device::Memory { _file: file, path })
            }
            (Some(peer), _) => match peer.strip_prefix("zram-") {
                Some(algorithm) => Zram::new(algorithm, bytes_of(pages)).map(Device::Zram),
                None => Err(PagesError::Refused(format!(
                    "no system is called `{peer}` here"
                ))),
            },
        }
    }

    fn target(&self) -> Target {
        match self {
            Device::Attached(attached) => Target::Path(attached.path.clone()),
            Device::Served(served) => Target::Nbd(served.socket.clone(), served.name.clone()),
            Device::Zram(zram) => Target::Path(zram.path()),
            Device::Memory { path, .. } => Target::Path(path.clone()),
        }
    }

    /// The name under which `dyno pages status` lists it; `None` for a peer's device.
    fn name(&self) -> Option<&str> {
        match self {
            Device::Attached(attached) => Some(&attached.name),
            Device::Served(served) => Some(&served.name),
            Device::Zram(_) | Device::Memory { .. } => None,
        }
    }

    fn keeps_nothing(&self) -> bool {
        matches!(self, Device::Attached(Attached { null: true, .. }))
    }

    fn front(&self) -> &'static str {
        match self {
            Device::Attached(attached) => {
                if attached.path.to_string_lossy().contains("ublk") {
                    "ublk"
                } else {
                    "FUSE and a loop device"
                }
            }
            Device::Served(_) => "NBD over a Unix socket, fio as its client",
            Device::Zram(_) | Device::Memory { .. } => "the kernel's own",
        }
    }
}

fn attach(pages: u64, null: bool) -> Result<Device, PagesError> {
    let name = store_name();
    let [size, limit] = sizes(pages);
    let mut arguments = vec![
        "pages", "attach", "--name", &name, "--size", &size, "--limit", &limit, "--cpu", "0",
    ];
    arguments.extend(null.then_some("--null"));
    let path = PathBuf::from(own(&arguments)?.trim());
    Ok(Device::Attached(Attached { name, path, null }))
}

fn serve(pages: u64, scratch: &Path) -> Result<Device, PagesError> {
    let name = store_name();
    let socket = scratch.join("nbd");
    let listen = format!("unix:{}", socket.display());
    let [size, limit] = sizes(pages);
    let process = Server::start(&[
        "pages", "serve", "--name", &name, "--nbd", &listen, "--size", &size, "--limit", &limit,
        "--cpu", "0",
    ])?;
    Ok(Device::Served(Served {
        name,
        socket,
        _process: process,
    }))
}

fn sizes(pages: u64) -> [String; 2] {
    let (size, limit) = (bytes_of(pages), bytes_of(pages) + (32 << 20));
    [format!("{size}B"), format!("{limit}B")]
}

/// Bytes that the process behind our device has read and written for it so far.
fn served(name: &str) -> Result<(u64, u64), PagesError> {
    let text = own(&["pages", "status", "--name", name, "--json"])?;
    let status: Value = serde_json::from_str(&text)
        .map_err(|e| PagesError::Wrong(format!("dyno pages status: {e}")))?;
    let of = |name: &str| {
        let count = status[name].as_u64();
        count.ok_or_else(|| PagesError::Wrong(format!("dyno pages status has no {name}")))
    };
    Ok((of("read_bytes")?, of("written_bytes")?))
}

/// `pattern` (p1 to p6) for `seconds` on a device of `pages` pages of `class`, all written before.
/// What the device holds is compared before fio and, where fio only read, after it; where fio
/// wrote, it verifies a pass of its own at the end. Of ours, every byte that fio counts must have
/// been served by the process behind the device: a cache in between would be what is measured. A
/// front that keeps nothing is compared by that alone.
pub(crate) fn device(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let name = params.text("pattern")?;
    let seconds = params.count("seconds")?;
    let front = params.text_or_none("front")?.unwrap_or("device");
    let source = store::source(params)?;
    let Some(pattern) = fio::pattern(name) else {
        return Err(params.wrong("pattern", format!("`{name}` is not one of p1 to p6")));
    };
    let device = Device::open(peer, front, source.count(), &request.scratch)?;
    let (target, scratch) = (device.target(), &request.scratch);
    if !device.keeps_nothing() {
        fill(&target, &source, scratch)?;
        content(&target, &source, scratch)?;
    }
    // Counters before and after fio, so that filling and comparing do not count as served.
    let before = device.name().map(served).transpose()?;
    let report = fio::run(&target, &pattern, Some(seconds), scratch)?;
    let (windows, window_s) = fio::windows(scratch, seconds)?;
    let mut facts = BTreeMap::from([("front".to_string(), device.front().to_string())]);
    if let (Some(before), Some(name)) = (before, device.name()) {
        facts.insert(
            "served".to_string(),
            reached(before, served(name)?, &report)?,
        );
    }
    if device.keeps_nothing() {
        // There is nothing to compare.
    } else if pattern.writes {
        fio::run(&target, &VERIFYING, None, scratch)?;
    } else {
        content(&target, &source, scratch)?;
    }
    Ok(Reply {
        answer: Some(Answer {
            count: source.count(),
            checksum: format!("{:032x}", source.hash()),
        }),
        metrics: fio::metrics(&report, &pattern)?,
        facts,
        windows,
        window_s: Some(window_s),
        ..Reply::default()
    })
}

/// Whether the server saw at least the bytes that fio counted. It may see more, because the kernel
/// reads a device of its own accord.
fn reached(
    (read_before, written_before): (u64, u64),
    (read_after, written_after): (u64, u64),
    report: &Value,
) -> Result<String, PagesError> {
    let (read, written) = fio::moved(report);
    let (read_here, written_here) = (read_after - read_before, written_after - written_before);
    if read_here < read || written_here < written {
        return Err(PagesError::Wrong(format!(
            "fio read {read} bytes and wrote {written}, but only {read_here} and {written_here} came to the process \
             behind the device: a cache in between was measured"
        )));
    }
    let share = (read_here + written_here) as f64 / (read + written).max(1) as f64;
    Ok(format!("{share:.3} of fio's bytes"))
}

fn open(path: &Path) -> Result<Worker<'static>, PagesError> {
    let mut options = OpenOptions::new();
    // Direct I/O, because a cache of the device in this process's kernel would answer the
    // comparison instead of the device.
    options.read(true).write(true).custom_flags(libc::O_DIRECT);
    let file = options
        .open(path)
        .map_err(|e| PagesError::system(path.display().to_string(), e))?;
    Ok(Worker::File(file))
}

fn fill(target: &Target, source: &Source, scratch: &Path) -> Result<(), PagesError> {
    match target {
        Target::Path(path) => write(&mut open(path)?, source),
        Target::Nbd(..) => {
            let image = scratch.join("image");
            let file = File::create(&image).and_then(|file| {
                file.set_len(bytes_of(source.count()))?;
                Ok(file)
            });
            let file = file.map_err(|e| PagesError::system(image.display().to_string(), e))?;
            write(&mut Worker::File(file), source)?;
            nbd_copy(&image.display().to_string(), &target.uri())
        }
    }
}

fn write(worker: &mut Worker<'_>, source: &Source) -> Result<(), PagesError> {
    let buffer = aligned(SLICE);
    let mut first = 0;
    while first < source.count() {
        let count = SLICE.min((source.count() - first) as usize);
        for (number, page) in (first..).zip(&mut buffer[..count]) {
            source.fill(number, page);
        }
        worker.write(first, &buffer[..count])?;
        first += count as u64;
    }
    Ok(())
}

/// Compares the bytes of the device with the source.
fn content(target: &Target, source: &Source, scratch: &Path) -> Result<(), PagesError> {
    let mut worker = match target {
        Target::Path(path) => open(path)?,
        Target::Nbd(..) => {
            let image = scratch.join("image");
            let failed = |e| PagesError::system(image.display().to_string(), e);
            fs::remove_file(&image).map_err(failed)?;
            nbd_copy(&target.uri(), &image.display().to_string())?;
            Worker::File(File::open(&image).map_err(failed)?)
        }
    };
    let buffer = aligned(SLICE);
    let mut failure = Ok(());
    let found = hash_of(source.count(), |number| {
        let at = number as usize % SLICE;
        if at == 0 && failure.is_ok() {
            let wanted: Vec<u64> = (number..source.count().min(number + SLICE as u64)).collect();
            failure = worker.read(&wanted, &mut buffer[..wanted.len()]);
        }
        buffer[at]
    });
    failure?;
    if found == source.hash() {
        return Ok(());
    }
    Err(PagesError::Wrong(
        "the device holds other pages than were written".to_string(),
    ))
}

/// Copies an image to or from an NBD server with a client that is not ours.
fn nbd_copy(from: &str, to: &str) -> Result<(), PagesError> {
    let output = Command::new("nbdcopy")
        .args([from, to])
        .output()
        .map_err(|e| PagesError::system("nbdcopy (Debian: libnbd-bin)", e))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(PagesError::Wrong(format!("nbdcopy: {}", why.trim())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_not_served_was_a_cache() {
        let report =
            json!({ "jobs": [{ "read": { "io_bytes": 8192 }, "write": { "io_bytes": 4096 } }] });
        let all = reached((100, 200), (100 + 8192, 200 + 5000), &report).expect("all came");
        assert_eq!(all, "1.074 of fio's bytes");
        let cached = reached((100, 200), (100 + 8191, 200 + 5000), &report);
        let said = cached.expect_err("one byte less").to_string();
        assert!(said.contains("only 8191 and 5000"), "{said}");
    }
}
