//! Merges the groups of several threads.

use std::thread;

use crate::GroupError;
use crate::domain::NULL;
use crate::group_table::GroupTable;
use crate::layout::Layout;
use crate::partition::Partition;

/// The groups of another thread, with how its numbers are mapped.
struct Other {
    table: GroupTable,
    /// For each key a table from the other thread's numbers to those of the result.
    maps: Vec<Vec<u32>>,
    /// For each tag its groups, if it has not split them itself.
    by_tag: Option<Vec<Vec<usize>>>,
}

/// Merges the groups of threads, on as many threads. Returns `None` if there were no threads.
///
/// # Errors
/// There are more combinations than 64 bits can tell apart, or a thread panicked.
pub(crate) fn merge(tables: Vec<GroupTable>) -> Result<Option<GroupTable>, GroupError> {
    let threads = tables.len();
    let split = tables.iter().any(GroupTable::is_split);
    let mut tables = tables.into_iter();
    let Some(mut all) = tables.next() else {
        return Ok(None);
    };
    let mut others: Vec<Other> = tables.map(|table| Other::new(&mut all, table)).collect();
    all.fit()?;
    if split {
        // A thread that has split its groups had more combinations than a dense layout takes, and
        // `all` has at least those, so its layout is not dense either.
        all.split();
        for other in &mut others {
            other.by_tag = (!other.table.is_split()).then(|| other.table.by_tag());
        }
    }
    let (layout, partitions) = all.partitions_mut();
    // Each thread merges some partitions of all others, and no two threads write the same one. So
    // there are no locks.
    let share = partitions.len().div_ceil(threads);
    let others = others.as_slice();
    thread::scope(|scope| {
        let shares: Vec<_> = partitions
            .chunks_mut(share)
            .enumerate()
            .map(|(nth, partitions)| {
                scope.spawn(move || {
                    for (tag, partition) in (nth * share..).zip(partitions) {
                        others
                            .iter()
                            .for_each(|other| other.hand_over(tag, partition, layout));
                    }
                })
            })
            .collect();
        shares
            .into_iter()
            .try_for_each(|share| share.join().map_err(|_| GroupError::Panicked))
    })?;
    Ok(Some(all))
}

impl Other {
    /// Adds the values of the other thread's keys to those of `all`, and keeps their numbers there.
    fn new(all: &mut GroupTable, table: GroupTable) -> Self {
        let maps = all
            .domains
            .iter_mut()
            .zip(&table.domains)
            .map(|(mine, theirs)| {
                let mut map = Vec::with_capacity(theirs.size());
                map.push(NULL);
                let values = (1..theirs.size() as u32).map(|number| theirs.bytes(number));
                mine.number(values, |number| map.push(number));
                map
            });
        Self {
            maps: maps.collect(),
            table,
            by_tag: None,
        }
    }

    /// Adds the groups of one tag, or all groups if none were split, to `partition`.
    fn hand_over(&self, tag: usize, partition: &mut Partition, layout: &Layout) {
        let from = self.table.layout();
        let key = |theirs: &Partition, group| {
            let numbers = from.unpack(theirs.key(from, group));
            let numbers = numbers.zip(&self.maps);
            layout.pack(numbers.map(|(number, map)| map[number as usize]))
        };
        match (self.table.partitions(), &self.by_tag) {
            ([whole], Some(by_tag)) => {
                let groups = by_tag[tag].iter().copied();
                let groups = groups.map(|group| (group, key(whole, group)));
                partition.add_groups(layout, &whole.totals, groups);
            }
            (partitions, _) => {
                let theirs = &partitions[tag];
                let groups = theirs.held(from).map(|group| (group, key(theirs, group)));
                partition.add_groups(layout, &theirs.totals, groups);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::answer::Answer;
    use crate::query::ValueColumn;
    use crate::totals::{Totals, Values};

    /// Count, sum, least and greatest value by the values of the keys.
    type Model = BTreeMap<Vec<Option<Vec<u8>>>, (u64, i128, i64, i64)>;

    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % end
        }
    }

    /// A block of rows with keys of so many values each, added to `table` and to the model.
    fn add_block(random: &mut Random, sizes: &[u64], table: &mut GroupTable, model: &mut Model) {
        let rows = 1 + random.below(300) as usize;
        let mut key_of = |size: u64| {
            let value = random.below(size);
            (value > 0).then(|| format!("value {value}").into_bytes())
        };
        let rows: Vec<Vec<Option<Vec<u8>>>> = (0..rows)
            .map(|_| sizes.iter().map(|size| key_of(*size)).collect())
            .collect();
        let values: Vec<i64> = rows
            .iter()
            .map(|_| random.below(1 << 16) as i64 - (1 << 15))
            .collect();
        let mut numbers: Vec<Vec<u32>> = Vec::new();
        for (key, domain) in table.domains.iter_mut().enumerate() {
            let mut column = Vec::new();
            let keys = rows.iter().map(|row| row[key].as_deref());
            domain.number(keys, |number| column.push(number));
            numbers.push(column);
        }
        table.fit().unwrap();
        let packed: Vec<u64> = (0..rows.len())
            .map(|row| {
                let layout = table.layout();
                layout.pack(numbers.iter().map(|column| column[row]))
            })
            .collect();
        match table.whole() {
            Some((layout, whole)) => {
                let mut groups = vec![0; packed.len()];
                whole.numbers(layout, &packed, &mut groups);
                whole.totals.add(&groups, &[Values::Each(&values)]);
                table.split_if_many();
            }
            None => table.wait(&packed, &[&values]),
        }
        for (row, value) in rows.into_iter().zip(values) {
            let group = model.entry(row).or_insert((0, 0, i64::MAX, i64::MIN));
            group.0 += 1;
            group.1 += i128::from(value);
            group.2 = group.2.min(value);
            group.3 = group.3.max(value);
        }
    }

    fn compare(table: GroupTable, extremes: bool, model: &Model) {
        let answer = Answer::new(table);
        assert_eq!(answer.len(), model.len());
        for group in answer.groups() {
            let values = group.keys().enumerate().map(|(key, number)| {
                let domain = answer.domain(key).unwrap();
                domain.bytes(number).map(<[u8]>::to_vec)
            });
            let (count, sum, least, most) = model[&values.collect::<Vec<_>>()];
            assert_eq!((group.count(), group.sum(0)), (count, sum));
            if extremes {
                let expected = (i128::from(least), i128::from(most));
                assert_eq!((group.least(0), group.most(0)), expected);
            }
        }
    }

    #[test]
    fn threads_find_together_what_a_map_finds() {
        let mut split = [0; 2];
        for seed in 1..=120 {
            let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
            let sizes: Vec<u64> = (0..1 + random.below(3))
                .map(|_| [3, 40, 3000][random.below(3) as usize])
                .collect();
            let extremes = random.below(2) == 1;
            let value = ValueColumn {
                column: 0,
                sum: true,
                least: extremes,
                most: extremes,
            };
            let mut model = Model::new();
            let tables = (0..1 + random.below(4)).map(|_| {
                let totals = Totals::new(&[value], &[false], !extremes);
                let mut table = GroupTable::new(sizes.len(), 0, totals);
                // Some threads split early, some never.
                table.split_groups = [20, 500, 1 << 20][random.below(3) as usize];
                for _ in 0..random.below(20) {
                    add_block(&mut random, &sizes, &mut table, &mut model);
                }
                table.finish();
                split[usize::from(table.is_split())] += 1;
                table
            });
            let all = merge(tables.collect()).unwrap().unwrap();
            compare(all, extremes, &model);
        }
        assert!(split.iter().all(|times| *times > 20), "{split:?}");
        assert!(merge(Vec::new()).unwrap().is_none());
    }
}
