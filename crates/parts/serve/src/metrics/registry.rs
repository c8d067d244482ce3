//! All metrics of a program by name and labels.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::cells::{Counter, Gauge, Histogram, Scale};
use super::names::{bad, check_labels, check_metric};
use super::text;
use crate::error::ServeError;

/// The most series of a program. Labels hold names of topics and groups, which clients create, so
/// their number needs a limit.
const SERIES: usize = 50_000;

/// Updates gauges before they are written out.
type Refresh = Box<dyn Fn() + Send + Sync>;
/// Labels in the order in which they are written.
pub(super) type Labels = Vec<(String, String)>;

/// A set of metrics. Clones are the same set.
#[derive(Clone, Default)]
pub struct Registry(Arc<Inner>);

#[derive(Default)]
struct Inner {
    families: Mutex<BTreeMap<String, Family>>,
    refreshes: Mutex<Vec<Refresh>>,
}

#[derive(Debug)]
pub(super) struct Family {
    pub help: String,
    pub kind: Kind,
    pub series: BTreeMap<Labels, Cell>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Debug, Clone)]
pub(super) enum Cell {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
}

impl Registry {
    /// Creates a set without metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// The counter of this name and these labels, made when there is none. Its name ends in
    /// `_total`.
    ///
    /// # Errors
    /// [`ServeError::Metric`]: a name or label that Prometheus would refuse, a name that has
    /// another kind or other help already, or too many series.
    pub fn counter(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
    ) -> Result<Counter, ServeError> {
        self.scaled_counter(name, help, labels, Scale::Ones)
    }

    /// The same for a count that is added to in the unit of `scale`; times are shown in seconds.
    ///
    /// # Errors
    /// As [`Registry::counter`].
    pub fn scaled_counter(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        scale: Scale,
    ) -> Result<Counter, ServeError> {
        if !name.ends_with("_total") {
            return Err(bad(name, "a counter's name ends in _total"));
        }
        let make = || Cell::Counter(Counter::new(scale));
        match self.series(name, help, labels, Kind::Counter, make)? {
            Cell::Counter(counter) => Ok(counter),
            _ => Err(another_kind(name)),
        }
    }

    /// The gauge of this name and these labels, made when there is none.
    ///
    /// # Errors
    /// As [`Registry::counter`].
    pub fn gauge(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
    ) -> Result<Gauge, ServeError> {
        let make = || Cell::Gauge(Gauge::default());
        match self.series(name, help, labels, Kind::Gauge, make)? {
            Cell::Gauge(gauge) => Ok(gauge),
            _ => Err(another_kind(name)),
        }
    }

    /// The histogram of this name and these labels, made with `bounds` when there is none. The
    /// bounds are in the unit in which it observes.
    ///
    /// # Errors
    /// As [`Registry::counter`], and when the bounds do not grow or differ from those that are
    /// there.
    pub fn histogram(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        scale: Scale,
        bounds: &[u64],
    ) -> Result<Histogram, ServeError> {
        if bounds.is_empty() || !bounds.is_sorted_by(|a, b| a < b) {
            return Err(bad(
                name,
                "the bounds of a histogram grow, and there is at least one",
            ));
        }
        let make = || Cell::Histogram(Histogram::new(scale, bounds));
        match self.series(name, help, labels, Kind::Histogram, make)? {
            Cell::Histogram(found) if found.bounds() == bounds && found.scale() == scale => {
                Ok(found)
            }
            Cell::Histogram(_) => Err(bad(name, "it is there with other bounds")),
            _ => Err(another_kind(name)),
        }
    }

    /// Calls `refresh` before each time the numbers are written out, to set gauges that are costly
    /// to keep up to date. It runs on the endpoint's threads, one at a time.
    pub fn refresh_by(&self, refresh: impl Fn() + Send + Sync + 'static) {
        let mut all = self.0.refreshes.lock();
        all.push(Box::new(refresh));
    }

    /// Forgets every series that has the label, such as those of a topic that was dropped. A holder
    /// of such a metric can still update it, which no longer shows.
    pub fn forget(&self, label: &str, value: &str) {
        let mut families = self.families();
        for family in families.values_mut() {
            let has = |labels: &Labels| labels.iter().any(|(l, v)| l == label && v == value);
            family.series.retain(|labels, _| !has(labels));
        }
    }

    /// Forgets the series of this name and these labels, if it is there.
    pub fn remove(&self, name: &str, labels: &[(&str, &str)]) {
        let labels = owned(labels);
        if let Some(family) = self.families().get_mut(name) {
            family.series.remove(&labels);
        }
    }

    /// All numbers in Prometheus' text format 0.0.4.
    pub fn text(&self) -> String {
        {
            let all = self.0.refreshes.lock();
            all.iter().for_each(|refresh| refresh());
        }
        text::render(&self.families())
    }

    fn series(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        kind: Kind,
        make: impl FnOnce() -> Cell,
    ) -> Result<Cell, ServeError> {
        check_metric(name)?;
        check_labels(name, labels)?;
        let mut families = self.families();
        let total: usize = families.values().map(|family| family.series.len()).sum();
        let family = families.entry(name.to_owned()).or_insert_with(|| Family {
            help: help.to_owned(),
            kind,
            series: BTreeMap::new(),
        });
        if family.kind != kind {
            return Err(another_kind(name));
        }
        if family.help != help {
            return Err(bad(name, "it is there with another help text"));
        }
        let labels = owned(labels);
        if let Some(cell) = family.series.get(&labels) {
            return Ok(cell.clone());
        }
        // Series that exist are always found, so a program at the limit goes on counting them.
        if total >= SERIES {
            return Err(bad(name, format!("there are {SERIES} series already")));
        }
        let cell = make();
        family.series.insert(labels, cell.clone());
        Ok(cell)
    }

    fn families(&self) -> MutexGuard<'_, BTreeMap<String, Family>> {
        self.0.families.lock()
    }
}

/// Labels in the order in which they are kept.
fn owned(labels: &[(&str, &str)]) -> Labels {
    let own = |(label, value): &(&str, &str)| ((*label).to_owned(), (*value).to_owned());
    let mut labels: Labels = labels.iter().map(own).collect();
    labels.sort();
    labels
}

fn another_kind(name: &str) -> ServeError {
    bad(name, "it is there as another kind of metric")
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&*self.families()).finish()
    }
}
