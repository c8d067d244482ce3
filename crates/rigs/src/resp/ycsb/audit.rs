//! Compares what is in the server after a run with what was acknowledged.

use std::collections::HashMap;

use super::mix::Mix;
use super::records::{self, FIELDS, LOADER, Version};
use super::worker::{Shared, Write};
use crate::resp::{RespError, connect};

/// Records that are read in one round trip.
const RECORDS_AT_ONCE: u64 = 100;

/// What was acknowledged, by the field that was written.
struct Acknowledged {
    /// When the last write of a field began.
    last: HashMap<(u64, usize), u64>,
    /// When each write ended.
    ended: HashMap<(u64, usize, Version), u64>,
}

impl Acknowledged {
    fn new<'a>(writes: impl Iterator<Item = &'a Write>) -> Acknowledged {
        let (mut last, mut ended) = (HashMap::new(), HashMap::new());
        for write in writes {
            let began = last.entry((write.record, write.field)).or_insert(0);
            *began = write.began_ns.max(*began);
            ended.insert((write.record, write.field, write.version), write.ended_ns);
        }
        Acknowledged { last, ended }
    }

    /// Whether a field may have this version at the end: it was written, and no other write of the
    /// field began after that one had ended.
    fn allows(&self, record: u64, field: usize, version: Version) -> bool {
        let last = self.last.get(&(record, field));
        if version.writer == LOADER {
            return last.is_none();
        }
        let ended = self.ended.get(&(record, field, version));
        matches!((ended, last), (Some(ended), Some(began)) if began <= ended)
    }
}

/// Reads all records and checks every field of them. No client may be working any more.
pub fn check<'a>(
    shared: &Shared,
    writes: impl Iterator<Item = &'a Write> + Clone,
) -> Result<(), RespError> {
    let acknowledged = Acknowledged::new(writes.clone());
    let mut client = connect(shared.port)?;
    let (records, mut modified) = (shared.population.count(), 0);
    for first in (0..records).step_by(RECORDS_AT_ONCE as usize) {
        let some = first..records.min(first + RECORDS_AT_ONCE);
        for record in some.clone() {
            client.push(&["HGETALL", &records::key(record)]);
        }
        client.send()?;
        for record in some {
            let versions = records::read(record, &client.reply()?)?;
            for (field, version) in versions.into_iter().enumerate() {
                modified += version.modified;
                if !acknowledged.allows(record, field, version) {
                    let text = format!(
                        "record {record}, field {field}: it has {version:?} at the end, and a \
                         later write was acknowledged"
                    );
                    return Err(RespError::Wrong(text));
                }
            }
        }
    }
    let done = writes.count();
    // Of what was read, modified and written back, each success has added one to a field.
    if shared.mix == Mix::F && modified != done as u64 {
        let text = format!("{done} modifications were acknowledged, and {modified} are there");
        return Err(RespError::Wrong(text));
    }
    Ok(())
}

/// Writes the records that are there before a run.
pub fn load(port: u16, records: u64) -> Result<(), RespError> {
    let version = Version {
        writer: LOADER,
        modified: 0,
    };
    let mut client = connect(port)?;
    for first in (0..records).step_by(RECORDS_AT_ONCE as usize) {
        let some = first..records.min(first + RECORDS_AT_ONCE);
        for record in some.clone() {
            client.push(&records::write(record, 0..FIELDS, version));
        }
        client.send()?;
        for _ in some {
            super::worker::expect(&client.reply()?, "OK")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_is_one_of_those_that_ended_last() {
        let write = |writer, began_ns, ended_ns| Write {
            record: 1,
            field: 2,
            version: Version {
                writer,
                modified: 0,
            },
            began_ns,
            ended_ns,
        };
        // The second and the third one were under way at the same time.
        let writes = [write(7, 10, 20), write(8, 30, 50), write(9, 40, 60)];
        let acknowledged = Acknowledged::new(writes.iter());
        let allows = |writer, record| {
            let version = write(writer, 0, 0).version;
            acknowledged.allows(record, 2, version)
        };
        assert!(!allows(7, 1), "it was overwritten");
        assert!(allows(8, 1) && allows(9, 1));
        assert!(!allows(LOADER, 1), "it was written");
        assert!(allows(LOADER, 2) && !allows(7, 2));
        assert!(!allows(10, 1), "it was not written");
    }
}
