//! Turns operations into statements, and the rows that they return into answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_postgres::postgres::Row as SqlRow;
use dyno_txn_api::limits::{PAGE_BYTES_MAX, check_key};
use dyno_txn_api::{
    Answer, Assign, Assignment, Change, Code, Continuation, Direction, Error, Key, Operation, Page,
    Result, Scan, ScanRow, TableId,
};

use crate::layout::{Layout, column, quoted};
use crate::parameter::Parameter;
use crate::session::Call;

/// The most rows of a page, about some megabytes of usual rows. All of them are in memory before
/// their bytes are counted.
const PAGE_ROWS: usize = 4_096;

/// A statement, and what to make of its rows.
pub struct Step<'o> {
    layout: Arc<Layout>,
    pub call: Call,
    then: Then<'o>,
}

/// The meaning of the rows of a statement.
enum Then<'o> {
    /// The values of these keys, for these operations.
    Values(Vec<(usize, &'o [u8])>),
    /// The statement returns no rows.
    Done,
    /// One row for each of this many keys that did not exist.
    Inserted(usize),
    /// One row, which says whether a number was added to null. No row if the key did not exist.
    Updated(&'o Key),
    /// A page with at most this many rows, for this operation.
    Page(usize, &'o Scan, usize),
}

/// The way in which operations become statements.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Whether each operation is a statement of its own.
    pub separate: bool,
    /// Whether rows that are read are locked until the transaction ends.
    pub lock: bool,
}

impl<'o> Step<'o> {
    /// Reads a row by its key.
    pub fn get(layout: &Arc<Layout>, style: Style, at: usize, key: &'o [u8]) -> Step<'o> {
        let sql = if style.lock {
            format!("{} FOR UPDATE", layout.get).into()
        } else {
            Arc::clone(&layout.get)
        };
        let parameters = vec![Parameter::Bytes(Some(key.to_vec()))];
        let then = Then::Values(vec![(at, key)]);
        step(layout, sql, parameters, then)
    }

    fn get_many(layout: &Arc<Layout>, style: Style, of: Vec<(usize, &'o [u8])>) -> Step<'o> {
        let sql = if style.lock {
            // Sorted, so that two transactions that lock the same rows do not deadlock.
            format!("{} ORDER BY _key FOR UPDATE", layout.get_many).into()
        } else {
            Arc::clone(&layout.get_many)
        };
        let keys = of.iter().map(|(_, key)| Some(key.to_vec())).collect();
        step(
            layout,
            sql,
            vec![Parameter::ManyBytes(keys)],
            Then::Values(of),
        )
    }

    /// Sets a row, whether or not there was one.
    pub fn put(layout: &Arc<Layout>, key: &[u8], value: &[u8]) -> Result<Step<'o>> {
        let parameters = layout.written(key, value)?;
        Ok(step(
            layout,
            Arc::clone(&layout.put),
            parameters,
            Then::Done,
        ))
    }

    /// Puts the answers that the rows contain into those of the batch.
    pub fn answer(&self, rows: &[SqlRow], answers: &mut [Answer]) -> Result<()> {
        let layout = &self.layout;
        match &self.then {
            Then::Done => Ok(()),
            Then::Values(of) => {
                // SQL returns the rows in any order, and none for absent keys.
                let mut found = BTreeMap::new();
                for row in rows {
                    let (key, value) = layout.read(row, 0)?;
                    found.insert(key, value);
                }
                for (at, key) in of {
                    answers[*at] = Answer::Value(found.get(*key).cloned());
                }
                Ok(())
            }
            Then::Inserted(count) if rows.len() == *count => Ok(()),
            Then::Inserted(count) => {
                let text = format!(
                    "table `{}`: of {count} rows to insert, {} exist already",
                    layout.table.def.name,
                    count - rows.len()
                );
                Err(Error::new(Code::AlreadyExists, text))
            }
            Then::Updated(key) => match rows.first() {
                None => Err(not_found(layout, key)),
                Some(row) if column::<bool>(row, 0)? => {
                    let name = &layout.table.def.name;
                    let text =
                        format!("{key:?} of table `{name}`: a number cannot be added to null");
                    Err(Error::new(Code::BadRow, text))
                }
                Some(_) => Ok(()),
            },
            Then::Page(at, scan, limit) => {
                answers[*at] = Answer::Page(page(layout, scan, *limit, rows)?);
                Ok(())
            }
        }
    }
}

/// The error for an update of a row that does not exist.
pub fn not_found(layout: &Layout, key: &Key) -> Error {
    let text = format!(
        "key {key:?} of table `{}`: the row does not exist",
        layout.table.def.name
    );
    Error::new(Code::NotFound, text)
}

fn step<'o>(
    layout: &Arc<Layout>,
    sql: Arc<str>,
    parameters: Vec<Parameter>,
    then: Then<'o>,
) -> Step<'o> {
    Step {
        layout: Arc::clone(layout),
        call: Call { sql, parameters },
        then,
    }
}

/// The layouts of the tables that a batch uses.
pub type Layouts = BTreeMap<TableId, Arc<Layout>>;

/// Reads that follow each other: one statement for each table, or for each row.
pub fn gets<'o>(
    layouts: &Layouts,
    style: Style,
    from: usize,
    operations: &'o [Operation],
) -> Result<Vec<Step<'o>>> {
    let mut of: BTreeMap<TableId, Vec<(usize, &'o [u8])>> = BTreeMap::new();
    let mut steps = Vec::new();
    for (at, operation) in operations.iter().enumerate() {
        let Operation::Get(key) = operation else {
            continue;
        };
        check_key(&key.bytes)?;
        if style.separate {
            let layout = &layouts[&key.table];
            steps.push(Step::get(layout, style, from + at, &key.bytes));
        } else {
            let others = of.entry(key.table).or_default();
            others.push((from + at, &key.bytes));
        }
    }
    for (table, of) in of {
        let layout = &layouts[&table];
        steps.push(match of[..] {
            [(at, key)] => Step::get(layout, style, at, key),
            _ => Step::get_many(layout, style, of),
        });
    }
    Ok(steps)
}

/// Writes whole rows into one table.
pub fn puts<'o>(layout: &Arc<Layout>, rows: &[(&Key, &Change)]) -> Result<Step<'o>> {
    let mut all = Vec::with_capacity(rows.len());
    let mut insert = false;
    for (key, change) in rows {
        let (Change::Put(value) | Change::Insert(value)) = change else {
            continue;
        };
        insert = matches!(change, Change::Insert(_));
        all.push(layout.written(&key.bytes, value)?);
    }
    let then = if insert {
        Then::Inserted(all.len())
    } else {
        Then::Done
    };
    // One row needs no arrays, which the server would have to unnest.
    let (parameters, sql) = match (all.len(), insert) {
        (1, true) => (all.remove(0), &layout.insert),
        (1, false) => (all.remove(0), &layout.put),
        (_, true) => (columns(all), &layout.insert_many),
        (_, false) => (columns(all), &layout.put_many),
    };
    Ok(step(layout, Arc::clone(sql), parameters, then))
}

/// Transposes rows of parameters into one array parameter for each column.
fn columns(rows: Vec<Vec<Parameter>>) -> Vec<Parameter> {
    let width = rows.first().map_or(0, Vec::len);
    let mut columns: Vec<Vec<Parameter>> =
        (0..width).map(|_| Vec::with_capacity(rows.len())).collect();
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    columns.into_iter().map(Parameter::many).collect()
}

/// The writes at the front that can share a statement: puts, or inserts, into one table under
/// different keys. SQL refuses a statement that writes a row twice.
pub fn puts_together(operations: &[Operation]) -> Vec<(&Key, &Change)> {
    let mut together: Vec<(&Key, &Change)> = Vec::new();
    let mut keys = std::collections::BTreeSet::new();
    for operation in operations {
        let Operation::Write(key, change @ (Change::Put(_) | Change::Insert(_))) = operation else {
            break;
        };
        let same = together.first().is_none_or(|(first, as_first)| {
            first.table == key.table
                && matches!(as_first, Change::Put(_)) == matches!(change, Change::Put(_))
        });
        if !same || !keys.insert(&key.bytes) {
            break;
        }
        together.push((key, change));
    }
    together
}

/// Removes a row, whether or not there was one.
pub fn delete<'o>(layout: &Arc<Layout>, key: &Key) -> Result<Step<'o>> {
    check_key(&key.bytes)?;
    let parameters = vec![Parameter::Bytes(Some(key.bytes.clone()))];
    Ok(step(
        layout,
        Arc::clone(&layout.delete),
        parameters,
        Then::Done,
    ))
}

/// An update as a statement. Returns `None` if the row must be read first, because it changes an
/// index, which the client maintains, or assigns a column twice, which SQL does not allow.
pub fn update<'o>(
    layout: &Arc<Layout>,
    key: &'o Key,
    assignments: &[Assignment],
) -> Result<Option<Step<'o>>> {
    check_key(&key.bytes)?;
    let def = &layout.table.def;
    let indexed = |column: u16| {
        def.indexes
            .iter()
            .any(|index| index.columns.contains(&column))
    };
    let mut seen = std::collections::BTreeSet::new();
    let once = assignments.iter().all(|a| seen.insert(a.column));
    let plain = |a: &Assignment| !indexed(a.column);
    if def.columns.is_empty() || assignments.is_empty() || !once || !assignments.iter().all(plain) {
        return Ok(None);
    }
    let mut parameters = vec![Parameter::Bytes(Some(key.bytes.clone()))];
    let (mut set, mut nothing) = (Vec::new(), Vec::new());
    for Assignment { column, assign } in assignments {
        // Unsigned and signed numbers are both `bigint` in SQL, so the server could not tell them
        // apart.
        let wrong = |what: &str| {
            let text = format!("an update of table `{}`: column {column} {what}", def.name);
            Error::new(Code::BadRow, text)
        };
        let there = def.columns.get(usize::from(*column));
        let there = there.ok_or_else(|| wrong("does not exist"))?;
        let name = quoted(&there.name);
        let (Assign::Set(value) | Assign::Add(value)) = assign;
        match value.borrowed().kind() {
            None if !there.nullable => return Err(wrong("must not be null")),
            Some(kind) if kind != there.kind => return Err(wrong("has another type")),
            _ => {}
        }
        parameters.push(Parameter::from_value(value.borrowed(), there.kind)?);
        let at = parameters.len();
        set.push(match assign {
            Assign::Set(_) => format!("{name} = ${at}"),
            Assign::Add(_) => format!("{name} = {name} + ${at}"),
        });
        // In SQL a number added to null is null, and our interface refuses that. So the statement
        // returns whether it happened, and the caller rolls back.
        if matches!(assign, Assign::Add(_)) {
            nothing.push(format!("{name} IS NULL"));
        }
    }
    let nothing = if nothing.is_empty() {
        "false".to_owned()
    } else {
        nothing.join(" OR ")
    };
    let sql = format!(
        "UPDATE {} SET {} WHERE _key = $1 RETURNING {nothing}",
        layout.name,
        set.join(", ")
    );
    Ok(Some(step(
        layout,
        sql.into(),
        parameters,
        Then::Updated(key),
    )))
}

/// Reads a page of a range.
pub fn scan<'o>(layout: &Arc<Layout>, style: Style, at: usize, scan: &'o Scan) -> Result<Step<'o>> {
    let def = &layout.table.def;
    scan.check(def.columns.len(), def.indexes.len())?;
    let (mut start, mut end) = (scan.start.clone(), scan.end.clone());
    match (&scan.after, scan.direction) {
        (Some(last), Direction::Forward) => start = [&last.0[..], &[0]].concat(),
        (Some(last), Direction::Backward) => end = Some(last.0.clone()),
        (None, _) => {}
    }
    let limit = scan.page_rows().min(PAGE_ROWS);
    let mut sql = layout.scan(scan, end.is_some());
    if style.lock {
        sql += " FOR UPDATE";
    }
    let mut parameters = vec![Parameter::Bytes(Some(start))];
    parameters.extend(end.map(|end| Parameter::Bytes(Some(end))));
    parameters.push(Parameter::I64(Some(limit as i64)));
    Ok(step(
        layout,
        sql.into(),
        parameters,
        Then::Page(at, scan, limit),
    ))
}

/// Builds a page from the rows of a scan.
fn page(layout: &Layout, scan: &Scan, limit: usize, rows: &[SqlRow]) -> Result<Page> {
    let mut page = Page::default();
    let (mut bytes, mut last) = (0, None);
    for row in rows {
        if bytes >= PAGE_BYTES_MAX {
            page.next = last.map(Continuation);
            return Ok(page);
        }
        let kept = match layout.projected(scan) {
            Some(columns) => Some((column(row, 1)?, layout.values(row, 2, columns)?)),
            None => {
                let (key, value) = layout.read(row, 1)?;
                scan.keep(&value)?.map(|value| (key, value))
            }
        };
        if let Some((key, value)) = kept {
            bytes += key.len() + value.len();
            page.rows.push(ScanRow { key, value });
        }
        last = Some(column(row, 0)?);
    }
    // As many rows as the limit mean that there may be more.
    if rows.len() == limit {
        page.next = last.map(Continuation);
    }
    Ok(page)
}
