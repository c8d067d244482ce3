//! Bugs put in on purpose, to prove that the checkers catch them. Without the feature
//! `planted-bugs` none can be switched on, and `Planted::has` is false at compile time.

/// A bug that can be switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Reads of rows are not recorded, so that an older write may slip below them.
    ReadCache,
    /// A write to a deleted row does not ask whether a scan has passed over it.
    DeletedRows,
    /// A push answers that an undecided transaction was aborted, without aborting it.
    Push,
    /// Recovery forgets that transactions were prepared here.
    Recovery,
    /// Finalizing a commit keeps all writes of a participant but the last.
    Finalize,
}

/// The bugs that are switched on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Planted {
    #[cfg(feature = "planted-bugs")]
    bug: Option<Bug>,
}

impl Planted {
    /// No bug.
    pub fn none() -> Self {
        Self::default()
    }

    /// This bug alone.
    #[cfg(feature = "planted-bugs")]
    pub fn one(bug: Bug) -> Self {
        Self { bug: Some(bug) }
    }

    /// Whether this bug is switched on.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn has(self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether this bug is switched on. Without the feature it never is.
    #[cfg(not(feature = "planted-bugs"))]
    pub(crate) fn has(self, _bug: Bug) -> bool {
        false
    }
}
