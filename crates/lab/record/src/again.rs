//! Which runs measured the same work, so that a newer one stands for an older one.

use std::collections::HashSet;

use crate::schema::{Plan, Size};

impl Plan {
    /// The size of the suite and what was set in it, such as `quick with sf=1`, because other
    /// parameters are other work. How often and for how long it was measured is left out.
    pub fn size_text(&self) -> String {
        let size = match self.size {
            Size::Tiny => "tiny",
            Size::Quick => "quick",
            Size::Full => "full",
        };
        let is_work = |name: &str| !name.starts_with("repeats") && name != "seconds";
        let set = self.set.iter().filter(|(name, _)| is_work(name));
        let set: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
        if set.is_empty() {
            return size.to_owned();
        }
        format!("{size} with {}", set.join(", "))
    }

    /// Whether each case of this run was measured again by one of `newer`, at the same size and
    /// with the same parameters. As long as one was not, this run has the newest figure of it.
    pub fn is_replaced_by<'a>(&self, newer: impl Iterator<Item = &'a Plan>) -> bool {
        let same = newer
            .filter(|newer| self.suite == newer.suite && self.size_text() == newer.size_text());
        let again: HashSet<&str> = same
            .flat_map(|newer| newer.cases.iter().map(|case| case.name.as_str()))
            .collect();
        self.cases
            .iter()
            .all(|case| again.contains(case.name.as_str()))
    }
}
