//! The disk and file system below a path.
//!
//! This module holds one `unsafe` call, statvfs, which std lacks.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::root::{Root, chosen};

/// The mount and the block device that hold a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Storage {
    pub mount_point: String,
    pub kind: String,
    pub options: String,
    /// As the mount table names it, for example `/dev/vda`.
    pub device: String,
    pub rotational: Option<bool>,
    pub scheduler: Option<String>,
    pub write_cache: Option<String>,
    pub model: Option<String>,
}

/// File systems that keep their data in memory.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];
/// File systems whose data lives on another machine.
const REMOTE: [&str; 6] = ["nfs", "nfs4", "cifs", "9p", "ceph", "fuse.sshfs"];

impl Storage {
    /// Reads the mount table and the block device; `None` when no mount holds the path.
    pub fn from_path(root: &Root, path: &Path) -> Option<Self> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let table = root.text("proc/self/mountinfo")?;
        // The last of equally long mount points hides the ones before it.
        let mounts = table.lines().filter_map(Mount::parse);
        let mount = mounts
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.len())?;
        let queue = |file: &str| {
            let base = format!("sys/dev/block/{}", mount.numbers);
            // A partition has no queue of its own; its disk is one level up.
            root.text(&format!("{base}/queue/{file}"))
                .or_else(|| root.text(&format!("{base}/../queue/{file}")))
        };
        let base = format!("sys/dev/block/{}", mount.numbers);
        let model = root
            .text(&format!("{base}/device/model"))
            .or_else(|| root.text(&format!("{base}/../device/model")));
        Some(Self {
            rotational: queue("rotational").map(|text| text == "1"),
            scheduler: queue("scheduler").and_then(|s| chosen(&s).map(str::to_owned)),
            write_cache: queue("write_cache"),
            model,
            mount_point: mount.point,
            kind: mount.kind,
            options: mount.options,
            device: mount.device,
        })
    }

    pub fn in_memory(&self) -> bool {
        IN_MEMORY.contains(&self.kind.as_str())
    }

    pub fn remote(&self) -> bool {
        REMOTE.contains(&self.kind.as_str())
    }

    pub fn describe_file_system(&self) -> String {
        format!("{} ({})", self.kind, self.options)
    }

    pub fn describe_device(&self) -> String {
        let mut parts = vec![self.device.clone()];
        parts.extend(self.model.clone());
        parts.extend(
            self.rotational
                .map(|r| if r { "rotational" } else { "not rotational" }.to_owned()),
        );
        parts.extend(self.scheduler.as_ref().map(|s| format!("scheduler {s}")));
        parts.extend(self.write_cache.as_ref().map(|c| format!("cache {c}")));
        parts.join(", ")
    }
}

struct Mount {
    numbers: String,
    point: String,
    options: String,
    kind: String,
    device: String,
}

impl Mount {
    /// A line of mountinfo (proc(5)): optional fields end with a lone dash.
    fn parse(line: &str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let ([_, _, numbers, _, point, options, ..], [kind, device, ..]) = (&left[..], &right[..])
        else {
            return None;
        };
        Some(Self {
            numbers: (*numbers).to_owned(),
            point: point.replace("\\040", " "),
            options: (*options).to_owned(),
            kind: (*kind).to_owned(),
            device: (*device).to_owned(),
        })
    }
}

/// Bytes free for us on the file system of `path`.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a zeroed statvfs is a valid value, the path ends in NUL, and both outlive the call.
    let (rc, seen) = unsafe {
        let mut seen: libc::statvfs = std::mem::zeroed();
        let rc = libc::statvfs(path.as_ptr(), &raw mut seen);
        (rc, seen)
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(seen.f_bavail * seen.f_frsize)
}
