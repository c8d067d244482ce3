//! Data that cases read, made once and kept by hash.
//!
//! A directory is named for what is in it: workload, parameters, the data they refer to, the
//! system and the version of its data. It appears by a rename when it is whole, so that one cut
//! short is made anew and never read.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use serde_json::json;
use twox_hash::XxHash3_128;

use crate::clock::Clock;
use crate::data_plan::DataPlan;
use crate::executor::{Executor, Exit};
use crate::invoke::{self, DataDirs};
use crate::plan::Planned;
use crate::progress::{Event, Observer};
use crate::protocol::Phase;
use crate::stop::Stop;
use crate::system::System;
use crate::{DYNO, Error};

/// Knows where data lies, and makes what is missing.
#[derive(Debug)]
pub struct Preparer {
    dirs: BTreeMap<(String, String), PathBuf>,
    data: Vec<DataPlan>,
}

impl Preparer {
    /// Works out every directory of a plan under `root`; touches no disk.
    pub fn new(root: &Path, planned: &Planned, systems: &[System]) -> Preparer {
        let mut preparer = Preparer {
            dirs: BTreeMap::new(),
            data: planned.data.clone(),
        };
        for data in &planned.data {
            for system in &data.systems {
                let version = systems
                    .iter()
                    .find(|s| s.name == *system)
                    .map_or(String::new(), data_version);
                // The referred-to directories carry their own hash, which chains them all.
                let inputs: Vec<String> = preparer
                    .dirs
                    .iter()
                    .filter(|((_, by), _)| by == system || by == DYNO)
                    .map(|((name, _), dir)| (name, dir))
                    .filter(|(name, _)| {
                        let reference = format!("${{data.{name}}}");
                        data.params
                            .values()
                            .any(|v| v.to_string().contains(&reference))
                    })
                    .map(|(_, dir)| dir.display().to_string())
                    .collect();
                let identity = json!([data.workload, data.params, system, version, inputs]);
                let hash = XxHash3_128::oneshot(identity.to_string().as_bytes());
                let dir = root.join(format!("{}-{system}-{hash:032x}", data.name));
                preparer
                    .dirs
                    .insert((data.name.clone(), system.clone()), dir);
            }
        }
        preparer
    }

    /// Whether a system's data lies ready.
    pub fn ready(&self, name: &str, system: &str) -> bool {
        self.dir(name, system).is_some_and(|dir| dir.is_dir())
    }

    /// Where a system's data lies or will lie; data made by one system is everybody's.
    pub fn dir(&self, name: &str, system: &str) -> Option<&Path> {
        self.dirs
            .get(&(name.to_string(), system.to_string()))
            .or_else(|| {
                let data = self
                    .data
                    .iter()
                    .find(|d| d.name == name && d.by != "each")?;
                self.dirs.get(&(name.to_string(), data.by.clone()))
            })
            .map(PathBuf::as_path)
    }

    /// Makes what is missing, in order.
    ///
    /// # Errors
    /// [`Error::Data`] with the maker's own words; [`Error::Stopped`] when the user asked to stop.
    pub fn prepare(
        &self,
        systems: &[System],
        executor: &mut dyn Executor,
        clock: &dyn Clock,
        observer: &mut dyn Observer,
        stop: &Stop,
    ) -> Result<(), Error> {
        for data in &self.data {
            for name in &data.systems {
                let system = systems.iter().find(|s| s.name == *name);
                let Some(system) = system.filter(|s| s.missing.is_none()) else {
                    return Err(fail(data, name, "it is not installed"));
                };
                let begun_s = clock.elapsed_s();
                let reused = self.ready(&data.name, name);
                if !reused {
                    observer.event(&Event::Preparing {
                        name: &data.name,
                        system: name,
                    });
                    self.make(data, system, executor, stop)?;
                }
                observer.event(&Event::Prepared {
                    name: &data.name,
                    system: name,
                    reused,
                    wall_s: if reused {
                        0.0
                    } else {
                        clock.elapsed_s() - begun_s
                    },
                });
            }
        }
        Ok(())
    }

    fn make(
        &self,
        data: &DataPlan,
        system: &System,
        executor: &mut dyn Executor,
        stop: &Stop,
    ) -> Result<(), Error> {
        let Some(dir) = self.dir(&data.name, &system.name) else {
            return Err(fail(data, &system.name, "it has no place in this plan"));
        };
        // The child writes into a directory beside the final one, so that a child that is killed
        // leaves nothing that a later run would take for whole data.
        let partial = dir.with_extension("partial");
        let _lock = lock(dir, data, &system.name)?;
        // Another run may have made it between the look in `prepare` and the lock.
        if dir.is_dir() {
            return Ok(());
        }
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(|e| Error::io(&partial, e))?;
        }
        fs::create_dir_all(&partial).map_err(|e| Error::io(&partial, e))?;
        let dirs: &DataDirs<'_> = &|name| self.dir(name, &system.name).map(Path::to_path_buf);
        let params =
            invoke::resolve(&data.params, dirs).map_err(|e| fail(data, &system.name, e))?;
        let invocation = invoke::invocation(
            system,
            &data.workload,
            params,
            Phase::Prepare,
            &partial,
            data.time_limit_s,
        );
        let ended = executor.execute(&invocation, stop)?;
        if ended.exit == Exit::Stopped {
            return Err(Error::Stopped);
        }
        let (reply, outcome) = invoke::judge(&ended, data.time_limit_s);
        match (reply, outcome) {
            (Some(_), _) => fs::rename(&partial, dir).map_err(|e| Error::io(dir, e)),
            (None, dyno_record::Outcome::Failed(why) | dyno_record::Outcome::Hung(why)) => {
                Err(fail(data, &system.name, why))
            }
            (None, dyno_record::Outcome::Done) => Err(fail(data, &system.name, "no reply")),
        }
    }
}

/// Our data depends on its own version only, so that it outlives a rebuild of the program; a
/// peer's on the peer's version too, whose file format it may be.
fn data_version(system: &System) -> String {
    if system.name == DYNO {
        system.data_version.clone()
    } else {
        format!("{} {}", system.version, system.data_version)
    }
}

fn fail(data: &DataPlan, system: &str, reason: impl Into<String>) -> Error {
    Error::Data {
        name: data.name.clone(),
        system: system.to_string(),
        reason: reason.into(),
    }
}

/// Two runs must not make the same data at once.
fn lock(dir: &Path, data: &DataPlan, system: &str) -> Result<File, Error> {
    let path = dir.with_extension("lock");
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|e| Error::io(parent, e))?;
    }
    let file = File::create(&path).map_err(|e| Error::io(&path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(fail(data, system, "another run is making it now")),
        Err(TryLockError::Error(e)) => Err(Error::io(&path, e)),
    }
}
