//! Procedures that are functions in the server.

use dyno_postgres::postgres::Row;
use dyno_txn_api::Result;

use crate::layout::column;
use crate::parameter::Parameter;

/// A procedure that is a function in the server, so that a call is one round trip and one
/// transaction.
///
/// The function raises an error of this interface with the SQLSTATE `DT` and the three digits of
/// the code's number. For example, `RAISE EXCEPTION 'item number is not valid' USING ERRCODE =
/// 'DT020'` aborts the transaction.
#[derive(Debug, Clone)]
pub struct Function {
    /// The name of the procedure that it replaces.
    pub procedure: String,
    /// The statement that creates or replaces the function. It runs before the first call.
    pub create: String,
    /// The statement that calls it, with `$1` and so on for what [`Function::arguments`] returns.
    pub call: String,
    /// Converts the procedure's arguments to those of the function.
    pub arguments: fn(&[u8]) -> Result<Vec<Argument>>,
    /// Makes the procedure's result from the first row that the statement returned.
    pub answer: fn(&Fields<'_>) -> Result<Vec<u8>>,
}

/// An argument of a function, by its SQL type.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// A `bigint`, which may be null.
    Number(Option<i64>),
    /// A `bigint[]` without nulls.
    Numbers(Vec<i64>),
    /// A `bytea`, which may be null.
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

/// The row that a function returned, with columns from 0.
pub struct Fields<'a>(pub(crate) &'a Row);

impl Fields<'_> {
    /// Reads a column of type `bigint`.
    pub fn number(&self, at: usize) -> Result<i64> {
        column(self.0, at)
    }

    /// Reads a column of type `bigint[]`.
    pub fn numbers(&self, at: usize) -> Result<Vec<i64>> {
        column(self.0, at)
    }

    /// Reads a column of type `text`.
    pub fn text(&self, at: usize) -> Result<&str> {
        column(self.0, at)
    }

    /// Reads a column of type `text[]`.
    pub fn texts(&self, at: usize) -> Result<Vec<&str>> {
        column(self.0, at)
    }
}
