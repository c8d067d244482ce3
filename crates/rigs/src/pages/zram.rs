//! A compressed block device of the kernel, added for one invocation and removed after it. Devices
//! that are there already belong to others and are left alone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::Duration;

use super::PagesError;

const CONTROL: &str = "/sys/class/zram-control";
/// Which devices are ours, and whose process had them: a rig that was killed leaves its device.
const OWNERS: &str = "/run/dynolab-zram";
/// Bytes of the table that the kernel keeps for each page and does not count (`struct
/// zram_table_entry`).
const TABLE_BYTES: u64 = 16;
/// A device is busy for a moment after its last file was closed, while udev looks at it.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Why there is no zram with `algorithm` for us; nothing where there is.
pub fn missing(algorithm: &str) -> Option<String> {
    let control = Path::new(CONTROL).join("hot_add");
    if !control.exists() {
        return Some("this kernel has no zram: `modprobe zram`".to_string());
    }
    // Reading it makes a device, so only the right to is looked at.
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

/// A device of ours.
pub(super) struct Zram {
    number: u32,
}

impl Zram {
    /// A device of `bytes` with `algorithm`.
    pub fn new(algorithm: &str, bytes: u64) -> Result<Zram, PagesError> {
        remove_strays();
        let control = Path::new(CONTROL).join("hot_add");
        let text = fs::read_to_string(&control)
            .map_err(|e| PagesError::system(control.display().to_string(), e))?;
        let number = text.trim().parse();
        let number = number.map_err(|_| PagesError::Refused(format!("zram answers `{text}`")))?;
        let zram = Zram { number };
        fs::create_dir_all(OWNERS)
            .and_then(|()| fs::write(zram.owner(), process::id().to_string()))
            .map_err(|e| PagesError::system(OWNERS, e))?;
        zram.set("comp_algorithm", algorithm)?;
        if zram.recompresses() {
            // Asked for before the device has a size, as the kernel wants it; used by `recompress`
            // alone.
            zram.set("recomp_algorithm", "algo=zstd priority=1")?;
        }
        zram.set("disksize", &bytes.to_string())?;
        Ok(zram)
    }

    /// The device, without the page cache.
    pub fn open(&self) -> Result<File, PagesError> {
        let path = self.path();
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_DIRECT);
        options
            .open(&path)
            .map_err(|e| PagesError::system(path.display().to_string(), e))
    }

    /// The device's file.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/zram{}", self.number))
    }

    /// Whether this kernel can pack pages again by another algorithm (CONFIG_ZRAM_MULTI_COMP, Linux
    /// 6.2).
    pub fn recompresses(&self) -> bool {
        self.setting("recompress").exists()
    }

    /// Packs every page again with zstd, as if none had been touched for long.
    pub fn recompress(&self) -> Result<(), PagesError> {
        self.set("idle", "all")?;
        self.set("recompress", "type=idle")
    }

    /// Moves what it holds together, and gives free memory back.
    pub fn compact(&self) -> Result<(), PagesError> {
        self.set("compact", "1")
    }

    /// Memory that the device says it holds, and its table for so many pages.
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

/// Removes devices of rigs that were killed.
fn remove_strays() {
    for entry in fs::read_dir(OWNERS).into_iter().flatten().flatten() {
        let number = entry.file_name().to_string_lossy().parse();
        let owner = fs::read_to_string(entry.path()).unwrap_or_default();
        let alive = Path::new("/proc").join(owner.trim()).exists();
        if let (Ok(number), false) = (number, alive) {
            drop(Zram { number });
        }
    }
}
