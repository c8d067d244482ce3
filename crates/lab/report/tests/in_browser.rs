//! The page in a real browser: the script runs to its end, from a file, without a network.

#![allow(clippy::unwrap_used, reason = "a test stops where something is amiss")]

mod made_up;

use std::path::Path;
use std::process::Command;

use dyno_report::build_stored;

/// The page's DOM after its script ran; nothing when no Chromium is on the PATH.
fn dom(page: &Path, profile: &Path) -> Option<String> {
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
        ])
        .args([
            "--disable-dev-shm-usage",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output();
    match output {
        Ok(output) => Some(String::from_utf8(output.stdout).unwrap()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("skipped: no `chromium` on the PATH; apt install chromium");
            None
        }
        Err(error) => panic!("chromium does not start: {error}"),
    }
}

#[test]
fn every_plot_is_drawn_and_hostile_text_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("report.html");
    let report = build_stored(&made_up::stored());
    std::fs::write(&page, report.to_html().unwrap()).unwrap();
    // For people: DYNO_KEEP_PAGE=/tmp/report.html keeps the page to look at.
    if let Some(kept) = std::env::var_os("DYNO_KEEP_PAGE") {
        std::fs::copy(&page, kept).unwrap();
    }
    let Some(dom) = dom(&page, &dir.path().join("profile")) else {
        return;
    };
    // Seven strips, one sweep, one plot of percentiles.
    assert!(
        dom.contains("data-plots-drawn=\"9\""),
        "the script did not run to its end"
    );
    assert_eq!(dom.matches("<svg").count(), 9);
    let dots = report
        .samples
        .iter()
        .filter(|s| s.outcome == dyno_record::Outcome::Done);
    assert!(dom.matches("class=\"mark\"").count() >= dots.count());
    assert!(
        !dom.contains("<img"),
        "text of the record became an element"
    );
    assert!(!dom.contains("<title>owned"), "text of the record ran");
}
