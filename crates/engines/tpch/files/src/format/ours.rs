//! What tables have in common that go through our own writers, whatever the format.

use std::sync::Arc;

use crate::columns::Source;

/// A table in a format of ours, with that format's layout and where its columns come from.
pub struct Ours<L, S> {
    pub(super) layout: Arc<L>,
    source: S,
}

/// Columns on one thread, and the writer of pieces that takes them.
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

    /// An encoder around a writer of this layout.
    pub(super) fn encoder_of<W>(&self, writer: W) -> Columned<W, S::Columns> {
        Columned {
            columns: self.source.columns(),
            writer,
        }
    }
}
