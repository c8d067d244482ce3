//! Converts a history of lists to Jepsen's JSON, so that checkers that we did not write can judge
//! it too.

use serde_json::{Value as Json, json};

use super::{History, Op, Outcome, Transaction, Value};

impl History {
    /// Writes one JSON object on each line, `invoke` and then `ok`, `fail` or `info`, ordered by
    /// time. It contains only reads of rows and appends, and an absent row is an empty list. As in
    /// Jepsen, a client with an unknown outcome never completes.
    pub fn jepsen_lists(&self) -> String {
        let mut lines: Vec<(u64, u8, u64, Json)> = Vec::new();
        for transaction in &self.transactions {
            // Jepsen gives a client a new number after an unknown outcome, while our clients keep
            // theirs. The id of the transaction is a number that is never used twice.
            let process = transaction.id;
            let line = |kind: &str, answered: bool| json!({"type": kind, "process": process, "value": ops(transaction, answered)});
            lines.push((
                transaction.begin_ns,
                0,
                transaction.id,
                line("invoke", false),
            ));
            let kind = match transaction.outcome {
                Outcome::Ok => "ok",
                Outcome::Fail => "fail",
                // An unknown outcome may take effect at any time, so its `info` comes after
                // everything else.
                Outcome::Unknown => "info",
            };
            let end_ns = match transaction.outcome {
                Outcome::Unknown => u64::MAX,
                _ => transaction.end_ns.unwrap_or(u64::MAX),
            };
            let answered = transaction.outcome == Outcome::Ok;
            lines.push((end_ns, 1, transaction.id, line(kind, answered)));
        }
        lines.sort_by_key(|line| (line.0, line.1, line.2));
        let mut text = String::new();
        for (_, _, _, line) in lines {
            text.push_str(&line.to_string());
            text.push('\n');
        }
        text
    }
}

fn ops(transaction: &Transaction, answered: bool) -> Vec<Json> {
    let mut ops = Vec::new();
    for op in &transaction.ops {
        if let Op::Append { key, element } = op {
            ops.push(json!(["append", key.to_string(), element]));
        }
        for (key, value) in op.rows() {
            let elements = match value {
                _ if !answered => Json::Null,
                Some(Value::List(list)) => json!(list),
                _ => json!([]),
            };
            ops.push(json!(["r", key.to_string(), elements]));
        }
    }
    ops
}
