//! The machine's limits for a run: those that this program measured within the last day, or
//! measured now.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use dyno_machine::{LimitOptions, Limits, Root, limits, own_inflaters};
use dyno_record::{Limit, Size};
use dyno_suite::{Clock, Stop, SystemClock};

use crate::progress::LimitsBar;
use crate::scratch::ScratchDir;

/// A machine's limits drift with its neighbours and its temperature, not by the hour.
const REUSED_FOR: Duration = Duration::from_secs(24 * 3_600);

/// Measures now, with a progress bar and scratch files in the cache.
pub fn measure(size: Size, cache: &Path, stop: &Stop) -> anyhow::Result<Limits> {
    let scratch = ScratchDir::new(cache)?;
    let clock = SystemClock::default();
    let options = LimitOptions {
        scratch: scratch.path(),
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

/// The limits of this machine that an earlier run has measured, in a file in the cache, behind the
/// hash of the program that measured them.
pub struct LimitCache {
    path: PathBuf,
    program_hash: String,
}

impl LimitCache {
    /// For a machine, a size and a program: tiny figures must not pass for real ones, and another
    /// program may measure other limits, or the same ones in another way.
    pub fn new(cache: &Path, fingerprint: &str, size: Size, program_hash: String) -> LimitCache {
        let size = format!("{size:?}").to_lowercase();
        LimitCache {
            path: cache
                .join("limits")
                .join(format!("{fingerprint}-{size}.json")),
            program_hash,
        }
    }

    /// Limits younger than a day, if this program has measured any.
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
        let kept = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        let (program_hash, limits): (String, Vec<Limit>) = kept;
        (program_hash == self.program_hash).then_some(limits)
    }

    /// Keeps limits for later runs.
    pub fn write(&self, limits: &[Limit]) -> anyhow::Result<()> {
        let path = &self.path;
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        fs::write(path, serde_json::to_vec(&(&self.program_hash, limits))?)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_used_again_by_the_program_that_measured_them() {
        let dir = tempfile::tempdir().unwrap();
        let cache =
            |program: &str| LimitCache::new(dir.path(), "machine", Size::Quick, program.into());
        assert!(cache("old").read().is_none());
        cache("old").write(&[]).unwrap();
        assert_eq!(cache("old").read(), Some(Vec::new()));
        assert!(cache("new").read().is_none(), "measured by another program");
        cache("new").write(&[]).unwrap();
        assert!(cache("old").read().is_none(), "overwritten by the new one");
    }
}
