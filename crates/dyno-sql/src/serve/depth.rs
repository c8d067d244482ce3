//! How deep a statement may go, counted before it is parsed.
//!
//! A chain of operators becomes a tree as deep as the chain is long. The parser builds it without
//! recursion, so that its own limit does not see it, but copying, printing and dropping it are
//! recursive in the libraries. A chain that is long enough overflows the stack there, which ends
//! the server and all statements of other clients.

use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::refusal::{Kind, Refusal};

/// The most operators of a statement. A person writes some dozens and a tool some hundreds, and
/// the stack of a thread that plans ([`super::engine::STACK_BYTES`]) has 32 KiB for each of them.
const MOST_OPERATORS: usize = 2000;
/// The most parentheses inside each other. The parser allows 50 of them in an expression, but does
/// not count those of a data type.
const MOST_NESTED: usize = 200;
/// Words that put what stands before them, or behind them, one level deeper.
const DEEPENING: &[Keyword] = &[
    Keyword::AND,
    Keyword::APPLY,
    Keyword::AT,
    Keyword::BETWEEN,
    Keyword::COLLATE,
    Keyword::DIV,
    Keyword::EXCEPT,
    Keyword::EXPLAIN,
    Keyword::ILIKE,
    Keyword::IN,
    Keyword::INTERSECT,
    Keyword::IS,
    Keyword::JOIN,
    Keyword::LIKE,
    Keyword::MATCH,
    Keyword::MATCH_RECOGNIZE,
    Keyword::MEMBER,
    Keyword::MINUS,
    Keyword::NOT,
    Keyword::NOTNULL,
    Keyword::OPERATOR,
    Keyword::OR,
    Keyword::OVERLAPS,
    Keyword::PIVOT,
    Keyword::REGEXP,
    Keyword::RLIKE,
    Keyword::SELECT,
    Keyword::SIMILAR,
    Keyword::UNION,
    Keyword::UNPIVOT,
    Keyword::XOR,
];

/// Refuses a text with a statement that would go too deep. The dialect is the one in which the text
/// is parsed afterwards: in another one, an operator could look like a part of a literal.
///
/// # Errors
/// A statement has too many operators or parentheses inside each other.
pub(super) fn check_depth(sql: &str, dialect: &dyn Dialect) -> Result<(), Refusal> {
    // The parser begins with the same step and refuses the text with the place of the error.
    let Ok(tokens) = Tokenizer::new(dialect, sql).tokenize() else {
        return Ok(());
    };
    let (mut operators, mut nested) = (0, 0_usize);
    let mut before = &Token::SemiColon;
    for token in &tokens {
        match token {
            Token::Whitespace(_) => continue,
            // Statements of one text are not inside each other.
            Token::SemiColon => (operators, nested) = (0, 0),
            Token::LParen => nested += 1,
            Token::RParen => nested = nested.saturating_sub(1),
            _ => operators += usize::from(deepens(token, before)),
        }
        if operators > MOST_OPERATORS {
            return Err(Refusal::new(
                Kind::TooComplex,
                format!(
                    "the statement has more than {MOST_OPERATORS} operators: compare with a list \
                     by IN, or ask in several statements"
                ),
            ));
        }
        if nested > MOST_NESTED {
            return Err(Refusal::new(
                Kind::TooComplex,
                format!("the statement has more than {MOST_NESTED} parentheses inside each other"),
            ));
        }
        before = token;
    }
    Ok(())
}

/// Whether a token makes the tree deeper. What is not known to leave it as it is counts, because a
/// dialect has operators of many forms.
fn deepens(token: &Token, before: &Token) -> bool {
    match token {
        Token::Word(word) => DEEPENING.contains(&word.keyword),
        // The sign of a number in a list.
        Token::Plus | Token::Minus => !matches!(before, Token::LParen | Token::Comma),
        Token::EOF
        | Token::Comma
        | Token::RBracket
        | Token::LBrace
        | Token::RBrace
        | Token::Number(..)
        | Token::Placeholder(_)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::DollarQuotedString(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::DoubleQuotedByteStringLiteral(_)
        | Token::SingleQuotedRawStringLiteral(_)
        | Token::DoubleQuotedRawStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::EscapedStringLiteral(_)
        | Token::UnicodeStringLiteral(_)
        | Token::HexStringLiteral(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::{GenericDialect, PostgreSqlDialect};

    use super::*;

    fn check(sql: &str) -> Result<(), Kind> {
        let generic = check_depth(sql, &GenericDialect {});
        let postgres = check_depth(sql, &PostgreSqlDialect {});
        assert_eq!(generic, postgres);
        generic.map_err(|refusal| refusal.kind)
    }

    #[test]
    fn a_chain_of_operators_is_too_deep() {
        for (first, more) in [
            ("SELECT 1", "+1"),
            ("SELECT 1 WHERE x = 1", " OR x = 1"),
            ("SELECT x", " IS NULL"),
            ("SELECT x", "::int"),
            ("SELECT x", "[1]"),
            ("SELECT x", ".y"),
            ("SELECT x", " AT TIME ZONE 'UTC'"),
            ("SELECT x", " NOT IN (1)"),
            ("SELECT 1", " UNION SELECT 1"),
            ("SELECT 1 FROM a", " JOIN a ON true"),
            ("WITH a AS (SELECT 1)", ", a AS (SELECT x FROM a)"),
            ("EXPLAIN", " EXPLAIN"),
            ("SELECT 1 ", "("),
        ] {
            check(&format!("{first}{}", more.repeat(10))).unwrap();
            let long = format!("{first}{}", more.repeat(MOST_OPERATORS + 1));
            assert_eq!(check(&long), Err(Kind::TooComplex), "{first}{more}");
        }
    }

    #[test]
    fn lists_and_several_statements_are_not_deep() {
        for (first, more, last) in [
            ("SELECT x IN (0", ", 17", ")"),
            ("SELECT x IN (-1", ", -17", ")"),
            ("SELECT x IN ($1", ", $2", ")"),
            ("SELECT x IN ('a'", ", 'b + c'", ")"),
            ("SELECT 1", ", a AS b", ""),
            ("SELECT f(1)", ", f(1)", ""),
            ("SELECT CASE x", " WHEN 'a' THEN 'b'", " END"),
            ("SELECT 1 + 1", "; SELECT 1 + 1", ""),
            ("SELECT 1", " -- a + b\n", ""),
        ] {
            let more = more.repeat(3 * MOST_OPERATORS);
            assert_eq!(check(&format!("{first}{more}{last}")), Ok(()), "{first}");
        }
    }

    #[test]
    fn the_dialect_says_what_is_a_literal() {
        let chain = "+1".repeat(MOST_OPERATORS + 1);
        // A backtick begins a name in one of them, and the apostrophe a literal in the other.
        let sql = format!("SELECT ` ' `{chain} -- '");
        assert!(check_depth(&sql, &PostgreSqlDialect {}).is_ok());
        assert!(check_depth(&sql, &GenericDialect {}).is_err());
    }

    #[test]
    fn an_open_literal_is_left_to_the_parser() {
        assert_eq!(check("SELECT 'a"), Ok(()));
    }
}
