//! How a file is opened: for what access, whether through the page cache, and when a write is
//! stable.

/// Which operations a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads a file that exists.
    Read,
    /// Reads and writes a file that exists.
    Update,
    /// Reads and writes a new file; an old one of that name is emptied.
    Create,
}

/// Whether reads and writes go through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Through the page cache, with any position and length.
    Cached,
    /// Past the page cache (O_DIRECT), with aligned positions and lengths.
    Direct,
}

/// When a write is on stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncing {
    /// Once the next [`crate::Device::sync`] has returned.
    AtSync,
    /// When the write itself ends: by O_DSYNC, or in a [`crate::Queue`] perhaps by an fdatasync
    /// after each write.
    EachWrite,
}

/// All choices about how to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Which operations it is opened for.
    pub access: Access,
    /// Whether the page cache takes part.
    pub caching: Caching,
    /// When a write is on stable storage.
    pub syncing: Syncing,
}
