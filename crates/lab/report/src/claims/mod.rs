//! Figures in a document that are bound to records, so that neither can change without the other.

mod syntax;
mod written;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use dyno_record::{CasePlan, RunDir};
use serde::Serialize;

pub use syntax::BrokenClaim;
use syntax::{BEST, Binding, Show};
use written::{Kind, as_written};

use crate::headline::headline;
use crate::model::{
    Figure, OURS, Ratio, Report, best_ratio, build_stored, ratio_between, spread_percent,
    spread_share,
};
use crate::units::{quantity, ratio_text, share_text};

/// A claim of a document beside what its record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedClaim {
    /// Line of the document, from 1.
    pub line: usize,
    /// The text between the two comments, without white space at its ends.
    pub written: String,
    /// What the record says, in the form that the writer chose.
    pub now: String,
    /// The figure and its record, in words for the reader of a finding.
    pub of: String,
    /// Why the figure must not be quoted, when it must not.
    pub unfit: Option<String>,
    /// Where the text between the two comments stands.
    #[serde(skip)]
    pub range: Range<usize>,
}

impl CheckedClaim {
    /// Whether the document says what the record says, and may say it.
    pub fn holds(&self) -> bool {
        self.written == self.now && self.unfit.is_none()
    }
}

/// The records that claims name, each read once.
#[derive(Debug)]
pub struct ClaimedRecords {
    root: PathBuf,
    read: BTreeMap<String, Report>,
}

impl ClaimedRecords {
    /// Claims name records by their path below `root`.
    pub fn below(root: &Path) -> ClaimedRecords {
        ClaimedRecords {
            root: root.to_path_buf(),
            read: BTreeMap::new(),
        }
    }

    /// The claims of a document, in its order.
    ///
    /// # Errors
    /// Every claim whose comment cannot be read, or whose record or figure is not there.
    pub fn check(&mut self, text: &str) -> Result<Vec<CheckedClaim>, Vec<BrokenClaim>> {
        let mut checked = Vec::new();
        let mut broken = Vec::new();
        // A record or figure that is missing breaks one claim. The loop goes on, so that an author
        // sees every broken claim of the document in one pass.
        for claim in syntax::parse(text)? {
            let line = claim.line;
            // A paragraph that was wrapped anew may put a line end beside the figure.
            let range = trimmed(text, claim.range);
            let written = &text[range.clone()];
            match self.resolve(&claim.binding, written) {
                Ok(resolved) => checked.push(CheckedClaim {
                    line,
                    written: written.to_owned(),
                    now: resolved.now,
                    of: resolved.of,
                    unfit: resolved.unfit,
                    range,
                }),
                Err(reason) => broken.push(BrokenClaim { line, reason }),
            }
        }
        if broken.is_empty() {
            Ok(checked)
        } else {
            Err(broken)
        }
    }

    fn resolve(&mut self, binding: &Binding, written: &str) -> Result<Resolved, String> {
        let report = self.report(&binding.record)?;
        let plan = report
            .cases
            .iter()
            .find(|case| case.plan.name == binding.case)
            .map(|case| &case.plan)
            .ok_or_else(|| format!("{} has no case {}", binding.record, binding.case))?;
        Quoted::from_binding(report, plan, binding)?.resolve(written)
    }

    fn report(&mut self, record: &str) -> Result<&Report, String> {
        // Building a report draws the bootstrap of every figure, and a document often quotes one
        // record dozens of times.
        if !self.read.contains_key(record) {
            let stored = RunDir::open(&self.root.join(record)).map_err(|e| e.to_string())?;
            self.read.insert(record.to_owned(), build_stored(&stored));
        }
        Ok(&self.read[record])
    }
}

/// Returns the document with the text of every claim replaced by what its record says. `claims`
/// must come from [`ClaimedRecords::check`] on the same text, because their ranges are offsets into
/// it.
pub fn renewed(text: &str, claims: &[CheckedClaim]) -> String {
    let mut renewed = String::new();
    let mut from = 0;
    for claim in claims {
        renewed.push_str(&text[from..claim.range.start]);
        renewed.push_str(&claim.now);
        from = claim.range.end;
    }
    renewed + &text[from..]
}

/// The range without white space at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inner = &text[range.clone()];
    let start = range.end - inner.trim_start().len();
    start..start + inner.trim().len()
}

struct Resolved {
    now: String,
    of: String,
    unfit: Option<String>,
}

/// A figure of a record, and the ratio to another system where the claim is about one.
struct Quoted<'a> {
    report: &'a Report,
    plan: &'a CasePlan,
    binding: &'a Binding,
    system: &'a str,
    metric: &'a str,
    figure: &'a Figure,
    against: Option<(String, Ratio)>,
}

impl<'a> Quoted<'a> {
    fn from_binding(
        report: &'a Report,
        plan: &'a CasePlan,
        binding: &'a Binding,
    ) -> Result<Quoted<'a>, String> {
        let system = binding.system.as_deref().unwrap_or(OURS);
        let metric = binding.metric.as_deref().unwrap_or(&plan.metric);
        let place = format!("{} in {}", binding.case, binding.record);
        let figure = report
            .figure(&plan.name, system, metric)
            .ok_or_else(|| format!("{place} has no {metric} of {system}"))?;
        // Without `vs`, a ratio and a verdict are against the best peer, while an end of the spread
        // is that of the figure itself. `vs=best-peer` is how a document asks for the ends of the
        // ratio to the best peer.
        let compares = matches!(binding.show, Show::Ratio | Show::Verdict);
        let against = match binding.against.as_deref() {
            Some(peer) if peer != BEST => Some(
                ratio_between(report, plan, metric, (system, peer))
                    .map(|ratio| (peer.to_owned(), ratio))
                    .ok_or_else(|| format!("{place}: {system} shares no block with {peer}"))?,
            ),
            None if !compares => None,
            _ => Some(
                best_ratio(report, plan, metric, system)
                    .ok_or_else(|| format!("{place}: no peer ran in a block with {system}"))?,
            ),
        };
        Ok(Quoted {
            report,
            plan,
            binding,
            system,
            metric,
            figure,
            against,
        })
    }

    fn resolve(&self, written: &str) -> Result<Resolved, String> {
        let now = match self.binding.show {
            Show::Row => self.row()?,
            Show::Verdict => {
                let verdict = self.against.as_ref().map(|(_, ratio)| ratio.verdict);
                verdict.unwrap_or_default().to_owned()
            }
            _ => {
                let (value, kind, own) = self.number()?;
                // A claim whose text is not a number of this kind (an empty one, or one in another
                // unit) is renewed in the form that our reports print, so a new claim may be left
                // empty.
                as_written(written, value, kind).unwrap_or(own)
            }
        };
        Ok(Resolved {
            now,
            of: self.name(),
            unfit: self.unfit(),
        })
    }

    /// The number that is shown, what it measures, and how a report prints it.
    fn number(&self) -> Result<(f64, Kind<'a>, String), String> {
        let figure = self.figure;
        let missing = |what: &str| {
            let Binding { case, record, .. } = self.binding;
            format!("{case} in {record}: {} has no {what}", self.system)
        };
        let unit = figure.unit.as_str();
        let amount = |value: f64| (value, Kind::Quantity(unit), quantity(value, unit));
        let ratio = |value: f64| (value, Kind::Ratio, ratio_text(value));
        let is_low = self.binding.show == Show::Low;
        Ok(match (self.binding.show, &self.against) {
            (Show::Ratio, Some((_, seen))) => ratio(seen.ratio),
            (Show::Low | Show::High, Some((_, seen))) => {
                ratio(if is_low { seen.low } else { seen.high })
            }
            (Show::Low | Show::High, None) => {
                let end = if is_low { figure.low } else { figure.high };
                amount(end.ok_or_else(|| missing("spread, because n is 1"))?)
            }
            (Show::Spread, _) => {
                let share = spread_share(figure)
                    .ok_or_else(|| missing("spread, because n is 1 or the median is 0"))?;
                (share, Kind::Percent, spread_percent(share))
            }
            (Show::N, _) => (figure.n as f64, Kind::Count, figure.n.to_string()),
            (Show::Share, _) => {
                let share = figure.share_of_limit;
                let share = share.ok_or_else(|| missing("measured limit"))?;
                (share, Kind::Percent, share_text(share))
            }
            (Show::Limit, _) => amount(figure.limit.ok_or_else(|| missing("measured limit"))?),
            _ => amount(figure.median),
        })
    }

    /// The cells of page one from the figure to the verdict, as cells of a Markdown table.
    fn row(&self) -> Result<String, String> {
        // A case that was not run has no row on page one, and its absence is an error rather than
        // an empty claim.
        let rows = headline(self.report).rows;
        let row = rows.into_iter().find(|row| row.cells[0] == self.plan.name);
        let row = row.ok_or_else(|| format!("{} is not in the headline", self.plan.name))?;
        let cells = row.cells[1..6].iter().map(|cell| cell.replace('|', "\\|"));
        Ok(cells.collect::<Vec<_>>().join(" | "))
    }

    fn name(&self) -> String {
        let Binding {
            case, record, show, ..
        } = self.binding;
        let (show, metric, system) = (show.name(), self.metric, self.system);
        match &self.against {
            Some((peer, _)) => {
                format!("{show} of {case} ({metric}, {system} against {peer}) in {record}")
            }
            None => format!("{show} of {case} ({metric}, {system}) in {record}"),
        }
    }

    /// A figure that a reader could not rely on is not published, whatever the document says.
    fn unfit(&self) -> Option<String> {
        // The order is that of severity: a withdrawn figure is wrong whatever else is true of it.
        if !self.report.stands(&self.plan.name) {
            return Some("it is withdrawn".to_owned());
        }
        if let Some(why) = self.report.run.program.untraceable() {
            return Some(format!("its program cannot be built again: {why}"));
        }
        if let Some((peer, ratio)) = self.undecided() {
            let state = if ratio.is_doubted() {
                "in doubt"
            } else {
                ratio.verdict
            };
            return Some(format!("the ratio to {peer} is {state}: {}", ratio.reason));
        }
        let steady = self.figure.steady.as_ref()?;
        let reason = || format!("the rate is {}: {}", steady.verdict, steady.reason);
        (!steady.is_steady()).then(reason)
    }

    /// The ratio that the claim shows, when it decides nothing, or its number is in doubt. A row
    /// and a verdict say so themselves, except that a row does not say why nothing was judged.
    fn undecided(&self) -> Option<(String, Ratio)> {
        let (shown, is_open): (_, fn(&Ratio) -> bool) = match self.binding.show {
            Show::Verdict => return None,
            Show::Row => {
                let best = best_ratio(self.report, self.plan, self.metric, self.system);
                // The cells of a row print "unstable" beside the ratio and mark a rate that is not
                // steady, so only the verdicts that were never reached make a row unfit.
                (best, |ratio| ratio.verdict.starts_with("not "))
            }
            _ => (self.against.clone(), |ratio| {
                ratio.is_doubted() || ratio.is_open()
            }),
        };
        shown.filter(|(_, ratio)| is_open(ratio))
    }
}
