//! A block device's two fronts: which one there is, who uses the device, and its end.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use dyno_pages_fuse::{LoopDevice, refuse_swap, unmount};
use dyno_pages_ublk::{Device, delete, supported};

use super::place::Place;
use crate::args::{FrontArg, PagesAttachArgs};

/// How a block device is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// The kernel's driver for devices in user space.
    Ublk,
    /// A file system of one file, and a loop device on it.
    Fuse,
}

impl Front {
    /// The one that was asked for, or the best that there is; which of them is said on stderr.
    pub fn choose(args: &PagesAttachArgs) -> anyhow::Result<Front> {
        match (args.front, args.swap) {
            (FrontArg::Fuse, swap) => {
                if swap {
                    refuse_swap()?;
                }
                Ok(Front::Fuse)
            }
            (FrontArg::Ublk, _) => Ok(supported().map(|()| Front::Ublk)?),
            (FrontArg::Auto, true) => {
                supported().context("--swap is for ublk alone")?;
                Ok(Front::Ublk)
            }
            (FrontArg::Auto, false) => match supported() {
                Ok(()) => {
                    eprintln!("dyno: a device by ublk");
                    Ok(Front::Ublk)
                }
                Err(reason) => {
                    eprintln!("dyno: a device by FUSE and loop, as there is {reason}");
                    Ok(Front::Fuse)
                }
            },
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Front::Ublk => "ublk",
            Front::Fuse => "fuse",
        }
    }

    pub fn of_word(word: &str) -> anyhow::Result<Front> {
        match word {
            "ublk" => Ok(Front::Ublk),
            "fuse" => Ok(Front::Fuse),
            other => bail!("the holder's note: no front is called {other}"),
        }
    }
}

/// The device that a place says it has.
pub fn of_place(place: &Place) -> Option<PathBuf> {
    let text = fs::read_to_string(place.device()).ok()?;
    Some(PathBuf::from(text.trim()))
}

/// A device that somebody uses is not emptied or taken away.
pub fn refuse_used(device: &Path) -> anyhow::Result<()> {
    let name = device.display().to_string();
    let mounts = fs::read_to_string("/proc/mounts").context("/proc/mounts")?;
    let of_device = |line: &str| {
        let mut words = line.split(' ');
        let at = (words.next() == Some(&name)).then(|| words.next());
        at.flatten().map(str::to_string)
    };
    if let Some(at) = mounts.lines().find_map(of_device) {
        bail!("{name} is mounted at {at}: unmount it first");
    }
    if is_swap(device)? {
        bail!("{name} is swapped to: swapoff {name} first");
    }
    // An exclusive look at a block device fails while the system has it in use in any other way.
    let mut options = File::options();
    match options.read(true).custom_flags(libc::O_EXCL).open(device) {
        Err(error) if error.kind() == ErrorKind::ResourceBusy => {
            bail!("{name} is in use: another device or process has it")
        }
        _ => Ok(()),
    }
}

fn is_swap(device: &Path) -> anyhow::Result<bool> {
    let swaps = fs::read_to_string("/proc/swaps").context("/proc/swaps")?;
    let name = device.display().to_string();
    Ok(swaps
        .lines()
        .any(|line| line.split_whitespace().next() == Some(&name)))
}

/// Has the system swap to it.
pub fn swap_on(device: &Path) -> anyhow::Result<()> {
    tool("mkswap", device)?;
    tool("swapon", device)
}

pub fn make_file_system(kind: &str, device: &Path) -> anyhow::Result<()> {
    tool(&format!("mkfs.{kind}"), device)
}

fn tool(program: &str, device: &Path) -> anyhow::Result<()> {
    let output = Command::new(program)
        .arg(device)
        .output()
        .with_context(|| format!("cannot start {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}", said.trim());
    Ok(())
}

/// Ends a device, in whichever state it is; `wait` at most for its file system.
pub fn end(place: &Place, wait: Duration) -> anyhow::Result<()> {
    if let Some(device) = of_place(place) {
        if is_swap(&device)? {
            // What was swapped out comes back first, or the device stays.
            tool("swapoff", &device)?;
        }
        refuse_used(&device)?;
        match Device::number_of(&device) {
            Some(number) => delete(number)?,
            None => LoopDevice::of_path(device).detach()?,
        }
    }
    let until = Instant::now() + wait;
    // The loop device lets go of the file a moment after it was told to.
    while is_mounted(&place.mount())? {
        match unmount(&place.mount()) {
            Err(error) if Instant::now() >= until => return Err(error.into()),
            _ => thread::sleep(Duration::from_millis(20)),
        }
    }
    Ok(())
}

fn is_mounted(at: &Path) -> anyhow::Result<bool> {
    let mounts = fs::read_to_string("/proc/mounts").context("/proc/mounts")?;
    let at = at.display().to_string();
    Ok(mounts
        .lines()
        .any(|line| line.split(' ').nth(1) == Some(&at)))
}
