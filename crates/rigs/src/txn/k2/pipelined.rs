//! Clients of ours that have many one-shot transactions in flight, each client on one thread.

use std::thread;
use std::time::Duration;

use dyno_measure::{Arrivals, Clock, Schedule, SystemClock};
use dyno_txn_api::{Committed, Options, Pipeline, Retry};

use super::K2Error;
use super::counts::{Counts, TRIES_MAX};
use super::draw::{Draw, Transaction};
use super::params::K2Params;
use super::system::{System, request, values};

/// The longest single wait for an answer.
const WAIT: Duration = Duration::from_millis(100);

/// Runs transactions for `duration`. The warm-up and the measured time differ in `phase`, so that
/// they do not draw the same transactions.
pub(super) fn run(
    params: &K2Params,
    system: &System,
    duration: Duration,
    phase: u64,
) -> Result<Counts, K2Error> {
    let clock = SystemClock::start();
    let mut all = Counts::new(duration)?;
    let parts: Vec<Result<Counts, K2Error>> = thread::scope(|scope| {
        let client = |number: usize| {
            let clock = &clock;
            scope.spawn(move || {
                Client::new(params, system, number, phase, clock, duration)?.run(duration)
            })
        };
        let clients: Vec<_> = (0..params.clients).map(client).collect();
        let joined = clients.into_iter().map(|client| client.join());
        joined
            .map(|part| part.unwrap_or(Err(K2Error::Panicked)))
            .collect()
    });
    for part in parts {
        all.add(&part?)?;
    }
    Ok(all)
}

/// A transaction in flight.
struct Flight {
    transaction: Transaction,
    intended_ns: u64,
    tries: u32,
}

struct Client<'a> {
    params: &'a K2Params,
    system: &'a System,
    clock: &'a SystemClock,
    draw: Draw<'a>,
    arrivals: Arrivals,
    started_ns: u64,
    /// Indexed by ticket; `None` is a free slot.
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    counts: Counts,
}

impl<'a> Client<'a> {
    fn new(
        params: &'a K2Params,
        system: &'a System,
        number: usize,
        phase: u64,
        clock: &'a SystemClock,
        duration: Duration,
    ) -> Result<Client<'a>, K2Error> {
        let schedule = match params.rate {
            None => Schedule::ClosedLoop,
            Some(rate_per_s) => Schedule::Poisson {
                rate_per_s,
                seed: params.seed,
            },
        };
        let started_ns = clock.now_ns();
        Ok(Client {
            params,
            system,
            clock,
            draw: Draw::new(params, phase << 32 | number as u64),
            arrivals: schedule.arrivals(number, params.clients, started_ns)?,
            started_ns,
            flights: (0..params.depth).map(|_| None).collect(),
            free: (0..params.depth).rev().collect(),
            counts: Counts::new(duration)?,
        })
    }

    fn run(mut self, duration: Duration) -> Result<Counts, K2Error> {
        let System::Database { db, .. } = self.system else {
            let text = "only a server of ours takes many requests of one thread".to_owned();
            return Err(K2Error::Wrong(text));
        };
        let mut pipeline = db.pipeline(self.params.depth, &Options::default())?;
        let end_ns = self.started_ns + duration.as_nanos() as u64;
        let mut due_ns = self.arrivals.next_ns();
        let mut now_ns = self.clock.now_ns();
        let mut was_room = true;
        // After the end no transaction begins, but those in flight are still waited for: leaving
        // them out would drop the slowest latencies.
        while now_ns < end_ns || self.free.len() < self.flights.len() {
            while let Some(place) = self.free.last().copied()
                && now_ns < end_ns
                && due_ns.is_none_or(|due| due <= now_ns)
            {
                let intended_ns = due_ns.unwrap_or(now_ns);
                self.free.pop();
                self.begin(&mut *pipeline, place, intended_ns)?;
                if due_ns.is_some() {
                    // Lag is counted only if the client had room. If not, the server caused the
                    // wait, which is then in the latency.
                    if was_room {
                        self.counts.lag.record(now_ns - intended_ns)?;
                    }
                    due_ns = self.arrivals.next_ns();
                }
                now_ns = self.clock.now_ns();
            }
            was_room = !self.free.is_empty();
            let wait = match due_ns {
                Some(due) if !self.free.is_empty() => {
                    WAIT.min(Duration::from_nanos(due.saturating_sub(now_ns)))
                }
                _ => WAIT,
            };
            // With nothing in flight only the clock can end the wait.
            if pipeline.outstanding() == 0 {
                std::hint::spin_loop();
            } else if let Some((ticket, result)) = pipeline.next(wait) {
                now_ns = self.clock.now_ns();
                self.end(&mut *pipeline, ticket as usize, result, now_ns)?;
            }
            now_ns = self.clock.now_ns();
        }
        self.counts.seconds = (now_ns - self.started_ns) as f64 / 1e9;
        // Starts that were due and found no free slot are counted here: without them a server that
        // is too slow would show good latencies of the few that it took.
        while due_ns.is_some_and(|due| due < end_ns) {
            self.counts.unsent += 1;
            due_ns = self.arrivals.next_ns();
        }
        Ok(self.counts)
    }

    fn begin(
        &mut self,
        pipeline: &mut dyn Pipeline,
        place: usize,
        intended_ns: u64,
    ) -> Result<(), K2Error> {
        let transaction = self.draw.next();
        self.send(pipeline, place, &transaction)?;
        self.flights[place] = Some(Flight {
            transaction,
            intended_ns,
            tries: 1,
        });
        Ok(())
    }

    fn send(
        &self,
        pipeline: &mut dyn Pipeline,
        place: usize,
        transaction: &Transaction,
    ) -> Result<(), K2Error> {
        let System::Database { table, .. } = self.system else {
            return Ok(());
        };
        let request = request(self.params, *table, transaction);
        Ok(pipeline.submit(place as u64, request)?)
    }

    fn end(
        &mut self,
        pipeline: &mut dyn Pipeline,
        place: usize,
        result: dyno_txn_api::Result<Committed>,
        now_ns: u64,
    ) -> Result<(), K2Error> {
        let Some(mut flight) = self.flights.get_mut(place).and_then(Option::take) else {
            return Err(K2Error::Wrong(format!(
                "an answer for slot {place}, in which no transaction is in flight"
            )));
        };
        match result {
            Ok(committed) => {
                flight
                    .transaction
                    .verify(self.params, &values(committed.answers))?;
                self.counts.committed += 1;
                self.counts.windows.count(now_ns - self.started_ns, 1);
                self.counts.latencies.record(now_ns - flight.intended_ns)?;
            }
            // Only an error that guarantees that nothing was done is retried: after an unknown
            // outcome the writes might take effect twice. The retry keeps its slot and its intended
            // start, so the latency includes the conflicts.
            Err(error) if error.retry() == Retry::Safe && flight.tries < TRIES_MAX => {
                self.counts.again += 1;
                flight.tries += 1;
                self.send(pipeline, place, &flight.transaction)?;
                self.flights[place] = Some(flight);
                return Ok(());
            }
            Err(error) => self.counts.fail(error.to_string()),
        }
        self.free.push(place);
        Ok(())
    }
}
