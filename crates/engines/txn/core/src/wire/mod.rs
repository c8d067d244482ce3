//! Binary encoding of messages and log records: little-endian numbers, lengths before what they
//! measure.
//!
//! Reading assumes hostile bytes: nothing panics, nothing is allocated by a length that was not
//! compared with the bytes that are there, nesting has a limit.

mod api_types;
mod bytes;

pub(crate) use bytes::{
    Reader, Wire, wire_enum, wire_struct, write_bytes, write_list, write_optional,
};
