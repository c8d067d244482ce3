//! A block device on a file. Has `unsafe`: the calls of the loop driver (linux/loop.h).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::FuseError;

/// How a loop device is made.
#[derive(Debug, Clone, Copy)]
pub struct LoopOptions {
    /// Bytes of a sector: 512, 1024, 2048 or 4096. With 4096, the default, every write is of whole
    /// pages.
    pub sector_bytes: u32,
    /// Whether the device refuses writes.
    pub read_only: bool,
}

impl Default for LoopOptions {
    fn default() -> Self {
        Self {
            sector_bytes: 4096,
            read_only: false,
        }
    }
}

/// A block device of the loop driver. Dropping this leaves the device in place;
/// [`LoopDevice::detach`] ends it.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
}

/// Which processor completes a request of the device.
#[derive(Debug, Clone, Copy)]
enum Completion {
    /// The one that the reply came on, if it shares a cache with the submitter's: what a new loop
    /// device does. On a small machine that is the one that is busy with serving.
    Server,
    /// The one that the request was submitted on, which takes work from the serving threads.
    Submitter,
}

const GET_FREE: u32 = 0x4c82;
const CONFIGURE: u32 = 0x4c0a;
const CLEAR: u32 = 0x4c01;
/// `struct loop_config`: file, sector size, `struct loop_info64` from byte 8 on.
const CONFIG_BYTES: usize = 304;
const FLAGS_AT: usize = 8 + 52;
const NAME_AT: usize = 8 + 56;
const NAME_BYTES: usize = 63;
const READ_ONLY: u32 = 1;
/// Direct I/O: no second page cache above that of the file.
const DIRECT: u32 = 16;
/// How often a free device is searched for, because another process may take it first.
const TRIES: usize = 16;

impl LoopDevice {
    /// Attaches a free loop device to `file` (Linux 5.8 and later).
    ///
    /// # Errors
    /// If the process is not root's, or no loop device is free.
    pub fn attach(file: &Path, options: LoopOptions) -> Result<Self, FuseError> {
        let opened = open(file, !options.read_only).map_err(FuseError::system("open", file))?;
        let control = Path::new("/dev/loop-control");
        let driver = open(control, true).map_err(FuseError::system("open", control))?;
        let mut config = configuration(&opened, file, options);
        let mut last = FuseError::System {
            what: "find a free loop device for",
            path: file.to_owned(),
            source: io::ErrorKind::ResourceBusy.into(),
        };
        for _ in 0..TRIES {
            // SAFETY: the call takes no structure.
            let number = unsafe { libc::ioctl(driver.as_raw_fd(), GET_FREE as _) };
            if number < 0 {
                return Err(FuseError::last_os_error(
                    "find a free loop device with",
                    control,
                ));
            }
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = open(&path, true).map_err(FuseError::system("open", &path))?;
            // SAFETY: the structure has its length, and lives through the call.
            let done =
                unsafe { libc::ioctl(device.as_raw_fd(), CONFIGURE as _, config.as_mut_ptr()) };
            if done == 0 {
                let made = Self { path };
                made.complete_at(Completion::Submitter);
                return Ok(made);
            }
            // Between the search and this call another process can take the device. Only that is
            // tried again.
            last = FuseError::last_os_error("configure", &path);
            if !matches!(&last, FuseError::System { source, .. } if source.raw_os_error() == Some(libc::EBUSY))
            {
                break;
            }
        }
        Err(last)
    }

    /// Chooses where completions run. A device whose setting cannot be written works too, though
    /// slower.
    fn complete_at(&self, completion: Completion) {
        let value = match completion {
            Completion::Server => "1",
            Completion::Submitter => "2",
        };
        if let Some(name) = self.path.file_name() {
            let setting = Path::new("/sys/block").join(name).join("queue/rq_affinity");
            let _ = std::fs::write(setting, value);
        }
    }

    /// A device that was made before, by its path. Whether it exists is not checked.
    pub fn from_path(path: PathBuf) -> Self {
        Self { path }
    }

    /// The file that the device is attached to, as the system shows it; `None` if it is attached to
    /// none. It is read from sysfs, because opening the file would wait for the file's own server.
    pub fn backing_file(&self) -> Option<PathBuf> {
        let name = self.path.file_name()?;
        let shown = Path::new("/sys/block").join(name).join("loop/backing_file");
        let shown = std::fs::read_to_string(shown).ok()?;
        Some(PathBuf::from(shown.trim_end_matches('\n')))
    }

    /// The path of the block device under /dev.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Detaches the device. One that is in use is detached when its last user closes it.
    ///
    /// # Errors
    /// If it was detached already.
    pub fn detach(self) -> Result<(), FuseError> {
        let device = open(&self.path, false).map_err(FuseError::system("open", &self.path))?;
        // The setting outlives the attachment, and the device's next user expects the usual one.
        self.complete_at(Completion::Server);
        // SAFETY: the call takes no structure.
        match unsafe { libc::ioctl(device.as_raw_fd(), CLEAR as _, 0) } {
            0 => Ok(()),
            _ => Err(FuseError::last_os_error("detach", &self.path)),
        }
    }
}

fn open(path: &Path, write: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(write).open(path)
}

fn configuration(file: &File, path: &Path, options: LoopOptions) -> [u8; CONFIG_BYTES] {
    let mut config = [0; CONFIG_BYTES];
    let mut put = |at: usize, value: u32| config[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    put(0, file.as_raw_fd() as u32);
    put(4, options.sector_bytes);
    put(
        FLAGS_AT,
        DIRECT | if options.read_only { READ_ONLY } else { 0 },
    );
    // The name is for lists of devices; what does not fit is cut off.
    let name = path.as_os_str().as_encoded_bytes();
    let bytes = name.len().min(NAME_BYTES);
    config[NAME_AT..NAME_AT + bytes].copy_from_slice(&name[..bytes]);
    config
}
