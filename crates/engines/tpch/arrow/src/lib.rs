//! TPC-H tables as Arrow record batches, for programs that speak Arrow and as the first step of the
//! mode `baseline`.
//!
//! ```
//! use arrow::array::RecordBatchReader;
//! use dyno_tpch::{Generator, Scale, Table};
//! use dyno_tpch_arrow::Stream;
//!
//! let generator = Generator::new(Scale::new(0.01)?);
//! let stream = Stream::new(&generator, Table::Orders, 0..15_000)?;
//! assert_eq!(stream.schema().field(0).name(), "o_orderkey");
//! let rows: usize = stream.map(|batch| batch.map(|batch| batch.num_rows()).unwrap_or(0)).sum();
//! assert_eq!(rows, 15_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrays;
mod schema;
mod stream;

pub use arrays::record_batch;
pub use schema::schema;
pub use stream::Stream;
