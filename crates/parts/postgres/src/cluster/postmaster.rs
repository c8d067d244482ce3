//! `postmaster.pid`, by which a server says that it runs (PostgreSQL documentation, "Database File
//! Layout"; the lines are those of `miscadmin.h`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::os::{Process, one_of_directory};

/// A living server, as its file and the kernel agree.
#[derive(Debug)]
pub(super) struct Postmaster {
    pub process: Process,
    port: u16,
    socket_dir: PathBuf,
    status: String,
}

impl Postmaster {
    /// Whether it takes connections.
    pub fn is_ready(&self) -> bool {
        self.status == "ready" || self.status == "standby"
    }

    /// Whether its socket is where we would have put it.
    pub fn listens_at(&self, socket_dir: &Path, port: u16) -> bool {
        self.port == port && self.socket_dir == socket_dir
    }
}

/// The living server of `data`. `None` when the file is missing, not complete yet, or of a server
/// that is gone, also when its number was given to another process since.
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
