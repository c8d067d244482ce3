//! The machine's limits for a run: those measured within the last day, or measured now.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use dyno_machine::{LimitOptions, Limits, Root, limits, own_inflaters};
use dyno_record::{Limit, Size};
use dyno_suite::{Clock, Stop, SystemClock};

use crate::progress::LimitsBar;

/// A machine's limits drift with its neighbours and its temperature, not by the hour.
const REUSED_FOR: Duration = Duration::from_secs(24 * 3_600);

/// Measures now, with a progress bar, below `scratch`.
pub fn measure(size: Size, scratch: &Path, stop: &Stop) -> anyhow::Result<Limits> {
    fs::create_dir_all(scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let clock = SystemClock::default();
    let options = LimitOptions {
        scratch,
        size,
        inflaters: own_inflaters(),
        now_utc: &|| clock.utc(),
        stop: Some(stop.flag()),
    };
    let bar = LimitsBar::new();
    Ok(limits(&Root::system(), &options, &mut |p| {
        bar.at(p.name, p.done, p.of)
    }))
}

/// The limits of this machine that an earlier run has measured, in a file in the cache.
pub struct LimitCache {
    path: PathBuf,
}

impl LimitCache {
    /// For a machine and a size; tiny figures must not pass for real ones.
    pub fn new(cache: &Path, fingerprint: &str, size: Size) -> LimitCache {
        let size = format!("{size:?}").to_lowercase();
        LimitCache {
            path: cache
                .join("limits")
                .join(format!("{fingerprint}-{size}.json")),
        }
    }

    /// Limits younger than a day, if there are any.
    pub fn read(&self) -> Option<Vec<Limit>> {
        // A file that cannot be read or parsed is as good as none: the limits are then measured
        // again.
        let age = self.path.metadata().ok()?.modified().ok()?.elapsed().ok()?;
        // A day is compared by the file's time and not by a date inside it, so the check costs no
        // parsing. A clock that was set back makes `elapsed` fail, and the limits are measured
        // again.
        if age > REUSED_FOR {
            return None;
        }
        serde_json::from_slice(&fs::read(&self.path).ok()?).ok()
    }

    /// Keeps limits for later runs.
    pub fn write(&self, limits: &[Limit]) -> anyhow::Result<()> {
        let path = &self.path;
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        fs::write(path, serde_json::to_vec(limits)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}
