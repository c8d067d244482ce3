//! Choosing rows by codes gives what the general plan gives, on small tables made at random.

use crate::plans::{FILTERS, Random, open, random_tables, refusal, run, sorted, text};
use crate::tables::{self, Form, Spot, spot};
use datafusion::prelude::SessionContext;

/// Queries that the operator takes a part in.
const SELECTED: [&str; 8] = [
    "SELECT id, callsign, timestamp FROM spots WHERE callsign = 'K1ABC'",
    "SELECT * FROM spots WHERE reporter = 'DK1UG' AND timestamp >= TIMESTAMP '2023-11-15 00:00:00'",
    "SELECT count(*) AS n, max(snr) AS s FROM spots WHERE 'K1ABC' = callsign",
    "SELECT callsign || '/' || grid AS c, snr + power AS p FROM spots WHERE grid LIKE 'IO%' AND snr < 0",
    "SELECT l.id, r.callsign FROM spots l JOIN spots r ON l.id = r.id WHERE l.reporter = 'DK7UG'",
    "SELECT id, distance FROM spots WHERE grid = 'IO31' AND distance > 4294960000 ORDER BY id DESC LIMIT 7",
    "SELECT callsign FROM spots WHERE callsign = 'none of them'",
    "SELECT callsign, count(*) FILTER (WHERE snr > 0) AS n FROM spots WHERE band = 106 GROUP BY callsign",
];

/// Queries that it leaves to the general plan.
const GENERAL: [&str; 6] = [
    "SELECT id, callsign FROM spots",
    "SELECT id FROM spots WHERE snr > power",
    "SELECT id FROM spots WHERE concat(callsign, grid) = 'K1ABCFN31xy'",
    "SELECT count(*) AS n FROM spots",
    // The sort and the join tell the scan which rows they can still use.
    "SELECT id, distance FROM spots WHERE grid <> '' AND distance > 4294960000 ORDER BY id DESC LIMIT 7",
    "SELECT l.id, r.callsign FROM spots l JOIN spots r ON l.id = r.id WHERE l.snr > 3 AND r.snr < 7",
];

const COLUMNS: [&str; 11] = [
    "id",
    "timestamp",
    "reporter",
    "snr",
    "frequency",
    "callsign",
    "grid",
    "power",
    "distance",
    "band",
    "version",
];

fn is_selected(context: &SessionContext, sql: &str) -> bool {
    text(context, &format!("EXPLAIN {sql}")).contains("CodedSelectExec")
}

/// Some columns of the rows that some conditions choose.
fn query(random: &mut Random) -> String {
    let mut pick = |from: &[&'static str], most: u64| -> Vec<&'static str> {
        let count = random.below(most) as usize + 1;
        let at = random.below(from.len() as u64) as usize;
        (0..count)
            .map(|i| from[(at + 3 * i) % from.len()])
            .collect()
    };
    let (columns, filters) = (pick(&COLUMNS, 5), pick(&FILTERS, 3));
    let columns = columns.join(", ");
    format!(
        "SELECT {columns} FROM spots WHERE {}",
        filters.join(" AND ")
    )
}

#[test]
fn both_plans_agree_on_random_selections() {
    let (mut selected_queries, mut queries) = (0, 0);
    for seed in 300..308 {
        let (mut random, _folder, threads, [selected, general]) = random_tables(seed);
        // Small batches end in the middle of a row group.
        if random.below(2) == 0 {
            run(&selected, "SET datafusion.execution.batch_size = 100");
        }
        let known = SELECTED.into_iter().chain(GENERAL).map(str::to_owned);
        let drawn: Vec<String> = (0..20).map(|_| query(&mut random)).collect();
        for sql in known.chain(drawn) {
            queries += 1;
            selected_queries += u32::from(is_selected(&selected, &sql));
            assert!(!is_selected(&general, &sql), "{sql}");
            assert_eq!(
                sorted(&selected, &sql),
                sorted(&general, &sql),
                "{sql}, seed {seed}, {threads} threads"
            );
        }
    }
    assert!(
        selected_queries > queries / 3,
        "{selected_queries} of {queries}"
    );
}

#[test]
fn the_plan_shows_which_way_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let rows = vec![spot(1, "K1ABC", -3), spot(2, "G8JNJ", 4)];
    tables::write(folder.path(), &[vec![rows]], Form::default());
    let context = open(folder.path(), 2);
    for sql in SELECTED {
        assert!(is_selected(&context, sql), "{sql}");
    }
    for sql in GENERAL {
        assert!(!is_selected(&context, sql), "{sql}");
    }
    run(&context, "SET dyno.coded_select = false");
    assert!(!is_selected(&context, SELECTED[0]));
}

/// Rows of pages that the page index rules out are not looked at.
#[test]
fn pages_are_passed_by() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<Spot> = (0..1000).map(|id| spot(id, "K1ABC", 0)).collect();
    let form = Form {
        choice: 0,
        page_rows: 64,
        ..Form::default()
    };
    tables::write(folder.path(), &[vec![rows.clone(), rows]], form);
    let context = open(folder.path(), 1);
    let plan = |condition: &str| {
        let sql = format!("EXPLAIN SELECT id FROM spots WHERE {condition}");
        text(&context, &sql)
    };
    let time = |id: u64| format!("to_timestamp_millis({})", 1_700_000_000_000 + id * 120_000);
    let hour = format!("timestamp >= {} AND timestamp < {}", time(500), time(530));
    assert!(
        plan(&hour).contains("row_groups=2/2, rows=256"),
        "{}",
        plan(&hour)
    );
    let both = format!("{hour} AND id >= 512");
    assert!(
        plan(&both).contains("row_groups=2/2, rows=128"),
        "{}",
        plan(&both)
    );
    let none = format!("timestamp > {}", time(2000));
    assert!(
        plan(&none).contains("row_groups=0/2, rows=0"),
        "{}",
        plan(&none)
    );
    let sql = format!("SELECT id FROM spots WHERE {both} ORDER BY id LIMIT 1");
    assert!(text(&context, &sql).contains("| 512 |"));
    let grouped = format!("SELECT band, count(*) AS n FROM spots WHERE {hour} GROUP BY band");
    assert!(text(&context, &grouped).contains("| 107  | 30 |"));
}

/// Strings above the size that a view holds itself, and rows enough that whole dictionaries become
/// arrays.
#[test]
fn long_strings_come_out_whole() {
    let folder = tempfile::tempdir().unwrap();
    let call = |id: u64| format!("<{}>/{}", "LONGCALL".repeat(3), id % 7);
    let rows: Vec<Spot> = (0..5000).map(|id| spot(id, &call(id), 0)).collect();
    tables::write(folder.path(), &[vec![rows]], Form::default());
    let context = open(folder.path(), 2);
    let sql = "SELECT id, callsign FROM spots WHERE callsign LIKE '%/3' ORDER BY id";
    let lines = sorted(&context, sql);
    let found = lines.iter().filter(|line| line.contains(&call(3))).count();
    assert_eq!(found, (0..5000).filter(|id| id % 7 == 3).count());
}

#[test]
fn memory_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let rows = (0..5000).map(|i| spot(i, &format!("K{i}"), 0)).collect();
    tables::write(folder.path(), &[vec![rows]], Form::default());
    let error = refusal(
        folder.path(),
        "SELECT id, callsign FROM spots WHERE callsign <> ''",
    );
    assert!(error.contains("CodedSelectExec"), "{error}");
}
