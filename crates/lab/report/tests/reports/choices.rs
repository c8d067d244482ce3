//! Tables of metrics and guides say what verdicts carry, and nothing that lies inside the noise.

use crate::made_up::{make_load_late, stored};
use dyno_record::{Outcome, StoredRun, Table, TableKind, TableRow, Target};
use dyno_report::{FilledTable, build_stored, headline, rank};

fn row(label: &str, case: &str, metric: Option<&str>) -> TableRow {
    TableRow {
        label: label.into(),
        case: case.into(),
        system: None,
        metric: metric.map(Into::into),
        seed: vec![1e6, 2e6],
    }
}

fn filled(
    run: &mut StoredRun,
    kind: TableKind,
    columns: &[&str],
    rows: Vec<TableRow>,
) -> FilledTable {
    run.run.plan.tables = vec![Table {
        title: "T".into(),
        kind,
        columns: columns.iter().map(|c| (*c).to_owned()).collect(),
        rows,
        ranked: false,
        ranked_by: None,
    }];
    build_stored(run).tables.remove(0)
}

fn texts(table: &FilledTable) -> Vec<Vec<&str>> {
    let cells = |row: &'_ Vec<dyno_report::Cell>| row.len();
    assert!(
        table
            .rows
            .iter()
            .all(|row| cells(row) == table.columns.len())
    );
    let rows = table.rows.iter();
    rows.map(|row| row.iter().map(|cell| cell.text.as_str()).collect())
        .collect()
}

#[test]
fn systems_stand_side_by_side_with_the_best_speed_up() {
    let columns = ["duckdb", "chdb", "dyno as ours", "seed"];
    let rows = vec![
        row("gzip", "load-gz-2", None),
        row("none", "load-zip", None),
    ];
    let table = filled(&mut stored(), TableKind::Metrics, &columns, rows);
    assert_eq!(
        table.columns,
        [
            "",
            "duckdb",
            "chdb",
            "ours",
            "best speed-up",
            "verdict",
            "seed document"
        ]
    );
    let texts = texts(&table);
    assert_eq!(texts.len(), 1);
    assert!(texts[0][4].ends_with("× ours"), "{texts:?}");
    assert_eq!(texts[0][5], "faster");
    assert_eq!(texts[0][6], "1 M / 2 M");
    assert_eq!(table.notes, ["none: case load-zip was not run"]);
}

#[test]
fn a_speed_up_inside_the_noise_is_not_printed() {
    let mut run = stored();
    // The peer gets our own samples, so that nothing can be told apart.
    let ours: Vec<_> = run
        .samples
        .iter()
        .filter(|s| s.system == "dyno")
        .cloned()
        .collect();
    for sample in run.samples.iter_mut().filter(|s| s.system == "duckdb") {
        let same = |o: &&dyno_record::Sample| o.case == sample.case && o.block == sample.block;
        sample.metrics = ours.iter().find(same).unwrap().metrics.clone();
    }
    let columns = ["duckdb", "dyno"];
    let rows = vec![row("CSV", "load-csv-2", None)];
    let table = filled(&mut run, TableKind::Metrics, &columns, rows.clone());
    assert_eq!(texts(&table)[0][3..], ["–", "no difference shown"]);
    let guide = filled(&mut run, TableKind::Guide, &columns, rows);
    assert_eq!(
        texts(&guide)[0][1..],
        [
            "any: the samples show no difference",
            "no difference is shown between duckdb and dyno"
        ]
    );
}

#[test]
fn a_guide_names_the_winner_and_who_hung() {
    let mut run = stored();
    for sample in run.samples.iter_mut().filter(|s| s.system == "chdb") {
        sample.outcome = Outcome::Hung("killed after 120 s".into());
    }
    let rows = vec![row("gzip", "load-gz-2", None)];
    let guide = filled(&mut run, TableKind::Guide, &[], rows);
    let texts = texts(&guide);
    assert_eq!(texts[0][1], "dyno");
    assert!(texts[0][2].starts_with("dyno is better: "), "{texts:?}");
    assert!(
        texts[0][2].contains("chdb failed or hung 8 times"),
        "{texts:?}"
    );
}

#[test]
fn a_ranked_table_can_be_sorted_by_how_stable_its_rows_are() {
    let mut run = stored();
    // One slow sample makes the faster case the less stable one.
    let slow = run
        .samples
        .iter_mut()
        .find(|s| s.case == "load-gz-2" && s.system == "dyno");
    *slow.unwrap().metrics.get_mut("throughput").unwrap() /= 10.0;
    run.run.plan.tables = vec![Table {
        title: "T".into(),
        kind: TableKind::Cases,
        columns: vec!["variation".to_owned()],
        rows: ["load-gz-2", "load-csv-2"]
            .map(|case| TableRow {
                system: Some("dyno".into()),
                ..row(case, case, None)
            })
            .into(),
        ranked: true,
        ranked_by: Some("variation".into()),
    }];
    let labels = |run: &StoredRun| -> Vec<String> {
        let table = build_stored(run).tables.remove(0);
        table.rows.iter().map(|row| row[0].text.clone()).collect()
    };
    assert_eq!(labels(&run), ["load-csv-2", "load-gz-2"]);
}

#[test]
fn the_metric_of_a_row_stands_before_the_names_of_the_columns() {
    let mut run = stored();
    for sample in run.samples.iter_mut().filter(|s| s.case == "load-gz-2") {
        sample
            .facts
            .insert("row-2-callsign".to_owned(), "WW0WWV".to_owned());
    }
    let rows = vec![TableRow {
        system: Some("dyno".into()),
        ..row("2", "load-gz-2", Some("row-2"))
    }];
    let table = filled(&mut run, TableKind::Cases, &["callsign"], rows);
    assert_eq!(texts(&table), [["2", "WW0WWV"]]);
}

#[test]
fn a_title_names_a_fact_of_the_samples_below_it() {
    let mut run = stored();
    let mut titled = |model: &[&str]| {
        let below = run.samples.iter_mut().filter(|s| s.case == "load-gz-2");
        for (number, sample) in below.enumerate() {
            sample.facts.remove("model");
            if let Some(model) = model.get(number % model.len().max(1)) {
                sample.facts.insert("model".to_owned(), (*model).to_owned());
            }
        }
        run.run.plan.tables = vec![Table {
            title: "Tokens written by ${fact.model}".into(),
            kind: TableKind::Cases,
            columns: vec!["throughput".to_owned()],
            rows: vec![row("gzip", "load-gz-2", None)],
            ranked: false,
            ranked_by: None,
        }];
        build_stored(&run).tables.remove(0).title
    };
    assert_eq!(
        titled(&["none", "a random model"]),
        "Tokens written by a random model"
    );
    assert_eq!(titled(&["a", "b"]), "Tokens written by a / b");
    assert_eq!(
        titled(&[]),
        "Tokens written by a model that no sample names"
    );
}

/// The made-up run, in which the load of one system of `load-csv-2` was not the one that is named.
fn with_late_load(system: &str, target: &str) -> StoredRun {
    let mut run = stored();
    make_load_late(&mut run, "load-csv-2", system);
    let cases = &mut run.run.plan.cases;
    let case = cases.iter_mut().find(|case| case.name == "load-csv-2");
    case.unwrap().target = Some(Target {
        of: target.to_owned(),
        at_least: 0.5,
    });
    run
}

#[test]
fn no_verdict_and_no_advice_rest_on_a_figure_that_is_an_error() {
    for system in ["dyno", "duckdb"] {
        let run = with_late_load(system, "peer");
        let reason =
            format!("{system}: the load generator did not keep its schedule (generator-behind)");
        let report = build_stored(&run);
        let own = report.figures.iter().filter(|f| f.case == "load-csv-2");
        let mut ratios = own.flat_map(|figure| figure.ratio_to.values());
        assert!(ratios.all(|r| r.ratio > 0.0 && r.verdict == "not judged"));
        let page = headline(&report);
        let row = page.rows.iter().find(|row| row.cells[0] == "load-csv-2");
        let [_, _, _, ratio, _, verdict, choose] = &row.unwrap().cells;
        assert!(ratio.starts_with("5.31×"), "the ratio is still shown");
        assert_eq!(verdict, "not judged");
        assert_eq!(*choose, format!("nothing yet: {reason}"));
        for said in ["faster in 5 (", ", not judged in 1.", "0 met, 0 missed, 1 "] {
            assert!(page.summary.contains(said), "{said}: {}", page.summary);
        }
        let case = report.cases.iter().find(|c| c.plan.name == "load-csv-2");
        let target = case.unwrap().target.as_ref().unwrap();
        assert_eq!(target.reason, format!("not judged: {reason}"));
        let ranking = rank(&[("runs/late".to_owned(), report)], "dyno").unwrap();
        let ranked = ranking.cases.iter().find(|case| case.case == "load-csv-2");
        let mut ranked = ranked.unwrap().rows.iter();
        assert!(ranked.all(|row| (row.place_from, row.place_to) == (1, 2)));
    }
}

#[test]
fn no_table_judges_a_figure_that_is_an_error() {
    for system in ["dyno", "duckdb"] {
        let mut run = with_late_load(system, "limit");
        let rows = || vec![row("CSV", "load-csv-2", None)];
        let guide = filled(&mut run, TableKind::Guide, &[], rows());
        let texts_of_guide = texts(&guide);
        let (choose, why) = (texts_of_guide[0][1], texts_of_guide[0][2]);
        assert_eq!(choose, "nothing: no difference was judged");
        assert!(
            why.starts_with(&format!("not judged: {system}: the load generator")),
            "{why}"
        );
        let columns = ["duckdb", "dyno"];
        let metrics = filled(&mut run, TableKind::Metrics, &columns, rows());
        assert_eq!(texts(&metrics)[0][3..], ["–", "not judged"]);
        let cases = filled(&mut run, TableKind::Cases, &["verdict"], rows());
        let verdicts: Vec<&str> = texts(&cases).iter().map(|row| row[1]).collect();
        assert_eq!(verdicts, ["not judged"; 2]);
        // A limit is of our figure alone, so that an error of the peer does not touch it.
        let report = build_stored(&run);
        let case = report.cases.iter().find(|c| c.plan.name == "load-csv-2");
        let state = case.unwrap().target.as_ref().unwrap().state;
        let expected = if system == "dyno" {
            "not judged"
        } else {
            "met"
        };
        assert_eq!(state, expected);
    }
}

#[test]
fn a_count_is_compared_with_nothing() {
    let report = build_stored(&stored());
    let ratios = |metric: &str| {
        let figure = report.figure("ask-open", "dyno", metric).unwrap();
        figure.ratio_to.len()
    };
    assert_eq!((ratios("latency-count"), ratios("latency-p50")), (0, 1));
}

#[test]
fn what_is_measured_in_bytes_is_smaller_and_not_better() {
    let mut run = stored();
    for sample in run.samples.iter_mut().filter(|s| s.case == "load-csv-2") {
        let bytes = if sample.system == "dyno" { 1e6 } else { 2e6 };
        let bytes = bytes + f64::from(sample.block);
        sample.metrics.insert("page-bytes".to_owned(), bytes);
    }
    let rows = vec![row("CSV", "load-csv-2", Some("page-bytes"))];
    let guide = filled(&mut run, TableKind::Guide, &[], rows);
    let why = texts(&guide)[0][2];
    assert!(why.starts_with("dyno is smaller: 2"), "{why}");
}
