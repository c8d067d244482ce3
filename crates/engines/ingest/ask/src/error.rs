//! Errors between a question and its answer.

/// Why a question has no answer. No variant holds the key of the endpoint.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The text is not the address of an endpoint.
    #[error("{address:?} is not an endpoint: {reason}; write http://HOST:PORT/v1")]
    Address {
        /// As it was given, without a password.
        address: String,
        /// What is wrong with the address.
        reason: String,
    },
    /// The server could not be reached, or did not answer in time.
    #[error("the endpoint {server}: {reason}")]
    Unreachable {
        /// Host and port of the server.
        server: String,
        /// What happened, in a few words.
        reason: String,
    },
    /// The server answered with an error.
    #[error("the endpoint {server} answered with status {status}: {message}")]
    Refused {
        /// Host and port of the server.
        server: String,
        /// The HTTP status of the answer.
        status: u16,
        /// The beginning of its message.
        message: String,
    },
    /// The answer does not follow the interface.
    #[error("the endpoint {server} does not speak the OpenAI interface: {reason}")]
    Answer {
        /// Host and port of the server.
        server: String,
        /// What happened, in a few words.
        reason: String,
    },
    /// The model wrote no statement.
    #[error("the model wrote no SQL, but: {answer}")]
    NoSql {
        /// The beginning of its answer.
        answer: String,
    },
    /// The statement could not be run, nor could those that the model wrote when it was told so.
    #[error("the statement of the model cannot be run ({tries} tried): {reason}\n{sql}")]
    NotRun {
        /// The statement that was tried last.
        sql: String,
        /// The error of the SQL engine for it.
        reason: String,
        /// How many statements were tried.
        tries: usize,
    },
    /// The output of the SQL engine is not a table.
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
