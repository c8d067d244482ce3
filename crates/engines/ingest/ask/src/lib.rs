//! Questions in plain words about a spots table. A language model, behind any endpoint of the
//! OpenAI interface, is told the table's columns and the question, and writes a statement; the
//! statement is run by the caller, who sees to it that it only reads; and when it cannot be run,
//! the model is told why and may try again, a few times.
//!
//! A model is a stranger: its statement is data until the SQL engine has judged it, and an answer
//! is shown together with the statement that gave it, because nothing else says whether the
//! question was understood.

mod endpoint;
mod error;
mod plot;
mod prompt;
mod rows;
mod statement;
mod stream;

pub use endpoint::{Completion, Endpoint, Message, Request, Role, Usage};
pub use error::AskError;
pub use plot::bars;
pub use rows::Rows;
pub use stream::Streamed;

use error::shown;

/// A question.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// In plain words.
    pub words: &'a str,
    /// What the table holds beyond its columns' names, such as how many rows and of which time; may
    /// be empty.
    pub about: &'a str,
    /// How often the model may mend a statement that could not be run.
    pub mends: usize,
    /// Tokens of an answer at most.
    pub most_tokens: u32,
}

/// An answer, and how it was come by.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The statement that was run.
    pub sql: String,
    /// What it gave.
    pub rows: Rows,
    /// Statements before it that could not be run, and why.
    pub failed: Vec<(String, String)>,
    /// Tokens read and written in all.
    pub usage: Usage,
}

/// Asks the model for a statement, has `run` run it, and again when that fails. `run` gives the
/// reason of a failure in words that the model is shown.
///
/// # Errors
/// Those of the endpoint; [`AskError::NoSql`]; [`AskError::NotRun`].
pub fn ask(
    endpoint: &Endpoint,
    question: &Question<'_>,
    mut run: impl FnMut(&str) -> Result<Rows, String>,
) -> Result<Answer, AskError> {
    let mut messages = prompt::opening(question);
    let mut failed: Vec<(String, String)> = Vec::new();
    let mut usage = Usage::default();
    loop {
        let request = Request {
            messages: &messages,
            most_tokens: question.most_tokens,
            ignore_end: false,
        };
        let completion = endpoint.complete(&request)?;
        usage.prompt_tokens += completion.usage.prompt_tokens;
        usage.completion_tokens += completion.usage.completion_tokens;
        let Some(sql) = statement::statement_in(&completion.text) else {
            let said = shown(&completion.text);
            return Err(AskError::NoSql { said });
        };
        match run(&sql) {
            Ok(rows) => {
                return Ok(Answer {
                    sql,
                    rows,
                    failed,
                    usage,
                });
            }
            Err(reason) if failed.len() >= question.mends => {
                let tries = failed.len() + 1;
                return Err(AskError::NotRun { sql, reason, tries });
            }
            Err(reason) => {
                messages.extend(prompt::mending(&sql, &reason));
                failed.push((sql, reason));
            }
        }
    }
}
