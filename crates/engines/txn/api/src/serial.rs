//! A pipeline for engines without one. It runs each request when it is submitted.

use std::collections::VecDeque;
use std::time::Duration;

use crate::{Committed, Database, Options, Pipeline, Request, Result};

pub(crate) struct Serial<'a> {
    database: &'a dyn Database,
    options: Options,
    done: VecDeque<(u64, Result<Committed>)>,
}

impl<'a> Serial<'a> {
    pub(crate) fn new(database: &'a dyn Database, options: &Options) -> Self {
        Self {
            database,
            options: options.clone(),
            done: VecDeque::new(),
        }
    }
}

impl Pipeline for Serial<'_> {
    fn submit(&mut self, ticket: u64, request: Request) -> Result<()> {
        // An error belongs to this request, so it is returned by `next` like one of a real
        // pipeline.
        let answer = self.database.execute(request, &self.options);
        self.done.push_back((ticket, answer));
        Ok(())
    }

    fn next(&mut self, _wait: Duration) -> Option<(u64, Result<Committed>)> {
        self.done.pop_front()
    }

    fn outstanding(&self) -> usize {
        self.done.len()
    }
}
