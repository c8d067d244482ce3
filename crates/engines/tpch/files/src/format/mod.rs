//! What a file format must do for a table to become files in it: encode pieces, each on one thread,
//! and put them into a file in their order.

pub(crate) mod orc;
pub(crate) mod ours;
pub(crate) mod parquet;
pub(crate) mod tbl;
pub(crate) mod text;

use dyno_tpch::{Batch, TextPool};

pub use crate::columns::{Columns, Source};
pub use crate::error::Refused;
pub use crate::place::Out;
pub use orc::Orc;

/// A format with its options, for one table.
pub trait Format: Sync {
    /// Makes pieces on one thread.
    type Encoder: Encode;
    /// Puts pieces into a file.
    type File: Append<Piece = <Self::Encoder as Encode>::Piece>;

    /// An encoder for a thread that begins with this table.
    fn encoder(&self) -> Result<Self::Encoder, Refused>;

    /// A file that begins.
    fn file(&self, out: Out) -> Result<Self::File, Refused>;
}

/// Makes pieces (row groups, stripes, blocks of lines) from batches.
pub trait Encode {
    /// What it makes.
    type Piece: Send;

    /// Takes the rows of a batch.
    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Refused>;

    /// Ends the piece that was begun.
    fn finish(&mut self) -> Result<Self::Piece, Refused>;
}

/// Takes pieces in the order of the file.
pub trait Append: Send {
    /// What it takes.
    type Piece: Send;

    /// Writes the next piece and says how many bytes it has.
    fn append(&mut self, piece: Self::Piece) -> Result<u64, Refused>;

    /// Writes what comes last and gives back where the bytes went.
    fn finish(self) -> Result<Out, Refused>;
}
