//! What the server counts, for Prometheus.

use std::time::Instant;

use dyno_serve::{Counter, Gauge, Histogram, Registry, Scale, ServeError};

use super::refusal::{Kind, Refusal};

/// Counters of one server, which its fronts share.
#[derive(Clone)]
pub struct Counts {
    /// Statements that were started.
    pub statements: Counter,
    /// Statements that run now.
    pub running: Gauge,
    /// Rows of answers.
    pub rows: Counter,
    /// Open connections of PostgreSQL's clients.
    pub connections: Gauge,
    /// Connections that were refused because there were too many.
    pub turned_away: Counter,
    /// Requests over HTTP.
    pub requests: Counter,
    cancelled: Counter,
    timed_out: Counter,
    failed: Counter,
    seconds: Histogram,
}

/// Takes a running statement off the gauge, however it ends.
pub struct RunningGuard(Gauge);

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}

impl Counts {
    /// Registers the counters.
    ///
    /// # Errors
    /// One of the names is taken.
    pub fn new(registry: &Registry) -> Result<Self, ServeError> {
        let counter = |name: &str, help: &str| registry.counter(name, help, &[]);
        let ended = |how: &str| {
            registry.counter(
                "dyno_sql_refused_total",
                "Statements that were not answered to the end.",
                &[("why", how)],
            )
        };
        Ok(Self {
            statements: counter("dyno_sql_statements_total", "Statements that were started.")?,
            running: registry.gauge("dyno_sql_running", "Statements that run now.", &[])?,
            rows: counter("dyno_sql_rows_total", "Rows of answers.")?,
            connections: registry.gauge(
                "dyno_sql_connections",
                "Open connections of PostgreSQL's clients.",
                &[],
            )?,
            turned_away: counter(
                "dyno_sql_connections_refused_total",
                "Connections refused because there were too many.",
            )?,
            requests: counter("dyno_sql_http_requests_total", "Requests over HTTP.")?,
            cancelled: ended("cancelled")?,
            timed_out: ended("timeout")?,
            failed: ended("error")?,
            seconds: registry.histogram(
                "dyno_sql_statement_seconds",
                "Time of a statement, from its start to its last row.",
                &[],
                Scale::Nanoseconds,
                &Histogram::LATENCY_NS,
            )?,
        })
    }

    /// Counts a statement as running until the guard is dropped.
    pub fn run(&self) -> RunningGuard {
        self.running.add(1);
        RunningGuard(self.running.clone())
    }

    /// Counts a statement that has ended, with the reason if it was refused.
    pub fn ended(&self, started: Instant, refusal: Option<&Refusal>) {
        let ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.seconds.observe(ns);
        if let Some(refusal) = refusal {
            self.refused(refusal.kind);
        }
    }

    /// Counts a statement that was refused.
    pub fn refused(&self, kind: Kind) {
        match kind {
            Kind::Cancelled => self.cancelled.add(1),
            Kind::TimedOut => self.timed_out.add(1),
            _ => self.failed.add(1),
        }
    }
}
