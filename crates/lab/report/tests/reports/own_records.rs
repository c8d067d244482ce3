//! What the linter says of the records that this repository publishes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dyno_record::{RunDir, find_runs};
use dyno_report::{build_stored, figures_of, lint_scope};

#[test]
fn every_finding_in_our_records_is_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../results");
    let explained = fs::read_to_string(root.join("README.md")).unwrap();
    let mut totals = BTreeMap::<String, u32>::new();
    for dir in find_runs(&root).unwrap() {
        let report = build_stored(&RunDir::open(&dir).unwrap());
        let is_withdrawn = dir.join("WITHDRAWN.md").exists();
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
            // A verdict of ours is not a claim inside the noise.
            assert_ne!(finding.rule, "winner-in-noise", "{finding:?}");
            let why = format!("| `{}` |", finding.rule);
            assert!(
                is_withdrawn || explained.contains(&why),
                "results/README.md does not say why: {finding:?}"
            );
        }
    }
    println!("{totals:#?}");
}
