//! Reads archives from disk or standard input as blocks of whole lines.

mod hashing;
mod open;
mod text;
mod witness;
mod zip_entries;

pub use open::{Kind, Source, open_path, open_stream};
pub(crate) use text::BLOCK;
pub use text::TextSource;
pub use witness::Witness;

pub use hashing::hash_file;
