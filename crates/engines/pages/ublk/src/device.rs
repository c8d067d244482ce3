//! A device from its creation to its end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use dyno_pages_disk::{Disk, join_all};

use crate::UblkError;
use crate::control::{Control, open};
use crate::layout::{Info, MOST_DEPTH, Order, Params};
use crate::queue::Queue;

/// How a device is made.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Queues, each with a thread of its own; best one for each processor.
    pub queues: u16,
    /// The most requests of one queue that are under way.
    pub depth: u16,
    /// The most bytes of one request: a multiple of 4096, at most 1 MiB.
    pub most_bytes: u32,
    /// Whether the device refuses writes.
    pub read_only: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            queues: std::thread::available_parallelism()
                .map_or(1, |count| count.get().min(64) as u16),
            depth: 64,
            most_bytes: 128 << 10,
            read_only: false,
        }
    }
}

/// A device that this process serves. Dropping it leaves the device without a daemon, and its users
/// wait.
#[derive(Debug)]
pub struct Device {
    number: u32,
    threads: Vec<JoinHandle<Result<(), UblkError>>>,
}

/// How often an order is repeated while the driver is still busy with the death of a daemon, which
/// takes a few seconds at most.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

impl Device {
    /// Makes a new device on `disk`.
    ///
    /// # Errors
    /// [`UblkError::NotHere`], [`UblkError::Settings`], or when the driver refuses.
    pub fn create(disk: &Arc<Disk>, settings: Settings) -> Result<Self, UblkError> {
        check(settings)?;
        let mut control = Control::open()?;
        let wanted = Info::wanted(settings.queues, settings.depth, settings.most_bytes);
        let info = control.add(wanted)?;
        let params = Params::new(disk.bytes(), info.most_bytes, settings.read_only);
        let started = control
            .set_params(info.number, params)
            .and_then(|()| Self::serve(info, disk))
            .and_then(|device| {
                control.order(
                    "start",
                    info.number,
                    Order::Start,
                    std::process::id().into(),
                )?;
                Ok(device)
            });
        if started.is_err() {
            // A half-made device is of no use, and the caller gets the error that it failed with.
            let _ = delete(info.number);
        }
        started
    }

    /// Takes over device `number`, whose daemon has died, with the disk of the same store. What was
    /// under way is done again, so a write may be stored twice, with the same bytes.
    ///
    /// # Errors
    /// If the device does not exist, or its daemon lives.
    pub fn recover(number: u32, disk: &Arc<Disk>) -> Result<Self, UblkError> {
        let mut control = Control::open()?;
        patiently(|| control.order("recover", number, Order::StartRecovery, 0))?;
        let info = control.info(number)?;
        let device = Self::serve(info, disk)?;
        let process = std::process::id().into();
        control.order("take over", number, Order::EndRecovery, process)?;
        Ok(device)
    }

    fn serve(info: Info, disk: &Arc<Disk>) -> Result<Self, UblkError> {
        let path = format!("/dev/ublkc{}", info.number);
        let mut file = None;
        // The file appears, and is free again, only a moment after the driver's answer.
        patiently(|| {
            file = Some(Arc::new(open(&path)?));
            Ok(())
        })?;
        let file = file.ok_or_else(|| UblkError::Settings("no file".to_owned()))?;
        let mut threads = Vec::new();
        for number in 0..info.queues {
            let queue = Queue::new(Arc::clone(&file), number, info.depth, info.most_bytes)?;
            let disk = Arc::clone(disk);
            let thread = std::thread::Builder::new()
                .name(format!("ublk-{number}"))
                .spawn(move || queue.run(&disk))
                .map_err(UblkError::system("start a thread"))?;
            threads.push(thread);
        }
        Ok(Self {
            number: info.number,
            threads,
        })
    }

    /// The number of the device, for [`Device::recover`] and [`delete`].
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The path of the block device under /dev.
    pub fn path(&self) -> PathBuf {
        Self::path_of(self.number)
    }

    /// The path of device `number`, which need not exist.
    pub fn path_of(number: u32) -> PathBuf {
        PathBuf::from(format!("/dev/ublkb{number}"))
    }

    /// The number of the block device at `path`, if it is one of ublk.
    pub fn number_of(path: &Path) -> Option<u32> {
        let name = path.to_str()?.strip_prefix("/dev/ublkb")?;
        name.parse().ok()
    }

    /// Whether all queues have ended, by [`delete`] or a failure of each.
    pub fn has_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits until the device is deleted.
    ///
    /// # Errors
    /// The first failure of a queue.
    pub fn wait(self) -> Result<(), UblkError> {
        join_all(self.threads)
    }
}

/// Ends device `number`, whichever process serves it; its users get errors.
///
/// # Errors
/// If the device does not exist.
pub fn delete(number: u32) -> Result<(), UblkError> {
    let mut control = Control::open()?;
    // A failed stop does not keep the device from being deleted; it is reported if the deletion
    // succeeds.
    let stopped = control.order("stop", number, Order::Stop, 0);
    control
        .order("delete", number, Order::Delete, 0)
        .and(stopped)
}

fn check(settings: Settings) -> Result<(), UblkError> {
    let wrong = |what: String| Err(UblkError::Settings(what));
    if settings.queues == 0 {
        return wrong("a device needs at least one queue".to_owned());
    }
    if settings.depth == 0 || settings.depth > MOST_DEPTH {
        return wrong(format!(
            "a queue of {} requests: 1 to 4096 are possible",
            settings.depth
        ));
    }
    let bytes = settings.most_bytes;
    if bytes == 0 || bytes > 1 << 20 || !bytes.is_multiple_of(4096) {
        return wrong(format!(
            "requests of {bytes} bytes: multiples of 4096 up to 1 MiB are possible"
        ));
    }
    Ok(())
}

/// Repeats a step while the driver is busy with what was before.
fn patiently(mut step: impl FnMut() -> Result<(), UblkError>) -> Result<(), UblkError> {
    let mut tries = 0;
    loop {
        let error = match step() {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let (UblkError::Command { source, .. } | UblkError::NotHere { source, .. }) = &error else {
            return Err(error);
        };
        let busy = matches!(source.raw_os_error(), Some(libc::EBUSY | libc::ENOENT))
            || source.kind() == io::ErrorKind::ResourceBusy;
        tries += 1;
        if !busy || tries == TRIES {
            return Err(error);
        }
        std::thread::sleep(PAUSE);
    }
}
