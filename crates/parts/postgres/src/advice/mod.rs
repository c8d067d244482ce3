//! Settings for a server that stores a log: each has a value for this machine and the reason for
//! it.
//!
//! Our own clusters are run with them; a server of the user's is compared with them. Whatever an
//! acknowledged write depends on (`fsync`, `full_page_writes`, `synchronous_commit`) is on, and is
//! said.

mod compare;
mod memory;
mod sessions;
mod wal;

pub use compare::{Difference, compare};

pub(crate) use wal::ahead_bytes;

use crate::machine_size::MachineSize;

/// A setting with the reason for its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The setting's name, as in `postgresql.conf`.
    pub name: &'static str,
    /// Its value, as in `postgresql.conf`, without quotes.
    pub value: String,
    /// The reason for the value, a sentence.
    pub why: String,
    /// Whether a change needs the server to be restarted.
    pub needs_restart: bool,
}

/// The settings for a machine. `lz4` says whether the server was built with it.
pub fn settings(size: &MachineSize, lz4: bool) -> Vec<Advice> {
    let mut all = wal::settings(size, lz4);
    all.extend(memory::settings(size));
    all.extend(sessions::settings());
    all
}

fn advice(name: &'static str, value: impl Into<String>, why: impl Into<String>) -> Advice {
    Advice {
        name,
        value: value.into(),
        why: why.into(),
        needs_restart: false,
    }
}

fn at_restart(name: &'static str, value: impl Into<String>, why: impl Into<String>) -> Advice {
    Advice {
        needs_restart: true,
        ..advice(name, value, why)
    }
}

const MIB: u64 = 1 << 20;

/// A size in whole MiB, as the server reads it.
fn mib(bytes: u64) -> String {
    format!("{}MB", bytes / MIB)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn value(size: &MachineSize, name: &str) -> String {
        let all = settings(size, true);
        all.into_iter().find(|a| a.name == name).unwrap().value
    }

    #[test]
    fn sizes_follow_the_machine_and_stay_within_bounds() {
        let mut size = MachineSize::small();
        assert_eq!(value(&size, "shared_buffers"), "64MB");
        assert_eq!(value(&size, "max_wal_size"), "512MB");
        size.memory_bytes = 24 << 30;
        size.disk_free_bytes = Some(100 << 30);
        assert_eq!(value(&size, "shared_buffers"), "3072MB");
        assert_eq!(value(&size, "max_wal_size"), "10240MB");
        size.memory_bytes = 1 << 40;
        size.disk_free_bytes = None;
        assert_eq!(value(&size, "shared_buffers"), "16384MB");
        assert_eq!(value(&size, "max_wal_size"), "2048MB");
    }

    #[test]
    fn each_setting_is_named_once_with_a_sentence_and_durability_is_on() {
        let size = MachineSize::small();
        let all = settings(&size, false);
        let names: HashSet<_> = all.iter().map(|a| a.name).collect();
        assert_eq!(names.len(), all.len());
        assert!(
            all.iter()
                .all(|a| a.why.len() > 20 && !a.why.contains('\n'))
        );
        for name in ["fsync", "full_page_writes", "synchronous_commit"] {
            assert_eq!(value(&size, name), "on");
        }
    }
}
