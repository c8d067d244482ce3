//! Tables of TPC-H in files, made by a generator that is not ours.

use std::fmt::Display;
use std::fs::{self, File};
use std::path::Path;

use clap::Parser;
use datafusion::parquet::arrow::ArrowWriter;
use dyno_sql::args::tpch::TpchCommand;
use dyno_sql::args::{Cli, Command};
use dyno_sql::cmd::tpch::{Verdict, query, verify};
use dyno_sql::session::Limits;
use dyno_sql::tpch::open::open;
use dyno_tpch::{Scale, Table};
use dyno_tpch_files::{Destination, Format, Job, Progress, SinkKind, run};
use tpchgen::csv;
use tpchgen::generators as oracle;

/// Writes every table as dbgen does.
pub fn write_tbl(directory: &Path, scale: f64) {
    fn write<T: Display>(path: &Path, rows: impl IntoIterator<Item = T>) {
        let text: String = rows.into_iter().map(|row| format!("{row}\n")).collect();
        fs::write(path, text).unwrap();
    }
    for table in Table::ALL {
        let path = &directory.join(format!("{table}.tbl"));
        match table {
            Table::Region => write(path, oracle::RegionGenerator::new(scale, 1, 1)),
            Table::Nation => write(path, oracle::NationGenerator::new(scale, 1, 1)),
            Table::Part => write(path, oracle::PartGenerator::new(scale, 1, 1)),
            Table::Supplier => write(path, oracle::SupplierGenerator::new(scale, 1, 1)),
            Table::Partsupp => write(path, oracle::PartSuppGenerator::new(scale, 1, 1)),
            Table::Customer => write(path, oracle::CustomerGenerator::new(scale, 1, 1)),
            Table::Orders => write(path, oracle::OrderGenerator::new(scale, 1, 1)),
            Table::Lineitem => write(path, oracle::LineItemGenerator::new(scale, 1, 1)),
        }
    }
}

/// Writes every table with a header, in three parts each but for the two smallest.
pub fn write_csv(directory: &Path, scale: f64) {
    macro_rules! write {
        ($table:expr, $generator:ident, $row:ident) => {{
            let table: Table = $table;
            let folder = directory.join(table.name());
            fs::create_dir(&folder).unwrap();
            for part in 1..=3 {
                let mut text = format!("{}\n", csv::$row::header());
                for row in oracle::$generator::new(scale, part, 3).iter() {
                    text += &format!("{}\n", csv::$row::new(row));
                }
                fs::write(folder.join(format!("{table}.{part}.csv")), text).unwrap();
            }
        }};
    }
    macro_rules! write_small {
        ($table:expr, $generator:ident, $row:ident) => {{
            let table: Table = $table;
            let mut text = format!("{}\n", csv::$row::header());
            for row in oracle::$generator::new(scale, 1, 1).iter() {
                text += &format!("{}\n", csv::$row::new(row));
            }
            fs::write(directory.join(format!("{table}.csv")), text).unwrap();
        }};
    }
    write_small!(Table::Region, RegionGenerator, RegionCsv);
    write_small!(Table::Nation, NationGenerator, NationCsv);
    write!(Table::Part, PartGenerator, PartCsv);
    write!(Table::Supplier, SupplierGenerator, SupplierCsv);
    write!(Table::Partsupp, PartSuppGenerator, PartSuppCsv);
    write!(Table::Customer, CustomerGenerator, CustomerCsv);
    write!(Table::Orders, OrderGenerator, OrderCsv);
    write!(Table::Lineitem, LineItemGenerator, LineItemCsv);
}

/// Writes every table as ORC, by the program's own writer, in stripes of few rows so that a reader
/// of several threads has several.
pub fn write_orc(directory: &Path, scale: f64) {
    let place = Destination::Folder(directory.to_owned());
    let mut job = Job::new(Scale::new(scale).unwrap(), Format::Orc, place);
    job.layout.group_rows = Some(1_000);
    job.sink = SinkKind::Std;
    run(&job, &Progress::default()).unwrap();
}

/// Writes every table of `from` as Parquet, by the writer of arrow-rs.
pub fn write_parquet(from: &Path, directory: &Path) {
    runtime().block_on(async {
        let limits = Limits {
            threads: 1,
            memory_bytes: 1 << 30,
        };
        let tables = open(from, None, limits).await.unwrap();
        for table in Table::ALL {
            let frame = tables.context.table(table.name()).await.unwrap();
            let batches = frame.collect().await.unwrap();
            let file = File::create(directory.join(format!("{table}.parquet"))).unwrap();
            let mut writer = ArrowWriter::try_new(file, batches[0].schema(), None).unwrap();
            for batch in batches {
                writer.write(&batch).unwrap();
            }
            writer.close().unwrap();
        }
    });
}

/// Runs a command of `tpch` in this process, so that the text pool is made once for all tests. What
/// it prints, and whether all is good.
pub fn tpch(command: &str, directory: &Path, more: &[&str]) -> Result<(String, bool), String> {
    let mut args = vec!["dyno-sql", "tpch", command, directory.to_str().unwrap()];
    args.extend(more);
    let Command::Tpch(command) = Cli::try_parse_from(args).unwrap().command else {
        panic!("no command of tpch");
    };
    let mut out = Vec::new();
    let verdict = runtime().block_on(async {
        match command {
            TpchCommand::Query(args) => query::run(args, &mut out).await,
            TpchCommand::Verify(args) => verify::run(args, &mut out).await,
            TpchCommand::Write => panic!("it takes its order from a socket"),
        }
    });
    match verdict {
        Ok(verdict) => Ok((String::from_utf8(out).unwrap(), verdict == Verdict::Good)),
        Err(error) => Err(format!("{error:#}")),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}
