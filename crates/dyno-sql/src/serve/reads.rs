//! Which statements are answered: those that read.

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::GenericDialect;

use super::depth::check_depth;
use super::refusal::{Kind, Refusal};
use crate::statement;

/// First words of statements that change a database.
const WRITES: &[&str] = &[
    "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "ALTER", "DROP", "COPY", "GRANT",
    "REVOKE", "VACUUM", "ANALYZE", "COMMENT", "REFRESH", "REINDEX", "LOCK",
];

/// The one statement of a text, in the dialect of `dyno ingest query`.
///
/// # Errors
/// It is not one statement that reads, or goes too deep to be parsed.
pub fn one(sql: &str) -> Result<Statement, Refusal> {
    // The parser below reads this dialect.
    check_depth(sql, &GenericDialect {})?;
    let syntax = |message: String| Refusal::new(Kind::Syntax, message);
    let mut statements = statement::parse(sql).map_err(|error| syntax(error.to_string()))?;
    match (statements.pop(), statements.len()) {
        (Some(DfStatement::Statement(one)), 0) => {
            check(&one)?;
            Ok(*one)
        }
        // EXPLAIN has a form of its own in the engine, and COPY and CREATE EXTERNAL TABLE too.
        (Some(DfStatement::Explain(explain)), 0) => {
            let text = DfStatement::Explain(explain).to_string();
            explained(&text)
        }
        (Some(other), 0) => Err(refused(&other.to_string())),
        (_, more) => Err(syntax(format!(
            "only one statement is run here, not {}",
            more + 1
        ))),
    }
}

/// An EXPLAIN as the parser of standard SQL reads it, which is the form that the other front has.
fn explained(text: &str) -> Result<Statement, Refusal> {
    use datafusion::sql::sqlparser::parser::Parser;
    let parsed = Parser::parse_sql(&GenericDialect {}, text);
    let mut parsed = parsed.map_err(|error| Refusal::new(Kind::Syntax, error.to_string()))?;
    let one = parsed
        .pop()
        .ok_or_else(|| Refusal::new(Kind::Syntax, "there is no statement"))?;
    check(&one)?;
    Ok(one)
}

/// Refuses a statement that is not answered, by what it is. The plan of one that reads is checked
/// again, because a write can stand inside it.
///
/// # Errors
/// It would change something, or is not supported.
pub fn check(statement: &Statement) -> Result<(), Refusal> {
    match statement {
        Statement::Query(_)
        | Statement::Explain { .. }
        | Statement::ExplainTable { .. }
        | Statement::ShowTables { .. }
        | Statement::ShowColumns { .. } => Ok(()),
        _ => Err(refused(&statement.to_string())),
    }
}

fn refused(text: &str) -> Refusal {
    let verb = text.split_whitespace().next().unwrap_or_default();
    let verb = verb.to_uppercase();
    if WRITES.contains(&verb.as_str()) {
        let message = format!(
            "cannot execute {verb} in a read-only transaction: data comes in by `dyno ingest load`"
        );
        return Refusal::new(Kind::ReadOnly, message);
    }
    Refusal::new(
        Kind::NotSupported,
        format!("{verb} is not supported here; SELECT, EXPLAIN and SHOW are"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_statement_that_reads_is_answered() {
        for sql in [
            "SELECT 1",
            "WITH a AS (SELECT 1) SELECT * FROM a;",
            "EXPLAIN SELECT 1",
            "SHOW TABLES",
        ] {
            one(sql).unwrap();
        }
        for (sql, kind) in [
            ("INSERT INTO spots VALUES (1)", Kind::ReadOnly),
            ("COPY spots TO '/tmp/all.csv'", Kind::ReadOnly),
            (
                "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
                Kind::ReadOnly,
            ),
            ("drop table spots", Kind::ReadOnly),
            (
                "SET datafusion.runtime.memory_limit = '1T'",
                Kind::NotSupported,
            ),
            ("SELECT 1; SELECT 2", Kind::Syntax),
            ("SELEC 1", Kind::Syntax),
            ("", Kind::Syntax),
        ] {
            assert_eq!(one(sql).unwrap_err().kind, kind, "{sql}");
        }
    }
}
