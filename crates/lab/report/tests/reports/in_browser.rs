//! The pages in a real browser: the scripts run to their ends, from files, without a network.

use crate::made_up;

use std::path::{Path, PathBuf};
use std::process::Command;

use dyno_record::{Arm, LatencyLog, LatencySpan, Profile, StoredRun, find_runs};
use dyno_report::{build_stored, write_site};

/// The DOM of a page after its scripts ran; nothing when no Chromium is on the PATH. `query` is
/// what follows the path in the address.
fn dom(page: &Path, query: &str, profile: &Path) -> Option<String> {
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
        ])
        .args([
            "--disable-dev-shm-usage",
            "--virtual-time-budget=30000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}{query}", page.display()))
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

fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../results")
}

/// The site of the committed records.
fn site(out: &Path) -> PathBuf {
    let engine = |workload: &str| workload.split('-').next().unwrap_or_default().to_owned();
    write_site(&results(), out, engine).unwrap().index
}

/// The made-up run with a latency log in its open loop and the stages of one load.
fn with_logs_and_stages() -> StoredRun {
    let mut stored = made_up::stored();
    let facts = &mut stored.run.machine.facts;
    facts.push(("logical cpus".to_owned(), "2".to_owned()));
    for sample in &mut stored.samples {
        if sample.case == "ask-open" && sample.arm == Arm::Main {
            let file = format!("{}-{}.hdr", sample.system, sample.block);
            let spans = (0..20).map(|second| LatencySpan {
                middle_s: f64::from(second) + 0.5,
                p99_s: 0.002 * f64::from(1 + (second + sample.block) % 5),
            });
            let log = LatencyLog {
                spans: spans.collect(),
                counts: (1..2_000).map(|us| (us * 1_000, 5_000 / us)).collect(),
            };
            stored.latencies.insert(file.clone(), log);
            sample.histogram = Some(file);
        }
        if sample.case == "load-csv-2" {
            let time = sample.metrics["time"];
            let busy = if sample.system == "dyno" { 1.9 } else { 1.1 };
            sample.metrics.insert("cpu".to_owned(), time * busy);
        }
        if sample.case == "load-csv-2" && sample.system == "dyno" {
            for (stage, seconds) in [("inflate", 0.7), ("parse", 0.5), ("write", 0.1)] {
                let name = format!("stage-{stage}-s");
                sample.metrics.insert(name, seconds);
            }
        }
    }
    let stacks = [
        ("dyno;main;dyno_ingest::load;inflate", 700),
        ("dyno;main;dyno_ingest::load;read_[k]", 290),
        ("dyno;main;<hostile </script><img src=x>", 10),
    ];
    stored.profiles.push(Profile {
        case: "load-csv-2".to_owned(),
        system: "dyno".to_owned(),
        stacks: stacks
            .map(|(stack, count)| (stack.to_owned(), count))
            .into(),
    });
    stored
}

#[test]
fn every_plot_is_drawn_and_hostile_text_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("report.html");
    let report = build_stored(&with_logs_and_stages());
    std::fs::write(&page, report.to_html().unwrap()).unwrap();
    // For people: DYNO_KEEP_PAGE=/tmp/report.html keeps the page to look at.
    if let Some(kept) = std::env::var_os("DYNO_KEEP_PAGE") {
        std::fs::copy(&page, kept).unwrap();
    }
    let Some(dom) = dom(&page, "#case-load-csv-2", &dir.path().join("profile")) else {
        return;
    };
    // Seven strips, one sweep, one plot of percentiles, one of latency by time, one of stages,
    // one roofline, and one profile, which is not a drawing.
    assert!(
        dom.contains("data-plots-drawn=\"13\""),
        "the script did not run to its end"
    );
    assert_eq!(dom.matches("<svg").count(), 12);
    assert!(dom.contains("of all operations in the kept logs"));
    assert_eq!(dom.matches("<button").count(), 7, "a bar for each function");
    assert!(dom.contains("all processes: 100% of 1000 samples"));
    for stage in ["inflate", "parse", "write"] {
        assert!(
            dom.contains(&format!(">{stage}</text>")),
            "{stage} has no name"
        );
    }
    let dots = report
        .samples
        .iter()
        .filter(|s| s.outcome == dyno_record::Outcome::Done);
    assert!(dom.matches("class=\"mark\"").count() >= dots.count());
    // Six of the seven cases have a control arm and so a band; six have a limit, the open loop has
    // none. The roofline shows the limit once more.
    assert_eq!(dom.matches("class=\"band\"").count(), 6);
    assert_eq!(dom.matches("class=\"limit\"").count(), 7);
    assert!(
        !dom.contains("<img"),
        "text of the record became an element"
    );
    assert!(!dom.contains("<title>owned"), "text of the record ran");
    let opened = dom.matches("<details class=\"case\"").count() - 6;
    assert_eq!((opened, dom.matches(" open=\"\"").count()), (1, 1));
    assert!(dom.contains("data-name=\"load-csv-2\" open=\"\""));
}

/// Tells the frame around the page how it went: faults, what sticks out at the right with
/// everything closed and with everything open, and how many plots there are without a drawing.
const PROBE: &str = r##"<script>{
  const faults = [];
  addEventListener("error", (event) => faults.push(event.message));
  addEventListener("securitypolicyviolation", (event) => faults.push(event.violatedDirective));
  console.error = (...said) => faults.push(said.join(" "));
  const beyond = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
  addEventListener("load", () => {
    const closed = beyond();
    for (const part of document.querySelectorAll("details")) part.open = true;
    for (const part of document.querySelectorAll("[hidden]:not(#tip)")) part.hidden = false;
    // What is cut at the right of page one would be the verdict.
    const cut = [...document.querySelectorAll(".scroll:has(.answer)")];
    const clipped = cut.filter((part) => part.scrollWidth > part.clientWidth).length;
    const empty = document.querySelectorAll(".plot:not(:has(svg, .flame))").length;
    // On a desk no table but the raw one goes on beyond its edge.
    const wide = [...document.querySelectorAll(".scroll")].filter((part) => !part.closest("#raw"));
    const beside = innerWidth < 1000 ? [] : wide.filter((part) => part.scrollWidth > part.clientWidth);
    const scrolls = beside.map((part) => part.ariaLabel).join(", ");
    let [alike, bare] = [0, 0];
    for (const plot of document.querySelectorAll(".plot svg:has(.mark)")) {
      const fills = [...plot.querySelectorAll(".key, .bar")].map((part) => part.style.fill).filter((fill) => fill !== "none");
      if (new Set(fills).size < fills.length) alike += 1;
      if (plot.querySelectorAll(".tick").length < 2) bare += 1;
    }
    parent.postMessage(`faults ${faults.join("; ")} closed ${closed} open ${beyond()} clipped ${clipped} empty ${empty} scrolls ${scrolls} alike ${alike} bare ${bare}`, "*");
  });
}</script>"##;

#[test]
fn every_page_of_the_site_fits_a_desk_and_a_phone_without_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let index = site(dir.path());
    let mut pages = vec![index];
    for record in find_runs(&results()).unwrap() {
        let below = record.strip_prefix(results()).unwrap().display();
        pages.push(dir.path().join(format!("records/{below}.html")));
    }
    let mut frames = String::new();
    for (number, page) in pages.iter().enumerate() {
        let text = std::fs::read_to_string(page).unwrap();
        let probed = text.replacen("<meta charset=\"utf-8\">", PROBE, 1);
        assert_ne!(text, probed);
        std::fs::write(dir.path().join(format!("{number}.html")), probed).unwrap();
        for width in [1280, 390] {
            frames.push_str(&format!(
                "<iframe src=\"{number}.html\" name=\"{number}/{width}\" style=\"border: 0; \
                 width: {width}px; height: 844px\"></iframe>"
            ));
        }
    }
    let around = dir.path().join("around.html");
    let script = "<pre></pre><script>addEventListener('message', (event) => { \
                  const frame = [...document.querySelectorAll('iframe')].find((f) => f.contentWindow === event.source); \
                  document.querySelector('pre').textContent += `${frame.name} ${event.data}\\n`; });</script>";
    std::fs::write(&around, format!("{script}{frames}")).unwrap();
    let Some(dom) = dom(&around, "", &dir.path().join("profile")) else {
        return;
    };
    let said = dom.split("<pre>").nth(1).unwrap();
    let said = said.split("</pre>").next().unwrap();
    for (number, page) in pages.iter().enumerate() {
        for width in [1280, 390] {
            let name = format!("{number}/{width} ");
            let line = said.lines().find_map(|line| line.strip_prefix(&name));
            let good = "faults  closed 0 open 0 clipped 0 empty 0 scrolls  alike 0 bare 0";
            assert_eq!(line, Some(good), "{} at {width}", page.display());
        }
    }
}

#[test]
fn the_filter_is_in_the_address() {
    let dir = tempfile::tempdir().unwrap();
    let index = site(dir.path());
    let shown = |query: &str| {
        let dom = dom(&index, query, &dir.path().join("profile"))?;
        let sections = dom.split("<section class=\"record\" ").skip(1);
        let heads = sections.map(|section| section.split('>').next().unwrap().to_owned());
        Some(
            heads
                .filter(|head| !head.ends_with("hidden=\"\""))
                .collect::<Vec<_>>(),
        )
    };
    let Some(all) = shown("?show=all") else {
        return;
    };
    assert_eq!(all.len(), find_runs(&results()).unwrap().len());
    let latest = shown("").unwrap();
    assert!(!latest.is_empty() && latest.len() < all.len());
    assert!(
        latest
            .iter()
            .all(|head| head.contains("data-standing=\"latest\""))
    );
    let some = shown("?show=all&machine=epyc-2-cores&engine=tpch&suite=tpch").unwrap();
    let fits = |head: &&String| {
        [
            "machine=\"epyc-2-cores\"",
            "engine=\"tpch\"",
            "suite=\"tpch\"",
        ]
        .iter()
        .all(|part| head.contains(part))
    };
    assert_eq!(some.len(), all.iter().filter(fits).count());
    assert!(!some.is_empty() && some.iter().all(|head| fits(&head)));
    assert_eq!(
        shown("?show=all&machine=gone").unwrap(),
        Vec::<String>::new()
    );

    // A choice made by hand goes into the address.
    let text = std::fs::read_to_string(&index).unwrap();
    let by_hand = "<script>form.elements.suite.value = 'wspr'; \
                   form.dispatchEvent(new Event('change')); document.title = location.search;</script></body>";
    let page = dir.path().join("by-hand.html");
    std::fs::write(&page, text.replace("</body>", by_hand)).unwrap();
    let dom = dom(&page, "?machine=epyc-2-cores", &dir.path().join("profile")).unwrap();
    assert!(dom.contains("<title>?machine=epyc-2-cores&amp;suite=wspr</title>"));
}

/// What a script says that runs behind those of the made-up report.
fn said_by(script: &str) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("report.html");
    let text = build_stored(&with_logs_and_stages()).to_html().unwrap();
    let asked =
        format!("<script>document.body.dataset.said = (() => {{ {script} }})();</script></body>");
    std::fs::write(&page, text.replace("</body>", &asked)).unwrap();
    let dom = dom(&page, "", &dir.path().join("profile"))?;
    let said = dom.split("data-said=\"").nth(1).unwrap();
    Some(said.split('"').next().unwrap().to_owned())
}

#[test]
fn axes_have_ticks_where_people_look_for_them() {
    let Some(said) = said_by(
        "const ticks = (scale) => scale.ticks.join(' '); return [
           ticks(makeScale([1, 2], 0, 100)), ticks(makeScale([1, 5], 0, 100)),
           ticks(makeScale([0.00012, 0.004], 0, 100, { log: true }))].join(' | ');",
    ) else {
        return;
    };
    // Nodes are counted in whole ones, and a latency axis below a second has ticks too.
    assert_eq!(said, "1 2 | 1 2 3 4 5 | 0.0002 0.0005 0.001 0.002");
}

#[test]
fn a_table_is_sorted_by_the_column_that_is_pressed() {
    let Some(said) = said_by(
        "const table = [...document.querySelectorAll('.table table')].find((t) => t.rows.length > 4);
         const heads = [...table.tHead.rows[0].cells];
         const head = heads.find((h) => h.textContent === 'throughput');
         const column = heads.indexOf(head);
         const read = () => [...table.tBodies[0].rows].map((row) => amount(row.cells[column].textContent) / 1e6).join(' ');
         head.click(); const down = read();
         head.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
         return `${down} | ${read()} | ${head.ariaSort}`;",
    ) else {
        return;
    };
    assert_eq!(
        said,
        "6.11 6.11 1.45 1.15 1.15 | 1.15 1.15 1.45 6.11 6.11 | ascending"
    );
}
