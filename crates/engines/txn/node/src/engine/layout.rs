//! Which process and which of its threads has a partition.

use dyno_txn_core::message::PartitionId;

/// The partitions of a process: it is one of several that share them out in turn, and so do its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Which process this is, from 0, and of how many.
    pub part: u32,
    pub of: u32,
    pub threads: usize,
    /// Of all processes together.
    pub partitions: u32,
}

impl Layout {
    /// Whether this process has a partition of this number.
    pub fn is_here(&self, partition: PartitionId) -> bool {
        partition < self.partitions && partition % self.of == self.part
    }

    /// The partition's place among those of its process.
    pub fn local(&self, partition: PartitionId) -> usize {
        (partition / self.of) as usize
    }

    pub fn thread(&self, partition: PartitionId) -> usize {
        self.local(partition) % self.threads
    }

    /// The partition's place among those of its thread.
    pub fn place(&self, partition: PartitionId) -> usize {
        self.local(partition) / self.threads
    }

    /// The partition at a place of a thread.
    pub fn number(&self, thread: usize, place: usize) -> PartitionId {
        (place * self.threads + thread) as PartitionId * self.of + self.part
    }

    /// Those of this process.
    pub fn here(&self) -> impl Iterator<Item = PartitionId> {
        (self.part..self.partitions).step_by(self.of as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_is_at_one_place() {
        let mut seen = Vec::new();
        for part in 0..3 {
            let layout = Layout {
                part,
                of: 3,
                threads: 2,
                partitions: 14,
            };
            for partition in layout.here() {
                let (thread, place) = (layout.thread(partition), layout.place(partition));
                assert!(layout.is_here(partition));
                assert_eq!(layout.number(thread, place), partition);
                seen.push(partition);
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..14).collect::<Vec<_>>());
    }
}
