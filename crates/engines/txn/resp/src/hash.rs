//! The value of a hash: fields in the order in which they were first set, as Redis keeps a small
//! one.
//!
//! A hash is kept in the form in which it is stored, so that a read of a row copies bytes once,
//! whatever the number of fields is. A field is found by walking from the first one on: an index
//! would have to be built by every command, because the row is all that is stored.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::arguments::{Reader, push_bytes};

/// From this many fields in one command on, they are found by an index that is made for it. A
/// search field by field would take as many steps as both numbers multiplied.
const FEW: usize = 8;
/// Bytes of a length.
const LENGTH: usize = 4;

/// The fields of a hash, with a value each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hash {
    /// Field after field: length (u32, little-endian), name, length, value.
    bytes: Vec<u8>,
    /// The number of fields.
    count: usize,
}

impl Hash {
    /// The hash that [`Hash::bytes`] returned; `None` for bytes of another form.
    pub fn from_bytes(bytes: &[u8]) -> Option<Hash> {
        let (mut reader, mut count) = (Reader(bytes), 0);
        while !reader.0.is_empty() {
            reader.bytes()?;
            reader.bytes()?;
            count += 1;
        }
        let bytes = bytes.to_vec();
        Some(Hash { bytes, count })
    }

    /// The content as it is stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends a field that is not there yet.
    pub fn append(&mut self, field: &[u8], value: &[u8]) {
        push_bytes(&mut self.bytes, field);
        push_bytes(&mut self.bytes, value);
        self.count += 1;
    }

    /// The number of fields, as `HLEN` returns it.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether all fields are gone, so that the key goes.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All fields with their values, in the order in which they were set.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut reader = Reader(&self.bytes);
        std::iter::from_fn(move || Some((reader.bytes()?, reader.bytes()?)))
    }

    /// The value of a field; `None` if it is not there.
    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        self.place(field).map(|place| &self.bytes[place])
    }

    /// Where the value of a field is among the bytes.
    fn place(&self, field: &[u8]) -> Option<Range<usize>> {
        let mut reader = Reader(&self.bytes);
        loop {
            let (name, value) = (reader.bytes()?, reader.bytes()?);
            if name == field {
                let end = self.bytes.len() - reader.0.len();
                return Some(end - value.len()..end);
            }
        }
    }

    /// The values of several fields, in the order in which they are named.
    pub fn get_many<'a>(&'a self, names: &[&[u8]]) -> Vec<Option<&'a [u8]>> {
        if names.len() < FEW {
            return names.iter().map(|name| self.get(name)).collect();
        }
        let index: HashMap<&[u8], &[u8]> = self.iter().collect();
        names.iter().map(|name| index.get(name).copied()).collect()
    }

    /// Sets fields to values, which are given in turn. Returns how many fields are new.
    pub fn set_many(&mut self, pairs: &[&[u8]]) -> usize {
        let before = self.len();
        if pairs.len() < 2 * FEW {
            for pair in pairs.chunks_exact(2) {
                self.set(pair[0], pair[1]);
            }
            return self.len() - before;
        }
        // A field may be named twice in one command. Its last value counts.
        let pairs = pairs.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        let mut new: HashMap<&[u8], &[u8]> = pairs.clone().collect();
        let mut next = Hash::default();
        for (field, value) in self.iter() {
            next.append(field, new.remove(field).unwrap_or(value));
        }
        for (field, _) in pairs {
            if let Some(value) = new.remove(field) {
                next.append(field, value);
            }
        }
        *self = next;
        self.len() - before
    }

    fn set(&mut self, field: &[u8], value: &[u8]) {
        let Some(place) = self.place(field) else {
            return self.append(field, value);
        };
        if place.len() == value.len() {
            self.bytes[place].copy_from_slice(value);
            return;
        }
        let mut stored = Vec::with_capacity(LENGTH + value.len());
        push_bytes(&mut stored, value);
        self.bytes.splice(place.start - LENGTH..place.end, stored);
    }

    /// Removes fields. Returns how many were there.
    pub fn remove_many(&mut self, names: &[&[u8]]) -> usize {
        let names: HashSet<&[u8]> = names.iter().copied().collect();
        let mut kept = Hash::default();
        for (name, value) in self.iter().filter(|(name, _)| !names.contains(name)) {
            kept.append(name, value);
        }
        let before = std::mem::replace(self, kept).len();
        before - self.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The obvious form of a hash.
    type Model = Vec<(Vec<u8>, Vec<u8>)>;

    #[derive(Debug, Clone)]
    enum Step {
        Set(Model),
        Remove(Vec<Vec<u8>>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let name = || prop::collection::vec(0..3u8, 0..3);
        let value = prop::collection::vec(any::<u8>(), 0..4);
        prop_oneof![
            prop::collection::vec((name(), value), 1..12).prop_map(Step::Set),
            prop::collection::vec(name(), 1..4).prop_map(Step::Remove),
        ]
    }

    fn set(model: &mut Model, field: &[u8], value: &[u8]) {
        match model.iter_mut().find(|(name, _)| name == field) {
            Some((_, old)) => *old = value.to_vec(),
            None => model.push((field.to_vec(), value.to_vec())),
        }
    }

    proptest! {
        /// Of one step after the other, with few fields in a command and with many.
        #[test]
        fn fields_are_those_of_the_obvious_form(steps in prop::collection::vec(step(), 1..8)) {
            let (mut hash, mut model) = (Hash::default(), Model::new());
            for step in steps {
                let before = model.len();
                match step {
                    Step::Set(pairs) => {
                        pairs.iter().for_each(|(field, value)| set(&mut model, field, value));
                        let pairs = pairs.iter().flat_map(|(field, value)| [&field[..], value]);
                        let new = hash.set_many(&pairs.collect::<Vec<_>>());
                        prop_assert_eq!(new, model.len() - before);
                    }
                    Step::Remove(names) => {
                        model.retain(|(field, _)| !names.contains(field));
                        let names: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
                        let removed = hash.remove_many(&names);
                        prop_assert_eq!(removed, before - model.len());
                    }
                }
                let of_model = model.iter().map(|(field, value)| (&field[..], &value[..]));
                prop_assert_eq!(hash.iter().collect::<Vec<_>>(), of_model.collect::<Vec<_>>());
                prop_assert_eq!((hash.len(), hash.is_empty()), (model.len(), model.is_empty()));
                let names: Vec<Vec<u8>> = (0..12).map(|n| vec![n % 3; usize::from(n) / 3]).collect();
                let names: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
                let singly: Vec<_> = names.iter().map(|name| hash.get(name)).collect();
                prop_assert_eq!(hash.get_many(&names), singly);
                prop_assert_eq!(Hash::from_bytes(hash.bytes()), Some(hash.clone()));
            }
        }
    }

    #[test]
    fn bytes_of_another_form_are_no_hash() {
        let mut hash = Hash::default();
        hash.append(b"field", b"value");
        for end in 1..hash.bytes().len() {
            assert_eq!(Hash::from_bytes(&hash.bytes()[..end]), None, "{end} bytes");
        }
    }
}
