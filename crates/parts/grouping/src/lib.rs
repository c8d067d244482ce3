//! Aggregation and selection over the columns of Parquet files that never touch a string of a row.
//!
//! The filters, keys and aggregates of a [`Query`] are functions of one column each. A function of
//! a dictionary-coded column is computed once for each entry of the dictionary. A row then costs a
//! look-up of its code for each filter and key, and additions into an array. Columns are decoded
//! only where a row is left that the filters before have chosen. Keys become values again when the
//! groups of all files and threads are merged. A [`Selection`] has no groups: it hands out the
//! chosen rows, with strings still as codes.
//!
//! This is not a query engine. It knows neither SQL nor its types. The planner of a query says what
//! the functions are ([`Mapping`], [`Test`]), and runs other queries elsewhere.
//!
//! Threads take row groups one by one, and each has groups of its own. Memory is accounted for at
//! every row group.

mod answer;
mod choice;
mod chosen;
mod column;
mod domain;
mod error;
mod group_table;
mod groups;
mod index;
mod layout;
mod lens;
mod merge;
mod names;
mod operand;
mod partition;
mod query;
mod scan;
mod selected;
mod slots;
mod totals;
mod worker;

pub use answer::{Answer, Group};
pub use domain::Domain;
pub use error::{BoxError, GroupError};
pub use query::{Filter, Inputs, Key, Mapping, Outputs, Query, Test, ValueColumn};
pub use scan::{Reserve, RowGroup, Scan, Settled, Source};
pub use selected::{Cells, Selected, Selection};
