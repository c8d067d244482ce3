//! What a report says, computed once, before anything is printed.

mod build;
mod chart;
mod figure;
mod figures;
mod guide;
mod noise;
mod pairing;
mod report;
mod side_by_side;
mod steady;
mod table;
mod variants;

pub use build::{build, build_stored};
pub use chart::{Dot, Series};
pub use figure::{Figure, Ratio};
pub(crate) use figure::{best_known, group, value_of};
pub use figures::figures_of;
pub(crate) use figures::percentiles;
pub(crate) use guide::choice;
pub use noise::Noise;
pub(crate) use noise::noise_line;
pub(crate) use pairing::{band_of, best_ratio, better_of, ratio_between, ratio_to};
pub use report::{CaseReport, Report, Trouble, quoted as shell_word};
pub use steady::Steady;
pub(crate) use steady::{NOT_JUDGED, obstacle};
pub use table::{Amount, Cell, FilledTable};
pub(crate) use table::{deciding_ratio, spread_percent, spread_share, spread_text};

/// The name under which our own programs run.
pub const OURS: &str = "dyno";
