//! The value of a hash: fields in the order in which they were first set, as Redis keeps a small
//! one.

use std::collections::{HashMap, HashSet};

/// From this many fields in one command on, they are found by an index that is made for it. A
/// search field by field would take as many steps as both numbers multiplied.
const FEW: usize = 8;
/// Bytes of the two lengths of a field.
const LENGTHS: usize = 8;

/// The fields of a hash, with a value each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hash {
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes of all names and values with their lengths, as they are stored.
    bytes: usize,
}

impl Hash {
    /// Appends a field that is not there yet.
    pub fn append(&mut self, field: Vec<u8>, value: Vec<u8>) {
        self.bytes += LENGTHS + field.len() + value.len();
        self.fields.push((field, value));
    }

    /// The number of fields, as `HLEN` returns it.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether all fields are gone, so that the key goes.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Bytes of the content as it is stored.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// All fields with their values, in the order in which they were set.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields
            .iter()
            .map(|(field, value)| (&field[..], &value[..]))
    }

    /// The value of a field; `None` if it is not there.
    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        let found = self.fields.iter().find(|(name, _)| name == field);
        found.map(|(_, value)| &value[..])
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
        let mut index = HashMap::new();
        if pairs.len() >= 2 * FEW {
            let names = self.fields.iter().enumerate();
            index = names.map(|(at, (name, _))| (name.clone(), at)).collect();
        }
        for pair in pairs.chunks_exact(2) {
            let place = match pairs.len() >= 2 * FEW {
                true => index.get(pair[0]).copied(),
                false => self.fields.iter().position(|(name, _)| name == pair[0]),
            };
            match place {
                Some(at) => {
                    let value = &mut self.fields[at].1;
                    self.bytes = self.bytes - value.len() + pair[1].len();
                    *value = pair[1].to_vec();
                }
                None => {
                    // A field may be named twice in one command.
                    index.insert(pair[0].to_vec(), self.len());
                    self.append(pair[0].to_vec(), pair[1].to_vec());
                }
            }
        }
        self.len() - before
    }

    /// Removes fields. Returns how many were there.
    pub fn remove_many(&mut self, names: &[&[u8]]) -> usize {
        let names: HashSet<&[u8]> = names.iter().copied().collect();
        let before = self.len();
        self.fields.retain(|(name, _)| !names.contains(&name[..]));
        let bytes = self.iter().map(|(name, value)| name.len() + value.len());
        self.bytes = bytes.sum::<usize>() + LENGTHS * self.len();
        before - self.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_fields_are_set_as_few_are() {
        let names: Vec<String> = (0..40).map(|n| format!("f{}", n % 30)).collect();
        let pairs: Vec<&[u8]> = names
            .iter()
            .flat_map(|name| [name.as_bytes(), name.as_bytes()])
            .collect();
        let (mut at_once, mut singly) = (Hash::default(), Hash::default());
        assert_eq!(at_once.set_many(&pairs), 30);
        for pair in pairs.chunks(2) {
            singly.set_many(pair);
        }
        assert_eq!(at_once, singly);
        let wanted: Vec<&[u8]> = pairs[..20].to_vec();
        assert_eq!(
            at_once.get_many(&wanted),
            wanted
                .iter()
                .map(|name| at_once.get(name))
                .collect::<Vec<_>>()
        );
        assert_eq!(at_once.remove_many(&wanted), 10);
        assert_eq!((at_once.len(), at_once.bytes()), (20, 20 * (8 + 6)));
    }
}
