//! Which process hosts a partition, and on which of its threads.

use dyno_txn_core::message::PartitionId;

/// Partitions are dealt out to processes in turn, and those of a process to its threads in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The index of this process, from 0.
    pub part: u32,
    /// The number of processes.
    pub of: u32,
    pub threads: usize,
    /// Those of all processes together.
    pub partitions: u32,
}

impl Layout {
    /// Whether the partition exists and this process hosts it.
    pub fn is_here(&self, partition: PartitionId) -> bool {
        partition < self.partitions && partition % self.of == self.part
    }

    /// The partition's index among those of its process.
    pub fn index_in_process(&self, partition: PartitionId) -> usize {
        (partition / self.of) as usize
    }

    pub fn thread(&self, partition: PartitionId) -> usize {
        self.index_in_process(partition) % self.threads
    }

    /// The partition's index among those of its thread.
    pub fn slot(&self, partition: PartitionId) -> usize {
        self.index_in_process(partition) / self.threads
    }

    /// The partition in a slot of a thread.
    pub fn partition_at(&self, thread: usize, slot: usize) -> PartitionId {
        (slot * self.threads + thread) as PartitionId * self.of + self.part
    }

    /// The partitions of this process, in ascending order.
    pub fn here(&self) -> impl Iterator<Item = PartitionId> {
        (self.part..self.partitions).step_by(self.of as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_is_in_one_slot() {
        let mut seen = Vec::new();
        for part in 0..3 {
            let layout = Layout {
                part,
                of: 3,
                threads: 2,
                partitions: 14,
            };
            for partition in layout.here() {
                let (thread, slot) = (layout.thread(partition), layout.slot(partition));
                assert!(layout.is_here(partition));
                assert_eq!(layout.partition_at(thread, slot), partition);
                seen.push(partition);
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..14).collect::<Vec<_>>());
    }
}
