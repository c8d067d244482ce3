//! Where the systems of a case spend their processor time: one more invocation of each, which is
//! not timed, under `perf`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

use dyno_record::{CasePlan, Outcome, Profile, Role};

use crate::Error;
use crate::executor::{Exit, Invocation};
use crate::invoke;
use crate::progress::Event;
use crate::protocol::Phase;
use crate::runner::Runner;
use crate::scratch::Scratch;

/// What `perf record` is called with. The clock of the processors exists on machines that hide
/// their counters too. Stacks are found by the tables that are in every program for unwinding,
/// because optimised code keeps no frame pointers. Nothing is copied to the user's cache of
/// programs.
const RECORD: [&str; 10] = [
    "record",
    "--quiet",
    "--event",
    "cpu-clock",
    "--freq",
    "199",
    "--call-graph",
    "dwarf,16384",
    "--no-buildid-cache",
    "--output",
];

/// How many times as long as its case allows an invocation may take: copying stacks slows a program
/// down.
const PATIENCE: u32 = 2;

/// A `perf` that can sample on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Profiler(());

impl Profiler {
    /// Tries `perf` on a program that does nothing.
    ///
    /// # Errors
    /// Why it cannot be used, in a sentence.
    pub fn find() -> Result<Profiler, String> {
        let tried = Command::new("perf")
            .args(RECORD)
            .args(["/dev/null", "--", "true"])
            .output();
        match tried {
            Ok(output) if output.status.success() => Ok(Profiler(())),
            Ok(output) => Err(format!("`perf` cannot sample here: {}", complaint(&output))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err("`perf` is not installed; on Debian it is in the package linux-perf".to_owned())
            }
            Err(error) => Err(format!("`perf` cannot be started: {error}")),
        }
    }
}

/// The first line that a program complained with.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let first = text.lines().find(|line| !line.trim().is_empty());
    first.unwrap_or("it gave no reason").trim().to_owned()
}

impl Invocation {
    /// Has the child, and all that it starts, sampled into this file.
    pub(crate) fn sample_into(&mut self, data: &Path) {
        let record = RECORD.map(OsString::from).into_iter();
        self.start_by("perf", record.chain([data.into(), "--".into()]));
        self.time_limit *= PATIENCE;
    }
}

impl Runner<'_> {
    /// Profiles each system of a case that could be timed.
    pub(crate) fn profile(&mut self, case: &CasePlan, able: &[bool]) -> Result<(), Error> {
        for (system, able) in case.systems.iter().zip(able) {
            // An experiment asks whether a resource matters, which its figure answers.
            if !able || case.role(system) == Role::Experiment || self.summary.stopped {
                continue;
            }
            self.observer.event(&Event::Profiling {
                case: &case.name,
                system,
            });
            match self.stacks(case, system)? {
                Ok(Some(stacks)) => {
                    let (case, system) = (case.name.clone(), system.clone());
                    let profile = Profile {
                        case,
                        system,
                        stacks,
                    };
                    profile.write(self.record.path())?;
                }
                Ok(None) => self.summary.stopped = true,
                Err(reason) => {
                    self.fail(case, system, format!("{system} was not profiled: {reason}"));
                }
            }
        }
        Ok(())
    }

    /// The stacks of one invocation; nothing when the user stopped it.
    fn stacks(
        &mut self,
        case: &CasePlan,
        system: &str,
    ) -> Result<Result<Option<BTreeMap<String, u64>>, String>, Error> {
        // The file lies beside the directory of the child, which is promised an empty one.
        let own = Scratch::fresh(&self.scratch_root, "profile")?;
        let data = own.path().join("perf.data");
        let scratch = self.scratch(case, system, Phase::Measure)?;
        let ended = self.invoke_in(case, system, Phase::Measure, &scratch, Some(&data))?;
        scratch.remove()?;
        let stacks = match ended {
            Ok(ended) if ended.exit == Exit::Stopped => Ok(None),
            Ok(ended) => match invoke::judge(&ended, f64::from(PATIENCE) * case.time_limit_s).1 {
                Outcome::Done => read(&data).map(Some),
                Outcome::Failed(reason) | Outcome::Hung(reason) => Err(reason),
            },
            Err(reason) => Err(reason),
        };
        own.remove()?;
        Ok(stacks)
    }
}

/// Reads the stacks that were sampled into a file.
fn read(data: &Path) -> Result<BTreeMap<String, u64>, String> {
    // Inlined functions are left out: to name them takes minutes, and debug information, which few
    // programs have.
    let printed = Command::new("perf")
        .args([
            "script",
            "--no-inline",
            "--fields",
            "comm,ip,sym",
            "--input",
        ])
        .arg(data)
        .output()
        .map_err(|error| format!("`perf` cannot be started: {error}"))?;
    if !printed.status.success() {
        return Err(format!("`perf script` failed: {}", complaint(&printed)));
    }
    let stacks = fold(&String::from_utf8_lossy(&printed.stdout));
    if stacks.is_empty() {
        Err("it was on a processor too briefly to be sampled".to_owned())
    } else {
        Ok(stacks)
    }
}

/// Counts equal stacks. A sample is printed as the name of its process, the address and the name of
/// each function with the innermost first, and an empty line.
fn fold(text: &str) -> BTreeMap<String, u64> {
    let mut stacks = BTreeMap::new();
    for sample in text.split("\n\n") {
        let mut lines = sample.lines().filter(|line| !line.trim().is_empty());
        let Some(process) = lines.next() else {
            continue;
        };
        let mut stack: Vec<String> = lines.filter_map(function).collect();
        stack.push(process.trim().replace(';', ":"));
        stack.reverse();
        // A chain of functions whose names are not known says as much as one of them.
        stack.dedup_by(|a, b| a == UNKNOWN && b == UNKNOWN);
        *stacks.entry(stack.join(";")).or_default() += 1;
    }
    stacks
}

const UNKNOWN: &str = "[unknown]";

/// The name of a function from its line; those of the kernel, which are in the upper half of the
/// addresses, get the ending that other tools for such stacks know.
fn function(line: &str) -> Option<String> {
    let (address, name) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let name = without_hash(name).replace(';', ":");
    Some(match address >> 63 {
        1 => format!("{name}_[k]"),
        _ => name,
    })
}

/// A name of a Rust function without the hash that tells crates of one name apart.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            path
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_stack_are_counted_together() {
        let sample = "dyno load \n\t  150adc3 <T as U>::read::h0123456789abcdef\n\t 14d386 main\n";
        let kernel = "dyno load \n\tffffffff821f5127 exc_page_fault\n\t 14d386 main\n";
        let unnamed = "sh \n\t 1 [unknown]\n\t 2 [unknown]\n\t 3 main\n";
        let text = [sample, kernel, sample, unnamed].join("\n");
        let expected = [
            ("dyno load;main;<T as U>::read", 2),
            ("dyno load;main;exc_page_fault_[k]", 1),
            ("sh;main;[unknown]", 1),
        ];
        let expected = expected.map(|(stack, count)| (stack.to_owned(), count));
        assert_eq!(fold(&text), BTreeMap::from(expected));
        assert_eq!(fold("\n"), BTreeMap::new());
    }
}
