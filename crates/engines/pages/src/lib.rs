//! A store of compressed pages in memory, and the corpora that it is measured on.
//!
//! What it is: [`corpus`], pages of known classes, made by rule or taken from this machine.
//! What it is not: a device. Fronts (a memory region, NBD, ublk, FUSE) stand on the library.

pub mod corpus;

/// Bytes of a page, here and in every front.
pub const PAGE_BYTES: usize = 4096;
