//! Profiles of a record: the call stacks that a sampling profiler saw an invocation in.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::error::RecordError;
use crate::run_dir::replace_file;
use crate::schema::CasePlan;

/// The stacks of one system in one case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// Name of the case.
    pub case: String,
    /// The system or variant, as the case names it.
    pub system: String,
    /// How often each stack was seen. A stack is the name of the process and its functions, the
    /// outermost first, joined by `;`.
    pub stacks: BTreeMap<String, u64>,
}

impl Profile {
    /// Reads the profiles of a case that lie in the directory of a record, in the order of its
    /// systems. Those that cannot be read are given by their path and the reason.
    pub(crate) fn read_case(
        dir: &Path,
        case: &CasePlan,
    ) -> impl Iterator<Item = Result<Profile, (PathBuf, String)>> {
        case.systems.iter().filter_map(|system| {
            let name = file_name(&case.name, system);
            let path = dir.join(&name);
            // The names come from the record, and a record of a stranger may name any file.
            if Path::new(&name).components().count() != 1 || !path.exists() {
                return None;
            }
            let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
            let stacks = text.and_then(|text| parse(&text));
            Some(
                stacks
                    .map_err(|reason| (path, reason))
                    .map(|stacks| Profile {
                        case: case.name.clone(),
                        system: system.clone(),
                        stacks,
                    }),
            )
        })
    }

    /// Writes the profile into the directory of a record, in place of an earlier one.
    ///
    /// # Errors
    /// [`RecordError::Io`] when the disk refuses.
    pub fn write(&self, dir: &Path) -> Result<(), RecordError> {
        let mut text = String::new();
        for (stack, count) in &self.stacks {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{stack} {count}");
        }
        let path = dir.join(file_name(&self.case, &self.system));
        replace_file(&path, text.as_bytes())
    }
}

fn file_name(case: &str, system: &str) -> String {
    format!("{case}-{system}.folded")
}

/// Reads lines of a stack, a space and a count. Names of functions have spaces as well.
fn parse(text: &str) -> Result<BTreeMap<String, u64>, String> {
    let mut stacks = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let parts = line.rsplit_once(' ');
        let parsed = parts.and_then(|(stack, count)| Some((stack, count.parse::<u64>().ok()?)));
        let Some((stack, count)) = parsed else {
            return Err(format!("line {}: it does not end in a count", index + 1));
        };
        *stacks.entry(stack.to_owned()).or_default() += count;
    }
    Ok(stacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_read_with_spaces_in_their_names() {
        let text = "dyno;start;<T as Into<U>>::into 3\ndyno;start 1\n";
        let stacks = parse(text).expect("two stacks");
        let expected = [
            ("dyno;start".to_owned(), 1),
            ("dyno;start;<T as Into<U>>::into".to_owned(), 3),
        ];
        assert_eq!(stacks, BTreeMap::from(expected));
        assert_eq!(
            parse("dyno;start 1\ndyno;start\n"),
            Err("line 2: it does not end in a count".to_owned())
        );
    }
}
