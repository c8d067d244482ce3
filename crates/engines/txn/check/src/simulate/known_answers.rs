//! Runs the code of a transaction as far as answers are known. At a missing answer the code stops,
//! and it runs again from the start when the answer is there, as procedures in the engine do.

use dyno_txn_api::{Answer, Code, Error, Operation, Operations, Result, TableId};
use dyno_txn_core::Schema;

/// The answers of batches, in the order in which the code requested them.
pub(super) struct KnownAnswers<'a> {
    pub answers: &'a [Result<Vec<Answer>>],
    pub schema: &'a Schema,
    next: usize,
    /// The batch of the first missing answer.
    pub missing: Option<Vec<Operation>>,
}

impl<'a> KnownAnswers<'a> {
    pub fn new(answers: &'a [Result<Vec<Answer>>], schema: &'a Schema) -> Self {
        Self {
            answers,
            schema,
            next: 0,
            missing: None,
        }
    }
}

impl Operations for KnownAnswers<'_> {
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        let answer = self.answers.get(self.next);
        self.next += 1;
        match answer {
            Some(answer) => answer.clone(),
            None => {
                // Only the first missing batch is sent. Code that ignores the error may ask for
                // more, which it would not ask for with the answer.
                self.missing.get_or_insert_with(|| operations.to_vec());
                Err(Error::new(Code::Unavailable, "not answered yet"))
            }
        }
    }

    fn table(&mut self, name: &str) -> Result<TableId> {
        self.schema.named(name)
    }
}
