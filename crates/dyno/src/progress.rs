//! Progress on stderr: bars on a terminal, a line from time to time elsewhere.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use dyno_record::{Outcome, Sample};
use dyno_report::quantity;
use dyno_suite::{Event, Observer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal;
use crate::units::show_seconds;

/// The time between two looks at work that runs on another thread.
const TICK: Duration = Duration::from_millis(100);

/// A bar that is drawn on a terminal only.
fn bar(length: u64, template: &str) -> ProgressBar {
    let target = if terminal::shows_progress() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    // The templates are literals in this file. One that did not parse would leave the default look,
    // which is not worth an error.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Progress of work whose length is not known.
pub struct Spinner {
    bar: ProgressBar,
}

impl Spinner {
    /// Starts a spinner; without a terminal it prints `doing` once.
    pub fn new(doing: &str) -> Spinner {
        if !terminal::shows_progress() {
            eprintln!("{doing}");
        }
        let bar = bar(0, "{spinner} {msg} ({elapsed})");
        bar.set_message(doing.to_string());
        bar.enable_steady_tick(Duration::from_millis(120));
        Spinner { bar }
    }

    /// Removes the spinner and prints a line in its place.
    pub fn done(self, line: &str) {
        self.bar.finish_and_clear();
        eprintln!("{line}");
    }
}

/// Progress of work whose length is known, in bytes or rows.
pub struct WorkBar {
    bar: ProgressBar,
}

impl WorkBar {
    /// An empty bar over `length` of `unit`.
    pub fn new(length: u64, unit: &str) -> WorkBar {
        let template = match unit {
            "bytes" => "[{bar:30}] {bytes}/{total_bytes} {msg} {elapsed}, {eta} left",
            _ => "[{bar:30}] {human_pos}/{human_len} {msg} {elapsed}, {eta} left",
        };
        let bar = bar(length, template);
        bar.set_message(if unit == "bytes" {
            String::new()
        } else {
            unit.to_string()
        });
        WorkBar { bar }
    }

    /// Advances the bar by `more` units.
    pub fn add(&self, more: u64) {
        self.bar.inc(more);
    }

    /// Sets the bar to `done` units.
    pub fn at(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// Sets the text beside the bar.
    pub fn say(&self, text: &str) {
        self.bar.set_message(text.to_string());
    }

    /// Runs `work` on another thread, calls `look` at once and every 100 ms until it has ended, and
    /// returns what it returned. The end is not waited for by the tick, because much work takes
    /// less time than one.
    ///
    /// # Errors
    /// The work panicked.
    pub fn follow<T: Send>(
        self,
        work: impl FnOnce() -> T + Send,
        mut look: impl FnMut(&WorkBar),
    ) -> anyhow::Result<T> {
        let (result, ended) = mpsc::channel();
        thread::scope(|scope| {
            // The receiver lives until this thread has ended, so nothing that is sent is lost.
            let worker = scope.spawn(move || drop(result.send(work())));
            loop {
                look(&self);
                match ended.recv_timeout(TICK) {
                    Ok(returned) => return Ok(returned),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        // The panic has printed its reason. Joined, it does not end this thread as
                        // well.
                        let _ = worker.join();
                        bail!("the thread that worked ended unexpectedly");
                    }
                }
            }
        })
    }
}

impl Drop for WorkBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Progress of measuring the machine's limits.
pub struct LimitsBar {
    bar: ProgressBar,
}

impl LimitsBar {
    /// An empty bar, whose length comes with the first limit.
    pub fn new() -> LimitsBar {
        LimitsBar {
            bar: bar(
                1,
                "limits [{bar:30}] {pos}/{len} {msg} {elapsed}, about {eta} left",
            ),
        }
    }

    /// Shows that the limit `name` is being measured, after `done` of `of`.
    pub fn at(&self, name: &str, done: usize, of: usize) {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(name.to_string());
    }
}

impl Drop for LimitsBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Progress of a run, as its observer.
pub struct RunProgress {
    bar: ProgressBar,
    /// Without a terminal, a line this often; `None` to print failures alone.
    every: Option<Duration>,
    last_line: Instant,
}

impl RunProgress {
    /// Nothing is shown before the first event.
    pub fn new(every: Option<Duration>) -> RunProgress {
        let bar = match every {
            Some(_) => bar(0, "[{bar:30}] {pos}/{len} {msg}"),
            None => ProgressBar::hidden(),
        };
        bar.enable_steady_tick(Duration::from_millis(500));
        RunProgress {
            bar,
            every,
            last_line: Instant::now(),
        }
    }

    /// Returns a function that prints a line above the bar, for another thread.
    pub fn teller(&self) -> impl Fn(&str) + use<> {
        let (bar, shows) = (self.bar.clone(), self.every.is_some());
        move |line| {
            if shows {
                bar.suspend(|| eprintln!("{line}"));
            }
        }
    }

    /// Prints a line above the bar, unless failures alone are printed.
    fn step(&self, text: &str) {
        if self.every.is_some() {
            self.line(text);
        }
    }

    /// Prints a line above the bar.
    fn line(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    /// Shows a state that the next one replaces; without a terminal it prints one now and then.
    fn passing(&mut self, text: String) {
        // Lines are limited to one in `every`, since a log of a long run would otherwise be filled
        // by progress. Lines of `line` are always printed.
        let is_due = |every| self.last_line.elapsed() >= every;
        if !terminal::shows_progress() && self.every.is_some_and(is_due) {
            self.last_line = Instant::now();
            eprintln!("{text}");
        }
        self.bar.set_message(text);
    }

    fn sampled(&mut self, sample: &Sample, metric: &str, unit: &str) {
        let Sample { case, system, .. } = sample;
        match &sample.outcome {
            Outcome::Done => {
                let value = sample.metrics.get(metric).copied();
                let shown = value.map_or("measured".to_string(), |v| quantity(v, unit));
                self.passing(format!("{case} {system}: {shown}"));
            }
            Outcome::Failed(why) => self.line(&format!("{case} {system} failed: {why}")),
            Outcome::Hung(why) => self.line(&format!("{case} {system} hung: {why}")),
        }
    }
}

impl Observer for RunProgress {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Missing { system, reason } => {
                self.line(&format!("{system} takes no part: {reason}"));
            }
            Event::Preparing { name, system } => {
                self.bar.set_message(format!("{system} makes data {name}"));
            }
            Event::Prepared {
                name,
                system,
                reused,
                wall_s,
            } => {
                if !reused {
                    self.step(&format!(
                        "{system} made data {name} in {}",
                        show_seconds(*wall_s)
                    ));
                }
            }
            Event::Verifying { case, system } => {
                self.passing(format!("{case}: verifying {system}"));
            }
            Event::Verified {
                case,
                count,
                systems,
            } => {
                let who = match systems {
                    1 => "1 system answers".to_string(),
                    n => format!("{n} systems agree on"),
                };
                self.step(&format!("{case}: {who} {count}; timing"));
            }
            Event::CaseFailed { case, reason } => self.line(&format!("{case}: {reason}")),
            Event::Sampling {
                case,
                system,
                done,
                planned,
                remaining_s,
            } => {
                self.bar.set_length(u64::from(*planned));
                self.bar.set_position(u64::from(*done));
                self.passing(format!(
                    "{case} {system}, {done} of {planned} done, about {} left",
                    show_seconds(*remaining_s)
                ));
            }
            Event::Sampled {
                sample,
                metric,
                unit,
            } => self.sampled(sample, metric, unit),
            Event::Profiling { case, system } => {
                self.passing(format!("{case}: profiling {system}"));
            }
            Event::BudgetSpent { budget_s, left } => self.line(&format!(
                "the budget of {} is spent; {left} invocations are left out",
                show_seconds(*budget_s)
            )),
            Event::Stopped => self.line("stopped; what was measured is kept"),
        }
    }
}

impl Drop for RunProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_ends_is_not_waited_for_until_the_next_look() {
        const RUNS: u32 = 20;
        let began = Instant::now();
        for run in 0..RUNS {
            let (looked, looks) = mpsc::channel();
            let work = move || looks.recv().map(|()| run);
            let returned = WorkBar::new(1, "rows").follow(work, |_| {
                let _ = looked.send(());
            });
            assert_eq!(returned.expect("no panic"), Ok(run));
        }
        assert!(began.elapsed() < TICK * RUNS, "each waited for a tick");
    }

    #[test]
    fn a_panic_of_the_work_is_an_error() {
        let work = || -> u32 { panic!("as the test wants") };
        let error = WorkBar::new(1, "rows").follow(work, |_| ());
        assert!(error.is_err());
    }
}
