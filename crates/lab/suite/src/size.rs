//! A size of a suite: its parameters, and the cases and variants that it runs.

use dyno_record::{Size, matches_pattern};
use serde::Deserialize;
use toml::Spanned;

use crate::definition::{Definition, SizeParams};
use crate::error::{Error, nearest};

/// `[sizes.NAME]` of a suite's file.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct SizeDef {
    /// Patterns of the cases that a run of this size has; without it, all of the suite.
    pub(crate) cases: Option<Vec<Spanned<String>>>,
    /// Whether the variants of the cases are run.
    #[serde(default = "yes")]
    pub(crate) variants: bool,
    /// The parameters that cases refer to as `${size.NAME}`, and `budget_s`.
    #[serde(flatten)]
    pub(crate) params: SizeParams,
}

fn yes() -> bool {
    true
}

/// For each of `cases`, all of the suite at this size and in their order, whether the size runs it.
///
/// # Errors
/// [`Error::Definition`] with the line of a pattern that is the name of no case, because a misspelt
/// one would leave a case out without a word.
pub(crate) fn choose(suite: &Definition, size: Size, cases: &[&str]) -> Result<Vec<bool>, Error> {
    let Some(patterns) = &suite.size(size).cases else {
        return Ok(vec![true; cases.len()]);
    };
    let name = format!("{size:?}").to_lowercase();
    if patterns.is_empty() {
        return Err(suite.error(format!(
            "size `{name}` chooses no case; without `cases` it has all of them"
        )));
    }
    for pattern in patterns {
        let text = pattern.get_ref();
        if !cases.iter().any(|case| matches_pattern(text, case)) {
            let near = nearest(text, cases.iter().copied());
            let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            return Err(suite.error_at(
                pattern,
                format!(
                    "size `{name}` chooses case `{text}`, which the suite does not have at this \
                     size; {near}there are: {}",
                    cases.join(", ")
                ),
            ));
        }
    }
    let is_in = |case: &&str| {
        patterns
            .iter()
            .any(|one| matches_pattern(one.get_ref(), case))
    };
    Ok(cases.iter().map(is_in).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Planned;
    use crate::selection::Selection;

    const SUITE: &str = r#"
title = "T"
purpose = "P"
order_seed = 7
[sizes.tiny]
budget_s = 10
[sizes.quick]
cases = ["load-*"]
variants = false
budget_s = 10
[sizes.full]
budget_s = 10
[[data]]
name = "archive"
workload = "gen"
time_limit_s = 60
estimate = { units = 1, units_per_s = { other = 1 } }
[[case]]
name = "load-gz"
title = "Load"
workload = "fake"
params = { mode = "fast", codec = "ours" }
variants = { slow = { mode = "slow" } }
baselines = { c = { codec = "c" } }
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = 3
time_limit_s = 5
expected_count = 10
analysis = "A"
estimate = { units_per_s = { other = 10, slow = 5 } }
[[case]]
name = "top-ten"
title = "Top"
workload = "fake"
params = { db = "${data.archive}" }
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = 3
time_limit_s = 5
expected_count = 10
analysis = "A"
estimate = { units_per_s = { other = 10 } }
[[table]]
title = "Tops"
columns = ["throughput"]
ranked = false
rows = [{ label = "ten", case = "top-ten" }]
"#;

    fn suite(text: &str) -> Definition {
        Definition::parse("x", "suites/x.toml", text).expect("a suite")
    }

    fn quick(suite: &Definition) -> Result<Planned, Error> {
        Planned::new(suite, Size::Quick, &[])
    }

    #[test]
    fn a_size_runs_the_cases_it_chooses_without_their_variants() {
        let planned = quick(&suite(SUITE)).expect("a plan");
        assert_eq!(planned.plan.cases.len(), 1);
        let case = &planned.plan.cases[0];
        // A library baseline is compared with our own code and is not another mode of it.
        assert_eq!(case.systems, ["dyno", "c"]);
        assert_eq!(
            case.variants.keys().collect::<Vec<_>>(),
            ["c"],
            "the parameters of the baseline stay"
        );
        assert!(planned.data.is_empty(), "only the other case needs it");
        assert!(planned.plan.tables[0].rows.is_empty());
        // Verified twice and timed in three blocks of dyno, c and the control, a second each.
        assert_eq!(planned.estimates[0].total_s, 11.0);
        assert_eq!(planned.estimates[0].invocation_s, [1.0, 1.0]);
        let left_out = &planned.plan.left_out;
        assert_eq!(left_out.cases, ["top-ten"]);
        assert_eq!(left_out.variants["load-gz"], ["slow"]);
        let full = Planned::new(&suite(SUITE), Size::Full, &[]).expect("a plan");
        assert!(full.plan.left_out.is_empty());
        assert_eq!(full.plan.cases[0].systems, ["dyno", "slow", "c"]);
    }

    #[test]
    fn a_case_that_is_asked_for_runs_whole_although_the_size_leaves_it_out() {
        let mut suite = suite(SUITE);
        let only = |case: &str| Selection {
            only: vec![case.to_owned()],
            skip: Vec::new(),
        };
        suite.select(only("top-ten"));
        let planned = quick(&suite).expect("a plan");
        assert_eq!(planned.plan.cases[0].name, "top-ten");
        assert!(planned.plan.left_out.is_empty());
        suite.select(only("load-gz"));
        let planned = quick(&suite).expect("a plan");
        assert_eq!(planned.plan.cases[0].systems, ["dyno", "slow", "c"]);
    }

    #[test]
    fn skipping_all_that_the_size_has_leaves_nothing() {
        let mut suite = suite(SUITE);
        suite.select(Selection {
            only: Vec::new(),
            skip: vec!["load-gz".to_owned()],
        });
        let said = quick(&suite).expect_err("nothing is left").to_string();
        assert!(said.contains("no case is left to run"), "{said}");
        // A case that the size leaves out may be skipped all the same.
        suite.select(Selection {
            only: Vec::new(),
            skip: vec!["top-ten".to_owned()],
        });
        let planned = quick(&suite).expect("a plan");
        assert!(planned.plan.left_out.cases.is_empty(), "it was skipped");
    }

    #[test]
    fn a_pattern_without_a_case_is_refused_with_its_line() {
        let check = |with: &str, reason: &str| {
            let text = SUITE.replace("[\"load-*\"]", with);
            let said = quick(&suite(&text)).expect_err("refused").to_string();
            assert!(said.starts_with("suites/x.toml:"), "{said}");
            assert!(said.contains(reason), "{said}");
        };
        check(
            "[\"load-*\", \"top-tne\"]",
            ":8: size `quick` chooses case `top-tne`, which the suite does not have at this size; \
             did you mean `top-ten`? there are: load-gz, top-ten",
        );
        check("[]", "size `quick` chooses no case");
        let text = SUITE.replace("[\"load-*\"]", "\"load-*\"");
        let said = Definition::parse("x", "suites/x.toml", &text).expect_err("refused");
        assert!(said.to_string().contains("suites/x.toml:8"), "{said}");
    }
}
