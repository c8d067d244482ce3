//! Terminals whose transactions are procedures. One thread has the transactions of many in flight.

use std::thread;
use std::time::{Duration, Instant};

use dyno_txn_api::{Code, Committed, Error, Pipeline, Result, Retry};

use super::pace::Pace;
use super::{Done, Ended, Recorder, Worker, ended_by};
use crate::input::{Input, Terminal};
use crate::transactions;

/// The longest wait for an answer while terminals are due later, so that a stop request is noticed.
const NAP: Duration = Duration::from_millis(50);
/// An engine that answers nothing for so long counts as lost.
const SILENCE: Duration = Duration::from_secs(60);

/// The transaction of a terminal while it is in flight.
struct UnderWay {
    began: Instant,
    input: Input,
    attempts: u32,
}

struct Run<'a, 'r> {
    worker: Worker<'a>,
    terminals: Vec<Terminal>,
    pipeline: Box<dyn Pipeline + 'a>,
    pace: Pace,
    entered: Vec<u64>,
    under_way: Vec<Option<UnderWay>>,
    recorder: &'r mut dyn Recorder,
}

pub(super) fn run(mut worker: Worker<'_>, recorder: &mut dyn Recorder) -> Result<()> {
    let plan = worker.plan;
    let mut terminals = std::mem::take(&mut worker.terminals);
    let now = Instant::now();
    let mut run = Run {
        pipeline: worker.db.pipeline(terminals.len(), &plan.options())?,
        pace: Pace::new(plan.paced, &mut terminals, now, plan.now_ms()),
        entered: vec![0; terminals.len()],
        under_way: terminals.iter().map(|_| None).collect(),
        terminals,
        worker,
        recorder,
    };
    let mut heard = now;
    loop {
        let more = run.enter_what_is_due()?;
        if run.pipeline.outstanding() == 0 {
            match more {
                Some(due) => thread::sleep(due.saturating_duration_since(Instant::now()).min(NAP)),
                None => return Ok(()),
            }
            heard = Instant::now();
            continue;
        }
        // It waits at most until the next input is due, so that a paced terminal is not late
        // because another one's answer is.
        let until = more.map(|due| due.saturating_duration_since(Instant::now()));
        match run.pipeline.next(until.unwrap_or(NAP).min(NAP)) {
            Some((ticket, answer)) => {
                heard = Instant::now();
                run.settle(ticket as usize, answer, heard)?;
            }
            // A lost engine would otherwise leave the run waiting for ever, because a terminal
            // enters nothing before its answer.
            None if heard.elapsed() > SILENCE => {
                let text = format!("no answer from the engine in {} s", SILENCE.as_secs());
                return Err(Error::new(Code::Unavailable, text));
            }
            None => {}
        }
    }
}

impl Run<'_, '_> {
    /// Submits what is due. Returns when the next input is due, `None` if none will be.
    fn enter_what_is_due(&mut self) -> Result<Option<Instant>> {
        loop {
            let now = Instant::now();
            let Some((at, began, input)) = self.pace.enter(now) else {
                // Terminals that are still keying in when time is over enter nothing more.
                let over = self.worker.over(0);
                return Ok(self.pace.next_due().filter(|_| !over));
            };
            if self.worker.over(self.entered[at]) {
                continue;
            }
            self.entered[at] += 1;
            self.submit(
                at,
                UnderWay {
                    began,
                    input,
                    attempts: 0,
                },
            )?;
        }
    }

    fn submit(&mut self, at: usize, mut one: UnderWay) -> Result<()> {
        one.attempts += 1;
        let request = transactions::call(self.worker.tables, &one.input);
        self.under_way[at] = Some(one);
        // A terminal has one transaction in flight, so its index is a ticket that is not used twice
        // at a time.
        self.pipeline.submit(at as u64, request)
    }

    fn settle(&mut self, at: usize, answer: Result<Committed>, now: Instant) -> Result<()> {
        let Some(one) = self.under_way.get_mut(at).and_then(Option::take) else {
            let text = format!("an answer to {at}, which was not asked");
            return Err(Error::new(Code::Damaged, text));
        };
        let outcome = match answer {
            Ok(_) => Ended::Committed,
            Err(error)
                if error.retry() == Retry::Safe && one.attempts < self.worker.plan.attempts =>
            {
                // The terminal waits through all attempts, and `began` stays, so the latency
                // includes them.
                return self.submit(at, one);
            }
            Err(error) => ended_by(error)?,
        };
        let kind = one.input.kind();
        self.recorder.done(Done {
            kind,
            began: one.began,
            ended: now,
            outcome,
            attempts: one.attempts,
        });
        let now_ms = self.worker.plan.now_ms();
        self.pace
            .begin(at, &mut self.terminals[at], Some(kind), now, now_ms);
        Ok(())
    }
}
