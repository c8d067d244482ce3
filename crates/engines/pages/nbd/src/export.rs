//! What is offered under which name.

use std::sync::Arc;

use dyno_pages_disk::Disk;

use crate::NbdError;
use crate::wire::MOST_NAME_BYTES;

/// A disk under a name.
#[derive(Debug, Clone)]
pub struct Export {
    /// What clients ask for.
    pub name: String,
    /// For people who list exports.
    pub description: String,
    /// The disk.
    pub disk: Arc<Disk>,
    /// Whether writing is refused.
    pub read_only: bool,
}

/// All that a server offers. A client that names none gets the first.
#[derive(Debug, Clone)]
pub struct Exports(Vec<Export>);

impl Exports {
    /// Offers `exports`.
    ///
    /// # Errors
    /// [`NbdError::Export`] when there is none, two have one name, or one is longer than 4096
    /// bytes.
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

    /// All of them.
    pub fn all(&self) -> &[Export] {
        &self.0
    }

    /// The one of that name; the first for no name.
    pub fn find(&self, name: &[u8]) -> Option<&Export> {
        let named = self.0.iter().find(|export| export.name.as_bytes() == name);
        named.or_else(|| self.0.first().filter(|_| name.is_empty()))
    }
}
