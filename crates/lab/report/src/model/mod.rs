//! What a report says, computed once, before anything is printed.

mod beside;
mod build;
mod cell;
mod chart;
mod figure;
mod figures;
mod flame;
mod guide;
mod latencies;
mod noise;
mod pairing;
mod report;
mod roofline;
mod samples;
mod sensed;
mod side_by_side;
mod steady;
mod table;
mod target;
mod variants;
mod why;

pub(crate) use beside::{TITLE as BESIDE_TITLE, is_interleaved};
pub(crate) use build::findings;
pub use build::{build, build_stored};
pub use cell::{Amount, Cell, FilledTable};
pub use chart::{Dot, Series};
pub(crate) use figure::best_known;
pub use figure::{Figure, Ratio};
pub use figures::figures_of;
pub(crate) use figures::percentiles;
pub use flame::Flame;
pub(crate) use guide::choice;
pub use latencies::{KeptLatencies, LatencyAt};
pub use noise::Noise;
pub(crate) use noise::noise_line;
pub(crate) use pairing::{
    band_of, best_ratio, better_of, deciding_ratio, error_of, ratio_between, ratio_to,
};
pub use report::{CaseReport, Report, Trouble, quoted as shell_word};
pub use roofline::{Roofline, RooflinePoint};
pub(crate) use samples::{group, value_of};
pub(crate) use sensed::rows as sensor_rows;
pub use steady::Steady;
pub(crate) use steady::{NOT_JUDGED, doubt};
pub(crate) use table::{spread_percent, spread_share, spread_text};
pub use target::TargetOutcome;
pub(crate) use target::{TITLE as TARGETS_TITLE, summary as targets_summary};
pub(crate) use why::TITLE as WHY_TITLE;
pub use why::{Cause, Trial};

/// The name under which our own programs run.
pub const OURS: &str = "dyno";
