//! Questions in plain words about a spots table. A language model, behind any endpoint of the
//! OpenAI interface, is told the table's columns and the question, and writes a statement; the
//! statement is run by the caller, who sees to it that it only reads; and when it cannot be run,
//! the model is told why and may try again, a few times.
//!
//! A model is not trusted: its statement is data until the SQL engine has accepted it, and an
//! answer is shown together with the statement that gave it, because nothing else shows whether the
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

/// A question, and the limits for its answer.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The question in plain language.
    pub words: &'a str,
    /// More about the table than the names of its columns, such as the number of its rows and their
    /// time. It may be empty.
    pub about: &'a str,
    /// How often the model may correct a statement that could not be run.
    pub mends: usize,
    /// The most tokens of each answer of the model.
    pub most_tokens: u32,
}

/// An answer, and the statements that led to it.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The statement that was run.
    pub sql: String,
    /// The rows that the statement returned.
    pub rows: Rows,
    /// The statements before it that could not be run, each with its error.
    pub failed: Vec<(String, String)>,
    /// Tokens read and written for all statements together.
    pub usage: Usage,
}

/// Asks the model for a statement and calls `run` with it. If that fails, shows the model the
/// reason that `run` returns and asks again.
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
        usage.add(completion.usage);
        let Some(sql) = statement::statement_in(&completion.text) else {
            let answer = shown(&completion.text);
            return Err(AskError::NoSql { answer });
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
                // The model sees its own statement and the reason, so that it does not repeat the
                // mistake.
                messages.extend(prompt::mending(&sql, &reason));
                failed.push((sql, reason));
            }
        }
    }
}
