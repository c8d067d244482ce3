//! Tests of reports and of all that is made from records, as one program: it is linked once.

#![allow(clippy::unwrap_used, reason = "a test stops where something is amiss")]

mod made_up;

mod beside;
mod choices;
mod claims;
mod compared;
mod corpus;
mod foreign;
mod history;
mod in_browser;
mod mutants;
mod own_records;
mod page_one;
mod printed;
mod rank;
mod reproduced;
mod rooflines;
mod rules;
mod schema;
mod seeds;
mod sensed;
mod site;
mod steadiness;
mod targets;
mod why;
mod workbook;
