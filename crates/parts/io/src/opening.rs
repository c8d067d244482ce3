//! How a file is opened: what for, whether through the page cache, and when a write is stable.

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading a file that exists.
    Read,
    /// Reading and writing a file that exists.
    Update,
    /// Reading and writing a file made anew; an old one is emptied.
    Create,
}

/// Whether the page cache takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Through the page cache.
    Cached,
    /// Past it, with O_DIRECT.
    Direct,
}

/// When a write is on stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncing {
    /// After the next [`crate::Device::sync`].
    AtSync,
    /// When it ends: O_DSYNC, or in a [`crate::Queue`] perhaps an fdatasync behind each write.
    EachWrite,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// What for.
    pub access: Access,
    /// Whether the page cache takes part.
    pub caching: Caching,
    /// When a write is on stable storage.
    pub syncing: Syncing,
}
