//! From what a suite's file says to cells: sizes and sweeps filled in, references checked.

use std::collections::BTreeMap;

use dyno_record::{CasePlan, Size, Target};
use toml::{Spanned, Value};

use crate::data_plan::DataPlan;
use crate::definition::{CaseDef, DataDef, Definition, EstimateDef, SweepDef, is_kebab};
use crate::estimate::{CaseEstimate, Estimate};
use crate::substitute::{Scope, number};
use crate::sweep::AxisPoint;
use crate::{DYNO, Error};

/// Expands the sections of one suite at one size.
pub(crate) struct Expander<'a> {
    suite: &'a Definition,
    size: Size,
    scope: Scope<'a>,
    peers: &'a [String],
}

impl<'a> Expander<'a> {
    /// For these peers; cases that name none of them run on `dyno` alone.
    pub(crate) fn new(suite: &'a Definition, size: Size, peers: &'a [String]) -> Expander<'a> {
        Expander {
            suite,
            size,
            scope: Scope {
                size: &suite.size(size).params,
                axis: None,
            },
            peers,
        }
    }

    /// Adds a data section, or one for each point of its sweep.
    pub(crate) fn data(&self, def: &DataDef, out: &mut Vec<DataPlan>) -> Result<(), Error> {
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

    /// Adds a case, or one for each point of its sweep.
    pub(crate) fn case(
        &self,
        def: &CaseDef,
        data: &[DataPlan],
        cases: &mut Vec<CasePlan>,
        estimates: &mut Vec<CaseEstimate>,
    ) -> Result<(), Error> {
        let points = self.points(&def.name, def.sweep.as_ref())?;
        for (number, point) in points.iter().enumerate() {
            let scope = Scope {
                axis: point.as_ref(),
                ..self.scope
            };
            let fail = |reason: String| self.suite.error_at(&def.name, reason);
            let is_last = number + 1 == points.len();
            let case = self.case_plan(def, &scope, point.as_ref(), is_last);
            let case = case.map_err(fail)?;
            // Checked now, because the case may be run hours later.
            check_references(&case.params, data).map_err(fail)?;
            if !is_kebab(&case.name) {
                return Err(fail(format!("case `{}` is not in kebab-case", case.name)));
            }
            let mut estimate =
                estimate(&scope, &def.estimate, case.expected_count).map_err(fail)?;
            if let Some(workers) = workers(def, point.as_ref()) {
                for rate in estimate.units_per_s.values_mut() {
                    *rate *= workers;
                }
            }
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
        is_last: bool,
    ) -> Result<CasePlan, String> {
        let mut systems = vec![DYNO.to_string()];
        systems.extend(def.own_ways().map(|(name, _)| name.clone()));
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
        let (limit, limit_per_unit) = self.limit(def, point);
        // The points before the last are there for the slope, and no document has a figure for
        // each of them.
        let has_seed_figure = workers(def, point).is_none() || is_last;
        Ok(CasePlan {
            name: scope.text(def.name.get_ref())?,
            title: scope.text(&def.title)?,
            workload: def.workload.clone(),
            load: def.load,
            params: self.params(scope, &def.params)?,
            promises_less: BTreeMap::new(),
            systems,
            variants: self.variants(def, scope)?,
            baselines: def.baselines.keys().cloned().collect(),
            experiments: BTreeMap::new(),
            untried: BTreeMap::new(),
            metric: def.metric.clone(),
            unit: def.unit.clone(),
            better: def.better,
            repeats: repeats as u32,
            control: def.control.unwrap_or(self.size != Size::Tiny),
            time_limit_s: def.time_limit_s,
            expected_count,
            limit,
            limit_per_unit,
            no_limit: def.no_limit.clone(),
            target: def.target.as_ref().map(|target| Target {
                of: target.of.clone(),
                at_least: target.at_least,
            }),
            seed_figure: def.seed_figure.clone().filter(|_| has_seed_figure),
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

    /// The limit of a point of the sweep, and the factor that turns it into the metric's unit.
    fn limit(&self, def: &CaseDef, point: Option<&AxisPoint>) -> (Option<String>, Option<f64>) {
        let count = point.map_or(1.0, |point| point.value);
        let has_all = self.suite.cores.is_some_and(|cores| count >= cores as f64);
        if let Some(all) = def.limit_all.as_ref().filter(|_| has_all) {
            return (Some(all.clone()), def.limit_per_unit);
        }
        let each = if def.limit_each { count } else { 1.0 };
        let per_unit = def.limit_per_unit.or(def.limit_each.then_some(1.0));
        (def.limit.clone(), per_unit.map(|factor| factor * each))
    }

    fn variants(
        &self,
        def: &CaseDef,
        scope: &Scope<'_>,
    ) -> Result<BTreeMap<String, BTreeMap<String, serde_json::Value>>, String> {
        let mut variants = BTreeMap::new();
        for (name, params) in def.own_ways() {
            let params = self.params(scope, params)?;
            // A name that the case lacks would be a mistake that measures the same thing twice.
            if let Some(key) = params.keys().find(|key| !def.params.contains_key(*key)) {
                return Err(format!(
                    "variant `{name}` sets `{key}`, which is not a parameter of the case"
                ));
            }
            variants.insert(name.clone(), params);
        }
        Ok(variants)
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
                    .map_err(|e| format!("param {key} is not a JSON value: {e}"))?;
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
            return Err(fail(format!("sweep values are not a list: {values}")));
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
                let number = number("sweep value", value).map_err(fail)?;
                Ok(Some(AxisPoint::new(&sweep.axis, number)))
            })
            .collect()
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
    let memory_bytes = match &def.memory_bytes {
        Some(bytes) => number("estimate.memory_bytes", &scope.apply(bytes)?)?,
        None => 0.0,
    };
    Ok(Estimate {
        units,
        units_per_s: def.units_per_s.clone(),
        startup_s: def.startup_s,
        disk_bytes: units * def.disk_bytes_per_unit,
        memory_bytes,
    })
}

/// The workers of a point whose axis counts them.
fn workers(def: &CaseDef, point: Option<&AxisPoint>) -> Option<f64> {
    let sweep = def.sweep.as_ref().filter(|sweep| sweep.workers);
    sweep.and(point).map(|point| point.value)
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

fn count(what: &str, value: &Value) -> Result<u64, String> {
    let number = number(what, value)?;
    if number < 0.0 || number.fract() != 0.0 || number > 9e15 {
        return Err(format!("{what} is not a count: {number}"));
    }
    Ok(number as u64)
}
