//! The traits of a file format, which encodes pieces of a table, each on one thread, and appends
//! them to a file in their order.

pub(crate) mod orc;
pub(crate) mod ours;
pub(crate) mod parquet;
pub(crate) mod tbl;
pub(crate) mod text;

use dyno_tpch::{Batch, TextPool};

pub use crate::columns::{Columns, Source};
pub use crate::error::Refused;
pub use crate::target::Out;
pub use orc::Orc;

/// A format with its options, for one file of a table.
pub trait Format: Sync {
    /// Encodes pieces on one thread.
    type Encoder: Encode;
    /// Appends pieces to a file.
    type File: Append<Piece = <Self::Encoder as Encode>::Piece>;

    /// Makes an encoder for a thread that begins with a file of this format.
    fn encoder(&self) -> Result<Self::Encoder, Refused>;

    /// Begins a file, with whatever its format has at the front.
    fn file(&self, out: Out) -> Result<Self::File, Refused>;
}

/// Encodes batches as pieces, which are row groups, stripes or blocks of lines.
pub trait Encode {
    /// A piece, ready to be written.
    type Piece: Send;

    /// Adds the rows of a batch to the current piece.
    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Refused>;

    /// Returns the current piece and begins the next one.
    fn finish(&mut self) -> Result<Self::Piece, Refused>;
}

/// Writes pieces in the order of the file.
pub trait Append: Send {
    /// A piece that an encoder has made.
    type Piece: Send;

    /// Writes the next piece and returns how many bytes it has.
    fn append(&mut self, piece: Self::Piece) -> Result<u64, Refused>;

    /// Writes the end of the file, such as a footer, and returns the output, which is not yet
    /// durable.
    fn finish(self) -> Result<Out, Refused>;
}
