//! The groups that a sort with a limit can't do without.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use datafusion::arrow::datatypes::DataType;
use dyno_grouping::{Answer, Group};

use super::spec::{Measure, Spec, Top};

/// Indexes of the groups that are among the first by the aggregate that is sorted by, with all that
/// are equal to the last of these: the other columns of the sort decide between them.
pub(super) fn kept(spec: &Spec, top: Top, answer: &Answer) -> Option<Vec<usize>> {
    let measure = *spec.measures.get(top.measure)?;
    let field = spec.schema.fields().get(spec.keys() + top.measure)?;
    let unsigned = field.data_type() == &DataType::UInt64;
    let order = |group: Group<'_>| {
        let order = order(measure, group, unsigned);
        // The complement turns the order around.
        if top.descending { order } else { !order }
    };
    // The limit comes from the statement and may be larger than any memory, so the heap grows as
    // groups arrive.
    let mut first: BinaryHeap<Reverse<i64>> = BinaryHeap::with_capacity(top.rows.min(1 << 16) + 1);
    for group in answer.groups() {
        let order = order(group);
        if first.len() < top.rows {
            first.push(Reverse(order));
        } else if let Some(mut last) = first.peek_mut()
            && order > last.0
        {
            *last = Reverse(order);
        }
    }
    let last = first.peek().map_or(i64::MIN, |last| last.0);
    let groups = answer.groups().enumerate();
    let kept = groups.filter(|(_, group)| order(*group) >= last);
    Some(kept.map(|(index, _)| index).collect())
}

/// An integer in the order of the measure's results as they are in the answer, where sums have
/// wrapped around.
fn order(measure: Measure, group: Group<'_>, unsigned: bool) -> i64 {
    let integer = |value: i128| {
        if unsigned {
            value as u64 as i64 ^ i64::MIN
        } else {
            value as i64
        }
    };
    match measure {
        Measure::Count => group.count() as i64,
        Measure::Sum(column) => integer(group.sum(column)),
        Measure::Min(column) => integer(group.least(column)),
        Measure::Max(column) => integer(group.most(column)),
        Measure::Avg(column) => {
            // The bits of positive floats are in order, those of negative ones in the other.
            let bits = (group.sum(column) as f64 / group.count() as f64).to_bits() as i64;
            bits ^ (bits >> 63) & i64::MAX
        }
        // Percentiles are not known of single groups.
        Measure::Percentile(_) => 0,
    }
}
