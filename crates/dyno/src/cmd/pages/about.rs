//! What a process reports about its store: the answers to `status` and to `about`.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dyno_pages::{BackgroundProgress, KindCount, PAGE_BYTES, Schedule, Stats};
use dyno_pages_disk::Disk;
use dyno_pages_hold::Client;
use dyno_pages_nbd::Server;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use super::device;
use super::store_dir::StoreDir;

/// Answers requests on the control socket. Shared with the metrics, which show the same figures.
#[derive(Debug)]
pub struct StatusService(pub Arc<About>);

/// A store with everything that serves it, for reports.
#[derive(Debug)]
pub struct About {
    pub store_dir: StoreDir,
    pub front: Front,
    pub codec: String,
    pub level: i32,
    pub schedule: Schedule,
    pub progress: Arc<BackgroundProgress>,
    pub disk: Arc<Disk>,
    pub metrics: Option<SocketAddr>,
    /// Whether the store may not give memory back, because the system swaps to it.
    pub fixed: bool,
}

/// How the store is reached.
#[derive(Debug)]
pub enum Front {
    Nbd(Arc<Mutex<Server>>),
    Device(device::Front),
}

/// What every process that serves a name answers of itself.
pub fn itself(store_dir: &StoreDir, front: &str) -> Value {
    json!({
        "name": store_dir.name(),
        "front": front,
        "process": { "pid": std::process::id(), "resident_bytes": resident_bytes() },
    })
}

/// Adds the members of one object of an answer to another.
pub fn extend(all: &mut Value, part: Value) {
    if let (Value::Object(all), Value::Object(part)) = (all, part) {
        all.extend(part);
    }
}

impl About {
    /// The part of the answer that reads no page, so it is quick even while the store is busy.
    pub fn itself(&self) -> Value {
        let front = match &self.front {
            Front::Nbd(_) => "nbd",
            Front::Device(front) => front.word(),
        };
        itself(&self.store_dir, front)
    }

    /// Connections of an NBD server now; 0 for a device.
    pub fn connected(&self) -> usize {
        match &self.front {
            Front::Nbd(server) => locked(server).connections(),
            Front::Device(_) => 0,
        }
    }

    /// A figure of the NBD server; 0 for a device.
    pub fn server(&self, figure: impl FnOnce(&Server) -> u64) -> u64 {
        match &self.front {
            Front::Nbd(server) => figure(&locked(server)),
            Front::Device(_) => 0,
        }
    }

    /// The whole answer. Takes the store's statistics, which visits every entry of the index.
    pub fn status(&self) -> anyhow::Result<Value> {
        let store = self.disk.store();
        let stats = store.stats()?;
        let settings = store.settings();
        let mut all = self.itself();
        let log = self.store_dir.log();
        let parts = [
            json!({
                "size_bytes": store.pages() * PAGE_BYTES as u64,
                "limit_bytes": settings.limit_bytes,
                "codec": self.codec,
                "level": self.level,
                "share": settings.share,
                "metrics": self.metrics.map(|at| at.to_string()),
                "log": log.exists().then(|| log.display().to_string()),
            }),
            self.of_front(),
            of_pages(&stats),
            self.of_calls(),
            json!({
                "corrupt": {
                    "reads": stats.corrupt_reads,
                    "pages": stats.corrupt_pages,
                    "entries": stats.damaged_entries,
                },
                "background": self.of_background(),
            }),
        ];
        for part in parts {
            extend(&mut all, part);
        }
        if let Some(file) = store.file_name() {
            extend(&mut all, json!({ "backing": of_file(file, &stats) }));
        }
        Ok(all)
    }

    fn of_front(&self) -> Value {
        match &self.front {
            Front::Nbd(server) => {
                let server = locked(server);
                let figures = server.figures();
                json!({
                    "address": server.address().to_string(),
                    "clients": {
                        "connected": server.connections(),
                        "most": server.most_connections(),
                        "refused": server.refused(),
                        "broken": server.broken(),
                        "late": server.late(),
                        "displaced": server.displaced(),
                        "requests": count(&figures.requests),
                        "failed_requests": count(&figures.failed),
                    },
                })
            }
            Front::Device(_) => {
                let device = device::of_store(&self.store_dir);
                json!({
                    "device": device.as_ref().map(|device| device.display().to_string()),
                    "mounted_at": device.as_deref().and_then(device::mounted_at),
                    "holder": Client::connect(&self.store_dir.hold()).is_ok(),
                })
            }
        }
    }

    fn of_calls(&self) -> Value {
        let figures = self.disk.figures();
        json!({
            "reads": count(&figures.reads),
            "read_bytes": count(&figures.read_bytes),
            "writes": count(&figures.writes),
            "written_bytes": count(&figures.written_bytes),
        })
    }

    fn of_background(&self) -> Value {
        let schedule = &self.schedule;
        json!({
            "running": self.progress.is_running(),
            "idle_ms": (schedule.age_every * u32::from(schedule.idle)).as_millis() as u64,
            "cpu": schedule.cpu_share,
            "passes": self.progress.passes(),
            "packed_pages": self.progress.packed(),
            "written_back_pages": self.progress.written_back(),
            "damaged_pages_met": self.progress.damaged(),
            "failures": self.progress.failed(),
            "last_failure": self.progress.last_failure(),
        })
    }
}

fn of_file(file: &std::path::Path, stats: &Stats) -> Value {
    let name = file.display().to_string();
    json!({
        "file": name.strip_suffix(" (deleted)").unwrap_or(&name),
        "size_bytes": u64::from(stats.file_pages.unwrap_or(0)) * PAGE_BYTES as u64,
        "used_bytes": stats.file.pages * PAGE_BYTES as u64,
        "direct": stats.file_direct,
        "kept_back_pages": stats.kept_back,
    })
}

fn of_pages(stats: &Stats) -> Value {
    let kind = |kind: KindCount| json!({ "pages": kind.pages, "bytes": kind.bytes });
    json!({
        "pages": stats.stored_pages() + stats.empty + stats.damaged_entries,
        "stored_pages": stats.stored_pages(),
        "repeated": kind(stats.repeated),
        "lz4": kind(stats.lz4),
        "zstd": kind(stats.zstd),
        "raw": kind(stats.raw),
        "file": kind(stats.file),
        "shared_pages": stats.shared,
        "pages_by_age": stats.by_age,
        "stubborn_pages": stats.stubborn,
        "refused_pages": stats.refused,
        "kept_back_pages": stats.kept_back,
        "file_direct": stats.file_direct,
        "slot_bytes": stats.slot_bytes,
        "resident_bytes": stats.resident_bytes,
        "beside_bytes": stats.beside_bytes,
        "ratio": stats.ratio(),
    })
}

fn count(figure: &AtomicU64) -> u64 {
    figure.load(Relaxed)
}

fn locked(server: &Mutex<Server>) -> MutexGuard<'_, Server> {
    // This mutex has no poisoning: a panic of another holder leaves the server usable.
    server.lock()
}

/// Memory of this process, that of the store included.
pub fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
