//! Checks that every [`Database`] must pass: the same random transactions on it and on the model,
//! and concurrent ones whose result only serializable engines get right. They are for the tests of
//! engines.

use std::thread;

use crate::model::Model;
use crate::{
    Answer, Assignment, Change, Code, Compare, Database, Error, Filter, Key, Kind, Operation,
    Options, Page, Result, Scan, TableDef, TableId, Transact, Tuple, ValueRef, encode_row,
};

/// Keys of a table. They are few, so that operations meet.
const KEYS: u64 = 12;
/// Groups of keys. A group is what is hashed and what the index begins with.
const GROUPS: u64 = 3;

/// Runs random transactions on the database and on a model, one after the other, and compares every
/// answer. The error says where they differ, with the seed.
pub fn same_as_the_model(
    db: &dyn Database,
    seed: u64,
    transactions: u32,
) -> std::result::Result<(), String> {
    let model = Model::new();
    let mut random = Random(seed);
    let defs = definitions(seed).map_err(|error| error.to_string())?;
    let make = |on: &dyn Database| -> Result<Vec<TableId>> {
        defs.iter().map(|def| on.create_table(def)).collect()
    };
    let ours = make(db).map_err(|error| format!("seed {seed}: tables: {error}"))?;
    let theirs = make(&model).map_err(|error| error.to_string())?;
    for number in 0..transactions {
        let batches: Vec<Vec<Step>> = (0..1 + random.below(4))
            .map(|_| batch(&mut random))
            .collect();
        let commit = random.below(5) > 0;
        let found = ours_of(db, &ours, &batches, commit);
        let runs: [Run; 2] = [run_one_by_one; 2];
        let wanted = transaction(&model, &theirs, &batches, (commit, runs));
        let agree = found.len() == wanted.len()
            && found
                .iter()
                .zip(&wanted)
                .all(|(found, wanted)| found.is_one_of(wanted));
        if !agree {
            return Err(format!(
                "seed {seed}, transaction {number}, {batches:?}:\n  found  {found:?}\n  wanted {wanted:?}"
            ));
        }
    }
    Ok(())
}

/// Runs threads that each add to counters, and to one of two rows after reading both. A lost update
/// or a write skew leads to a wrong sum. The error says what was found.
pub fn concurrent_sums(
    db: &dyn Database,
    threads: u32,
    each: u32,
) -> std::result::Result<(), String> {
    let table = db
        .create_table(&TableDef::hash("conformance-sums", 0))
        .map_err(|error| error.to_string())?;
    let start = || -> Result<()> {
        db.transact(|t| {
            for key in [&b"counter"[..], b"left", b"right"] {
                t.put(table, key, &0u64.to_le_bytes())?;
            }
            Ok(())
        })
    };
    start().map_err(|error| error.to_string())?;
    let options = Options {
        attempts: 10_000,
        ..Options::default()
    };
    let failed = thread::scope(|scope| {
        let works: Vec<_> = (0..threads)
            .map(|number| {
                let options = &options;
                scope.spawn(move || (0..each).try_for_each(|_| add(db, table, number, options)))
            })
            .collect();
        works.into_iter().find_map(|work| match work.join() {
            Ok(done) => done.err().map(|error| error.to_string()),
            Err(_) => Some("a thread panicked".to_owned()),
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let sums = db
        .transact(|t| {
            let rows = t.get_many(&[(table, b"counter"), (table, b"left"), (table, b"right")])?;
            Ok(rows.iter().map(number_in).collect::<Vec<u64>>())
        })
        .map_err(|error| error.to_string())?;
    let wanted = u64::from(threads) * u64::from(each);
    // Each transaction made one side larger than both were before, so the larger one counts them
    // all.
    if sums[0] == wanted && sums[1].max(sums[2]) == wanted {
        Ok(())
    } else {
        Err(format!(
            "{wanted} transactions left counter, left and right at {sums:?}"
        ))
    }
}

fn add(db: &dyn Database, table: TableId, thread: u32, options: &Options) -> Result<()> {
    let side: &[u8] = if thread.is_multiple_of(2) {
        b"left"
    } else {
        b"right"
    };
    db.transact_with(options, |t| {
        let rows = t.get_many(&[(table, b"counter"), (table, b"left"), (table, b"right")])?;
        let of: Vec<u64> = rows.iter().map(number_in).collect();
        t.put(table, b"counter", &(of[0] + 1).to_le_bytes())?;
        t.put(table, side, &(of[1].max(of[2]) + 1).to_le_bytes())
    })
    .map(drop)
}

fn number_in(row: Option<&[u8]>) -> u64 {
    let bytes = row.and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// An operation on a table whose id is not known yet.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Get(usize, Vec<u8>),
    Write(usize, Vec<u8>, Change),
    /// A scan of a table, with all pages one after the other.
    Scan(usize, Scan),
}

/// What a transaction answered, as far as all engines must agree: the codes of errors, but not
/// their texts.
#[derive(Debug, PartialEq)]
enum Outcome {
    Answers(Vec<Answer>),
    /// One error stands for a whole batch, and the engine chooses which one. So this has the codes
    /// of all operations that may fail.
    Refused(Vec<&'static str>),
}

impl Outcome {
    /// Whether an engine's answer equals the model's, or is one of several that the engine may
    /// choose.
    fn is_one_of(&self, wanted: &Outcome) -> bool {
        match (self, wanted) {
            (Outcome::Refused(codes), Outcome::Refused(wanted)) => {
                codes.iter().all(|code| wanted.contains(code))
            }
            (found, wanted) => found == wanted,
        }
    }
}

/// Runs a batch. Returns the answers, or the codes of what failed.
type Run = fn(
    &mut dyn crate::Transaction,
    &[Operation],
) -> std::result::Result<Vec<Answer>, Vec<&'static str>>;

fn run_at_once(
    transaction: &mut dyn crate::Transaction,
    operations: &[Operation],
) -> std::result::Result<Vec<Answer>, Vec<&'static str>> {
    let code = |error: Error| vec![error.code()];
    let mut answers = transaction.run(operations).map_err(code)?;
    for (operation, answer) in operations.iter().zip(&mut answers) {
        if let Operation::Scan(scan) = operation {
            rest_of(transaction, scan, answer).map_err(code)?;
        }
    }
    Ok(answers)
}

/// Runs the last batch of a transaction that is going to commit, together with the commit if
/// possible.
fn run_last(
    transaction: &mut dyn crate::Transaction,
    operations: &[Operation],
) -> std::result::Result<Vec<Answer>, Vec<&'static str>> {
    let pages = operations
        .iter()
        .any(|one| matches!(one, Operation::Scan(_)));
    // Pages after the first need the transaction to be open still, and `run_last` wants reads
    // before writes.
    if pages || !operations.is_sorted_by_key(Operation::is_write) {
        return run_at_once(transaction, operations);
    }
    let answers = transaction.run_last(operations);
    answers.map_err(|error| vec![error.code()])
}

/// Runs operations one by one, so that all codes come out. A failed operation changes nothing for
/// those after it.
fn run_one_by_one(
    transaction: &mut dyn crate::Transaction,
    operations: &[Operation],
) -> std::result::Result<Vec<Answer>, Vec<&'static str>> {
    let (mut answers, mut codes) = (Vec::new(), Vec::new());
    for operation in operations {
        match run_at_once(transaction, std::slice::from_ref(operation)) {
            Ok(more) => answers.extend(more),
            Err(more) => codes.extend(more),
        }
    }
    if codes.is_empty() {
        Ok(answers)
    } else {
        Err(codes)
    }
}

/// How often an engine may abort one transaction of its only client.
const GIVEN_UP_MOST: u32 = 3;

/// Runs a transaction on the engine under test. An engine aborts a transaction if its log or its
/// client was silent for too long, for example on a disk that stalls for seconds. Then nothing of
/// it remains, and it is run again, as [`Transact::transact`] does.
fn ours_of(
    db: &dyn Database,
    tables: &[TableId],
    batches: &[Vec<Step>],
    commit: bool,
) -> Vec<Outcome> {
    let run = || transaction(db, tables, batches, (commit, [run_at_once, run_last]));
    let given_up = Outcome::Refused(vec![Code::Aborted.name()]);
    let mut found = run();
    // More often than that is not a stall, but an engine that aborts without a reason.
    for _again in 0..GIVEN_UP_MOST {
        if found.last() != Some(&given_up) {
            break;
        }
        found = run();
    }
    found
}

fn transaction(
    db: &dyn Database,
    tables: &[TableId],
    batches: &[Vec<Step>],
    (commit, [run, run_last]): (bool, [Run; 2]),
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut transaction = match db.begin(&Options::default()) {
        Ok(transaction) => transaction,
        Err(error) => {
            outcomes.push(Outcome::Refused(vec![error.code()]));
            return outcomes;
        }
    };
    for (at, batch) in batches.iter().enumerate() {
        let operations: Vec<Operation> = batch.iter().map(|step| operation(step, tables)).collect();
        let run = if commit && at + 1 == batches.len() {
            run_last
        } else {
            run
        };
        // After a failure the transaction can only be rolled back. The engine chooses which later
        // call says so, so no later call is made.
        match run(&mut *transaction, &operations) {
            Ok(answers) => outcomes.push(Outcome::Answers(answers)),
            Err(codes) => {
                outcomes.push(Outcome::Refused(codes));
                return outcomes;
            }
        }
    }
    let ended = if commit {
        transaction.commit().map(drop)
    } else {
        transaction.rollback()
    };
    outcomes.push(match ended {
        Ok(()) => Outcome::Answers(Vec::new()),
        Err(error) => Outcome::Refused(vec![error.code()]),
    });
    outcomes
}

/// Fetches the pages after the first and joins their rows, because the engine chooses where pages
/// end.
fn rest_of(
    transaction: &mut dyn crate::Transaction,
    scan: &Scan,
    answer: &mut Answer,
) -> Result<()> {
    let Answer::Page(page) = answer else {
        return Ok(());
    };
    while let Some(next) = page.next.take() {
        let more: Page = transaction.scan(&scan.clone().after(next))?;
        page.rows.extend(more.rows);
        page.next = more.next;
    }
    Ok(())
}

fn operation(step: &Step, tables: &[TableId]) -> Operation {
    match step {
        Step::Get(table, key) => Operation::Get(Key::new(tables[*table], key.clone())),
        Step::Write(table, key, change) => {
            Operation::Write(Key::new(tables[*table], key.clone()), change.clone())
        }
        Step::Scan(table, scan) => Operation::Scan(Scan {
            table: tables[*table],
            ..scan.clone()
        }),
    }
}

/// Two tables of rows, one hashed by its group and one partitioned by range, and one of plain
/// bytes. Their names contain the seed, so that each seed begins with empty tables.
fn definitions(seed: u64) -> Result<Vec<TableDef>> {
    let columns = |def: TableDef| {
        def.column("group", Kind::U64)
            .column("name", Kind::Text)
            .nullable("amount", Kind::I64)
            .index("by-name", &["group", "name"], 8)?
            .index("by-amount", &["amount"], 0)
    };
    Ok(vec![
        columns(TableDef::hash(&format!("conformance-hash-{seed}"), 8))?,
        columns(TableDef::range(
            &format!("conformance-range-{seed}"),
            [1, 2]
                .map(|group| Tuple::new().u64(group).finish())
                .to_vec(),
        ))?,
        TableDef::hash(&format!("conformance-plain-{seed}"), 0),
    ])
}

const PLAIN: usize = 2;

fn key_of(number: u64) -> Vec<u8> {
    Tuple::new().u64(number % GROUPS).u64(number).finish()
}

/// Scans come last, because their further pages are read after the whole batch.
fn batch(random: &mut Random) -> Vec<Step> {
    let mut steps: Vec<Step> = (0..1 + random.below(5)).map(|_| step(random)).collect();
    steps.sort_by_key(|step| matches!(step, Step::Scan(..)));
    steps
}

fn step(random: &mut Random) -> Step {
    let table = random.below(3) as usize;
    let number = random.below(KEYS);
    let key = key_of(number);
    match random.below(10) {
        0..=2 => Step::Get(table, key),
        3..=4 => Step::Write(table, key, Change::Put(value(random, table, number))),
        5 => Step::Write(table, key, Change::Insert(value(random, table, number))),
        6 => Step::Write(table, key, Change::Delete),
        7 if table != PLAIN => Step::Write(table, key, Change::Update(update(random))),
        _ => Step::Scan(table, scan(random, table)),
    }
}

fn value(random: &mut Random, table: usize, number: u64) -> Vec<u8> {
    if table == PLAIN {
        return (0..random.below(40))
            .map(|_| random.below(256) as u8)
            .collect();
    }
    let name = ["Ada", "Bob", "Eve"][random.below(3) as usize];
    encode_row(&[
        ValueRef::U64(number % GROUPS),
        ValueRef::Text(name),
        match random.below(4) {
            0 => ValueRef::Null,
            amount => ValueRef::I64(amount as i64 - 2),
        },
    ])
}

fn update(random: &mut Random) -> Vec<Assignment> {
    match random.below(3) {
        0 => vec![Assignment::set(1, "Zoe")],
        1 => vec![Assignment::set(2, random.below(9) as i64)],
        // Adding to null is refused, which is to be covered, too.
        _ => vec![Assignment::add(2, 1i64)],
    }
}

fn scan(random: &mut Random, table: usize) -> Scan {
    let group = Tuple::new().u64(random.below(GROUPS)).finish();
    let mut scan = match random.below(4) {
        0 => Scan::all(TableId(0)),
        1 => Scan::range(
            TableId(0),
            key_of(random.below(KEYS)),
            Some(key_of(random.below(KEYS))),
        ),
        _ => Scan::prefix(TableId(0), group.clone()),
    };
    if table != PLAIN {
        match random.below(4) {
            0 => scan = Scan::prefix(TableId(0), group).index(0),
            1 => scan = Scan::all(TableId(0)).index(1),
            _ => {}
        }
        if random.below(3) == 0 {
            scan = scan.filter(Filter::compare(2, Compare::Greater, 0i64));
        }
        if random.below(3) == 0 {
            scan = scan.columns(&[2, 1]);
        }
    }
    if random.below(3) == 0 {
        scan = scan.backward();
    }
    scan.limit(1 + random.below(6) as u32)
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), written here because this crate has no
/// dependencies.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
