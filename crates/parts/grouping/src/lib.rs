//! Aggregation and selection over the columns of Parquet files that never touch a string of a row.
//!
//! What it is: filters, keys and aggregates of a [`Query`], each a function of one column. A
//! function of a dictionary-coded column is computed once for each entry of the dictionary; a row
//! then costs a look-up of its code for each filter and key, and additions into an array. Columns
//! are decoded where a row is left that the filters before have chosen; keys become values again
//! when the groups of all files and threads are merged. Or no groups at all: a [`Selection`] hands
//! out the chosen rows, their strings still as codes. What it is not: a query engine. It knows
//! neither SQL nor its types; the planner of a query says what the functions are ([`Mapping`],
//! [`Test`]), and takes other queries elsewhere.
//!
//! Threads take row groups, each with groups of its own; memory is asked for at every row group.

mod answer;
mod choice;
mod chosen;
mod column;
mod domain;
mod error;
mod found;
mod groups;
mod index;
mod layout;
mod lens;
mod merge;
mod names;
mod part;
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
