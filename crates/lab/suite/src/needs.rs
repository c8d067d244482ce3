//! What a plan needs of the machine, and whether the machine can hold it.

use crate::Error;
use crate::plan::Planned;

/// What a whole plan needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needs {
    /// Seconds to make data that is not there yet.
    pub prepare_s: f64,
    /// Seconds to verify and time all cases.
    pub run_s: f64,
    /// Bytes of data to make, and the largest scratch directory.
    pub disk_bytes: f64,
    /// Bytes of memory of the hungriest invocation.
    pub memory_bytes: f64,
}

/// What a run may use of the machine that it is planned for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resources {
    /// Bytes free where data and scratch directories go; `None` when that cannot be read.
    pub disk_bytes: Option<u64>,
    /// Bytes of disk that the user grants, where the user says.
    pub granted_disk_bytes: Option<u64>,
    /// Bytes of memory that programs may still take; `None` when that cannot be read.
    pub memory_bytes: Option<u64>,
}

impl Planned {
    /// What the plan needs, given the (data, system) pairs that lie ready.
    pub fn needs(&self, ready: &dyn Fn(&str, &str) -> bool) -> Needs {
        let (mut prepare_s, mut disk_bytes, mut memory_bytes) = (0.0, 0.0, 0.0f64);
        for data in &self.data {
            for system in data.systems.iter().filter(|s| !ready(&data.name, s)) {
                prepare_s += data.estimate.invocation_s(system);
                disk_bytes += data.estimate.disk_bytes;
                memory_bytes = memory_bytes.max(data.estimate.memory_bytes);
            }
        }
        let scratch = self.estimates.iter().map(|e| e.disk_bytes);
        let memory = self.estimates.iter().map(|e| e.memory_bytes);
        Needs {
            prepare_s,
            run_s: self.estimates.iter().map(|e| e.total_s).sum(),
            disk_bytes: disk_bytes + scratch.fold(0.0, f64::max),
            memory_bytes: memory.fold(memory_bytes, f64::max),
        }
    }
}

impl Needs {
    /// Refuses a plan that the machine cannot hold. What cannot be read does not refuse.
    ///
    /// # Errors
    /// [`Error::TooBig`] with the numbers.
    pub fn check(&self, resources: &Resources) -> Result<(), Error> {
        // A disk that is filled to the brim spoils the figures long before it refuses a write.
        const DISK_MARGIN: f64 = 1.1;
        let disk_bytes = self.disk_bytes * DISK_MARGIN;
        for (most, there) in [
            (resources.granted_disk_bytes, "--max-disk allows"),
            (resources.disk_bytes, "the disk has free"),
        ] {
            if let Some(most) = most
                && disk_bytes > most as f64
            {
                return Err(Error::TooBig(format!(
                    "it needs {} of disk, and {there} {}",
                    show_bytes(disk_bytes),
                    show_bytes(most as f64)
                )));
            }
        }
        if let Some(free) = resources.memory_bytes
            && self.memory_bytes > free as f64
        {
            return Err(Error::TooBig(format!(
                "it needs {} of memory, and {} are available",
                show_bytes(self.memory_bytes),
                show_bytes(free as f64)
            )));
        }
        Ok(())
    }
}

/// Bytes for people, in the unit that leaves a small number: `2.1 MB`.
pub fn show_bytes(bytes: f64) -> String {
    for (factor, unit) in [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")] {
        if bytes >= factor {
            return format!("{:.1} {unit}", bytes / factor);
        }
    }
    format!("{bytes:.0} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_is_refused_in_numbers() {
        let needs = Needs {
            prepare_s: 0.0,
            run_s: 1.0,
            disk_bytes: 10e9,
            memory_bytes: 2e9,
        };
        let resources = |disk, memory| Resources {
            disk_bytes: disk,
            granted_disk_bytes: None,
            memory_bytes: memory,
        };
        assert!(
            needs
                .check(&resources(Some(12_000_000_000), Some(3_000_000_000)))
                .is_ok()
        );
        assert!(needs.check(&resources(None, None)).is_ok());
        let e = needs
            .check(&resources(Some(5_000_000_000), None))
            .expect_err("disk");
        assert!(
            e.to_string()
                .contains("11.0 GB of disk, and the disk has free 5.0 GB"),
            "{e}"
        );
        let little = Resources {
            granted_disk_bytes: Some(1_000),
            ..resources(Some(12_000_000_000), None)
        };
        let e = needs.check(&little).expect_err("granted");
        assert!(
            e.to_string()
                .contains("11.0 GB of disk, and --max-disk allows 1.0 kB"),
            "{e}"
        );
        let e = needs
            .check(&resources(None, Some(1_000_000_000)))
            .expect_err("memory");
        assert!(
            e.to_string().contains("2.0 GB of memory, and 1.0 GB"),
            "{e}"
        );
    }
}
