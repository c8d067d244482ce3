//! Procedures that are functions in the server.

use dyno_postgres::postgres::Row;
use dyno_txn_api::Result;

use crate::layout::column;
use crate::parameter::Parameter;

/// A procedure as a function in the server, so that a call is one round trip and one transaction.
///
/// An error of this interface is raised with the SQLSTATE `DT` and the three digits of its code's
/// number: `RAISE EXCEPTION 'item number is not valid' USING ERRCODE = 'DT020'` gives the
/// transaction up.
#[derive(Debug, Clone)]
pub struct Function {
    /// The procedure that it is.
    pub procedure: String,
    /// The statement that makes or replaces it; it is run before the first call.
    pub create: String,
    /// The statement that calls it, with `$1` and so on for what [`Function::arguments`] says.
    pub call: String,
    /// The call's arguments from the procedure's.
    pub arguments: fn(&[u8]) -> Result<Vec<Argument>>,
    /// What the procedure returns, from the first row that the statement returned.
    pub answer: fn(&Fields<'_>) -> Result<Vec<u8>>,
}

/// An argument of a function.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// `bigint`, or null.
    Number(Option<i64>),
    /// `bigint[]`
    Numbers(Vec<i64>),
    /// `bytea`, or null.
    Bytes(Option<Vec<u8>>),
}

impl Argument {
    pub(crate) fn parameter(self) -> Parameter {
        match self {
            Argument::Number(value) => Parameter::I64(value),
            Argument::Numbers(values) => Parameter::ManyI64(values.into_iter().map(Some).collect()),
            Argument::Bytes(value) => Parameter::Bytes(value),
        }
    }
}

/// The row that a function returned.
pub struct Fields<'a>(pub(crate) &'a Row);

impl Fields<'_> {
    /// A `bigint`.
    pub fn number(&self, at: usize) -> Result<i64> {
        column(self.0, at)
    }

    /// A `bigint[]`.
    pub fn numbers(&self, at: usize) -> Result<Vec<i64>> {
        column(self.0, at)
    }

    /// A `text`.
    pub fn text(&self, at: usize) -> Result<&str> {
        column(self.0, at)
    }

    /// A `text[]`.
    pub fn texts(&self, at: usize) -> Result<Vec<&str>> {
        column(self.0, at)
    }
}
