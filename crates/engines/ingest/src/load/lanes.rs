//! What loads of all feeds share: identities of archives, a work queue of several threads, and a
//! report for each input.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use super::{ArchiveReport, Input, Options, Outcome, Progress, StageSeconds, Target};
use crate::{Error, Result};

/// The identity of each input: the result of `name` for the given identity, if there is one, and
/// the input's path.
///
/// # Errors
/// [`Error::Refused`]: one identity for several inputs, or two inputs of one identity.
pub fn identities(
    inputs: &[Input],
    options: &Options,
    name: impl Fn(Option<&str>, &Path) -> String,
) -> Result<Vec<String>> {
    if let (Some(_), Some(second)) = (&options.identity, inputs.get(1)) {
        return Err(Error::Refused {
            path: second.path().to_owned(),
            reason: "one identity was given for several inputs".to_owned(),
        });
    }
    let mut seen: BTreeMap<String, &Path> = BTreeMap::new();
    let mut identities = Vec::new();
    for input in inputs {
        let path = input.path();
        let identity = name(options.identity.as_deref(), path);
        if let Some(first) = seen.insert(identity.clone(), path) {
            return Err(Error::Refused {
                path: path.to_owned(),
                reason: format!("it is archive {identity}, and so is {}", first.display()),
            });
        }
        identities.push(identity);
    }
    Ok(identities)
}

/// Bytes of memory for each of `lanes` workers, if that is at least `needed`.
///
/// # Errors
/// [`Error::Refused`] when they are fewer.
pub fn lane_bytes(options: &Options, lanes: usize, needed: usize) -> Result<usize> {
    let least = lanes * needed;
    if options.memory < least {
        let least_mib = least.div_ceil(1 << 20);
        let reason = match lanes {
            1 => format!(
                "{} bytes are not enough for a file; give at least {least_mib}MiB",
                options.memory
            ),
            _ => format!(
                "{} bytes are not enough for {lanes} files at a time; give at least {least_mib}MiB, \
                 or fewer workers",
                options.memory
            ),
        };
        return Err(Error::Refused {
            path: PathBuf::from("--memory"),
            reason,
        });
    }
    Ok(options.memory / lanes)
}

/// Runs `run` over the inputs on several threads (a work queue), and returns the reports in input
/// order. `run` gets the worker's number.
pub fn side_by_side(
    lanes: usize,
    identities: Vec<String>,
    inputs: Vec<Input>,
    run: impl Fn(usize, String, Input) -> ArchiveReport + Sync,
) -> Vec<ArchiveReport> {
    let count = inputs.len();
    let queue = Mutex::new(identities.into_iter().zip(inputs).enumerate());
    let reports: Mutex<BTreeMap<usize, ArchiveReport>> = Mutex::default();
    std::thread::scope(|scope| {
        for lane in 0..lanes {
            let (queue, reports, run) = (&queue, &reports, &run);
            scope.spawn(move || {
                loop {
                    let next = locked(queue).next();
                    let Some((number, (identity, input))) = next else {
                        return;
                    };
                    let report = run(lane, identity, input);
                    locked(reports).insert(number, report);
                }
            });
        }
    });
    let reports = std::mem::take(&mut *locked(&reports));
    debug_assert_eq!(reports.len(), count);
    reports.into_values().collect()
}

/// Loads one input with `load` and reports the result.
pub fn report(
    identity: &str,
    input: Input,
    load: impl FnOnce(Input, &Path, &mut StageSeconds, &mut Vec<String>) -> Result<Outcome>,
) -> ArchiveReport {
    let started = Instant::now();
    let path = input.path().to_owned();
    let mut stages = StageSeconds::default();
    let mut warnings = Vec::new();
    let outcome = load(input, &path, &mut stages, &mut warnings).unwrap_or_else(Outcome::Failed);
    // It is not an error, because a day without a spot is a file with only a header. But it may
    // also be an incomplete download.
    if let Outcome::Loaded { rows: 0, .. } = outcome {
        warnings.push(format!(
            "{}: it has no good row, so archive {identity} is empty in the table",
            path.display()
        ));
    }
    ArchiveReport {
        path,
        identity: identity.to_owned(),
        outcome,
        warnings,
        stages,
        seconds: started.elapsed().as_secs_f64(),
    }
}

/// The outcome if `target` has the rows of this very file: nothing needs loading, and its bytes
/// count as done. A stream is identified only once it has ended.
///
/// # Errors
/// When the table cannot be asked, or the file not be read.
pub fn already_there<C>(
    target: &dyn Target<C>,
    identity: &str,
    input: &Input,
    progress: &Progress,
) -> Result<Option<Outcome>> {
    let Input::File(path) = input else {
        return Ok(None);
    };
    let Some(held) = target.held(identity)? else {
        return Ok(None);
    };
    let rows = held.rows_of_file(path)?;
    Ok(rows.map(|rows| {
        progress.bytes.fetch_add(held.bytes, Ordering::Relaxed);
        Outcome::AlreadyThere { rows }
    }))
}

/// The outcome if `target` has rows of these contents. This is for a stream, whose hash is known
/// only at its end.
///
/// # Errors
/// When the table cannot be asked.
pub fn already_there_by_hash<C>(
    target: &dyn Target<C>,
    identity: &str,
    bytes: u64,
    hash: &str,
) -> Result<Option<Outcome>> {
    let held = target.held(identity)?;
    let rows = held.and_then(|held| held.rows_of(bytes, hash));
    Ok(rows.map(|rows| Outcome::AlreadyThere { rows }))
}

/// Locks a mutex even if a worker panicked while holding it, because its data is valid all the
/// same.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
