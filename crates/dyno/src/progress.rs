//! Progress on stderr: bars on a terminal, a line now and then elsewhere.

use std::time::{Duration, Instant};

use dyno_record::{Outcome, Sample};
use dyno_report::quantity;
use dyno_suite::{Event, Observer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal;
use crate::units::show_seconds;

/// A bar that is drawn on a terminal only.
fn bar(length: u64, template: &str) -> ProgressBar {
    let target = if terminal::shows_progress() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    // The templates are literals below; one that did not parse would leave the default look.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// For work whose length is not known.
pub struct Spinner {
    bar: ProgressBar,
}

impl Spinner {
    /// Begins to turn.
    pub fn new(doing: &str) -> Spinner {
        if !terminal::shows_progress() {
            eprintln!("{doing}");
        }
        let bar = bar(0, "{spinner} {msg} ({elapsed})");
        bar.set_message(doing.to_string());
        bar.enable_steady_tick(Duration::from_millis(120));
        Spinner { bar }
    }

    /// Leaves a line behind.
    pub fn done(self, line: &str) {
        self.bar.finish_and_clear();
        eprintln!("{line}");
    }
}

/// For work whose length is known: bytes or rows.
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

    /// So much more is done.
    pub fn add(&self, more: u64) {
        self.bar.inc(more);
    }

    /// So much is done.
    pub fn at(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// A word beside it.
    pub fn say(&self, text: &str) {
        self.bar.set_message(text.to_string());
    }
}

impl Drop for WorkBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// For the limits.
pub struct LimitsBar {
    bar: ProgressBar,
}

impl LimitsBar {
    /// An empty bar.
    pub fn new() -> LimitsBar {
        LimitsBar {
            bar: bar(1, "limits [{bar:30}] {pos}/{len} {msg}"),
        }
    }

    /// The next one begins.
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

/// For a run.
pub struct RunProgress {
    bar: ProgressBar,
    /// Without a terminal, a line this often.
    every: Duration,
    last_line: Instant,
}

impl RunProgress {
    /// Nothing is shown before the first event.
    pub fn new(every: Duration) -> RunProgress {
        let bar = bar(0, "[{bar:30}] {pos}/{len} {msg}");
        bar.enable_steady_tick(Duration::from_millis(500));
        RunProgress {
            bar,
            every,
            last_line: Instant::now(),
        }
    }

    /// Writes a line that stays, while another thread holds the progress.
    pub fn teller(&self) -> impl Fn(&str) + use<> {
        let bar = self.bar.clone();
        move |line| bar.suspend(|| eprintln!("{line}"))
    }

    /// A line that stays, above the bar.
    fn line(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    /// A line that is only of interest while it is true.
    fn passing(&mut self, text: String) {
        if !terminal::shows_progress() && self.last_line.elapsed() >= self.every {
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
                    self.line(&format!(
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
                self.line(&format!("{case}: {who} {count}; timing"));
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
