//! `dyno-sql`, the program beside this one: it answers SQL, reads written tables back, and makes
//! the mode `baseline` of TPC-H files, with libraries that would take longer to build than this
//! program.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use dyno_record::Answer;
use dyno_tpch::Table;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::RigError;
use crate::process::this_program;

/// A command that starts it.
///
/// # Errors
/// It is not built: it lies beside this program or nowhere.
pub fn sql_engine() -> Result<Command, RigError> {
    let program = this_program()?.with_file_name("dyno-sql");
    if program.is_file() {
        return Ok(Command::new(program));
    }
    Err(RigError::Sql(format!(
        "the SQL engine {} is missing; build it with `cargo build --release -p dyno-sql`, which takes \
         ten to twenty minutes on two cores",
        program.display()
    )))
}

/// Whether a case needs the SQL engine, to query it, to read back what was written, or to write.
pub fn needs_sql(workload: &str, params: &BTreeMap<String, Value>) -> bool {
    let is = |name: &str, value: &str| params.get(name).is_some_and(|given| given == value);
    match workload {
        "query-top-ten" | "query-spots" | "ingest-load" | "feeds-load" | "ingest-pipeline"
        | "chain" => true,
        // Training reads a set that the SQL engine made.
        "ingest-features" | "sage-train" => true,
        "tpch-write" => !is("place", "null") || (is("mode", "baseline") && !is("format", "tbl")),
        _ => false,
    }
}

/// Runs the command to its end and reads the JSON that it prints.
pub(crate) fn printed<T: DeserializeOwned>(mut command: Command) -> Result<T, RigError> {
    let output = command
        .output()
        .map_err(|e| RigError::io(command.get_program(), e))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(RigError::Sql(format!(
            "dyno-sql failed, {}: {stderr}",
            output.status
        )));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Count and order-independent checksum of a spots table (docs/formats/checksums.md), by a reader
/// that is not ours.
///
/// # Errors
/// When the SQL engine is missing, or cannot read the table.
pub fn table_checksum(table: &Path) -> Result<Answer, RigError> {
    let mut command = sql_engine()?;
    command.args(["readback", "spots"]).arg(table);
    printed(command)
}

/// Count and order-independent checksum of a feed's rows in a table (docs/formats/checksums.md), by
/// a reader that is not ours.
pub(crate) fn feed_checksum(table: &Path, feed: &str) -> Result<Answer, RigError> {
    let mut command = sql_engine()?;
    command.args(["readback", "feed"]).arg(table);
    command.args(["--feed", feed]);
    printed(command)
}

/// Count and checksum of TPC-H tables in a directory, by readers that are not ours. Of comments and
/// addresses only the lengths count if `lengths` says so.
pub(crate) fn tables_checksum(
    directory: &Path,
    tables: &[Table],
    format: &str,
    lengths: bool,
) -> Result<Answer, RigError> {
    let names: Vec<&str> = tables.iter().map(|table| table.name()).collect();
    let mut command = sql_engine()?;
    command.args(["readback", "tpch"]).arg(directory);
    command.args(["--format", format, "--tables", &names.join(",")]);
    if lengths {
        command.arg("--lengths");
    }
    printed(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&str, &str)]) -> BTreeMap<String, Value> {
        let pair = |(name, value): &(&str, &str)| ((*name).to_string(), Value::from(*value));
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn files_that_are_not_kept_need_no_reader() {
        let null = params(&[("place", "null"), ("mode", "zero-copy"), ("format", "orc")]);
        assert!(!needs_sql("tpch-write", &null));
        let disk = params(&[("place", "disk"), ("mode", "zero-copy"), ("format", "orc")]);
        assert!(needs_sql("tpch-write", &disk));
        let baseline = params(&[("place", "null"), ("mode", "baseline"), ("format", "orc")]);
        assert!(needs_sql("tpch-write", &baseline));
        let text = params(&[("place", "null"), ("mode", "baseline"), ("format", "tbl")]);
        assert!(!needs_sql("tpch-write", &text));
        assert!(needs_sql("ingest-load", &params(&[])));
        assert!(!needs_sql("pubsub-flow", &params(&[])));
    }
}
