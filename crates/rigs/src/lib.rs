//! Bolts each engine to the lab.
