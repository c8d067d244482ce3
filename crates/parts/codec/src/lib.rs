//! Inflate, and in time the other byte codecs that engines share.

pub mod inflate;
