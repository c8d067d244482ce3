//! Messages and log records as bytes, by [`dyno_wire`].

mod api_types;

use dyno_txn_api::{Code, Error, Result};

pub(crate) use dyno_wire::{wire_enum, wire_struct, write_bytes, write_optional};

/// The protocol of messages and log records.
pub(crate) struct Txn;

impl dyno_wire::Protocol for Txn {
    type Error = Error;

    #[cold]
    fn damaged(what: &'static str, left_bytes: usize) -> Error {
        let text = format!("bytes of a transaction {what}, {left_bytes} before their end");
        Error::new(Code::Damaged, text)
    }
}

pub(crate) type Reader<'a> = dyno_wire::Reader<'a, Txn>;

/// [`dyno_wire::Wire`] of this protocol alone, so that numbers, which are in every protocol, can be
/// written without its name.
pub(crate) trait Wire: dyno_wire::Wire<Txn> {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        dyno_wire::Wire::write(self, out);
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        dyno_wire::Wire::read(reader)
    }
}

impl<T: dyno_wire::Wire<Txn>> Wire for T {}

/// Writes a list as a `Vec` of its elements is written.
pub(crate) fn write_list<T: Wire>(list: &[T], out: &mut Vec<u8>) {
    T::write_list(list, out);
}
