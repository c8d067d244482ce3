//! Sinks and sources for bytes.
