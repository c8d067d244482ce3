//! Which cases of a suite are run: those that are asked for, without those that are skipped.

use dyno_record::matches_pattern;

use crate::Error;

/// Names of cases, in which `*` stands for any letters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The cases to run; all of them when it is empty.
    pub only: Vec<String>,
    /// The cases that are left out of those.
    pub skip: Vec<String>,
}

impl Selection {
    /// For each of `cases`, in their order, whether it is run.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a pattern that is the name of no case, because a misspelt one would
    /// otherwise run nothing or leave out nothing. [`Error::NothingLeft`] when no case remains.
    pub(crate) fn choose(&self, suite: &str, cases: &[&str]) -> Result<Vec<bool>, Error> {
        for pattern in self.only.iter().chain(&self.skip) {
            if !cases.iter().any(|case| matches_pattern(pattern, case)) {
                return Err(Error::unknown("case of the suite", pattern, cases));
            }
        }
        let is_in =
            |patterns: &[String], case: &str| patterns.iter().any(|one| matches_pattern(one, case));
        let chosen: Vec<bool> = cases
            .iter()
            .map(|case| {
                (self.only.is_empty() || is_in(&self.only, case)) && !is_in(&self.skip, case)
            })
            .collect();
        // A run of nothing would end well and look as if all had been measured.
        if !chosen.contains(&true) {
            return Err(Error::NothingLeft {
                suite: suite.to_owned(),
            });
        }
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_is_skipped_is_left_out_of_what_is_asked_for() {
        let cases = ["load-gz", "load-csv", "top-ten"];
        let selection = Selection {
            only: names(&["load-*"]),
            skip: names(&["*csv"]),
        };
        let chosen = selection.choose("s", &cases).expect("one is left");
        assert_eq!(chosen, [true, false, false]);
        let all = Selection::default().choose("s", &cases).expect("all");
        assert_eq!(all, [true; 3]);
    }

    #[test]
    fn a_pattern_without_a_case_and_a_choice_of_none_are_refused() {
        let cases = ["load-gz", "top-ten"];
        let of = |only: &[&str], skip: &[&str]| {
            let selection = Selection {
                only: names(only),
                skip: names(skip),
            };
            selection
                .choose("spots", &cases)
                .expect_err("refused")
                .to_string()
        };
        let said = of(&[], &["laod-gz"]);
        assert!(said.contains("did you mean `load-gz`?"), "{said}");
        let said = of(&["top-ten"], &["*"]);
        assert!(said.contains("suite spots: no case is left"), "{said}");
    }
}
