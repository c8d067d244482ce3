//! What can go wrong between a question and its answer.

/// An error of asking. None of them holds the endpoint's key.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The text is not the address of an endpoint.
    #[error("{address:?} is not an endpoint: {reason}; write http://HOST:PORT/v1")]
    Address {
        /// As it was given, without a password.
        address: String,
        /// Why.
        reason: String,
    },
    /// Nothing came back.
    #[error("the endpoint {server}: {reason}")]
    Unreachable {
        /// Host and port.
        server: String,
        /// In words.
        reason: String,
    },
    /// It did not want to.
    #[error("the endpoint {server} answered with status {status}: {said}")]
    Refused {
        /// Host and port.
        server: String,
        /// Of HTTP.
        status: u16,
        /// The beginning of what it said.
        said: String,
    },
    /// What came back is not what the interface promises.
    #[error("the endpoint {server} does not speak the OpenAI interface: {reason}")]
    Answer {
        /// Host and port.
        server: String,
        /// In words.
        reason: String,
    },
    /// The model wrote no statement.
    #[error("the model wrote no SQL, but: {said}")]
    NoSql {
        /// The beginning of what it wrote.
        said: String,
    },
    /// The statement could not be run, nor could those that the model wrote when it was told so.
    #[error("the statement of the model cannot be run ({tries} tried): {reason}\n{sql}")]
    NotRun {
        /// The last one.
        sql: String,
        /// What the SQL engine said.
        reason: String,
        /// Statements tried.
        tries: usize,
    },
    /// What the SQL engine printed is not a table.
    #[error("the SQL engine's answer is not a table: {0}")]
    Rows(String),
}

/// The beginning of a foreign text, on one line and without control characters.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 300;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = text.trim().chars().take(MOST).map(plain).collect();
    if text.trim().chars().count() > MOST {
        short.push_str(" ...");
    }
    short
}
