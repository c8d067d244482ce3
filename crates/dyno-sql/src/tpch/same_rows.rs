//! Whether the rows of a table are those of the generator, whatever their order.

use std::collections::BTreeMap;
use std::thread;

use anyhow::{Context, Result, bail};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int64Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use dyno_tpch::rules::key_columns;
use dyno_tpch::sums::{BLOCK_UNITS, Block, RowKeys, Sums, key_of_unit, key_places};
use dyno_tpch::{Batch, Generator, Kind, Scale, Table, TextPool, tbl};
use futures::StreamExt;

use super::checks::{Check, ROWS_SHOWN, State};
use super::open::Tables;
use super::text;

/// Compares all values of a table with the generator's, by sums over blocks of keys, and row by row
/// in the first block that differs.
///
/// # Errors
/// The table cannot be read.
pub async fn check(
    tables: &Tables,
    table: Table,
    generator: &Generator,
    threads: usize,
) -> Result<Check> {
    let found = found(tables, table, generator.scale()).await?;
    // Generating a table computes for minutes on threads of its own. Without `block_in_place` it
    // would hold a thread of the runtime that may have Ctrl-C to deliver.
    let expected = tokio::task::block_in_place(|| expected(generator, table, threads))?;
    let state = match found.difference(&expected) {
        None => State::Good,
        Some(block) => State::Broken {
            rows: None,
            found: explain(tables, table, generator, &block).await?,
        },
    };
    Ok(Check {
        table: table.name(),
        says: "all values are the generator's, by their sums".to_owned(),
        state,
    })
}

fn expected(generator: &Generator, table: Table, threads: usize) -> Result<Sums> {
    let parts = threads.max(1) as u64;
    let mut sums = Sums::new(table, generator.scale());
    thread::scope(|scope| {
        let workers: Vec<_> = (1..=parts)
            .map(|part| {
                scope.spawn(move || {
                    let units = generator.part(table, part, parts)?;
                    Sums::from_generator(generator, table, units)
                })
            })
            .collect();
        for worker in workers {
            let Ok(part) = worker.join() else {
                bail!("a thread that generates {table} panicked");
            };
            sums.merge(&part?);
        }
        Ok(())
    })?;
    Ok(sums)
}

async fn found(tables: &Tables, table: Table, scale: &Scale) -> Result<Sums> {
    let unreadable = || format!("cannot read table {table}");
    let frame = tables.context.table(table.name()).await?;
    let streams = frame
        .execute_stream_partitioned()
        .await
        .with_context(unreadable)?;
    let mut tasks = tokio::task::JoinSet::new();
    // Sums commute, so partitions are summed in any order and merged as they finish.
    for stream in streams {
        tasks.spawn(add_stream(stream, Sums::new(table, scale), table));
    }
    let mut sums = Sums::new(table, scale);
    while let Some(done) = tasks.join_next().await {
        sums.merge(&done?.with_context(unreadable)?);
    }
    Ok(sums)
}

async fn add_stream(
    mut stream: SendableRecordBatchStream,
    mut sums: Sums,
    table: Table,
) -> Result<Sums> {
    let mut keys = RowKeys::default();
    while let Some(batch) = stream.next().await {
        add_batch(&mut sums, &batch?, table, &mut keys)?;
    }
    Ok(sums)
}

fn add_batch(sums: &mut Sums, batch: &RecordBatch, table: Table, keys: &mut RowKeys) -> Result<()> {
    let columns = table.columns();
    let mut arrays = Vec::with_capacity(columns.len());
    // The cast makes one type of all that `schema::check` accepted, such as integers of 32 and of
    // 64 bits.
    for (column, array) in columns.iter().zip(batch.columns()) {
        arrays.push(cast(array, &plain_type(column.kind))?);
    }
    let (first, second) = key_places(table);
    let seconds: Box<dyn Iterator<Item = Option<i64>>> = match second {
        Some(second) => numbers(&arrays[second])?,
        None => Box::new(std::iter::repeat_n(None, batch.num_rows())),
    };
    sums.rows(numbers(&arrays[first])?, seconds, keys);
    for (place, array) in arrays.iter().enumerate() {
        match array.as_string_view_opt() {
            Some(texts) => {
                let texts = texts.iter().map(|text| text.map(str::as_bytes));
                sums.add_texts(place, keys, texts);
            }
            None => sums.add_numbers(place, keys, numbers(array)?),
        }
    }
    Ok(())
}

/// One type for each kind of column, so that values are read out in one way. An array that has the
/// type already is not copied by the cast.
fn plain_type(kind: Kind) -> DataType {
    match kind {
        Kind::Key | Kind::Integer => DataType::Int64,
        Kind::Decimal | Kind::WholeDecimal => DataType::Decimal128(38, 2),
        Kind::Date => DataType::Date32,
        Kind::Char(_) | Kind::Varchar(_) => DataType::Utf8View,
    }
}

fn numbers(array: &ArrayRef) -> Result<Box<dyn Iterator<Item = Option<i64>> + '_>> {
    if let Some(values) = array.as_primitive_opt::<Int64Type>() {
        return Ok(Box::new(values.iter()));
    }
    if let Some(values) = array.as_primitive_opt::<Date32Type>() {
        return Ok(Box::new(values.iter().map(|day| day.map(i64::from))));
    }
    if let Some(values) = array.as_primitive_opt::<Decimal128Type>() {
        // What does not fit is wrong anyway, and far from every right value.
        let narrow = |value: i128| i64::try_from(value).unwrap_or(i64::MIN);
        return Ok(Box::new(values.iter().map(move |value| value.map(narrow))));
    }
    bail!("a column has type {}", array.data_type())
}

type Key = (i64, i64);

/// Names the first rows of a block that are not the generator's.
async fn explain(
    tables: &Tables,
    table: Table,
    generator: &Generator,
    block: &Block,
) -> Result<Vec<String>> {
    let Some(units) = &block.units else {
        return Ok(vec![format!(
            "{} rows have a key that {table} does not have",
            block.rows
        )]);
    };
    // Only the rows of one block are read back, a few thousand, so naming the first wrong rows
    // costs little even where the table is large.
    let key = key_columns(table)[0];
    let (low, high) = (
        key_of_unit(table, units.start),
        key_of_unit(table, units.end - 1),
    );
    let sql = format!("SELECT * FROM {table} WHERE {key} BETWEEN {low} AND {high}");
    let batches = tables.sql(&sql).await?.collect().await?;
    let mut theirs: BTreeMap<Key, Vec<Vec<String>>> = BTreeMap::new();
    for row in text::rows(&batches)? {
        theirs.entry(key_of(table, &row)).or_default().push(row);
    }
    let mut found = vec![format!(
        "first in a block of {BLOCK_UNITS} keys from {key} {low} to {high}, in {}",
        if block.columns.len() == table.columns().len() {
            "all columns".to_owned()
        } else {
            block.columns.join(", ")
        }
    )];
    for row in generated(table, generator, units.clone())? {
        let rows = theirs.entry(key_of(table, &row)).or_default();
        found.extend(compare(table, &row, rows));
        if found.len() > ROWS_SHOWN {
            return Ok(found);
        }
    }
    for row in theirs
        .into_values()
        .flatten()
        .take(ROWS_SHOWN + 1 - found.len())
    {
        found.push(format!("{}: a row too many", name(table, &row)));
    }
    Ok(found)
}

/// Takes the row that is meant out of those with its key, and says what is wrong with it.
fn compare(table: Table, expected: &[String], found: &mut Vec<Vec<String>>) -> Option<String> {
    let name = name(table, expected);
    // A damaged table may have several rows with one key. The identical one is taken out first, so
    // that the others are reported as surplus and not as differences.
    let same = found.iter().position(|row| row == expected).unwrap_or(0);
    if found.is_empty() {
        return Some(format!("{name}: the row is missing"));
    }
    let only = found.swap_remove(same);
    let differing: Vec<String> = std::iter::zip(table.columns(), std::iter::zip(&only, expected))
        .filter(|(_, (found, expected))| found != expected)
        .map(|(column, (found, expected))| format!("{} is {found}, not {expected}", column.name))
        .collect();
    (!differing.is_empty()).then(|| format!("{name}: {}", differing.join(", ")))
}

/// Rows of the generator, as the SQL engine would show them.
fn generated(
    table: Table,
    generator: &Generator,
    units: std::ops::Range<u64>,
) -> Result<Vec<Vec<String>>> {
    let mut batch = Batch::new(table);
    generator.fill(&mut batch, units)?;
    let (columns, pool) = (table.columns(), TextPool::shared());
    let mut rows = Vec::with_capacity(batch.rows());
    for row in 0..batch.rows() {
        let mut values = Vec::with_capacity(columns.len());
        for (place, column) in columns.iter().enumerate() {
            let mut value = Vec::new();
            tbl::append_value(&batch.values(place), row, column.kind, pool, &mut value);
            if column.kind == Kind::WholeDecimal {
                value.extend_from_slice(b".00");
            }
            values.push(String::from_utf8_lossy(&value).into_owned());
        }
        rows.push(values);
    }
    Ok(rows)
}

/// The key of a row. A value that is not a number sorts before all that are.
fn key_of(table: Table, row: &[String]) -> Key {
    let (first, second) = key_places(table);
    let number = |place: usize| row[place].parse().unwrap_or(i64::MIN);
    (number(first), second.map_or(0, number))
}

fn name(table: Table, row: &[String]) -> String {
    let (first, second) = key_places(table);
    let named = |place: usize| format!("{} {}", table.columns()[place].name, row[place]);
    match second {
        Some(second) => format!("{}, {}", named(first), named(second)),
        None => named(first),
    }
}
