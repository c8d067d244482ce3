//! GROUP BY and WHERE on dictionary codes, in place of a part of a DataFusion plan.
//!
//! The general plan makes a string of every row and hashes it. `dyno-grouping` computes filters and
//! keys once for each entry of a dictionary and adds rows up by code; here is what it takes to put
//! that under SQL: which plans it can do ([`CodedRule`]), DataFusion's own expressions as its
//! functions, and the operators: [`CodedAggregateExec`], and [`CodedSelectExec`] for rows that
//! are not grouped.
//!
//! What the rule does not know stays with the general plan, which is also what the tests compare it
//! with (`SET dyno.coded_aggregate = false`, `SET dyno.coded_select = false`).

mod batch;
mod conditions;
mod exec;
mod expression;
mod pages;
mod percentile;
mod prune;
mod rule;
mod select;
mod settle;
mod shape;
mod sources;
mod spec;
mod top;

pub use exec::CodedAggregateExec;
pub use rule::CodedRule;
pub use select::CodedSelectExec;
