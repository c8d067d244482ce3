//! The checker finds what is wrong, says where, and finds nothing in what is right.

mod good;
mod planted;
mod queue;
mod random;
