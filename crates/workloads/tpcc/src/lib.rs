//! The five transactions of TPC-C with their population and checks, on any engine of
//! `dyno-txn-api`.
//!
//! This is the workload of the specification, revision 5.11, as a library: rows ([`population`]),
//! inputs ([`input`]), transactions ([`transactions`]), loading ([`load`]), driving ([`drive`]) and
//! checks ([`checks`]). It is not an audited benchmark. Its figures are transactions per second,
//! which are not audited and not comparable with published results: there are no terminals unless
//! they are requested, and nothing is priced.
//!
//! ```
//! use dyno_tpcc::{Layout, Population, Scale, checks, load, transactions};
//! use dyno_txn_api::{Procedures, model::Model};
//!
//! let mut procedures = Procedures::new();
//! transactions::register(&mut procedures)?;
//! let db = Model::with(procedures);
//! let population = Population { scale: Scale::small(1), seed: 7 };
//! load::load(&db, Layout::Packed, population, 1, &load::Progress::default())?;
//! let (tables, population) = load::ready(&db)?;
//! assert_eq!(checks::consistency(&db, &tables, &population.scale)?, []);
//! # Ok::<(), dyno_txn_api::Error>(())
//! ```

pub mod checks;
pub mod drive;
pub mod input;
pub mod load;
pub mod population;
pub mod random;
pub mod rows;
pub mod schema;
pub mod text;
pub mod transactions;

mod scale;

pub use population::Population;
pub use scale::Scale;
pub use schema::Layout;
