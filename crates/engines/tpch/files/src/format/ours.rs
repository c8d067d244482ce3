//! What tables have in common that go through our own writers, whatever the format.

use std::sync::Arc;

use dyno_tpch::Scale;

use crate::columns::Columns;
use crate::job::Mode;

/// A table in a format of ours, with that format's layout.
pub(crate) struct Ours<L> {
    pub(super) layout: Arc<L>,
    mode: Mode,
    scale: Scale,
}

/// Columns on one thread, and the writer of pieces that takes them.
pub(crate) struct Columned<W> {
    pub(super) columns: Columns,
    pub(super) writer: W,
}

impl<L> Ours<L> {
    pub(super) fn with(layout: L, mode: Mode, scale: Scale) -> Ours<L> {
        Ours {
            layout: Arc::new(layout),
            mode,
            scale,
        }
    }

    /// An encoder around a writer of this layout.
    pub(super) fn encoder_of<W>(&self, writer: W) -> Columned<W> {
        Columned {
            columns: Columns::new(self.mode, &self.scale),
            writer,
        }
    }
}
