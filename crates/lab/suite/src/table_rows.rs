//! The rows of a plan's tables: those of sweeps filled in, those of absent cases left out.

use std::collections::BTreeSet;

use dyno_record::{Size, TableRow};

use crate::Error;
use crate::definition::{CaseDef, Definition};
use crate::plan::{Planned, expanded};
use crate::substitute::Scope;
use crate::sweep::AxisPoint;

/// Whether a case has this name at one of the sizes: a sweep may have fewer points at another.
fn is_of_some_size(suite: &Definition, peers: &[String], name: &str) -> bool {
    let sizes = [Size::Tiny, Size::Quick, Size::Full];
    sizes.into_iter().any(|size| {
        let cases = expanded(suite, size, peers).map(|(_, cases, _)| cases);
        cases.is_ok_and(|cases| cases.iter().any(|case| case.name == name))
    })
}

impl Planned {
    /// Fills in the rows of all tables, refuses one whose case is in no size, and drops those of
    /// cases and systems that take no part.
    pub(crate) fn settle_tables(
        &mut self,
        suite: &Definition,
        peers: &[String],
    ) -> Result<(), Error> {
        let tables = std::mem::take(&mut self.plan.tables);
        for mut table in tables {
            let rows = table.rows.iter().map(|row| self.rows(suite, row));
            let rows: Result<Vec<_>, String> = rows.collect();
            let rows =
                rows.map_err(|reason| suite.error(format!("table `{}`: {reason}", table.title)))?;
            table.rows = rows.into_iter().flatten().collect();
            self.plan.tables.push(table);
        }
        let known: BTreeSet<&str> = self.plan.cases.iter().map(|c| c.name.as_str()).collect();
        for row in self.plan.tables.iter().flat_map(|table| &table.rows) {
            let name = row.case.as_str();
            if !known.contains(name) && !is_of_some_size(suite, peers, name) {
                return Err(suite.error(format!(
                    "table row `{}` shows case `{}`, which does not exist",
                    row.label, row.case
                )));
            }
        }
        self.retain_rows();
        Ok(())
    }

    /// Drops the rows of tables whose system takes no part: each would be an empty line.
    pub(crate) fn retain_rows(&mut self) {
        for table in &mut self.plan.tables {
            table.rows.retain(|row| {
                self.plan.cases.iter().any(|case| {
                    case.name == row.case
                        && row.system.as_ref().is_none_or(|s| case.systems.contains(s))
                })
            });
        }
    }

    /// A row as it is printed. One whose case is named by `${axis.label}` stands for all points of
    /// that sweep, so that a table has a row for each worker count whatever the machine has.
    fn rows(&self, suite: &Definition, row: &TableRow) -> Result<Vec<TableRow>, String> {
        let filled = |axis: Option<&AxisPoint>| -> Result<TableRow, String> {
            let scope = Scope {
                size: &suite.size(self.plan.size).params,
                axis,
            };
            Ok(TableRow {
                label: scope.text(&row.label)?,
                case: scope.text(&row.case)?,
                ..row.clone()
            })
        };
        if !row.case.contains("${axis") {
            return Ok(vec![filled(None)?]);
        }
        let mut rows = Vec::new();
        for case in &self.plan.cases {
            let Some((axis, value)) = &case.axis else {
                continue;
            };
            let made = filled(Some(&AxisPoint::new(axis, *value)))?;
            if made.case == case.name {
                rows.push(made);
            }
        }
        let stated = |def: &CaseDef| *def.name.get_ref() == row.case;
        if rows.is_empty() && !suite.body.case.iter().any(stated) {
            return Err(format!(
                "row `{}` shows case `{}`, which is not a sweep",
                row.label, row.case
            ));
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;

    const SUITE: &str = r#"
title = "T"
purpose = "P"
order_seed = 7
[sizes.tiny]
workers = [1, 2]
budget_s = 10
[sizes.quick]
workers = [1, 2, "cores"]
budget_s = 10
[sizes.full]
workers = "1..cores"
budget_s = 10
[[case]]
name = "load-${axis.label}"
title = "Load, ${axis:worker}"
sweep = { axis = "workers", values = "${size.workers}", workers = true }
workload = "load"
params = { workers = "${axis}" }
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = 3
time_limit_s = 5
expected_count = 1000
limit = "copy-1"
limit_each = true
limit_all = "copy-all"
limit_per_unit = 0.5
seed_figure = { value = 24, note = "24 workers" }
analysis = "A"
estimate = { units_per_s = { other = 10 } }
[[table]]
title = "By workers"
columns = ["throughput"]
ranked = false
rows = [{ label = "${axis:worker}", case = "load-${axis.label}" }]
[[table]]
title = "All workers"
columns = ["throughput"]
ranked = true
rows = [{ label = "gzip", case = "load-${size.workers.last.label}" }]
"#;

    fn rows(planned: &Planned, table: usize) -> Vec<(&str, &str)> {
        let rows = planned.plan.tables[table].rows.iter();
        rows.map(|row| (row.label.as_str(), row.case.as_str()))
            .collect()
    }

    #[test]
    fn cases_rows_limits_and_estimates_follow_the_cores() {
        let suite = Definition::parse("x", "x.toml", SUITE).expect("good");
        let suite = suite.on_cores(4);
        let planned = Planned::new(&suite, Size::Full, &[]).expect("a plan");
        let by_workers = [
            ("1 worker", "load-1"),
            ("2 workers", "load-2"),
            ("4 workers", "load-4"),
        ];
        assert_eq!(rows(&planned, 0), by_workers);
        assert_eq!(rows(&planned, 1), [("gzip", "load-4")]);
        let limits: Vec<_> = planned
            .plan
            .cases
            .iter()
            .map(|case| {
                let seed = case.seed_figure.as_ref().map(|seed| seed.value);
                (case.limit.as_deref(), case.limit_per_unit, seed)
            })
            .collect();
        let expected = [
            (Some("copy-1"), Some(0.5), None),
            (Some("copy-1"), Some(1.0), None),
            (Some("copy-all"), Some(0.5), Some(24.0)),
        ];
        assert_eq!(limits, expected);
        // 1,000 units at 10 a second for each worker.
        let first_s: Vec<f64> = planned
            .estimates
            .iter()
            .map(|e| e.invocation_s[0])
            .collect();
        assert_eq!(first_s, [100.0, 50.0, 25.0]);
        assert_eq!(planned.plan.cases[1].title, "Load, 2 workers");
    }

    #[test]
    fn a_list_from_the_command_line_makes_its_cases_and_rows() {
        let mut suite = Definition::parse("x", "x.toml", SUITE)
            .expect("good")
            .on_cores(4);
        let settings = [("workers".to_string(), "3,24".to_string())];
        suite.set(&settings.into()).expect("a list");
        suite.select(Selection {
            only: vec!["load-24".to_owned()],
            skip: Vec::new(),
        });
        let planned = Planned::new(&suite, Size::Quick, &[]).expect("a plan");
        assert_eq!(rows(&planned, 0), [("24 workers", "load-24")]);
        assert_eq!(rows(&planned, 1), [("gzip", "load-24")]);
    }

    #[test]
    fn cases_that_a_document_has_figures_for_come_first() {
        let other = SUITE
            .split("[[case]]")
            .nth(1)
            .expect("a case")
            .split("[[table]]")
            .next();
        let other = other
            .expect("its text")
            .replace("load-${axis.label}", "other-${axis.label}");
        let other: String = other
            .lines()
            .filter(|line| !line.starts_with("seed_"))
            .map(|line| format!("{line}\n"))
            .collect();
        let text = SUITE.replacen("[[case]]", &format!("[[case]]{other}[[case]]"), 1);
        let suite = Definition::parse("x", "x.toml", &text)
            .expect("good")
            .on_cores(1);
        let planned = Planned::new(&suite, Size::Tiny, &[]).expect("a plan");
        let names: Vec<&str> = planned.plan.cases.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["load-1", "load-2", "other-1", "other-2"]);
    }

    #[test]
    fn a_row_of_no_sweep_is_refused() {
        let text = SUITE.replace(
            "case = \"load-${axis.label}\"",
            "case = \"laod-${axis.label}\"",
        );
        let suite = Definition::parse("x", "x.toml", &text)
            .expect("it reads")
            .on_cores(2);
        let said = Planned::new(&suite, Size::Tiny, &[])
            .expect_err("refused")
            .to_string();
        assert!(
            said.contains("table `By workers`: row `${axis:worker}` shows case `laod-"),
            "{said}"
        );
    }
}
