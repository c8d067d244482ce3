//! What loads of all feeds share: archives that are known apart, lanes that take them side by side,
//! and a report of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use super::{ArchiveReport, Input, Options, Outcome, Progress, StageSeconds, Target};
use crate::{Error, Result};

/// The identity of each input: what `name` makes of the one that was given, if any, and the input's
/// path.
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

/// Bytes of memory that each of so many lanes may use, when they are as many as a lane needs.
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

/// Has so many lanes take the inputs, each the next one when it is done, and gives the reports in
/// the inputs' order. `run` is told the lane's number.
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

/// Loads one input by `load` and reports how that went.
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
    // Not an error: a day without a spot is a file of a header. But it may also be a download that
    // went wrong.
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

/// The outcome where `target` has the rows of this very file: there is nothing to load then, and
/// its bytes count as done. A stream is known only by its end.
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

/// The outcome where `target` has the rows of these contents: how a stream, which is known only by
/// its end, is found to be there.
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

/// A lane that panicked has poisoned nothing that another one needs.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
