//! Page one of every committed record: it says what the model says, and `report.md` ends soon.

use crate::made_up;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use dyno_record::{RunDir, find_runs};
use dyno_report::{Headline, Report, build_stored, headline, quantity, ratio_text};

const LINES_MAX: usize = 250;

fn committed() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../results");
    let found = find_runs(&root).unwrap();
    assert!(found.len() > 10, "{found:?}");
    found
}

/// Reading them takes seconds, so all tests share them.
static REPORTS: LazyLock<Vec<Report>> = LazyLock::new(|| {
    let read = |dir: &PathBuf| build_stored(&RunDir::open(dir).unwrap());
    committed().iter().map(read).collect()
});

/// The rows against figures, ratios and peers, found here without the code that makes the rows.
fn agrees_with_the_model(report: &Report, page: &Headline) {
    let mut rows = page.rows.iter();
    for case in &report.cases {
        let plan = &case.plan;
        let Some(ours) = report.figure(&plan.name, "dyno", &plan.metric) else {
            continue;
        };
        let row = rows.clone().find(|row| row.cells[0] == plan.name).unwrap();
        assert!(row.cells[1].starts_with(&quantity(ours.median, &ours.unit)));
        let peers: Vec<&str> = plan.rivals().collect();
        let best = ours.ratio_to.iter();
        let best = best.filter(|(name, _)| peers.contains(&name.as_str()));
        let best = best.min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
        assert_eq!(row.compared, !peers.is_empty());
        assert_eq!(row.best_peer.as_ref(), best.map(|(name, _)| name));
        match best {
            Some((name, ratio)) => {
                assert!(row.cells[2].starts_with(name), "{:?}", row.cells);
                assert!(row.cells[3].starts_with(&ratio_text(ratio.ratio)));
                let word = match (&plan.unit[..], ratio.verdict) {
                    ("B", "faster") => "smaller",
                    ("B", "slower") => "larger",
                    (_, verdict) => verdict,
                };
                assert_eq!(row.cells[5], word);
                match ratio.verdict {
                    "faster" if peers.len() == 1 => assert_eq!(row.cells[6], "dyno"),
                    "slower" if peers.len() == 1 => assert_eq!(&row.cells[6], name),
                    _ => assert!(!row.cells[6].is_empty()),
                }
            }
            None => assert!(row.cells[2].starts_with("none"), "{:?}", row.cells),
        }
    }
    let first_alone = rows.position(|row| !row.compared);
    let rest = first_alone.map_or(&[][..], |at| &page.rows[at..]);
    assert!(rest.iter().all(|row| !row.compared), "peers come first");
}

#[test]
fn the_rows_of_every_committed_record_are_those_of_the_model() {
    for report in REPORTS.iter() {
        let page = headline(report);
        agrees_with_the_model(report, &page);
        let markdown = report.to_markdown().unwrap();
        // The page keeps names and numbers on one line by signs of their own.
        let html = report.to_html().unwrap().replace("&#x2f;", "/");
        let html = html.replace('\u{2011}', "-").replace('\u{a0}', " ");
        for row in &page.rows {
            // Cells stand in their order on one line of each form.
            let on_one_line = |text: &str| {
                text.lines().any(|line| {
                    let mut rest = line;
                    row.cells.iter().all(|cell| match rest.split_once(cell) {
                        Some((_, after)) => {
                            rest = after;
                            true
                        }
                        None => false,
                    })
                })
            };
            assert!(on_one_line(&markdown), "{:?} in Markdown", row.cells);
            assert!(on_one_line(&html), "{:?} in HTML", row.cells);
        }
    }
}

#[test]
fn the_markdown_of_every_committed_record_ends_soon() {
    for (dir, report) in committed().iter().zip(REPORTS.iter()) {
        let lines = report.to_markdown().unwrap().lines().count();
        assert!(lines <= LINES_MAX, "{}: {lines} lines", dir.display());
    }
}

#[test]
fn the_markdown_of_any_record_ends_soon_and_says_what_it_leaves_out() {
    let mut stored = made_up::stored();
    let plan = &mut stored.run.plan;
    plan.purpose = "One line.\n\nAnother.\n".repeat(200);
    for copy in 0..40 {
        let mut table = plan.tables[0].clone();
        table.title = format!("Table {copy}");
        plan.tables.push(table);
    }
    let some = plan.cases.clone();
    for copy in 0..30 {
        for case in &some {
            let mut case = case.clone();
            case.name = format!("{}-copy-{copy}", case.name);
            plan.cases.push(case);
        }
    }
    let samples = stored.samples.clone();
    for copy in 0..30 {
        stored.samples.extend(samples.iter().cloned().map(|mut s| {
            s.case = format!("{}-copy-{copy}", s.case);
            s
        }));
    }
    let many = |text: &str| vec![text.to_owned(); 100];
    stored.warnings = many("torn\nline")
        .into_iter()
        .map(dyno_record::Warning)
        .collect();
    stored.run.machine.checks = vec![stored.run.machine.checks[1].clone(); 100];
    stored.run.limits = vec![stored.run.limits[0].clone(); 100];
    stored.run.command = Some("dyno run\nmany lines".repeat(100));
    let markdown = build_stored(&stored).to_markdown().unwrap();
    let lines = markdown.lines().count();
    assert!(lines <= LINES_MAX, "{lines} lines");
    assert!(lines > LINES_MAX - 40, "{lines} lines: room is wasted");
    assert!(markdown.contains("more cases"), "{markdown}");
    assert!(markdown.contains("Tables that are in the HTML and the JSON alone: "));
}

#[test]
fn no_two_plots_of_a_committed_record_have_one_title() {
    for report in REPORTS.iter() {
        let html = report.to_html().unwrap();
        let sweeps = html.split("<details id=\"sweeps\">").nth(1).unwrap_or("");
        let titles = sweeps.split("<figcaption>").skip(1);
        let mut titles: Vec<&str> = titles.map(|t| t.split('<').next().unwrap()).collect();
        let all = titles.len();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), all, "{}: {titles:?}", report.run.plan.title);
    }
}

/// A peer's latency under a load that was not offered is not the peer's.
#[test]
fn a_peer_whose_load_came_late_is_marked() {
    let mut stored = made_up::stored();
    let row = |page: Headline| page.rows.into_iter().find(|row| row.best_peer.is_some());
    let before = row(headline(&build_stored(&stored))).unwrap();
    assert!(!before.cells[2].contains("findings"), "{:?}", before.cells);
    let (case, peer) = (&before.cells[0], before.best_peer.as_ref().unwrap());
    made_up::make_load_late(&mut stored, case, peer);
    let after = row(headline(&build_stored(&stored))).unwrap();
    assert!(
        after.cells[2].ends_with("(see findings)"),
        "{:?}",
        after.cells
    );
}
