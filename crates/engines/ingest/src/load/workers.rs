//! What is decided before any archive is read: the identities of all, the memory of each worker,
//! and which worker loads what.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::{ArchiveReport, Input, Options};
use crate::{Error, Result};

/// The identity of each input: the result of `identity` for the one that the caller gave, if any,
/// and the input's path.
///
/// # Errors
/// [`Error::Refused`]: one identity for several inputs, or two inputs of one identity.
pub(super) fn identities(
    inputs: &[Input],
    options: &Options,
    identity: impl Fn(Option<&str>, &Path) -> String,
) -> Result<Vec<String>> {
    if let (Some(_), Some(second)) = (&options.identity, inputs.get(1)) {
        return Err(Error::Refused {
            path: second.path().to_owned(),
            reason: "one identity was given for several inputs".to_owned(),
        });
    }
    // Two inputs of one archive would replace each other, and which one stays would depend on the
    // workers' speed.
    let mut seen: BTreeMap<String, &Path> = BTreeMap::new();
    let mut identities = Vec::new();
    for input in inputs {
        let path = input.path();
        let identity = identity(options.identity.as_deref(), path);
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

/// Bytes of memory for each of `workers` workers, if that is at least `needed`.
///
/// # Errors
/// [`Error::Refused`] when they are fewer.
pub(super) fn worker_bytes(options: &Options, workers: usize, needed: usize) -> Result<usize> {
    let least = workers * needed;
    if options.memory < least {
        let least_mib = least.div_ceil(1 << 20);
        let reason = match workers {
            1 => format!(
                "{} bytes are not enough for a file; give at least {least_mib}MiB",
                options.memory
            ),
            _ => format!(
                "{} bytes are not enough for {workers} files at a time; give at least {least_mib}MiB, \
                 or fewer --threads",
                options.memory
            ),
        };
        return Err(Error::Refused {
            path: PathBuf::from("--memory"),
            reason,
        });
    }
    Ok(options.memory / workers)
}

/// Runs `run` over the inputs on several threads (a work queue), and returns the reports in input
/// order. `run` gets the worker's number.
pub(super) fn side_by_side(
    workers: usize,
    identities: Vec<String>,
    inputs: Vec<Input>,
    run: impl Fn(usize, String, Input) -> ArchiveReport + Sync,
) -> Vec<ArchiveReport> {
    let count = inputs.len();
    let queue = Mutex::new(identities.into_iter().zip(inputs).enumerate());
    let reports: Mutex<BTreeMap<usize, ArchiveReport>> = Mutex::default();
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (queue, reports, run) = (&queue, &reports, &run);
            scope.spawn(move || {
                loop {
                    // The lock is released at the end of this statement, so that archives load in
                    // parallel.
                    let next = queue.lock().next();
                    let Some((number, (identity, input))) = next else {
                        return;
                    };
                    let report = run(worker, identity, input);
                    reports.lock().insert(number, report);
                }
            });
        }
    });
    let reports = reports.into_inner();
    debug_assert_eq!(reports.len(), count);
    // Workers finish in any order; the map has the reports in the order of the inputs.
    reports.into_values().collect()
}
