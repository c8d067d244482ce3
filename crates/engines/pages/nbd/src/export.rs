//! The exports of a server and their names.

use std::sync::Arc;

use dyno_pages_disk::Disk;

use crate::NbdError;
use crate::wire::MOST_NAME_BYTES;

/// A disk under a name that clients ask for.
#[derive(Debug, Clone)]
pub struct Export {
    /// The name, at most 4096 bytes, different from those of the other exports.
    pub name: String,
    /// A text for people who list exports, at most 4096 bytes.
    pub description: String,
    /// The disk; several exports may offer the same one.
    pub disk: Arc<Disk>,
    /// Whether writes, trims and zeroing are refused.
    pub read_only: bool,
}

/// All exports of a server. A client that names none gets the first one.
#[derive(Debug, Clone)]
pub struct Exports(Vec<Export>);

impl Exports {
    /// Checks names and keeps the order.
    ///
    /// # Errors
    /// [`NbdError::Export`] when the list is empty, two exports have one name, or a name or
    /// description is longer than 4096 bytes.
    pub fn new(exports: Vec<Export>) -> Result<Self, NbdError> {
        let wrong = |name: &str, reason| {
            Err(NbdError::Export {
                name: name.to_owned(),
                reason,
            })
        };
        if exports.is_empty() {
            return wrong("", "a server offers at least one");
        }
        for (at, export) in exports.iter().enumerate() {
            if exports[..at].iter().any(|other| other.name == export.name) {
                return wrong(&export.name, "the name is given twice");
            }
            if export.name.len().max(export.description.len()) > MOST_NAME_BYTES {
                return wrong(&export.name, "name or description is over 4096 bytes");
            }
        }
        Ok(Self(exports))
    }

    /// The exports in the order in which clients list them.
    pub fn all(&self) -> &[Export] {
        &self.0
    }

    /// The export of that name; the first one for an empty name.
    pub fn find(&self, name: &[u8]) -> Option<&Export> {
        let named = self.0.iter().find(|export| export.name.as_bytes() == name);
        named.or_else(|| self.0.first().filter(|_| name.is_empty()))
    }
}
