//! A compressed block device of the kernel, added for one invocation and removed after it. Devices
//! that exist already belong to other programs and are left alone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::Duration;

use super::PagesError;
use crate::strays::is_gone;

const CONTROL: &str = "/sys/class/zram-control";
/// Lists our devices with the processes that made them, because a rig that was killed leaves its
/// device.
const OWNERS: &str = "/run/dynolab-zram";
/// Bytes of the table that the kernel keeps for each page and does not count (`struct
/// zram_table_entry`).
const TABLE_BYTES: u64 = 16;
/// A device is busy for a moment after its last file was closed, while udev looks at it.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Why zram with `algorithm` cannot be used here; `None` if it can.
pub fn missing(algorithm: &str) -> Option<String> {
    let control = Path::new(CONTROL).join("hot_add");
    if !control.exists() {
        return Some("this kernel has no zram: `modprobe zram`".to_string());
    }
    // Reading the control file would add a device, so only the permission is checked.
    if OpenOptions::new()
        .write(true)
        .open(Path::new(CONTROL).join("hot_remove"))
        .is_err()
    {
        return Some("only root may add a zram device".to_string());
    }
    if !["lz4", "lzo-rle", "zstd", "lzo", "lz4hc", "842", "deflate"].contains(&algorithm) {
        return Some(format!("zram has no algorithm `{algorithm}`"));
    }
    None
}

/// A zram device that this process added; dropping it removes the device.
pub(super) struct Zram {
    number: u32,
}

impl Zram {
    /// Adds a device of `bytes` that compresses with `algorithm`.
    pub fn new(algorithm: &str, bytes: u64) -> Result<Zram, PagesError> {
        let control = Path::new(CONTROL).join("hot_add");
        let text = fs::read_to_string(&control)
            .map_err(|e| PagesError::system(control.display().to_string(), e))?;
        let number = text.trim().parse();
        let number = number.map_err(|_| PagesError::Refused(format!("zram answers `{text}`")))?;
        let zram = Zram { number };
        // The owner is written down before the device gets a size. A rig that is killed from here
        // on leaves a file by which [`remove_strays`] finds the device.
        fs::create_dir_all(OWNERS)
            .and_then(|()| fs::write(zram.owner(), process::id().to_string()))
            .map_err(|e| PagesError::system(OWNERS, e))?;
        zram.set("comp_algorithm", algorithm)?;
        if zram.recompresses() {
            // The kernel accepts this only before the device has a size. Only `recompress` uses it.
            zram.set("recomp_algorithm", "algo=zstd priority=1")?;
        }
        zram.set("disksize", &bytes.to_string())?;
        Ok(zram)
    }

    /// Opens the device with direct I/O, past the page cache.
    pub fn open(&self) -> Result<File, PagesError> {
        let path = self.path();
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_DIRECT);
        options
            .open(&path)
            .map_err(|e| PagesError::system(path.display().to_string(), e))
    }

    /// The path of the block device.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/zram{}", self.number))
    }

    /// Whether this kernel can recompress with another algorithm (CONFIG_ZRAM_MULTI_COMP, Linux
    /// 6.2).
    pub fn recompresses(&self) -> bool {
        self.setting("recompress").exists()
    }

    /// Recompresses every page with zstd, as if none had been touched for long.
    pub fn recompress(&self) -> Result<(), PagesError> {
        self.set("idle", "all")?;
        self.set("recompress", "type=idle")
    }

    /// Compacts the device's memory and returns free pages to the kernel.
    pub fn compact(&self) -> Result<(), PagesError> {
        self.set("compact", "1")
    }

    /// Bytes that the device reports, and its table for `pages` pages.
    pub fn held_bytes(&self, pages: u64) -> Result<u64, PagesError> {
        let path = self.setting("mm_stat");
        let text = fs::read_to_string(&path)
            .map_err(|e| PagesError::system(path.display().to_string(), e))?;
        // Fields: original bytes, compressed bytes, memory used.
        let used = text
            .split_ascii_whitespace()
            .nth(2)
            .and_then(|used| used.parse::<u64>().ok());
        let used = used.ok_or_else(|| PagesError::Wrong(format!("mm_stat says `{text}`")))?;
        Ok(used + pages * TABLE_BYTES)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), PagesError> {
        let path = self.setting(name);
        fs::write(&path, value)
            .map_err(|e| PagesError::system(format!("{value} into {}", path.display()), e))
    }

    fn setting(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/sys/block/zram{}/{name}", self.number))
    }

    fn owner(&self) -> PathBuf {
        Path::new(OWNERS).join(self.number.to_string())
    }

    fn remove(&self) -> io::Result<()> {
        let mut tries = 0;
        loop {
            let done = fs::write(self.setting("reset"), "1").and_then(|()| {
                fs::write(
                    Path::new(CONTROL).join("hot_remove"),
                    self.number.to_string(),
                )
            });
            tries += 1;
            match done {
                Ok(()) => return fs::remove_file(self.owner()),
                Err(error) if tries == TRIES => return Err(error),
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("zram{} stays: {error}", self.number);
        }
    }
}

/// Removes devices of rigs that were killed before they could do it.
pub(super) fn remove_strays() {
    for entry in fs::read_dir(OWNERS).into_iter().flatten().flatten() {
        let number = entry.file_name().to_string_lossy().parse();
        let owner = fs::read_to_string(entry.path()).unwrap_or_default();
        if let (Ok(number), true) = (number, is_gone(owner.trim())) {
            drop(Zram { number });
        }
    }
}
