//! A small made-up run: two peers, a sweep, an open loop, failures, one hostile name.

use std::collections::BTreeMap;

use dyno_record::{
    Answer, Arm, Better, CasePlan, Limit, Load, Machine, MachineCheck, Outcome, Plan, Program, Run,
    Sample, SeedFigure, Size, StoredRun, SystemVersion, Table, TableRow, Usage,
};

/// Text that would run, were it ever taken for markup.
pub const HOSTILE: &str = "</script><img src=x onerror=document.title='owned'>|`*[x](y)";

/// Blocks of every case but `load-once`.
const BLOCKS: u32 = 8;

pub fn stored() -> StoredRun {
    let run = run();
    let samples = samples(&run.plan.cases);
    StoredRun {
        run,
        samples,
        latencies: BTreeMap::new(),
        profiles: Vec::new(),
        warnings: Vec::new(),
        withdrawn: None,
    }
}

/// In a case of one system, the load was not the one that is named.
pub fn make_load_late(run: &mut StoredRun, case: &str, system: &str) {
    let samples = run.samples.iter_mut();
    for sample in samples.filter(|s| s.case == case && s.system == system) {
        let late = "threads that stood ready started 2181 us late at p99".to_owned();
        sample.facts.insert("generator".to_owned(), late);
    }
}

fn run() -> Run {
    let system = |name: &str, version: &str, missing: Option<&str>| SystemVersion {
        name: name.into(),
        version: version.into(),
        missing: missing.map(Into::into),
    };
    Run {
        magic: "dyno-run".into(),
        schema_version: 3,
        started_at: "2026-11-21T08:00:00Z".into(),
        finished_at: Some("2026-11-21T08:21:40Z".into()),
        plan: plan(),
        machine: Machine {
            fingerprint: "9f2c71d0".into(),
            facts: vec![
                ("cpu".into(), "Example 9000, 2 cores at 2.4 GHz".into()),
                ("memory".into(), "24 GiB".into()),
                ("kernel".into(), "6.1.0".into()),
                ("note".into(), HOSTILE.into()),
            ],
            checks: vec![
                check("governor", "good"),
                check("steal", "spoils"),
                check("turbo", "unknown"),
            ],
        },
        limits: vec![
            limit(
                "inflate-1",
                420e6,
                "B/s",
                Better::Higher,
                Some(("igzip", 431e6)),
            ),
            limit("timer-cost", 24.0, "ns", Better::Lower, None),
        ],
        program: Program {
            version: "0.1.0".into(),
            hash: "ab12cd34".into(),
            git_revision: "2e63c5e".into(),
            profile: "release".into(),
        },
        systems: vec![
            system("dyno", "0.1.0", None),
            system("duckdb", "2.0.0", None),
            system("chdb", "4.4.0", None),
            system(
                "polars",
                "",
                Some("not installed: dyno peers install polars"),
            ),
        ],
        beside: None,
        command: None,
        unread: BTreeMap::new(),
    }
}

fn check(name: &str, state: &str) -> MachineCheck {
    MachineCheck {
        name: name.into(),
        state: state.into(),
        seen: "2.1% of the time was taken away".into(),
        cost: "Samples differ by as much.".into(),
        mend: "Run when the host is quiet.".into(),
    }
}

fn limit(name: &str, value: f64, unit: &str, better: Better, other: Option<(&str, f64)>) -> Limit {
    Limit {
        name: name.into(),
        value,
        unit: unit.into(),
        better,
        n: 7,
        low: value * 0.985,
        high: value * 1.01,
        method: "Repeats a fixed corpus on one core".into(),
        independent: other.map(|(tool, value)| (tool.into(), value)),
        measured_at: "2026-11-21T07:59:00Z".into(),
    }
}

fn plan() -> Plan {
    let mut cases = vec![
        case("load-gz-2", &["dyno", "duckdb", "chdb"], None),
        case("load-csv-2", &["dyno", "duckdb"], None),
    ];
    for rows in [1e6, 6e6, 6e7] {
        let mut swept = case(&format!("load-rows-{rows}"), &["dyno", "duckdb"], None);
        swept.axis = Some(("rows".into(), rows));
        swept.params.insert("rows".into(), rows.into());
        swept.expected_count = Some(rows as u64);
        cases.push(swept);
    }
    cases.push(open_loop());
    let mut once = case("load-once", &["dyno", "polars"], Some(1));
    once.title = HOSTILE.into();
    once.analysis = HOSTILE.into();
    cases.push(once);
    let row = |label: &str, case: &str| TableRow {
        label: label.into(),
        case: case.into(),
        system: None,
        metric: None,
        seed: Vec::new(),
    };
    let columns = [
        "system",
        "throughput",
        "time",
        "cpu",
        "peak-rss",
        "share-of-limit",
        "ratio",
        "bottleneck",
        "verdict",
        "spread",
        "seed",
    ];
    Plan {
        suite: "wspr".into(),
        title: "Spot archives: load and query".into(),
        purpose: "Loads compressed spot archives into a table that answers SQL.\n\n- load\n- query"
            .into(),
        seed_document: Some(
            "IONIS Lab, the README of a laboratory for radio spots on ClickHouse".into(),
        ),
        size: Size::Quick,
        order_seed: 7,
        cases,
        set: BTreeMap::new(),
        only: Vec::new(),
        skip: Vec::new(),
        left_out: Default::default(),
        tables: vec![Table {
            title: "Ingestion leaderboard".into(),
            kind: Default::default(),
            columns: columns.map(Into::into).to_vec(),
            rows: vec![
                row("gzip", "load-gz-2"),
                row("CSV", "load-csv-2"),
                row("?", "load-zip"),
            ],
            ranked: true,
            ranked_by: None,
        }],
    }
}

fn case(name: &str, systems: &[&str], repeats: Option<u32>) -> CasePlan {
    CasePlan {
        name: name.into(),
        title: format!("Load, {name}"),
        workload: "ingest-load".into(),
        load: Load::Job,
        params: BTreeMap::from([
            ("workers".to_owned(), 2.into()),
            ("rows".to_owned(), 6_000_000.into()),
            (
                "case".to_owned(),
                name.split("-rows").next().unwrap_or("").into(),
            ),
        ]),
        systems: systems.iter().map(|s| (*s).to_owned()).collect(),
        variants: BTreeMap::new(),
        promises_less: BTreeMap::new(),
        baselines: Vec::new(),
        experiments: BTreeMap::new(),
        untried: BTreeMap::new(),
        metric: "throughput".into(),
        unit: "rows/s".into(),
        better: Better::Higher,
        repeats: repeats.unwrap_or(BLOCKS),
        control: repeats.is_none(),
        time_limit_s: 120.0,
        expected_count: Some(6_000_000),
        limit: Some("inflate-1".into()),
        limit_per_unit: Some(1.0 / 42.0),
        no_limit: None,
        target: None,
        seed_figure: (name == "load-gz-2").then(|| SeedFigure {
            value: 24.67e6,
            note: "32 cores, 10.8 G rows, one run".into(),
        }),
        analysis: "Rows from files to a table that a query can read. It does **not** say how \
                   fast a *cluster* takes them."
            .into(),
        axis: None,
        in_flight: None,
        offered_rate: None,
    }
}

fn open_loop() -> CasePlan {
    CasePlan {
        metric: "latency-p99".into(),
        unit: "ms".into(),
        better: Better::Lower,
        limit: None,
        expected_count: None,
        offered_rate: Some(5_000.0),
        title: "Point queries at 5000 a second".into(),
        ..case("ask-open", &["dyno", "duckdb"], None)
    }
}

/// Numbers around 1, up to 1.2% away, without two modes: the sum of two sequences that fill the
/// unit interval evenly. Fixed, so that the snapshots keep.
fn wobble(index: u32) -> f64 {
    let even = |step: f64| (f64::from(index) * step).fract();
    1.0 + 0.012 * (even(0.618_033_988_75) + even(0.414_213_562_37) - 1.0)
}

fn samples(cases: &[CasePlan]) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut at_s = 0.0;
    for case in cases {
        for block in 0..case.repeats {
            let mut arms: Vec<(&str, Arm)> = case
                .systems
                .iter()
                .map(|s| (s.as_str(), Arm::Main))
                .collect();
            if case.control {
                arms.push(("dyno", Arm::Control));
            }
            for (position, (system, arm)) in arms.into_iter().enumerate() {
                if system == "polars" {
                    continue;
                }
                let index = samples.len() as u32;
                at_s += 2.5;
                samples.push(sample(
                    case,
                    system,
                    arm,
                    block,
                    position as u32,
                    index,
                    at_s,
                ));
            }
        }
    }
    samples
}

fn sample(
    case: &CasePlan,
    system: &str,
    arm: Arm,
    block: u32,
    position: u32,
    index: u32,
    at_s: f64,
) -> Sample {
    let rate = match system {
        "dyno" => 6.1e6,
        "duckdb" => 1.15e6,
        _ => 1.45e6,
    } * wobble(index);
    let rows = case.expected_count.unwrap_or(1000);
    let time = rows as f64 / rate;
    let mut metrics = BTreeMap::from([("throughput".to_owned(), rate), ("time".to_owned(), time)]);
    if case.name == "ask-open" {
        let base = if system == "dyno" { 1.0 } else { 3.0 } * wobble(index);
        metrics = BTreeMap::from([
            ("latency-p50".to_owned(), base * 0.4e-3),
            ("latency-p95".to_owned(), base * 0.9e-3),
            ("latency-p99".to_owned(), base * 2.1),
            ("latency-p999".to_owned(), base * 8e-3),
            ("latency-count".to_owned(), 5000.0),
        ]);
    }
    let outcome = match (case.name.as_str(), system, block) {
        ("load-gz-2", "chdb", 3) => Outcome::Failed(format!("checksum differs: {HOSTILE}")),
        ("load-gz-2", "chdb", 5) => Outcome::Hung("killed after 120 s".into()),
        _ => Outcome::Done,
    };
    let fact = match system {
        "dyno" => "inflate",
        _ => "parse",
    };
    Sample {
        case: case.name.clone(),
        system: system.into(),
        arm,
        block,
        position,
        at_s,
        wall_s: time + 0.05,
        answer: (outcome == Outcome::Done).then(|| Answer {
            count: rows,
            checksum: "00ff".into(),
        }),
        outcome,
        metrics,
        facts: BTreeMap::from([("bottleneck".to_owned(), fact.to_owned())]),
        windows: vec![],
        window_s: None,
        usage: Usage {
            user_s: Some(time * 1.8),
            system_s: Some(time * 0.1),
            peak_rss_bytes: Some(700_000_000),
            steal: Some(0.002),
            ..Usage::default()
        },
        sensors: Default::default(),
        histogram: None,
    }
}
