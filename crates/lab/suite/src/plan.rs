//! A suite at one size: every cell, fixed before the first sample.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::{CasePlan, LeftOut, Plan, Role, Size};

use crate::beside::LoadCommand;
use crate::data_plan::DataPlan;
use crate::definition::{CaseDef, Definition};
use crate::estimate::{CaseEstimate, samples_of};
use crate::expand::Expander;
use crate::substitute::number;
use crate::{DYNO, Error, System, size};

/// What will be run, and what it takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The part that the record keeps.
    pub plan: Plan,
    /// Data to have before anything runs, in the order of making.
    pub data: Vec<DataPlan>,
    /// In the order of `plan.cases`.
    pub estimates: Vec<CaseEstimate>,
    /// No block is started after this many seconds.
    pub budget_s: f64,
    /// What runs beside the second invocation of each system in each block.
    pub beside: Option<LoadCommand>,
}

/// Data, cases and their estimates, in the suite's order.
type Expanded = (Vec<DataPlan>, Vec<CasePlan>, Vec<CaseEstimate>);

pub(crate) fn expanded(
    suite: &Definition,
    size: Size,
    peers: &[String],
) -> Result<Expanded, Error> {
    let expander = Expander::new(suite, size, peers);
    let mut data = Vec::new();
    for def in &suite.body.data {
        expander.data(def, &mut data)?;
    }
    let (mut cases, mut estimates) = (Vec::new(), Vec::new());
    // What a document printed comes first, because a budget that runs out takes the last cases. The
    // sort is stable, so that the order of the file decides the rest.
    let mut defs: Vec<&CaseDef> = suite.body.case.iter().collect();
    defs.sort_by_key(|def| !suite.is_of_a_document(def));
    for def in defs {
        expander.case(def, &data, &mut cases, &mut estimates)?;
    }
    let mut names = BTreeSet::new();
    if let Some(case) = cases.iter().find(|case| !names.insert(case.name.as_str())) {
        return Err(suite.error(format!("case `{}` is there twice", case.name)));
    }
    Ok((data, cases, estimates))
}

impl Planned {
    /// Expands a suite for `dyno` and the peers given; a case runs on those of them it names.
    ///
    /// # Errors
    /// [`Error::Definition`] when a reference, a number or a table row means nothing.
    pub fn new(suite: &Definition, size: Size, peers: &[String]) -> Result<Planned, Error> {
        let (data, cases, estimates) = expanded(suite, size, peers)?;
        let budget_s = number("budget_s", &suite.size(size).params["budget_s"])
            .map_err(|reason| suite.error(reason))?;
        let mut planned = Planned {
            plan: Plan {
                suite: suite.name.clone(),
                title: suite.body.title.clone(),
                purpose: suite.body.purpose.trim().to_string(),
                seed_document: suite.body.seed_document.clone(),
                size,
                order_seed: suite.body.order_seed,
                cases,
                set: suite.set.clone(),
                only: suite.selection().only.clone(),
                skip: suite.selection().skip.clone(),
                left_out: LeftOut::default(),
                tables: suite.body.table.clone(),
            },
            data,
            estimates,
            budget_s,
            beside: None,
        };
        planned.select(suite)?;
        planned.settle_tables(suite, peers)?;
        planned.settle_data();
        Ok(planned)
    }

    /// Notes in each case which of its peers promise less than `dyno`, and how.
    pub fn note_lesser_promises(&mut self, systems: &[System]) {
        for case in &mut self.plan.cases {
            let of_case = systems.iter().filter(|s| case.systems.contains(&s.name));
            let less = of_case.filter_map(|s| Some((s.name.clone(), s.promises_less.clone()?)));
            case.promises_less = less.collect();
        }
    }

    /// The systems of the plan, `dyno` first.
    pub fn systems(&self) -> Vec<String> {
        let mut systems = vec![DYNO.to_string()];
        for system in self.plan.cases.iter().flat_map(|case| case.peers()) {
            if !systems.iter().any(|there| there == system) {
                systems.push(system.to_string());
            }
        }
        systems
    }

    /// Puts times that were measured before in place of those that the suite states: `seconds` says
    /// how long a timed invocation of a system takes. Returns the number of cases with such a time.
    pub fn measured_before(&mut self, seconds: &dyn Fn(&CasePlan, &str) -> Option<f64>) -> usize {
        let mut corrected = 0;
        for (case, estimate) in self.plan.cases.iter().zip(&mut self.estimates) {
            let known = case.systems.iter().enumerate();
            let known = known.filter_map(|(at, system)| Some((at, seconds(case, system)?)));
            let known: Vec<(usize, f64)> = known.collect();
            corrected += usize::from(!known.is_empty());
            for (system, wall_s) in known {
                estimate.correct(case, system, wall_s);
            }
        }
        corrected
    }

    /// Invocations that will be timed.
    pub fn samples(&self) -> u32 {
        let cases = self.plan.cases.iter();
        cases
            .map(|case| samples_of(case, self.beside.is_some()))
            .sum()
    }

    /// Has each block run every system a second time, beside `load`. The budget doubles, because it
    /// was stated for blocks of half the length.
    pub fn run_beside(&mut self, load: LoadCommand) {
        self.budget_s *= 2.0;
        for (case, estimate) in self.plan.cases.iter().zip(&mut self.estimates) {
            estimate.run_beside(case);
        }
        self.beside = Some(load);
    }

    /// Drops the cases that the caller did not choose, and what the size leaves out. It comes
    /// before the tables and the data are settled, so that rows and data of dropped cases go with
    /// them.
    fn select(&mut self, suite: &Definition) -> Result<(), Error> {
        let selection = suite.selection();
        let names: Vec<&str> = self.plan.cases.iter().map(|c| c.name.as_str()).collect();
        let chosen = selection.choose(&suite.name, &names)?;
        let by_size = size::choose(suite, self.plan.size, &names)?;
        // A size saves time on the suite as a whole. A case that the caller names is run as the
        // suite has it, because a figure that is run again must come from the same blocks.
        let named = !selection.only.is_empty();
        let mut kept = Vec::new();
        for ((case, chosen), by_size) in names.iter().zip(chosen).zip(by_size) {
            if chosen && !by_size && !named {
                self.plan.left_out.cases.push((*case).to_owned());
            }
            kept.push(chosen && (by_size || named));
        }
        if !kept.contains(&true) {
            return Err(Error::NothingLeft {
                suite: suite.name.clone(),
            });
        }
        let mut keep = kept.iter().copied();
        self.estimates.retain(|_| keep.next().unwrap_or(true));
        let mut keep = kept.iter().copied();
        self.plan.cases.retain(|_| keep.next().unwrap_or(true));
        if !suite.size(self.plan.size).variants && !named {
            self.drop_variants();
        }
        Ok(())
    }

    /// Leaves `dyno`, library baselines and peers in each case.
    fn drop_variants(&mut self) {
        for (case, estimate) in self.plan.cases.iter_mut().zip(&mut self.estimates) {
            let is_variant = |place: &usize| case.role(&case.systems[*place]) == Role::Variant;
            let (out, kept): (Vec<usize>, Vec<usize>) =
                (0..case.systems.len()).partition(is_variant);
            let dropped: Vec<String> = out.iter().map(|at| case.systems[*at].clone()).collect();
            if dropped.is_empty() {
                continue;
            }
            case.systems.retain(|system| !dropped.contains(system));
            case.variants.retain(|name, _| !dropped.contains(name));
            estimate.take_systems(case, &kept);
            let left_out = &mut self.plan.left_out.variants;
            left_out.insert(case.name.clone(), dropped);
        }
    }

    /// Decides for which systems each data section is made, and drops what nothing uses.
    fn settle_data(&mut self) {
        // From the last section to the first: data is needed by the cases and by the data behind
        // it, whose own users must be known before.
        for index in (0..self.data.len()).rev() {
            let name = self.data[index].name.clone();
            let mut users: Vec<String> = Vec::new();
            for case in self.plan.cases.iter().filter(|c| refers(&c.params, &name)) {
                users.push(DYNO.to_string());
                users.extend(case.peers().map(str::to_string));
            }
            for later in self.data.iter().filter(|d| refers(&d.params, &name)) {
                users.extend(later.systems.iter().cloned());
            }
            let systems: Vec<String> = match self.data[index].by.as_str() {
                "each" => {
                    let mut seen = BTreeSet::new();
                    users
                        .into_iter()
                        .filter(|s| seen.insert(s.clone()))
                        .collect()
                }
                _ if users.is_empty() => Vec::new(),
                one => vec![one.to_string()],
            };
            self.data[index].systems = systems;
        }
        self.data.retain(|data| !data.systems.is_empty());
    }
}

/// Whether some parameter refers to the data section.
fn refers(params: &BTreeMap<String, serde_json::Value>, data: &str) -> bool {
    let reference = format!("${{data.{data}}}");
    params
        .values()
        .any(|value| value.to_string().contains(&reference))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Selection;
    use crate::scheduler_test::system;

    pub(crate) const SUITE: &str = r#"
title = "Loads"
purpose = "Shows the runner."
order_seed = 7
[sizes.tiny]
rows = 100
points = [1000, 25000]
budget_s = 60
[sizes.quick]
rows = 1000
points = [1e6]
budget_s = 60
[sizes.full]
rows = 10000
points = [1e6]
budget_s = 60
[[data]]
name = "archive"
workload = "gen"
params = { rows = "${size.rows}" }
time_limit_s = 60
estimate = { units = "${size.rows}", units_per_s = { other = 50 }, disk_bytes_per_unit = 20 }
[[data]]
name = "rows-${axis.label}"
sweep = { axis = "rows", values = "${size.points}" }
workload = "gen"
params = { rows = "${axis}" }
time_limit_s = 60
estimate = { units = "${axis}", units_per_s = { other = 1e6 } }
[[data]]
name = "db"
by = "each"
workload = "prepare"
params = { files = "${data.archive}/*.gz" }
time_limit_s = 60
estimate = { units = "${size.rows}", units_per_s = { other = 50 } }
[[data]]
name = "unused"
workload = "gen"
time_limit_s = 60
estimate = { units = 1, units_per_s = { other = 50 } }
[[case]]
name = "load"
title = "Load"
workload = "load"
params = { files = "${data.archive}/*.gz", workers = 2 }
peers = ["other", "third"]
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = 4
control = true
time_limit_s = 5
expected_count = "${size.rows}"
analysis = "A"
estimate = { units_per_s = { other = 100, dyno = 200 }, startup_s = 1 }
[[case]]
name = "top"
title = "Top"
workload = "top"
params = { db = "${data.db}" }
peers = ["other"]
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = 2
time_limit_s = 5
expected_count = "${size.rows}"
analysis = "A"
estimate = { units_per_s = { other = 100 } }
[[case]]
name = "sweep-${axis.label}"
title = "${axis} rows"
sweep = { axis = "rows", values = "${size.points}" }
workload = "load"
params = { files = "${data.rows-${axis.label}}/*.gz" }
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = 1
time_limit_s = 5
expected_count = "${axis}"
analysis = "A"
estimate = { units_per_s = { other = 1e6 } }
[[table]]
title = "T"
columns = ["system", "throughput"]
rows = [{ label = "a", case = "load", system = "dyno" }, { label = "b", case = "load", system = "third" }]
ranked = false
"#;

    /// A suite at its tiny size.
    pub(crate) fn planned(text: &str, peers: &[&str]) -> Result<Planned, Error> {
        let suite = Definition::parse("x", "x.toml", text)?;
        let peers: Vec<String> = peers.iter().map(|p| p.to_string()).collect();
        Planned::new(&suite, Size::Tiny, &peers)
    }

    #[test]
    fn a_row_of_another_size_is_left_out_and_one_of_none_is_refused() {
        let with = |case: &str| {
            let row = format!(
                "{{ label = \"a\", case = \"load\", system = \"dyno\" }}, {{ label = \"c\", case = \"{case}\" }}"
            );
            SUITE.replace(
                "{ label = \"a\", case = \"load\", system = \"dyno\" }",
                &row,
            )
        };
        let tiny = planned(&with("sweep-1e6"), &[]).expect("a case of the quick size");
        let rows = &tiny.plan.tables[0].rows;
        assert!(rows.iter().all(|row| row.case == "load"), "{rows:?}");
        let error = planned(&with("sweep-2e6"), &[]).expect_err("of no size");
        assert!(error.to_string().contains("does not exist"), "{error}");
    }

    fn only(case: &str) -> Selection {
        Selection {
            only: vec![case.to_string()],
            ..Selection::default()
        }
    }

    #[test]
    fn chosen_cases_come_with_their_data_and_rows_alone() {
        let mut suite = Definition::parse("x", "x.toml", SUITE).expect("good");
        suite.select(only("top"));
        let planned = Planned::new(&suite, Size::Tiny, &[]).expect("good");
        assert_eq!((planned.plan.cases.len(), planned.estimates.len()), (1, 1));
        let data: Vec<&str> = planned.data.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(data, ["archive", "db"]);
        assert!(
            planned
                .plan
                .tables
                .iter()
                .all(|table| table.rows.is_empty())
        );
        suite.select(only("tpo"));
        let error = Planned::new(&suite, Size::Tiny, &[]).expect_err("not a case");
        assert!(error.to_string().contains("top, sweep-1e3"), "{error}");
    }

    #[test]
    fn cases_say_which_of_their_peers_promise_less() {
        let mut planned = planned(SUITE, &["other", "third"]).expect("good");
        let less = System {
            promises_less: Some("it forgets".into()),
            ..system("third")
        };
        planned.note_lesser_promises(&[system("dyno"), system("other"), less]);
        let [load, top, ..] = &planned.plan.cases[..] else {
            panic!("two cases with peers");
        };
        assert_eq!(load.promises_less["third"], "it forgets");
        assert_eq!(load.peers().collect::<Vec<_>>(), ["other", "third"]);
        assert_eq!(load.rivals().collect::<Vec<_>>(), ["other"]);
        assert!(top.promises_less.is_empty(), "`third` is not a peer of it");
    }

    #[test]
    fn a_suite_expands() {
        let planned = planned(SUITE, &["other"]).expect("good");
        let names: Vec<&str> = planned.plan.cases.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["load", "top", "sweep-1e3", "sweep-25e3"]);
        assert_eq!(planned.systems(), ["dyno", "other"]);
        // 4 x (2 systems + control) + 2 x 2 + 1 + 1
        assert_eq!(planned.samples(), 18);
        let data: Vec<(&str, Vec<&str>)> = planned
            .data
            .iter()
            .map(|d| {
                (
                    d.name.as_str(),
                    d.systems.iter().map(String::as_str).collect(),
                )
            })
            .collect();
        assert_eq!(
            data,
            [
                ("archive", vec!["dyno"]),
                ("rows-1e3", vec!["dyno"]),
                ("rows-25e3", vec!["dyno"]),
                ("db", vec!["dyno", "other"]),
            ]
        );
        assert_eq!(
            planned.plan.cases[2].params["files"],
            "${data.rows-1e3}/*.gz"
        );
        assert_eq!(planned.plan.cases[3].axis, Some(("rows".into(), 25_000.0)));
        assert_eq!(
            planned.plan.tables[0].rows.len(),
            1,
            "the absent peer's row goes"
        );
    }

    #[test]
    fn mistakes_are_named() {
        let check = |from: &str, to: &str, reason: &str| {
            assert!(SUITE.contains(from), "{from}");
            let e = planned(&SUITE.replace(from, to), &[]).expect_err("must be refused");
            assert!(e.to_string().contains(reason), "{e}");
        };
        check(
            "${data.archive}/*.gz\", w",
            "${data.arhive}/*.gz\", w",
            "`arhive`",
        );
        check("repeats = 4", "repeats = 0", "not between 1 and 1000");
        check(
            "expected_count = \"${axis}\"",
            "expected_count = \"${size.row}\"",
            "no `row`",
        );
        check(
            "case = \"load\", system = \"dyno\"",
            "case = \"laod\", system = \"dyno\"",
            "`laod`",
        );
        check(
            "units_per_s = { other = 100 }",
            "units_per_s = { other = 0 }",
            "of other is 0",
        );
    }
}
