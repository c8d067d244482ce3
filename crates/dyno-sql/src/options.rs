//! Session options of our own, set by `SET dyno.NAME = VALUE`.

// The macro's own accessors come without docs and with a pattern that clippy would write shorter.
#![allow(missing_docs)]

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;

extensions_options! {
    /// Options under the prefix `dyno`.
    pub struct DynoOptions {
        /// Whether a GROUP BY, with the filters below it, runs on dictionary codes where it can.
        pub coded_aggregate: bool, default = true
        /// Whether a WHERE that nothing is grouped above looks at dictionary codes where it can.
        pub coded_select: bool, default = true
    }
}

impl ConfigExtension for DynoOptions {
    const PREFIX: &'static str = "dyno";
}
