//! `postmaster.pid`, by which a server says that it runs (PostgreSQL documentation, "Database File
//! Layout"; the lines are those of `miscadmin.h`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::os::{Process, one_of_directory};

/// A running server, on which its file and the kernel agree.
#[derive(Debug)]
pub(super) struct Postmaster {
    pub process: Process,
    port: u16,
    socket_dir: PathBuf,
    status: String,
}

impl Postmaster {
    /// Whether it accepts connections, by the status line of its file.
    pub fn is_ready(&self) -> bool {
        self.status == "ready" || self.status == "standby"
    }

    /// Whether its socket is where our configuration puts it.
    pub fn listens_at(&self, socket_dir: &Path, port: u16) -> bool {
        self.port == port && self.socket_dir == socket_dir
    }
}

/// The running server of `data`. `None` if the file is missing, incomplete, or names a server that
/// has ended, even if its process id has been reused since.
pub(super) fn read(data: &Path) -> Option<Postmaster> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let pid: u32 = lines.first()?.parse().ok()?;
    let process = one_of_directory(data, pid)?;
    Some(Postmaster {
        process,
        port: lines.get(3)?.parse().ok()?,
        socket_dir: PathBuf::from(lines.get(4)?),
        status: lines.get(7).map_or("", |status| status).to_owned(),
    })
}
