//! SQL text to plans that only read, and errors that point into the text.

use anyhow::{Result, anyhow, bail};
use datafusion::common::{DataFusionError, Diagnostic};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{DataFrame, SQLOptions, SessionContext};
use datafusion::sql::parser::{DFParser, Statement};
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

use crate::error_text::plain;
use crate::session::CATALOG;

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

/// Accepts exactly one SELECT (or WITH, VALUES). Such a statement cannot change the limits of the
/// session, as SET could.
///
/// # Errors
/// There are several statements, or the one is something else.
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
    let plan = state.statement_to_plan(statement).await.map_err(|error| {
        match unknown_table(&error.strip_backtrace()) {
            Some(name) => anyhow!(
                "there is no table {name}; there are: {}",
                tables(context).join(", ")
            ),
            None => explain(&error, sql),
        }
    })?;
    // Checked on the plan and not on the text, so that a write inside EXPLAIN or a CTE is refused
    // too.
    check_reads_only(&plan)?;
    context
        .execute_logical_plan(plan)
        .await
        .map_err(|error| explain(&error, sql))
}

/// The table that an error says is not there, as a statement would name it.
fn unknown_table(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("table '")?;
    let (name, _) = rest.split_once("' not found")?;
    let own = format!("{CATALOG}.");
    let name = name.strip_prefix(&own).unwrap_or(name);
    Some(name.strip_prefix("public.").unwrap_or(name).to_owned())
}

/// The tables of a session, each as a statement would name it.
fn tables(context: &SessionContext) -> Vec<String> {
    let mut names = Vec::new();
    for catalog in context.catalog_names() {
        let Some(catalog) = context.catalog(&catalog) else {
            continue;
        };
        for schema_name in catalog.schema_names() {
            let Some(schema) = catalog.schema(&schema_name) else {
                continue;
            };
            names.extend(schema.table_names().into_iter().map(
                |table| match schema_name.as_str() {
                    "public" => table,
                    other => format!("{other}.{table}"),
                },
            ));
        }
    }
    names.retain(|name| !name.starts_with("information_schema."));
    names.sort();
    names
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
    let message = plain(&error.strip_backtrace());
    let place = error
        .diagnostic()
        .and_then(place_of)
        .or_else(|| place_in(&message))
        .or_else(|| message.contains("found: EOF").then(|| end_of(sql)));
    let Some((line, column)) = place else {
        return anyhow!("{message}");
    };
    // The place comes from a message and may lie outside the text; then the message alone is better
    // than a mark under the wrong word.
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

/// The line and the column behind the last character, for an error at the end of the input.
fn end_of(sql: &str) -> (usize, usize) {
    let lines = sql.trim_end().lines();
    let last = lines.clone().last().unwrap_or_default();
    (lines.count().max(1), last.chars().count() + 1)
}

/// The line and the column in a parser's message, which carries them nowhere else.
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
    fn a_table_that_is_not_there_is_named_as_the_statement_does() {
        for (message, name) in [
            (
                "Error during planning: table 'default catalog.public.spts' not found",
                Some("spts"),
            ),
            (
                "Error during planning: table 'default catalog.wspr.silver' not found",
                Some("wspr.silver"),
            ),
            ("table 'elsewhere.a.b' not found", Some("elsewhere.a.b")),
            ("Schema error: No field named x", None),
        ] {
            assert_eq!(unknown_table(message).as_deref(), name, "{message}");
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
