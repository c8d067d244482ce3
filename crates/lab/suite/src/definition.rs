//! A suite as it is written: `suites/NAME.toml`, read and checked.
//!
//! Unknown keys are refused, and every error names the file and the line. Values that a size or a
//! sweep fills in are kept as they stand ([`toml::Value`]) until a plan is made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use dyno_record::{Better, Load, SeedFigure, Size, Table};
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::Error;
use crate::selection::Selection;
use crate::size::SizeDef;
use crate::target::TargetDef;

/// The parameters of one size: `rows`, `repeats` and whatever the suite's cases refer to.
pub type SizeParams = BTreeMap<String, Value>;

/// A suite, checked as far as can be without choosing a size.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The file's name without `.toml`.
    pub name: String,
    /// The file as it was given, which messages of mistakes begin with.
    pub file: String,
    pub(crate) body: Body,
    /// Parameters set by `--set`, as they were written, for the record.
    pub(crate) set: BTreeMap<String, String>,
    /// Cores of the machine that it is planned for, once [`Definition::on_cores`] has said so.
    pub(crate) cores: Option<i64>,
    selection: Selection,
    /// Its text, to turn an offset into a line.
    text: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    pub(crate) title: String,
    pub(crate) purpose: String,
    pub(crate) seed_document: Option<String>,
    pub(crate) order_seed: u64,
    pub(crate) sizes: Sizes,
    /// What follows from a parameter that is set from outside: parameter, its value as text, and
    /// the others that go with that value.
    #[serde(default)]
    pub(crate) given: BTreeMap<String, BTreeMap<String, SizeParams>>,
    #[serde(default)]
    pub(crate) data: Vec<DataDef>,
    pub(crate) case: Vec<CaseDef>,
    #[serde(default)]
    pub(crate) table: Vec<Table>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sizes {
    pub(crate) tiny: SizeDef,
    pub(crate) quick: SizeDef,
    pub(crate) full: SizeDef,
}

/// Something made once before timing, that cases refer to as `${data.NAME}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DataDef {
    pub(crate) name: Spanned<String>,
    pub(crate) workload: String,
    /// `dyno`, a peer's name, or `each` for one per system of the cases that use it.
    #[serde(default = "dyno")]
    pub(crate) by: String,
    #[serde(default)]
    pub(crate) params: BTreeMap<String, Value>,
    pub(crate) time_limit_s: f64,
    pub(crate) sweep: Option<SweepDef>,
    pub(crate) estimate: EstimateDef,
}

fn dyno() -> String {
    crate::DYNO.to_string()
}

fn job() -> Load {
    Load::Job
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseDef {
    pub(crate) name: Spanned<String>,
    pub(crate) title: String,
    pub(crate) workload: String,
    #[serde(default = "job")]
    pub(crate) load: Load,
    #[serde(default)]
    pub(crate) params: BTreeMap<String, Value>,
    /// Other ways of `dyno`: a name, and the parameters in which it differs.
    #[serde(default)]
    pub(crate) variants: BTreeMap<String, BTreeMap<String, Value>>,
    /// Libraries of others inside `dyno`: a name, and the parameters that choose the library.
    #[serde(default)]
    pub(crate) baselines: BTreeMap<String, BTreeMap<String, Value>>,
    #[serde(default)]
    pub(crate) peers: Vec<String>,
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
    pub(crate) repeats: Value,
    /// Whether `dyno` runs a second time in each block. It does unless the case says no and why,
    /// and at the tiny size, which judges nothing, only where the case says yes.
    pub(crate) control: Option<bool>,
    pub(crate) no_control: Option<String>,
    pub(crate) time_limit_s: f64,
    /// The stated expectation; a case that has none says why in `no_expected_count`.
    pub(crate) expected_count: Option<Value>,
    pub(crate) no_expected_count: Option<String>,
    pub(crate) limit: Option<String>,
    pub(crate) limit_per_unit: Option<f64>,
    /// Whether the limit is that of one worker, and a point of the sweep has as many of it.
    #[serde(default)]
    pub(crate) limit_each: bool,
    /// The limit in place of `limit` at the point that has all cores of the machine or more.
    pub(crate) limit_all: Option<String>,
    /// Why no limit is known, of a case that names none.
    pub(crate) no_limit: Option<String>,
    pub(crate) target: Option<TargetDef>,
    pub(crate) seed_figure: Option<SeedFigure>,
    pub(crate) analysis: String,
    pub(crate) in_flight: Option<f64>,
    pub(crate) offered_rate: Option<f64>,
    pub(crate) sweep: Option<SweepDef>,
    pub(crate) estimate: EstimateDef,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SweepDef {
    pub(crate) axis: String,
    pub(crate) values: Value,
    /// Whether the axis counts workers. The estimated rate is that of one of them then, and the
    /// seed figure, which was measured with all that its machine had, stands beside the last point.
    #[serde(default)]
    pub(crate) workers: bool,
}

/// What a case or data section needs, for the plan; the verify pass replaces the time by what it
/// sees.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EstimateDef {
    /// Units of work of one invocation; the expected count when absent.
    pub(crate) units: Option<Value>,
    /// Units per second: of each system, with `other` for those not named.
    pub(crate) units_per_s: BTreeMap<String, f64>,
    #[serde(default)]
    pub(crate) startup_s: f64,
    #[serde(default)]
    pub(crate) disk_bytes_per_unit: f64,
    pub(crate) memory_bytes: Option<Value>,
}

impl CaseDef {
    /// Variants and library baselines: all that runs inside `dyno` beside its own way.
    pub(crate) fn own_ways(&self) -> impl Iterator<Item = (&String, &BTreeMap<String, Value>)> {
        self.variants.iter().chain(&self.baselines)
    }
}

impl Definition {
    /// Reads and checks `suites/NAME.toml`; the file name without its ending becomes the name.
    pub fn read(path: &Path) -> Result<Definition, Error> {
        let text = fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Definition::parse(&name, &path.display().to_string(), &text)
    }

    /// Reads and checks the text of a suite; `file` is what messages call it.
    pub fn parse(name: &str, file: &str, text: &str) -> Result<Definition, Error> {
        let body: Body = toml::from_str(text).map_err(|e| Error::Definition {
            file: file.to_string(),
            line: line_at(text, e.span().map_or(0, |span| span.start)),
            reason: e.message().to_string(),
        })?;
        let definition = Definition {
            name: name.to_string(),
            file: file.to_string(),
            body,
            set: BTreeMap::new(),
            cores: None,
            selection: Selection::default(),
            text: text.to_string(),
        };
        definition.check()?;
        Ok(definition)
    }

    /// The heading of its reports, one line of text.
    pub fn title(&self) -> &str {
        &self.body.title
    }

    /// The first sentence of what the suite is for, without its line ends.
    pub fn purpose(&self) -> String {
        let words: Vec<&str> = self.body.purpose.split_whitespace().collect();
        let text = words.join(" ");
        let end = text.find(". ").map_or(text.len(), |end| end + 1);
        text[..end].to_owned()
    }

    /// The seed document whose tables it makes again.
    pub fn seed_document(&self) -> Option<&str> {
        self.body.seed_document.as_deref()
    }

    /// The peers that some case names, in order of first mention.
    pub fn peers(&self) -> Vec<String> {
        let mut peers: Vec<String> = Vec::new();
        for peer in self.body.case.iter().flat_map(|case| &case.peers) {
            if !peers.contains(peer) {
                peers.push(peer.clone());
            }
        }
        peers
    }

    /// Drops the other cases, with the data and table rows that only those use. Whether the names
    /// exist is known once the sweeps of a size are expanded, so
    /// [`Planned::new`](crate::Planned::new) refuses one that does not.
    pub fn select(&mut self, selection: Selection) {
        self.selection = selection;
    }

    /// Leaves out one more case, besides those that the selection leaves out.
    pub fn skip(&mut self, case: String) {
        self.selection.skip.push(case);
    }

    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Whether a document has figures for the case: its own, or those of a table that sets them
    /// beside ours.
    pub(crate) fn is_of_a_document(&self, case: &CaseDef) -> bool {
        let name = case.name.get_ref();
        let beside = |table: &&Table| table.columns.iter().any(|column| column == "seed");
        let mut tables = self.body.table.iter().filter(beside);
        case.seed_figure.is_some() || tables.any(|t| t.rows.iter().any(|row| row.case == *name))
    }

    pub(crate) fn size(&self, size: Size) -> &SizeDef {
        match size {
            Size::Tiny => &self.body.sizes.tiny,
            Size::Quick => &self.body.sizes.quick,
            Size::Full => &self.body.sizes.full,
        }
    }

    /// An error at the line where a name stands.
    pub(crate) fn error_at(&self, at: &Spanned<String>, reason: impl Into<String>) -> Error {
        Error::Definition {
            file: self.file.clone(),
            line: line_at(&self.text, at.span().start),
            reason: reason.into(),
        }
    }

    /// An error about the file as a whole.
    pub(crate) fn error(&self, reason: impl Into<String>) -> Error {
        Error::Definition {
            file: self.file.clone(),
            line: 1,
            reason: reason.into(),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let mut names = BTreeSet::new();
        for data in &self.body.data {
            self.check_name("data", &data.name, &mut names)?;
        }
        let mut names = BTreeSet::new();
        for case in &self.body.case {
            self.check_name("case", &case.name, &mut names)?;
            self.check_case(case)?;
        }
        for (size, def) in [
            ("tiny", &self.body.sizes.tiny),
            ("quick", &self.body.sizes.quick),
            ("full", &self.body.sizes.full),
        ] {
            if !def.params.contains_key("budget_s") {
                return Err(self.error(format!(
                    "size `{size}` states no budget_s, the seconds a run may take"
                )));
            }
        }
        Ok(())
    }

    fn check_name(
        &self,
        kind: &str,
        name: &Spanned<String>,
        seen: &mut BTreeSet<String>,
    ) -> Result<(), Error> {
        let text = name.get_ref();
        // The part that a sweep fills in is checked when it is known.
        if !is_kebab(&text.replace("${axis.label}", "x")) {
            return Err(self.error_at(name, format!("{kind} `{text}` is not in kebab-case")));
        }
        if !seen.insert(text.clone()) {
            return Err(self.error_at(name, format!("{kind} `{text}` stands here a second time")));
        }
        Ok(())
    }

    fn check_case(&self, case: &CaseDef) -> Result<(), Error> {
        let name = case.name.get_ref();
        let fail = |reason: String| Err(self.error_at(&case.name, reason));
        if case.analysis.trim().is_empty() {
            return fail(format!(
                "case `{name}` has no analysis of what its figure means"
            ));
        }
        match (&case.expected_count, &case.no_expected_count) {
            (None, None) => fail(format!(
                "case `{name}` states no expected_count; say in no_expected_count why it cannot"
            )),
            (Some(_), Some(_)) => fail(format!(
                "case `{name}` states both expected_count and no_expected_count"
            )),
            _ if case.time_limit_s <= 0.0 => fail(format!(
                "case `{name}` has a time_limit_s of {}, which nothing can meet",
                case.time_limit_s
            )),
            _ if (case.control == Some(false)) != case.no_control.is_some() => fail(format!(
                "case `{name}`: control = false and the reason in no_control go together"
            )),
            _ if case.limit.is_some() && case.no_limit.is_some() => {
                fail(format!("case `{name}` states both limit and no_limit"))
            }
            _ if case.target_fault().is_some() => {
                let fault = case.target_fault().unwrap_or_default();
                fail(format!("case `{name}`: {fault}"))
            }
            _ if case
                .own_ways()
                .any(|(v, _)| v == crate::DYNO || case.peers.contains(v)) =>
            {
                fail(format!(
                    "case `{name}` has a variant with the name of a system"
                ))
            }
            _ if case.own_ways().any(|(variant, _)| !is_kebab(variant)) => fail(format!(
                "case `{name}` has a variant whose name is not in kebab-case"
            )),
            _ if case.sweep.is_some() != name.contains("${axis.label}") => fail(format!(
                "case `{name}`: a sweep and `${{axis.label}}` in the name go together"
            )),
            _ => Ok(()),
        }
    }
}

/// Lower-case words and digits joined by single hyphens.
pub(crate) fn is_kebab(name: &str) -> bool {
    !name.is_empty()
        && name.split('-').all(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

/// The line, from 1, that holds a byte offset.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    1 + text
        .bytes()
        .take(offset)
        .filter(|&byte| byte == b'\n')
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
title = "T"
purpose = "P"
order_seed = 7
[sizes.tiny]
budget_s = 10
[sizes.quick]
budget_s = 10
[sizes.full]
budget_s = 10
[[case]]
name = "load-gz-1"
title = "Load"
workload = "fake"
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = 3
time_limit_s = 5
expected_count = 10
analysis = "A"
estimate = { units_per_s = { other = 1e6 } }
"#;

    fn check(from: &str, to: &str, line: usize, reason: &str) {
        let text = GOOD.replace(from, to);
        let e = Definition::parse("x", "suites/x.toml", &text)
            .expect_err("must be refused")
            .to_string();
        assert!(e.starts_with(&format!("suites/x.toml:{line}: ")), "{e}");
        assert!(e.contains(reason), "{e}");
    }

    #[test]
    fn a_good_suite_is_read() {
        let suite = Definition::parse("x", "suites/x.toml", GOOD).expect("good");
        assert_eq!(suite.title(), "T");
        assert!(suite.peers().is_empty());
    }

    #[test]
    fn mistakes_name_file_and_line() {
        check("repeats = 3", "repeat = 3", 18, "unknown field `repeat`");
        check(
            "better = \"higher\"",
            "better = \"more\"",
            17,
            "unknown variant",
        );
        check("\"load-gz-1\"", "\"Load_gz\"", 12, "kebab-case");
        check("analysis = \"A\"", "analysis = \" \"", 12, "no analysis");
        check("expected_count = 10", "", 12, "no_expected_count");
        check(
            "time_limit_s = 5",
            "time_limit_s = 0",
            12,
            "nothing can meet",
        );
        check(
            "[sizes.full]\nbudget_s = 10",
            "[sizes.full]",
            1,
            "size `full` states no budget_s",
        );
        check(
            "repeats = 3",
            "repeats = 3\ncontrol = false",
            12,
            "the reason in no_control",
        );
        check(
            "repeats = 3",
            "repeats = 3\nlimit = \"copy-1\"\nno_limit = \"none\"",
            12,
            "both limit and no_limit",
        );
        check(
            "repeats = 3",
            "repeats = 3\ntarget = { of = \"other\", at_least = 0.5 }",
            12,
            "neither one of its peers nor `limit`",
        );
        check(
            "repeats = 3",
            "repeats = 3\nlimit = \"copy-1\"\ntarget = { of = \"limit\", at_least = 0 }",
            12,
            "which is not above 0",
        );
        check("title = \"T\"", "title = T", 2, "");
    }
}
