//! Tables and queries made at random, planned with our operators and without them.

use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::SessionContext;
use dyno_sql::session::{self, Limits};
use dyno_sql::statement;
use tempfile::TempDir;

use crate::tables::{self, Form, Spot};

/// A session that plans as if our operators were not there.
pub fn general(directory: &Path, threads: usize) -> SessionContext {
    let context = open(directory, threads);
    run(&context, "SET dyno.coded_aggregate = false");
    run(&context, "SET dyno.coded_select = false");
    context
}

/// Tables that a seed makes, and sessions on them with so many threads: one with our operators, and
/// one as if they were not there. The tables are gone when the folder is dropped.
pub fn random_tables(seed: u64) -> (Random, TempDir, usize, [SessionContext; 2]) {
    let mut random = Random(seed);
    let folder = tempfile::tempdir().unwrap();
    let form = random.form();
    tables::write(folder.path(), &random.files(), form);
    let threads = 1 + random.below(3) as usize;
    let sessions = [
        open(folder.path(), threads),
        general(folder.path(), threads),
    ];
    (random, folder, threads, sessions)
}

pub fn run(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut last = Vec::new();
        for parsed in statement::parse(sql).unwrap() {
            let frame = statement::plan(context, parsed, sql).await.unwrap();
            last = frame
                .collect()
                .await
                .unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        last
    })
}

pub fn text(context: &SessionContext, sql: &str) -> String {
    pretty_format_batches(&run(context, sql))
        .unwrap()
        .to_string()
}

pub fn open(directory: &Path, threads: usize) -> SessionContext {
    session::open(
        directory,
        Limits {
            threads,
            memory_bytes: 1 << 28,
        },
    )
    .unwrap()
}

/// What a session with 10 kB of memory says of a query.
pub fn refusal(directory: &Path, sql: &str) -> String {
    let limits = Limits {
        threads: 1,
        memory_bytes: 10_000,
    };
    let context = session::open(directory, limits).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let answer = runtime.block_on(async {
        let parsed = statement::parse(sql).unwrap().remove(0);
        let frame = statement::plan(&context, parsed, sql).await.unwrap();
        frame.collect().await
    });
    answer.unwrap_err().to_string()
}

/// The lines of a result in an order of their own, since the query asks for none.
pub fn sorted(context: &SessionContext, sql: &str) -> Vec<String> {
    let mut lines: Vec<String> = text(context, sql).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

pub const FILTERS: [&str; 10] = [
    "callsign = 'K1ABC'",
    "callsign <> ''",
    "distance >= 4294957295",
    "snr BETWEEN -20 AND 10",
    "timestamp >= TIMESTAMP '2023-11-15 00:00:00'",
    "timestamp < TIMESTAMP '2023-11-15 04:00:00' AND timestamp >= TIMESTAMP '2023-11-14 23:00:00'",
    "grid LIKE 'FN%'",
    "reporter IN ('DK1UG', 'DK7UG', 'none')",
    "(power > 20 OR power < 0)",
    "band = 106",
];

/// A small generator of our own: a property-test crate would change the features of half of
/// DataFusion's dependencies, and with them a build of many minutes.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    /// Rows in runs: calls repeat, at times for longer than a block of the reader.
    fn rows(&mut self, calls: u64) -> Vec<Spot> {
        let mut rows = Vec::new();
        for _ in 0..self.below(30) + 1 {
            let count = if self.below(8) == 0 {
                self.below(3000)
            } else {
                self.below(4)
            } + 1;
            let callsign = match self.below(10) {
                0 => String::new(),
                1 => format!("<{}>/{}", "LONGCALL".repeat(3), self.below(calls)),
                _ => format!("K{}ABC", self.below(calls)),
            };
            let snr = self.below(256) as u8 as i8;
            for _ in 0..count {
                rows.push(Spot {
                    id: u64::MAX - self.below(1 << 40),
                    callsign: callsign.clone(),
                    snr: if count > 100 {
                        snr
                    } else {
                        self.below(60) as i8 - 40
                    },
                    distance: u32::MAX - self.below(20_000) as u32,
                    frequency: self.below(1 << 34),
                    power: self.below(61) as i8 - 1,
                });
            }
        }
        // Sorted by time, pages say which times they have.
        if self.below(2) == 0 {
            rows.sort_by_key(|spot| spot.id % 1000);
        }
        rows
    }

    pub fn form(&mut self) -> Form {
        Form {
            choice: self.below(12) as usize,
            page_rows: self.below(3) as usize * 700,
            ..Form::default()
        }
    }

    pub fn files(&mut self) -> Vec<Vec<Vec<Spot>>> {
        let calls = [1, 5, 300][self.below(3) as usize];
        (0..self.below(4) + 1)
            .map(|_| (0..self.below(5) + 1).map(|_| self.rows(calls)).collect())
            .collect()
    }
}
