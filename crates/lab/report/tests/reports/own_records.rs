//! What the linter says of the records that this repository publishes.

use std::collections::BTreeMap;
use std::path::Path;

use dyno_record::{RunDir, find_runs};
use dyno_report::{Severity, build_stored, figures_of, lint_scope};

/// What may be wrong with a record that is published: a program that cannot be built again, a
/// generator that was late, a peer that failed, a latency at a rate that a peer did not reach, and
/// the heading of one table, which says 12 warehouses over a run with 4.
const ERRORS: [&str; 5] = [
    "changed-tree",
    "generator-behind",
    "no-result",
    "overload",
    "title",
];

#[test]
fn our_records_have_no_false_alarm() {
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
            // A verdict of ours is not a claim inside the noise, and these errors were looked at.
            assert_ne!(finding.rule, "winner-in-noise", "{finding:?}");
            let is_known = ERRORS.contains(&finding.rule);
            assert!(
                finding.severity != Severity::Error || is_known,
                "{finding:?}"
            );
        }
    }
    println!("{totals:#?}");
}
