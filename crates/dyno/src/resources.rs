//! Disk and memory of this machine, and whether a run fits them.

use std::path::Path;

use dyno_machine::{Root, available_memory_bytes, free_disk_bytes};
use dyno_record::Size;
use dyno_suite::{Definition, Needs, Preparer, Resources, show_bytes};

use crate::places;
use crate::systems::Chosen;

/// Free disk where `cache` is or would be, what the user grants of it, and free memory.
pub fn available(cache: &Path, granted_disk_bytes: Option<u64>) -> Resources {
    Resources {
        disk_bytes: free_disk_bytes(places::existing(cache)).ok(),
        granted_disk_bytes,
        memory_bytes: available_memory_bytes(&Root::system()),
    }
}

/// Refuses what does not fit, with the size that does if there is one.
pub fn check(
    needs: &Needs,
    resources: &Resources,
    suite: &Definition,
    chosen: &Chosen,
    (size, data): (Size, &Path),
) -> anyhow::Result<()> {
    let Err(error) = needs.check(resources) else {
        return Ok(());
    };
    let smaller: &[(Size, &str)] = match size {
        Size::Full => &[(Size::Quick, "--quick"), (Size::Tiny, "--tiny")],
        Size::Quick => &[(Size::Tiny, "--tiny")],
        Size::Tiny => &[],
    };
    for &(size, flag) in smaller {
        // The smaller sizes are tried from the largest on, so that the message names the most that
        // would fit.
        let planned = chosen.plan(suite, size)?;
        let preparer = Preparer::new(data, &planned, &chosen.systems);
        let needs = planned.needs(&|data, system| preparer.ready(data, system));
        if needs.check(resources).is_ok() {
            anyhow::bail!(
                "{error}; {flag} needs {} of disk and {} of memory",
                show_bytes(needs.disk_bytes),
                show_bytes(needs.memory_bytes)
            );
        }
    }
    Err(error.into())
}
