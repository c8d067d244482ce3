//! SQL text to plans that only read, and errors that point into the text.

use anyhow::{Result, anyhow, bail};
use datafusion::common::{DataFusionError, Diagnostic};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{DataFrame, SQLOptions, SessionContext};
use datafusion::sql::parser::{DFParser, Statement};
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

/// Splits `sql` into statements.
///
/// # Errors
/// A syntax error, with its line and column; a text without a statement.
pub fn parse(sql: &str) -> Result<Vec<Statement>> {
    let statements = DFParser::parse_sql(sql).map_err(|error| explain(&error, sql))?;
    if statements.is_empty() {
        bail!("there is no statement in the query");
    }
    Ok(statements.into())
}

/// Whether `statements` is one SELECT (or WITH, VALUES), which cannot change what a session may use.
///
/// # Errors
/// It is more, or something else.
pub fn check_one_select(statements: &[Statement]) -> Result<()> {
    match statements {
        [Statement::Statement(one)] if matches!(**one, SqlStatement::Query(_)) => Ok(()),
        [other] => bail!("only a SELECT is run here, not: {other}"),
        many => bail!("only one statement is run here, not {}", many.len()),
    }
}

/// Plans one statement of `sql`; `SET` takes effect on the session at once.
///
/// # Errors
/// Unknown names and types that do not fit, with their place; statements that would write.
pub async fn plan(context: &SessionContext, statement: Statement, sql: &str) -> Result<DataFrame> {
    let state = context.state();
    let plan = state
        .statement_to_plan(statement)
        .await
        .map_err(|error| explain(&error, sql))?;
    check_reads_only(&plan)?;
    context
        .execute_logical_plan(plan)
        .await
        .map_err(|error| explain(&error, sql))
}

fn check_reads_only(plan: &LogicalPlan) -> Result<()> {
    let reading = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false);
    reading.verify_plan(plan).map_err(|error| {
        anyhow!(
            "the spots table is only read here; data comes in by `dyno ingest load` ({})",
            error
                .strip_backtrace()
                .trim_start_matches("Error during planning: ")
        )
    })
}

/// The message of an error, with the line it is about and a mark under the place.
pub fn explain(error: &DataFusionError, sql: &str) -> anyhow::Error {
    let message = error.strip_backtrace();
    let place = error
        .diagnostic()
        .and_then(place_of)
        .or_else(|| place_in(&message))
        .or_else(|| message.contains("found: EOF").then(|| end_of(sql)));
    let Some((line, column)) = place else {
        return anyhow!("{message}");
    };
    let Some(text) = line.checked_sub(1).and_then(|line| sql.lines().nth(line)) else {
        return anyhow!("{message}");
    };
    let indent = " ".repeat(column.saturating_sub(1));
    anyhow!("{message}\n  line {line}, column {column}:\n  {text}\n  {indent}^")
}

fn place_of(diagnostic: &Diagnostic) -> Option<(usize, usize)> {
    let start = diagnostic.span?.start;
    Some((
        usize::try_from(start.line).ok()?,
        usize::try_from(start.column).ok()?,
    ))
}

/// Where a text that stops too early stops.
fn end_of(sql: &str) -> (usize, usize) {
    let lines = sql.trim_end().lines();
    let last = lines.clone().last().unwrap_or_default();
    (lines.count().max(1), last.chars().count() + 1)
}

/// The parser's errors carry their place in their text only.
fn place_in(message: &str) -> Option<(usize, usize)> {
    let number = |label: &str| {
        let digits = message.rsplit_once(label)?.1;
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        digits[..end].parse().ok()
    };
    Some((number("Line: ")?, number("Column: ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syntax_error_shows_its_place() {
        let error = parse("SELECT callsign\nFORM spots WHERE")
            .unwrap_err()
            .to_string();
        assert!(error.contains("  line 2, column "), "{error}");
        assert!(error.contains("\n  FORM spots WHERE\n"), "{error}");
        assert!(error.ends_with('^'), "{error}");
    }

    #[test]
    fn a_stranger_may_select_once() {
        for sql in [
            "SELECT 1",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "(SELECT 1) UNION SELECT 2;",
        ] {
            check_one_select(&parse(sql).unwrap()).unwrap();
        }
        for sql in [
            "SELECT 1; SELECT 2",
            "SET datafusion.runtime.memory_limit = '1T'",
            "COPY spots TO '/tmp/all.csv'",
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
            "EXPLAIN ANALYZE SELECT 1",
            "DROP TABLE spots",
        ] {
            assert!(check_one_select(&parse(sql).unwrap()).is_err(), "{sql}");
        }
    }

    #[test]
    fn nothing_is_no_query() {
        assert!(
            parse(" ; ")
                .unwrap_err()
                .to_string()
                .contains("no statement")
        );
    }
}
