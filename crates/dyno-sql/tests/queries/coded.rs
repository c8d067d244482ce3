//! Grouping by codes gives what the general plan gives, on small tables made at random.

use std::path::Path;

use crate::plans::{FILTERS, Random, general, open, random_tables, refusal, run, sorted, text};
use crate::tables::{self, Form, Spot, spot};
use datafusion::arrow::array::RecordBatch;
use datafusion::prelude::SessionContext;

/// Queries that the operator takes.
const CODED: [&str; 21] = [
    "SELECT callsign, avg(snr) AS a, count(*) AS n FROM wspr.bronze GROUP BY callsign",
    "SELECT callsign, count(*) AS n FROM spots GROUP BY callsign",
    "SELECT DISTINCT callsign FROM spots",
    "SELECT count(*) AS n, callsign AS c, sum(snr) AS s FROM spots GROUP BY c",
    "SELECT callsign, min(snr) AS l, max(snr) AS h, avg(snr) AS a FROM spots GROUP BY callsign",
    "SELECT callsign, sum(distance) AS s, max(power) AS p, count(id) AS n FROM spots GROUP BY callsign",
    "SELECT callsign, min(id) AS l, max(id) AS h, max(frequency) AS f FROM spots GROUP BY callsign",
    "SELECT callsign, avg(distance) AS a, sum(power) AS p FROM spots GROUP BY callsign HAVING count(*) > 2",
    "SELECT mode, sum(frequency) AS f, avg(azimuth) AS z FROM spots GROUP BY mode",
    "SELECT callsign, count(*) AS n FROM spots WHERE snr > 0 GROUP BY callsign",
    "SELECT callsign, band, count(*) AS n FROM spots GROUP BY callsign, band",
    "SELECT band, count(*) AS n FROM spots GROUP BY band",
    "SELECT callsign, count(DISTINCT snr) AS n FROM spots GROUP BY callsign",
    "SELECT band, extract(hour FROM timestamp) AS h, count(*) AS n FROM spots GROUP BY 1, 2",
    "SELECT substr(grid, 1, 4) AS g, substr(reporter_grid, 1, 4) AS r, max(distance) AS d FROM spots GROUP BY 1, 2",
    "SELECT min(timestamp) AS t, max(timestamp) AS u, reporter FROM spots GROUP BY reporter",
    "SELECT date_trunc('day', timestamp) AS d, count(*) AS n FROM spots WHERE distance >= 4294960000 GROUP BY 1",
    "SELECT nullif(grid, '') AS g, count(*) AS n FROM spots WHERE timestamp < TIMESTAMP '2023-11-14 23:00:00' GROUP BY 1",
    "SELECT band, percentile_cont(0.1) WITHIN GROUP (ORDER BY snr) AS l, percentile_cont(0.25) WITHIN GROUP (ORDER BY snr DESC) AS h, avg(snr) AS a, count(*) AS n FROM spots GROUP BY band",
    "SELECT snr / 10 AS s, snr > 0 AS p, avg(drift) AS d FROM spots WHERE callsign LIKE 'K%' AND snr <> 7 GROUP BY 1, 2",
    "SELECT callsign, max(distance) AS d FROM spots WHERE callsign IN ('', 'K1ABC', 'K2ABC') AND power < 40 GROUP BY callsign",
];

/// Queries that it leaves to the general plan.
const GENERAL: [&str; 7] = [
    "SELECT callsign, count(*) FILTER (WHERE snr > 0) AS n FROM spots GROUP BY callsign",
    "SELECT callsign, avg(snr + 1) AS a FROM spots GROUP BY callsign",
    "SELECT callsign, count(*) AS n FROM spots WHERE snr > power GROUP BY callsign",
    "SELECT concat(callsign, grid) AS c, count(*) AS n FROM spots GROUP BY 1",
    "SELECT CAST(concat('1', substr(grid, 3, 2)) AS INTEGER) AS c, count(*) AS n FROM spots GROUP BY 1",
    "SELECT count(*) AS n, max(snr) AS s FROM spots",
    "SELECT band, count(DISTINCT callsign) AS n, count(DISTINCT reporter) AS m FROM spots GROUP BY band",
];

fn is_coded(context: &SessionContext, sql: &str) -> bool {
    text(context, &format!("EXPLAIN {sql}")).contains("CodedAggregateExec")
}

/// Both ways over one table; a join and a subquery put the operator below other plans.
fn compare(directory: &Path, threads: usize) {
    let coded = open(directory, threads);
    let general = general(directory, threads);
    let inner = CODED[0];
    let nested = [
        format!("SELECT count(*), sum(n), max(a) FROM ({inner}) q"),
        format!(
            "SELECT l.callsign, l.n, r.n AS m FROM ({inner}) l JOIN ({}) r ON l.callsign = r.callsign",
            CODED[1]
        ),
        format!(
            "SELECT l.callsign, l.n, r.id FROM ({inner}) l JOIN spots r ON l.callsign = r.callsign"
        ),
        format!("{inner} UNION ALL {inner}"),
    ];
    let all = CODED
        .into_iter()
        .chain(nested.iter().map(String::as_str))
        .chain(GENERAL);
    for sql in all {
        assert!(!is_coded(&general, sql), "{sql}");
        assert_eq!(
            sorted(&coded, sql),
            sorted(&general, sql),
            "{sql}, {threads} threads"
        );
    }
}

#[test]
fn both_plans_agree_on_random_tables() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let folder = tempfile::tempdir().unwrap();
        let form = random.form();
        tables::write(folder.path(), &random.files(), form);
        compare(folder.path(), 1 + random.below(3) as usize);
    }
}

const KEYS: [&str; 16] = [
    "callsign",
    "reporter",
    "band",
    "power",
    "drift",
    "substr(grid, 1, 4)",
    "substr(reporter_grid, 1, 3)",
    "nullif(grid, '')",
    "character_length(callsign)",
    "extract(hour FROM timestamp)",
    "extract(minute FROM timestamp)",
    "date_trunc('hour', timestamp)",
    "date_trunc('day', timestamp)",
    "timestamp",
    "snr / 10 * 10",
    "callsign LIKE 'K1%'",
];

const MEASURES: [&str; 14] = [
    "count(*)",
    "sum(snr)",
    "avg(snr)",
    "max(distance)",
    "min(distance)",
    "sum(frequency)",
    "min(id)",
    "max(id)",
    "min(timestamp)",
    "max(timestamp)",
    "avg(power)",
    "count(DISTINCT reporter)",
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY snr)",
    "percentile_cont(0.9) WITHIN GROUP (ORDER BY snr DESC)",
];

/// A query of the shape that the operator is for.
fn query(random: &mut Random) -> String {
    let mut pick = |from: &[&'static str], most: u64| -> Vec<&'static str> {
        let count = random.below(most) + 1;
        let at = random.below(from.len() as u64) as usize;
        let step = [1, 2, 4, 7, 8, 11, 13][random.below(7) as usize];
        let mut picked: Vec<&str> = (0..count as usize)
            .map(|i| from[(at + i * step) % from.len()])
            .collect();
        picked.dedup();
        picked
    };
    let (keys, measures) = (pick(&KEYS, 3), pick(&MEASURES, 3));
    let filters = pick(&FILTERS, 4);
    let columns: Vec<String> = keys
        .iter()
        .chain(&measures)
        .enumerate()
        .map(|(at, column)| format!("{column} AS c{at}"))
        .collect();
    let numbers: Vec<String> = (1..=keys.len()).map(|at| at.to_string()).collect();
    let mut sql = format!("SELECT {} FROM spots", columns.join(", "));
    if filters.len() > 1 {
        sql += &format!(" WHERE {}", filters[1..].join(" AND "));
    }
    sql += &format!(" GROUP BY {}", numbers.join(", "));
    if random.below(3) == 0 {
        let direction = ["ASC", "DESC"][random.below(2) as usize];
        let first = random.below(columns.len() as u64) + 1;
        let all: Vec<String> = (1..=columns.len()).map(|at| at.to_string()).collect();
        let limit = random.below(5) + 1;
        sql += &format!(
            " ORDER BY {first} {direction}, {} LIMIT {limit}",
            all.join(", ")
        );
    }
    sql
}

#[test]
fn both_plans_agree_on_random_queries() {
    let (mut coded_queries, mut queries) = (0, 0);
    for seed in 100..108 {
        let (mut random, _folder, threads, [coded, general]) = random_tables(seed);
        for _ in 0..30 {
            let sql = query(&mut random);
            queries += 1;
            coded_queries += u32::from(is_coded(&coded, &sql));
            assert!(!is_coded(&general, &sql), "{sql}");
            assert_eq!(
                sorted(&coded, &sql),
                sorted(&general, &sql),
                "{sql}, seed {seed}, {threads} threads"
            );
        }
    }
    // Tables whose integers have no dictionary are read the general way, and so is more than one
    // DISTINCT beside other aggregates.
    assert!(coded_queries > queries / 3, "{coded_queries} of {queries}");
}

/// So many groups in each thread that they are split, in the middle of a row group.
#[test]
fn both_plans_agree_on_more_groups_than_a_cache_holds() {
    const GROUPS: u64 = 150_000;
    let folder = tempfile::tempdir().unwrap();
    let rows = |from: u64, snr: i8| -> Vec<Spot> {
        let ids = from..from + GROUPS / 2;
        ids.map(|id| spot(id, &format!("K{}", id % 5000), (id % 40) as i8 - snr))
            .collect()
    };
    // Both files have the same groups, in another order.
    let files = [
        vec![rows(0, 20), rows(GROUPS / 2, 20)],
        vec![rows(GROUPS / 2, 3), rows(0, 3)],
    ];
    tables::write(folder.path(), &files, Form::default());
    let sums = "SELECT count(*) AS groups, sum(n) AS rows, sum(m * (id % 1009)) AS m";
    for measures in [
        "count(*) AS n, count(*) AS m",
        "count(*) AS n, sum(snr) AS m",
        "count(*) AS n, sum(distance) + min(snr) - max(power) AS m",
    ] {
        for keys in ["callsign, id", "band, id, reporter"] {
            let inner = format!("SELECT {keys}, {measures} FROM spots GROUP BY {keys}");
            let all = format!("{sums} FROM ({inner}) AS q");
            let chosen = format!(
                "SELECT {keys}, {measures} FROM spots WHERE snr > -15 GROUP BY {keys} \
                 ORDER BY m DESC, id LIMIT 50"
            );
            for sql in [all, chosen] {
                for threads in [1, 2] {
                    let coded = open(folder.path(), threads);
                    let general = general(folder.path(), threads);
                    assert!(is_coded(&coded, &sql), "{sql}");
                    assert_eq!(text(&coded, &sql), text(&general, &sql), "{sql}, {threads}");
                }
            }
        }
    }
}

#[test]
fn a_table_without_rows_answers() {
    let folder = tempfile::tempdir().unwrap();
    tables::write(folder.path(), &[], Form::default());
    let context = open(folder.path(), 2);
    assert_eq!(
        run(&context, CODED[0])
            .iter()
            .map(RecordBatch::num_rows)
            .sum::<usize>(),
        0
    );
    assert!(text(&context, "SELECT count(*) AS n FROM spots").contains("| 0 |"));
    let folder = tempfile::tempdir().unwrap();
    tables::write(folder.path(), &[vec![], vec![]], Form::default());
    compare(folder.path(), 2);
}

#[test]
fn the_plan_shows_which_way_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let rows = vec![spot(1, "K1ABC", -3), spot(2, "G8JNJ", 4)];
    tables::write(folder.path(), &[vec![rows]], Form::default());
    let context = open(folder.path(), 2);
    for sql in CODED {
        assert!(is_coded(&context, sql), "{sql}");
        assert!(
            is_coded(&context, &format!("{sql} ORDER BY 1 LIMIT 10")),
            "{sql}"
        );
    }
    for sql in GENERAL {
        assert!(!is_coded(&context, sql), "{sql}");
    }
    run(&context, "SET dyno.coded_aggregate = false");
    assert!(!is_coded(&context, CODED[0]));
}

/// Of pages that were filled within a day, the day is known without a look at their times.
#[test]
fn keys_that_pages_have_in_common_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<Spot> = (0..3000).map(|id| spot(id % 1000, "K1ABC", 0)).collect();
    let form = Form {
        choice: 0,
        page_rows: 64,
        ..Form::default()
    };
    let files = [vec![rows[..1000].to_vec()], vec![rows[1000..].to_vec()]];
    tables::write(folder.path(), &files, form);
    let context = open(folder.path(), 1);
    let general = general(folder.path(), 1);
    let day = "SELECT date_trunc('day', timestamp) AS d, count(*) AS n, min(timestamp) AS t FROM spots GROUP BY 1";
    // A row every two minutes from 22:13 on: of a thousand, the pages of rows 54 and 774 have a
    // midnight in them, and in the longer file the one of row 1000, where time goes back.
    let plan = text(&context, &format!("EXPLAIN {day}"));
    assert!(plan.contains("settled_keys=2552"), "{plan}");
    assert_eq!(sorted(&context, day), sorted(&general, day));
    // The hour of a day falls every midnight.
    let hour = "SELECT extract(hour FROM timestamp) AS h, count(*) AS n FROM spots GROUP BY 1";
    let plan = text(&context, &format!("EXPLAIN {hour}"));
    assert!(!plan.contains("settled_keys"), "{plan}");
    assert_eq!(sorted(&context, hour), sorted(&general, hour));
}

/// A cast keeps the order of strings, and pages have one string in common; it is not an integer for
/// that.
#[test]
fn strings_that_look_like_numbers_stay_strings() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<Spot> = (0..2000).map(|id| spot(id, "007", 0)).collect();
    tables::write(folder.path(), &[vec![rows]], Form::default());
    let sql = "SELECT arrow_cast(callsign, 'LargeUtf8') AS c, count(*) AS n FROM spots GROUP BY 1";
    let (coded, general) = (open(folder.path(), 1), general(folder.path(), 1));
    assert!(is_coded(&coded, sql));
    assert_eq!(text(&coded, sql), text(&general, sql));
}

#[test]
fn memory_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let rows = (0..5000).map(|i| spot(i, &format!("K{i}"), 0)).collect();
    tables::write(folder.path(), &[vec![rows]], Form::default());
    let error = refusal(folder.path(), CODED[0]);
    assert!(error.contains("CodedAggregateExec"), "{error}");
}
