//! The suites themselves: no rate of a service comes from a burst, and jobs show their rate against
//! size.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dyno_record::{Better, CasePlan, Load, MEASURED_MIN_S, Size};
use dyno_suite::{Definition, Planned};

/// Workloads that go on for as long as they are asked to.
const SERVICES: [&str; 11] = [
    "txn-k2",
    "txn-rpc",
    "txn-transport",
    "tpcc-run",
    "pubsub-flow",
    "pubsub-queue",
    "pubsub-commits",
    "pages-store",
    "pages-device",
    "pages-fault",
    "resp-ycsb",
];

fn suites() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites");
    let entries = fs::read_dir(folder).expect("the suites");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let suites: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    assert!(suites.len() > 5, "{suites:?}");
    suites
}

/// A suite as it is on two cores.
fn suite(path: &Path) -> Definition {
    Definition::read(path).expect("a suite").on_cores(2)
}

fn cases(suite: &Definition, size: Size) -> Vec<CasePlan> {
    let planned = Planned::new(suite, size, &suite.peers()).expect("a plan");
    planned.plan.cases
}

/// The shortest time that the case or a variant of it measures.
fn seconds(case: &CasePlan) -> Option<f64> {
    let of = |params: &std::collections::BTreeMap<String, serde_json::Value>| {
        params.get("seconds").and_then(serde_json::Value::as_f64)
    };
    let variants = case.variants.values().filter_map(of);
    variants.chain(of(&case.params)).reduce(f64::min)
}

#[test]
fn every_sample_of_a_service_lasts_long_enough() {
    let mut services = 0;
    for path in suites() {
        let suite = suite(&path);
        for size in [Size::Quick, Size::Full] {
            for case in cases(&suite, size) {
                let at = format!("{} {size:?} {}", suite.name, case.name);
                match (case.load, seconds(&case)) {
                    (Load::Service, Some(seconds)) => {
                        services += 1;
                        assert!(seconds >= MEASURED_MIN_S, "{at}: {seconds} s");
                        let limit = case.time_limit_s;
                        assert!(limit > seconds * 2.0, "{at}: a limit of {limit} s");
                    }
                    (Load::Service, None) => panic!("{at}: a service without a time"),
                    // Of a job of these workloads the size is given, and it stands in a sweep or is
                    // the first touch of memory.
                    (Load::Job, None) if SERVICES.contains(&case.workload.as_str()) => {
                        let sized = case.axis.is_some() || case.name == "store-fill";
                        assert!(sized, "{at}: neither a service nor a point of a sweep");
                    }
                    (Load::Job, Some(_)) if case.workload != "llm-beside" => {
                        panic!("{at}: it lasts for a time, so it is a service")
                    }
                    (Load::Job, _) => {}
                }
            }
        }
    }
    assert!(services > 70, "{services} cases");
}

/// What a quick run of a suite may take on two cores, its data and its peers included.
const QUICK_MAX_S: f64 = 45.0 * 60.0;

/// Cases that documents quote first, which a quick run must have.
const HEADLINES: [(&str, &[&str]); 16] = [
    ("chain", &["chain-flat-out", "chain-delay"]),
    ("k2", &["transport", "one-shot-latency", "one-core"]),
    ("kafka", &["kafka-produce", "kafka-consume"]),
    ("llm", &["tokens", "first-token", "loading"]),
    ("pages", &["compress-elf-text", "store-read", "space"]),
    ("pages-device", &["device-p3", "device-p4"]),
    ("pages-pager", &["restore-first", "clones"]),
    ("pubsub", &["flow-direct", "flow-broker", "queue"]),
    ("resp", &["resp-incr", "resp-set-pipelined"]),
    ("sage", &["make-set-2"]),
    ("tpcc", &["one-warehouse", "one-client"]),
    ("tpch", &["parquet-snappy-2", "csv-memory-2"]),
    ("wspr", &["load-gz-2", "top-ten-2"]),
    ("wspr-clickhouse", &["clickhouse-gz-2"]),
    ("wspr-queries", &["band-hour-2"]),
    ("ycsb", &["ycsb-a", "ycsb-b", "ycsb-f"]),
];

#[test]
fn a_quick_run_of_any_suite_takes_45_minutes_at_most_and_has_its_headlines() {
    for path in suites() {
        let suite = suite(&path);
        let planned = Planned::new(&suite, Size::Quick, &suite.peers()).expect("a plan");
        let needs = planned.needs(&|_, _| false);
        let takes_s = needs.prepare_s + needs.run_s;
        let name = &suite.name;
        assert!(takes_s <= QUICK_MAX_S, "{name}: {takes_s:.0} s");
        let budget_s = planned.budget_s;
        assert!(budget_s <= QUICK_MAX_S, "{name}: a budget of {budget_s} s");
        let headlines = HEADLINES.iter().find(|(suite, _)| suite == name);
        let (_, headlines) = headlines.unwrap_or_else(|| panic!("{name} has no headline case"));
        for headline in *headlines {
            let mut cases = planned.plan.cases.iter();
            let case = cases.find(|case| case.name == *headline);
            let case = case.unwrap_or_else(|| panic!("{name}: {headline} is left out"));
            // A suite without peers has none to stay.
            let alone = suite.peers().is_empty() || *headline == "transport";
            assert!(alone || case.peers().next().is_some() || !case.baselines.is_empty());
        }
    }
}

/// A case of commits a second was once held against the time of one.
#[test]
fn the_time_of_a_write_limits_times_and_its_rate_limits_rates() {
    let mut held = 0;
    for path in suites() {
        for case in cases(&suite(&path), Size::Full) {
            let Some(limit) = case.limit.as_deref().filter(|it| it.starts_with("fsync")) else {
                continue;
            };
            let wanted = if limit == "fsync-p50" {
                Better::Lower
            } else {
                Better::Higher
            };
            assert_eq!(case.better, wanted, "{}: {limit}", case.name);
            held += 1;
        }
    }
    assert!(held > 5, "{held}");
}

#[test]
fn jobs_show_their_rate_against_their_size() {
    for (name, axes) in [
        ("wspr", &["rows", "archives"][..]),
        ("tpch", &["sf"]),
        ("pubsub", &["before"]),
        ("pages", &["pages"]),
        ("k2", &["rows"]),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites");
        let suite = suite(&folder.join(format!("{name}.toml")));
        let swept: BTreeSet<String> = cases(&suite, Size::Full)
            .iter()
            .filter_map(|case| case.axis.as_ref().map(|(axis, _)| axis.clone()))
            .collect();
        for axis in axes {
            assert!(
                swept.contains(*axis),
                "{name} has no sweep over {axis}: {swept:?}"
            );
        }
    }
}

#[test]
fn runs_of_different_suites_are_not_compared() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/record/tests/fixtures/run-v1");
    let folder = tempfile::tempdir().expect("a directory");
    let mut dirs = Vec::new();
    for (suite, case) in [("wspr", "load-gz-2"), ("k2", "one-core")] {
        let dir = folder.path().join(suite);
        fs::create_dir(&dir).expect("made");
        for file in ["run.json", "samples.ndjson"] {
            let text = fs::read_to_string(fixture.join(file)).expect("the fixture");
            let text = text
                .replace("load-gz-2", case)
                .replace("\"wspr\"", &format!("\"{suite}\""));
            fs::write(dir.join(file), text).expect("written");
        }
        dirs.push(dir);
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dyno"));
    let output = command
        .arg("compare")
        .args(&dirs)
        .output()
        .expect("dyno starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("nothing to compare: suite wspr against k2"),
        "{said}"
    );
}
