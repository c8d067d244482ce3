//! A suite at one size: every cell, fixed before the first sample.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::{CasePlan, Plan, Size};
use toml::{Spanned, Value};

use crate::data::DataPlan;
use crate::definition::{CaseDef, DataDef, Definition, EstimateDef, SweepDef, is_kebab};
use crate::estimate::{CaseEstimate, Estimate};
use crate::substitute::Scope;
use crate::sweep::AxisPoint;
use crate::{DYNO, Error};

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
}

impl Planned {
    /// Expands a suite for `dyno` and the peers given; a case runs on those of them it names.
    ///
    /// # Errors
    /// [`Error::Definition`] when a reference, a number or a table row means nothing.
    pub fn new(suite: &Definition, size: Size, peers: &[String]) -> Result<Planned, Error> {
        let params = suite.size(size);
        let mut expander = Expander {
            suite,
            scope: Scope {
                size: params,
                axis: None,
            },
            peers,
        };
        let mut data: Vec<DataPlan> = Vec::new();
        for def in &suite.body.data {
            expander.data(def, &mut data)?;
        }
        let (mut cases, mut estimates) = (Vec::new(), Vec::new());
        for def in &suite.body.case {
            expander.case(def, &data, &mut cases, &mut estimates)?;
        }
        let budget_s = expander
            .size_number("budget_s", &params["budget_s"])
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
                tables: suite.body.table.clone(),
            },
            data,
            estimates,
            budget_s,
        };
        planned.check_tables(suite)?;
        planned.settle_data();
        Ok(planned)
    }

    /// The systems of the plan, `dyno` first.
    pub fn systems(&self) -> Vec<String> {
        let mut systems = vec![DYNO.to_string()];
        for system in self.plan.cases.iter().flat_map(|case| &case.systems) {
            if !systems.contains(system) {
                systems.push(system.clone());
            }
        }
        systems
    }

    /// Invocations that will be timed.
    pub fn samples(&self) -> u32 {
        self.plan.cases.iter().map(samples_of).sum()
    }

    fn check_tables(&mut self, suite: &Definition) -> Result<(), Error> {
        let known: BTreeSet<&str> = self.plan.cases.iter().map(|c| c.name.as_str()).collect();
        let stated: BTreeSet<&str> = suite
            .body
            .case
            .iter()
            .map(|case| case.name.get_ref().as_str())
            .collect();
        for row in self.plan.tables.iter().flat_map(|table| &table.rows) {
            if !known.contains(row.case.as_str()) && !stated.contains(row.case.as_str()) {
                return Err(suite.error(format!(
                    "table row `{}` shows case `{}`, which does not exist",
                    row.label, row.case
                )));
            }
        }
        // A row about a system that takes no part would be an empty line.
        for table in &mut self.plan.tables {
            table.rows.retain(|row| {
                self.plan.cases.iter().any(|case| {
                    case.name == row.case
                        && row.system.as_ref().is_none_or(|s| case.systems.contains(s))
                })
            });
        }
        Ok(())
    }

    /// Decides for which systems each data section is made, and drops what nothing uses.
    fn settle_data(&mut self) {
        for index in (0..self.data.len()).rev() {
            let name = self.data[index].name.clone();
            let mut users: Vec<String> = Vec::new();
            for case in self.plan.cases.iter().filter(|c| refers(&c.params, &name)) {
                users.extend(case.systems.iter().cloned());
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

/// Invocations of a case that will be timed.
pub(crate) fn samples_of(case: &CasePlan) -> u32 {
    case.repeats * (case.systems.len() as u32 + u32::from(case.control))
}

/// Whether some parameter refers to the data section.
fn refers(params: &BTreeMap<String, serde_json::Value>, data: &str) -> bool {
    let reference = format!("${{data.{data}}}");
    params
        .values()
        .any(|value| value.to_string().contains(&reference))
}

struct Expander<'a> {
    suite: &'a Definition,
    scope: Scope<'a>,
    peers: &'a [String],
}

impl Expander<'_> {
    fn data(&mut self, def: &DataDef, out: &mut Vec<DataPlan>) -> Result<(), Error> {
        for point in self.points(&def.name, def.sweep.as_ref())? {
            let scope = Scope {
                axis: point.as_ref(),
                ..self.scope
            };
            let fail = |reason: String| self.suite.error_at(&def.name, reason);
            let name = scope.text(def.name.get_ref()).map_err(fail)?;
            let params = self.params(&scope, &def.params).map_err(fail)?;
            let estimate = estimate(&scope, &def.estimate, None).map_err(fail)?;
            check_references(&params, out).map_err(fail)?;
            out.push(DataPlan {
                name,
                workload: def.workload.clone(),
                by: def.by.clone(),
                params,
                time_limit_s: def.time_limit_s,
                systems: Vec::new(),
                estimate,
            });
        }
        Ok(())
    }

    fn case(
        &mut self,
        def: &CaseDef,
        data: &[DataPlan],
        cases: &mut Vec<CasePlan>,
        estimates: &mut Vec<CaseEstimate>,
    ) -> Result<(), Error> {
        for point in self.points(&def.name, def.sweep.as_ref())? {
            let scope = Scope {
                axis: point.as_ref(),
                ..self.scope
            };
            let fail = |reason: String| self.suite.error_at(&def.name, reason);
            let case = self.case_plan(def, &scope, point.as_ref()).map_err(fail)?;
            check_references(&case.params, data).map_err(fail)?;
            if !is_kebab(&case.name) {
                return Err(fail(format!("case `{}` is not in kebab-case", case.name)));
            }
            let estimate = estimate(&scope, &def.estimate, case.expected_count).map_err(fail)?;
            estimates.push(CaseEstimate::new(&case, &estimate));
            cases.push(case);
        }
        Ok(())
    }

    fn case_plan(
        &self,
        def: &CaseDef,
        scope: &Scope<'_>,
        point: Option<&AxisPoint>,
    ) -> Result<CasePlan, String> {
        let mut systems = vec![DYNO.to_string()];
        systems.extend(def.peers.iter().filter(|p| self.peers.contains(p)).cloned());
        let expected_count = match &def.expected_count {
            None => None,
            Some(value) => Some(count("expected_count", &scope.apply(value)?)?),
        };
        let repeats = count("repeats", &scope.apply(&def.repeats)?)?;
        if repeats == 0 || repeats > 1_000 {
            return Err(format!(
                "repeats is {repeats}, which is not between 1 and 1000"
            ));
        }
        Ok(CasePlan {
            name: scope.text(def.name.get_ref())?,
            title: scope.text(&def.title)?,
            workload: def.workload.clone(),
            params: self.params(scope, &def.params)?,
            systems,
            metric: def.metric.clone(),
            unit: def.unit.clone(),
            better: def.better,
            repeats: repeats as u32,
            control: def.control,
            time_limit_s: def.time_limit_s,
            expected_count,
            limit: def.limit.clone(),
            limit_per_unit: def.limit_per_unit,
            seed_figure: def.seed_figure.clone(),
            analysis: match &def.no_expected_count {
                None => def.analysis.trim().to_string(),
                Some(reason) => {
                    format!("{}\n\nNo count is expected: {reason}", def.analysis.trim())
                }
            },
            axis: point.map(|p| (p.name.clone(), p.value)),
            in_flight: def.in_flight,
            offered_rate: def.offered_rate,
        })
    }

    fn params(
        &self,
        scope: &Scope<'_>,
        params: &BTreeMap<String, Value>,
    ) -> Result<BTreeMap<String, serde_json::Value>, String> {
        params
            .iter()
            .map(|(key, value)| {
                let value = scope
                    .apply(value)
                    .map_err(|e| format!("param {key}: {e}"))?;
                let json = serde_json::to_value(&value)
                    .map_err(|e| format!("param {key} is no JSON value: {e}"))?;
                Ok((key.clone(), json))
            })
            .collect()
    }

    fn points(
        &self,
        name: &Spanned<String>,
        sweep: Option<&SweepDef>,
    ) -> Result<Vec<Option<AxisPoint>>, Error> {
        let Some(sweep) = sweep else {
            return Ok(vec![None]);
        };
        let fail = |reason: String| self.suite.error_at(name, reason);
        let values = self.scope.apply(&sweep.values).map_err(fail)?;
        let Value::Array(values) = &values else {
            return Err(fail(format!("sweep values are no list: {values}")));
        };
        if values.is_empty() || values.len() > 100 {
            return Err(fail(format!(
                "a sweep has {} values, not between 1 and 100",
                values.len()
            )));
        }
        values
            .iter()
            .map(|value| {
                let number = self.size_number("sweep value", value).map_err(fail)?;
                Ok(Some(AxisPoint::new(&sweep.axis, number)))
            })
            .collect()
    }

    fn size_number(&self, what: &str, value: &Value) -> Result<f64, String> {
        number(what, value)
    }
}

fn estimate(
    scope: &Scope<'_>,
    def: &EstimateDef,
    expected_count: Option<u64>,
) -> Result<Estimate, String> {
    let units = match (&def.units, expected_count) {
        (Some(units), _) => number("estimate.units", &scope.apply(units)?)?,
        (None, Some(count)) => count as f64,
        (None, None) => return Err("estimate.units is missing".to_string()),
    };
    if let Some((system, rate)) = def.units_per_s.iter().find(|(_, rate)| **rate <= 0.0) {
        return Err(format!("estimate.units_per_s of {system} is {rate}"));
    }
    Ok(Estimate {
        units,
        units_per_s: def.units_per_s.clone(),
        startup_s: def.startup_s,
        disk_bytes: units * def.disk_bytes_per_unit,
        memory_bytes: def.memory_bytes,
    })
}

/// Every `${data.NAME}` must stand earlier in the file.
fn check_references(
    params: &BTreeMap<String, serde_json::Value>,
    data: &[DataPlan],
) -> Result<(), String> {
    for (key, value) in params {
        let text = value.to_string();
        for (at, _) in text.match_indices("${data.") {
            let rest = &text[at + "${data.".len()..];
            let name = rest.split('}').next().unwrap_or_default();
            if !data.iter().any(|d| d.name == name) {
                let known: Vec<&str> = data.iter().map(|d| d.name.as_str()).collect();
                return Err(format!(
                    "param {key} refers to data `{name}`, which is not made before it; there are: {}",
                    known.join(", ")
                ));
            }
        }
    }
    Ok(())
}

fn number(what: &str, value: &Value) -> Result<f64, String> {
    match value {
        Value::Integer(n) => Ok(*n as f64),
        Value::Float(x) if x.is_finite() => Ok(*x),
        other => Err(format!("{what} is no number: {other}")),
    }
}

fn count(what: &str, value: &Value) -> Result<u64, String> {
    let number = number(what, value)?;
    if number < 0.0 || number.fract() != 0.0 || number > 9e15 {
        return Err(format!("{what} is no count: {number}"));
    }
    Ok(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn planned(text: &str, peers: &[&str]) -> Result<Planned, Error> {
        let suite = Definition::parse("x", "x.toml", text)?;
        let peers: Vec<String> = peers.iter().map(|p| p.to_string()).collect();
        Planned::new(&suite, Size::Tiny, &peers)
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
