//! What our own writers of all formats have in common.

use std::sync::Arc;

use crate::columns::Source;

/// A table in a format of ours, with the layout of its files and the source of its columns.
pub struct Ours<L, S> {
    pub(super) layout: Arc<L>,
    source: S,
}

/// The columns of one thread, and the writer that encodes them as pieces.
pub struct Columned<W, C> {
    pub(super) columns: C,
    pub(super) writer: W,
}

impl<L, S: Source> Ours<L, S> {
    pub(super) fn with(layout: L, source: S) -> Ours<L, S> {
        Ours {
            layout: Arc::new(layout),
            source,
        }
    }

    /// Makes an encoder around a writer of this layout.
    pub(super) fn encoder_of<W>(&self, writer: W) -> Columned<W, S::Columns> {
        Columned {
            columns: self.source.columns(),
            writer,
        }
    }
}
