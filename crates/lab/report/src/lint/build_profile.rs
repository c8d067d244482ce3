//! A debug build measures the checks.

use dyno_record::Figures;

use super::{Finding, Severity};

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let debug = figures.build.as_deref().filter(|build| *build != "release");
    debug
        .map(|build| Finding {
            rule: "debug-build",
            severity: Severity::Error,
            subject: figures.title.clone(),
            seen: format!("the program was built as {build}"),
            why: "Checks and missing optimisation make it several times slower, unevenly."
                .to_owned(),
            advice: "Build with --release and run again.".to_owned(),
        })
        .into_iter()
        .collect()
}
