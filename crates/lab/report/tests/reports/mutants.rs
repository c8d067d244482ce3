//! Faults put into the figures of our own records, one at a time: each must be found. The corpus is
//! written by hand with its rules in mind; these figures are not.

use std::collections::BTreeSet;
use std::path::Path;

use dyno_record::{Better, Figures, RunDir, find_runs};
use dyno_report::{build_stored, figures_of, lint};

/// Puts a fault into the `at`-th place that can have it; false when there is no such place.
type Fault = fn(&mut Figures, usize) -> bool;

/// Changes the `at`-th of the items that `fits` is true of.
fn change<T>(items: &mut [T], at: usize, fits: impl Fn(&T) -> bool, how: impl Fn(&mut T)) -> bool {
    let found = items.iter_mut().filter(|item| fits(item)).nth(at);
    found.map(how).is_some()
}

const FAULTS: [(&str, Fault); 17] = [
    ("value is not a number", |f, at| {
        change(&mut f.figures, at, |_| true, |q| q.value = f64::NAN)
    }),
    ("value is negative", |f, at| {
        change(
            &mut f.figures,
            at,
            |q| q.value > 0.0,
            |q| q.value = -q.value,
        )
    }),
    ("value in another prefix than its spread", |f, at| {
        change(
            &mut f.figures,
            at,
            |q| q.low.is_some() && q.value > 0.0,
            |q| q.value *= 1000.0,
        )
    }),
    ("ends of the spread changed places", |f, at| {
        let apart = |q: &dyno_record::QuotedFigure| q.low < q.high;
        change(&mut f.figures, at, apart, |q| {
            std::mem::swap(&mut q.low, &mut q.high)
        })
    }),
    ("one row lost", |f, at| {
        change(&mut f.counts, at, |_| true, |c| c.stated -= 1.0)
    }),
    ("work over another time", |f, at| {
        let timed = |q: &dyno_record::QuotedFigure| q.duration_s.is_some() && q.count.is_some();
        change(&mut f.figures, at, timed, |q| {
            q.duration_s = q.duration_s.map(|s| s * 1.1)
        })
    }),
    ("percentile a tenth of what it was", |f, at| {
        change(
            &mut f.latencies,
            at,
            |l| l.points.len() > 1,
            |l| {
                l.points.last_mut().unwrap().1 = l.points[0].1 / 10.0;
            },
        )
    }),
    ("percentile of 990", |f, at| {
        change(
            &mut f.latencies,
            at,
            |l| l.points.len() > 1,
            |l| {
                l.points.last_mut().unwrap().0 = 990.0;
            },
        )
    }),
    ("winner and loser changed places", |f, at| {
        change(
            &mut f.claims,
            at,
            |_| true,
            |c| std::mem::swap(&mut c.winner, &mut c.loser),
        )
    }),
    ("ratio of another pair", |f, at| {
        change(
            &mut f.claims,
            at,
            |_| true,
            |c| {
                c.ratio_low = c.ratio_low.map(|r| r * 1.5 + 1.0);
                c.ratio_high = c.ratio_high.map(|r| r * 1.5 + 1.0);
            },
        )
    }),
    ("limit of a thousandth", |f, at| {
        let names: BTreeSet<String> = f.figures.iter().filter_map(|q| q.limit.clone()).collect();
        change(
            &mut f.limits,
            at,
            |l| names.contains(&l.name),
            |l| {
                let factor = if l.better == Better::Higher {
                    1e-3
                } else {
                    1e3
                };
                l.value *= factor;
                l.best = l.best.map(|best| best * factor);
            },
        )
    }),
    ("limit in a unit of something else", |f, at| {
        let limited = |q: &dyno_record::QuotedFigure| q.limit.is_some();
        change(&mut f.figures, at, limited, |q| {
            q.limit_per_unit = None;
            q.unit = "frobs/s".into();
        })
    }),
    ("throttled client", |f, at| {
        let rate = |q: &dyno_record::QuotedFigure| {
            q.unit.ends_with("/s") && q.better == Better::Higher && q.latency_p50_s.is_none()
        };
        change(&mut f.figures, at, rate, |q| {
            q.offered_rate = Some(q.value * 1.05);
            q.latency_mean_s = None;
        })
    }),
    ("more achieved than offered", |f, at| {
        let offered = |q: &dyno_record::QuotedFigure| q.unit.ends_with("/s");
        change(&mut f.figures, at, offered, |q| {
            q.offered_rate = Some(q.value / 2.0)
        })
    }),
    ("ten times the mean", |f, at| {
        let closed = |q: &dyno_record::QuotedFigure| q.latency_mean_s.is_some();
        change(&mut f.figures, at, closed, |q| {
            q.latency_mean_s = q.latency_mean_s.map(|mean| mean * 100.0);
        })
    }),
    ("half the row of another machine", |f, at| {
        change(
            &mut f.figures,
            at,
            |_| true,
            |q| q.machine = Some("another".into()),
        )
    }),
    ("another median than the table's", |f, at| {
        let has = |q: &dyno_record::QuotedFigure| q.latency.is_some() && q.latency_p50_s.is_some();
        change(&mut f.figures, at, has, |q| {
            q.latency_p50_s = q.latency_p50_s.map(|median| median * 10.0);
        })
    }),
];

/// Places that are tried for each fault in each record.
const PLACES: usize = 8;

#[test]
fn faults_in_our_own_figures_are_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../results");
    let (mut put, mut missed) = (0, Vec::new());
    for dir in find_runs(&root).unwrap() {
        let report = build_stored(&RunDir::open(&dir).unwrap());
        let sound = figures_of(&report, &report.samples);
        let before: BTreeSet<String> = lint(&sound).iter().map(|f| format!("{f:?}")).collect();
        for (name, fault) in FAULTS {
            for at in 0..PLACES {
                let mut figures = sound.clone();
                // Places far apart are of different cases.
                if !fault(&mut figures, at * 7) {
                    break;
                }
                put += 1;
                let after = lint(&figures);
                if after.iter().all(|f| before.contains(&format!("{f:?}"))) {
                    missed.push(format!("{name}, place {at} of {}", dir.display()));
                }
            }
        }
    }
    let found = put - missed.len();
    println!("mutants: {found} of {put} found\n{missed:#?}");
    assert!(put > 300, "{put}");
    assert!(found * 100 >= put * 90, "{missed:#?}");
}
