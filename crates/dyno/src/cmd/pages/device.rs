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

use super::store_dir::StoreDir;
use crate::args::{FrontArg, PagesAttachArgs};

const TICK: Duration = Duration::from_millis(20);

/// How a block device is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// The kernel's driver for devices in user space.
    Ublk,
    /// A file system of one file, and a loop device on it.
    Fuse,
}

impl Front {
    /// The requested front, or the best one that this kernel has, which is then printed to stderr.
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

    pub fn from_word(word: &str) -> anyhow::Result<Front> {
        match word {
            "ublk" => Ok(Front::Ublk),
            "fuse" => Ok(Front::Fuse),
            other => bail!("the holder's note: no front is called {other}"),
        }
    }
}

/// The device that a store has noted.
pub fn of_store(store_dir: &StoreDir) -> Option<PathBuf> {
    let text = fs::read_to_string(store_dir.device()).ok()?;
    Some(PathBuf::from(text.lines().next()?.trim()))
}

/// Writes down the device's path and its sequence number, which the kernel increments whenever a
/// device name gets a new backing.
pub fn note(store_dir: &StoreDir, device: &Path) -> anyhow::Result<()> {
    let number = sequence(device).map_or_else(String::new, |number| number.to_string());
    let text = format!("{}\n{number}\n", device.display());
    let at = store_dir.device();
    fs::write(&at, text).with_context(|| format!("cannot write to {}", at.display()))
}

/// Whether the noted device still belongs to this store. If another program detached it, its name
/// may stand for another file by now.
fn is_ours(store_dir: &StoreDir, device: &Path) -> bool {
    let backing = LoopDevice::from_path(device.to_path_buf()).backing_file();
    let stands = match Device::number_of(device) {
        Some(_) => device.exists(),
        None => backing.is_some(),
    };
    let noted = fs::read_to_string(store_dir.device()).unwrap_or_default();
    let noted: Option<u64> = noted.lines().nth(1).and_then(|line| line.parse().ok());
    match (noted, sequence(device), backing) {
        // Linux 5.15 and later have the number. It decides alone, because a loop device of another
        // file has the same name and may even have a file of the same name behind it.
        (Some(noted), Some(now), _) => stands && noted == now,
        (_, _, Some(file)) => store_dir.has(&file),
        _ => stands,
    }
}

fn sequence(device: &Path) -> Option<u64> {
    let shown = Path::new("/sys/block")
        .join(device.file_name()?)
        .join("diskseq");
    fs::read_to_string(shown).ok()?.trim().parse().ok()
}

/// Processes that have the device open, by number and name. Their other files are not looked at, as
/// one of them may lie on a file system that does not answer.
fn openers(device: &Path) -> Vec<String> {
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let open = |process: &Path| {
        let files = fs::read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| link == device)
    };
    let named = |process: PathBuf| {
        let number = process.file_name()?.to_str()?.to_string();
        number.parse::<u32>().ok()?;
        (number != own && open(&process)).then(|| {
            let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
            format!("{number} ({})", name.trim())
        })
    };
    processes.filter_map(|entry| named(entry.path())).collect()
}

/// The first place at which the device is mounted.
pub fn mounted_at(device: &Path) -> Option<String> {
    let name = device.display().to_string();
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let at = (words.next() == Some(&name)).then(|| words.next());
        at.flatten().map(str::to_string)
    })
}

/// Refuses to empty or remove a device that is in use.
pub fn refuse_used(device: &Path) -> anyhow::Result<()> {
    let name = device.display().to_string();
    if let Some(at) = mounted_at(device) {
        bail!("{name} is mounted at {at}: unmount it first");
    }
    if is_swap(device)? {
        bail!("{name} is swapped to: swapoff {name} first");
    }
    // Opening a block device exclusively fails while the kernel uses it in any other way, such as
    // below another device. It says nothing of ordinary processes, which are looked for below.
    let mut options = File::options();
    match options.read(true).custom_flags(libc::O_EXCL).open(device) {
        Err(error) if error.kind() == ErrorKind::ResourceBusy => {
            bail!("{name} is in use: another device or process has it")
        }
        _ => {}
    }
    let openers = openers(device);
    ensure!(
        openers.is_empty(),
        "{name} is open in process {}: end it first",
        openers.join(", ")
    );
    Ok(())
}

fn is_swap(device: &Path) -> anyhow::Result<bool> {
    let swaps = fs::read_to_string("/proc/swaps").context("/proc/swaps")?;
    let name = device.display().to_string();
    Ok(swaps
        .lines()
        .any(|line| line.split_whitespace().next() == Some(&name)))
}

/// Makes the device swap space and lets the system swap to it.
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
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}", stderr.trim());
    Ok(())
}

/// Ends a device in whatever state it is, and waits at most `wait` for its file system. A device
/// that no longer belongs to this store is left alone.
pub fn end(store_dir: &StoreDir, wait: Duration) -> anyhow::Result<()> {
    let until = Instant::now() + wait;
    match of_store(store_dir) {
        Some(device) if is_ours(store_dir, &device) => {
            if is_swap(&device)? {
                // Swapped pages come back into memory first. If they do not fit, swapoff fails and
                // the device stays, because its pages are the only copy.
                tool("swapoff", &device)?;
            }
            refuse_used(&device)?;
            match Device::number_of(&device) {
                Some(number) => delete(number)?,
                None => LoopDevice::from_path(device.clone()).detach()?,
            }
            // A process that opened it between the check and now keeps the device and its pages.
            // Then it is named, and the command fails instead of removing the store below it.
            while is_ours(store_dir, &device) {
                if Instant::now() >= until {
                    refuse_used(&device)?;
                    bail!("{} does not end", device.display());
                }
                thread::sleep(TICK);
            }
        }
        Some(device) => eprintln!(
            "dyno: {} is not {}'s any more, and is left alone",
            device.display(),
            store_dir.name()
        ),
        None => {}
    }
    // The loop device releases its file a moment after it was detached, so the first attempts may
    // find the file system busy.
    while is_mounted(&store_dir.mount())? {
        match unmount(&store_dir.mount()) {
            Err(error) if Instant::now() >= until => return Err(error.into()),
            _ => thread::sleep(TICK),
        }
    }
    Ok(())
}

/// Whether a device or a mount of this store exists, alive or not.
pub fn is_left(store_dir: &StoreDir) -> anyhow::Result<bool> {
    let device = of_store(store_dir).is_some_and(|device| is_ours(store_dir, &device));
    Ok(device || is_mounted(&store_dir.mount())?)
}

fn is_mounted(at: &Path) -> anyhow::Result<bool> {
    let mounts = fs::read_to_string("/proc/mounts").context("/proc/mounts")?;
    let at = at.display().to_string();
    Ok(mounts
        .lines()
        .any(|line| line.split(' ').nth(1) == Some(&at)))
}
