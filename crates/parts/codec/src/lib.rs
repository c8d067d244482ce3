//! Inflate, checksums and page codecs.
