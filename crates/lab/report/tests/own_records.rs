//! What the linter says of the records that this repository publishes.

#![allow(clippy::unwrap_used, reason = "a test stops where something is amiss")]

use std::collections::BTreeMap;
use std::path::Path;

use dyno_record::{RunDir, find_runs};
use dyno_report::{build_stored, figures_of, lint_scope};

#[test]
fn no_claim_is_blamed_that_no_verdict_makes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../results");
    let mut totals = BTreeMap::<String, u32>::new();
    for dir in find_runs(&root).unwrap() {
        let report = build_stored(&RunDir::open(&dir).unwrap());
        let scope = lint_scope(&figures_of(&report, &report.samples));
        println!("{}: {scope}", dir.strip_prefix(&root).unwrap().display());
        for finding in &report.findings {
            let severity = finding.severity.as_str();
            println!(
                "  {severity} {} {}: {}",
                finding.rule, finding.subject, finding.seen
            );
            *totals
                .entry(format!("{severity} {}", finding.rule))
                .or_default() += 1;
            assert_ne!(finding.rule, "winner-in-noise", "{finding:?}");
        }
    }
    println!("{totals:#?}");
}
