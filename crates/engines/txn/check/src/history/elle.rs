//! Writes a history as Jepsen does, so that checkers that we did not write can judge it: Elle, and
//! every program that reads Elle's histories.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use serde_json::{Value as Json, json};

use super::{History, Key, Op, Outcome, Transaction, Value};

/// A version that no transaction wrote, because ids begin at 1. It stands for bytes that cannot be
/// read, so that a checker rejects them.
const UNWRITTEN: u64 = 0;

/// The part of a history that one of Elle's checkers judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Lists that are read as a whole and appended to: Elle's `list-append`.
    Lists,
    /// Registers that are read and replaced: Elle's `rw-register`. A version is named by the
    /// transaction that wrote it, which makes every written value unique. Registers that were ever
    /// deleted are left out, because an absent register is always the first version to Elle.
    Registers,
}

/// A history as Elle reads it: what was requested and what was answered, ordered by time.
///
/// It contains only reads and writes of rows by their keys, and the rows that scans returned. What
/// a scan proves by leaving a row out is not in it.
#[derive(Debug, Clone)]
pub struct ElleHistory {
    lines: Vec<Line>,
}

/// The request of a transaction or its end, ordered by the fields from the front.
#[derive(Debug, Clone)]
struct Line {
    time_ns: u64,
    /// At equal times requests come before ends: then the transactions overlap, and nothing is
    /// claimed about their order that was not seen.
    is_end: bool,
    transaction: u64,
    kind: &'static str,
    micro_operations: Vec<MicroOperation>,
}

#[derive(Debug, Clone)]
struct MicroOperation {
    name: &'static str,
    key: Key,
    value: Json,
}

impl History {
    /// The part of this history that Elle's checker of lists or registers judges.
    pub fn for_elle(&self, part: Part) -> ElleHistory {
        let keys = self.keys_of(part);
        let last = (self.transactions.iter())
            .map(|t| t.end_ns.unwrap_or(t.begin_ns))
            .max()
            .unwrap_or(0);
        let mut lines = Vec::with_capacity(2 * self.transactions.len());
        for transaction in &self.transactions {
            let line = |time_ns, is_end, kind, answered| Line {
                time_ns,
                is_end,
                transaction: transaction.id,
                kind,
                micro_operations: match part {
                    Part::Lists => list_operations(transaction, &keys, answered),
                    Part::Registers => register_operations(transaction, &keys, answered),
                },
            };
            let invoke = line(transaction.begin_ns, false, "invoke", false);
            // A transaction that touched nothing of this part proves nothing to the checker.
            if invoke.micro_operations.is_empty() {
                continue;
            }
            lines.push(invoke);
            lines.push(match transaction.outcome {
                Outcome::Ok => line(transaction.end_ns.unwrap_or(last), true, "ok", true),
                Outcome::Fail => line(transaction.end_ns.unwrap_or(last), true, "fail", false),
                // An unknown outcome may take effect at any time, so its end comes after everything
                // else.
                Outcome::Unknown => line(last + 1, true, "info", false),
            });
        }
        lines.sort_by_key(|line| (line.time_ns, line.is_end, line.transaction));
        ElleHistory { lines }
    }

    /// The rows that belong to this part, by what was ever done with them. A row that was only
    /// looked for and never found belongs to none.
    fn keys_of(&self, part: Part) -> HashSet<Key> {
        let mut kinds: HashMap<Key, Part> = HashMap::new();
        let mut deleted = HashSet::new();
        for op in self.transactions.iter().flat_map(|t| &t.ops) {
            match op {
                Op::Append { key, .. } => drop(kinds.insert(*key, Part::Lists)),
                Op::Write { key, value: None } => drop(deleted.insert(*key)),
                Op::Write { key, .. } | Op::Change { key } => {
                    kinds.insert(*key, Part::Registers);
                }
                Op::Read { .. } | Op::Scan(_) | Op::Lookup(_) => {}
            }
            for (key, value) in op.rows() {
                match value {
                    Some(Value::List(_)) => drop(kinds.insert(key, Part::Lists)),
                    Some(Value::Register { .. }) => drop(kinds.insert(key, Part::Registers)),
                    Some(Value::Broken(_)) | None => {}
                }
            }
        }
        (kinds.into_iter())
            .filter(|(key, kind)| *kind == part && !deleted.contains(key))
            .map(|(key, _)| key)
            .collect()
    }
}

/// Appends and reads of lists. An absent row is an empty list.
fn list_operations(
    transaction: &Transaction,
    keys: &HashSet<Key>,
    answered: bool,
) -> Vec<MicroOperation> {
    let mut micro = Vec::new();
    for op in &transaction.ops {
        if let Op::Append { key, element } = op {
            micro.push(MicroOperation {
                name: "append",
                key: *key,
                value: json!(element),
            });
        }
        for (key, value) in op.rows().filter(|(key, _)| keys.contains(key)) {
            let value = match value {
                _ if !answered => Json::Null,
                Some(Value::List(list)) => json!(list),
                Some(_) => json!([UNWRITTEN]),
                None => json!([]),
            };
            let name = "r";
            micro.push(MicroOperation { name, key, value });
        }
    }
    micro
}

/// Writes and reads of registers. Only the last version that a transaction writes can be seen by
/// others, and what it reads of its own writes says nothing about others, so neither is repeated.
fn register_operations(
    transaction: &Transaction,
    keys: &HashSet<Key>,
    answered: bool,
) -> Vec<MicroOperation> {
    let mut micro = Vec::new();
    let mut written = HashSet::new();
    for op in &transaction.ops {
        for (key, value) in op.rows().filter(|(key, _)| keys.contains(key)) {
            if written.contains(&key) {
                continue;
            }
            let value = match value {
                Some(Value::Register { by, .. }) if answered => json!(by),
                Some(_) if answered => json!(UNWRITTEN),
                _ => Json::Null,
            };
            let name = "r";
            micro.push(MicroOperation { name, key, value });
        }
        if let Some(key) = op.written().filter(|key| keys.contains(key))
            && written.insert(key)
        {
            micro.push(MicroOperation {
                name: "w",
                key,
                value: json!(transaction.id),
            });
        }
    }
    micro
}

impl ElleHistory {
    /// The number of lines, two for each transaction.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether no transaction touched this part.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// One array of objects, as elle-cli reads JSON.
    pub fn to_json(&self) -> String {
        let objects = self.lines.iter().enumerate().map(|(index, line)| {
            let micro = line.micro_operations.iter();
            let value: Vec<Json> = micro
                .map(|m| json!([m.name, m.key.to_string(), m.value]))
                .collect();
            let object = json!({
                "index": index,
                "time": line.time_ns,
                "type": line.kind,
                // Jepsen gives a client a new number after an unknown outcome, while our clients
                // keep theirs. The id of the transaction is a number that is never used twice.
                "process": line.transaction,
                "f": "txn",
                "value": value,
            });
            object.to_string()
        });
        format!("[{}]\n", objects.collect::<Vec<_>>().join(",\n"))
    }

    /// One map on each line, as Jepsen stores its histories.
    pub fn to_edn(&self) -> String {
        let mut text = String::new();
        for (index, line) in self.lines.iter().enumerate() {
            let micro = line.micro_operations.iter();
            let value: Vec<String> = micro
                .map(|m| format!("[:{} \"{}\" {}]", m.name, m.key, edn(&m.value)))
                .collect();
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{{:index {index}, :time {}, :type :{}, :process {}, :f :txn, :value [{}]}}",
                line.time_ns,
                line.kind,
                line.transaction,
                value.join(" ")
            );
        }
        text
    }
}

/// Numbers and arrays of numbers are spelled alike in both languages, except for the comma, which
/// EDN allows.
fn edn(value: &Json) -> String {
    match value {
        Json::Null => "nil".to_owned(),
        other => other.to_string(),
    }
}
