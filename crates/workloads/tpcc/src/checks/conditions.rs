//! The twelve consistency conditions (clause 3.3.2).

use std::collections::BTreeMap;
use std::fmt;

use dyno_txn_api::{Database, Result};

use super::gather::{self, CustomerFacts, DistrictFacts, WarehouseFacts, Who};
use crate::scale::Scale;
use crate::schema::Tables;

/// How many violations of a condition are described; the others are only counted.
const DESCRIBED_MAX: usize = 20;

/// A consistency condition that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The condition's number in clause 3.3.2.
    pub condition: u8,
    /// The place, and the two sides that should be equal; or how many more places there are that
    /// are not described.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "condition {}: {}", self.condition, self.text)
    }
}

/// Checks all conditions and returns the violations. Of a condition with many of them some are
/// described, and one more says how many others there are.
pub fn consistency(db: &dyn Database, tables: &Tables, scale: &Scale) -> Result<Vec<Violation>> {
    let mut violations = Violations::default();
    let mut customers = BTreeMap::new();
    for number in 1..=scale.warehouses {
        let facts = gather::warehouse(db, tables, number, &mut customers)?;
        of_warehouse(number, &facts, scale, &mut violations);
        for (district, facts) in &facts.districts {
            of_district([number, *district], facts, &mut violations);
            of_orders([number, *district], facts, &mut violations);
            delivered(
                [number, *district],
                facts,
                &customers,
                scale,
                &mut violations,
            );
        }
    }
    // Last, because payments to any warehouse count for a customer.
    of_customers(&customers, &mut violations);
    Ok(violations.listed())
}

/// The violations that have been found so far.
#[derive(Default)]
struct Violations {
    /// At most [`DESCRIBED_MAX`] of each condition.
    described: Vec<Violation>,
    /// How often each condition was violated.
    counts: BTreeMap<u8, usize>,
}

impl Violations {
    /// Records a violation unless both sides are equal.
    fn equal<T: PartialEq + fmt::Display>(
        &mut self,
        condition: u8,
        at: impl fmt::Debug,
        (name, one): (&str, T),
        (other_name, other): (&str, T),
    ) {
        if one == other {
            return;
        }
        let count = self.counts.entry(condition).or_default();
        *count += 1;
        if *count <= DESCRIBED_MAX {
            let text = format!("{at:?}: {name} is {one}, {other_name} {other}");
            self.described.push(Violation { condition, text });
        }
    }

    /// The violations that are described, and how many others each condition has.
    fn listed(self) -> Vec<Violation> {
        let mut all = self.described;
        for (condition, count) in self.counts {
            let text = match count.saturating_sub(DESCRIBED_MAX) {
                0 => continue,
                1 => "1 more place where it does not hold".to_owned(),
                more => format!("{more} more places where it does not hold"),
            };
            all.push(Violation { condition, text });
        }
        all
    }
}

fn of_warehouse(number: u32, facts: &WarehouseFacts, scale: &Scale, violations: &mut Violations) {
    let districts = facts.districts.values();
    let of_districts: i64 = districts.clone().map(|district| district.ytd).sum();
    let paid: i64 = districts.map(|district| district.paid).sum();
    violations.equal(
        1,
        number,
        ("W_YTD", facts.ytd),
        ("the sum of D_YTD", of_districts),
    );
    violations.equal(
        8,
        number,
        ("W_YTD", facts.ytd),
        ("the sum of H_AMOUNT", paid),
    );
    let there = facts.districts.len() as u32;
    violations.equal(
        1,
        number,
        ("districts", there),
        ("loaded were", scale.districts),
    );
}

fn of_district(at: [u32; 2], facts: &DistrictFacts, violations: &mut Violations) {
    let last = facts
        .orders
        .keys()
        .last()
        .map_or(0, |order| u64::from(*order));
    violations.equal(
        2,
        at,
        ("D_NEXT_O_ID - 1", facts.next.wrapping_sub(1)),
        ("the largest O_ID", last),
    );
    if let (Some(first), Some(last_waiting)) = (facts.waiting.first(), facts.waiting.last()) {
        let last_waiting = u64::from(*last_waiting);
        violations.equal(
            2,
            at,
            ("the largest NO_O_ID", last_waiting),
            ("the largest O_ID", last),
        );
        let span = last_waiting + 1 - u64::from(*first);
        let count = facts.waiting.len() as u64;
        violations.equal(
            3,
            at,
            ("rows of NEW-ORDER", count),
            ("from the first to the last", span),
        );
    }
    let wanted: u64 = facts.orders.values().map(|order| order.lines).sum();
    let lines: u64 = facts.orders.values().map(|order| order.lines_found).sum();
    let lines = lines + facts.stray_lines;
    violations.equal(
        4,
        at,
        ("the sum of O_OL_CNT", wanted),
        ("rows of ORDER-LINE", lines),
    );
    violations.equal(
        9,
        at,
        ("D_YTD", facts.ytd),
        ("the sum of H_AMOUNT", facts.paid),
    );
}

fn of_orders(at: [u32; 2], facts: &DistrictFacts, violations: &mut Violations) {
    for (number, order) in &facts.orders {
        let at = [at[0], at[1], *number];
        let waiting = facts.waiting.contains(number);
        violations.equal(
            5,
            at,
            ("O_CARRIER_ID is set", order.delivered),
            ("it is not in NEW-ORDER", !waiting),
        );
        violations.equal(
            6,
            at,
            ("O_OL_CNT", order.lines),
            ("rows of ORDER-LINE", order.lines_found),
        );
        let delivered = if order.delivered {
            order.lines_found
        } else {
            0
        };
        violations.equal(
            7,
            at,
            ("lines with OL_DELIVERY_D", order.lines_delivered),
            ("by O_CARRIER_ID", delivered),
        );
    }
    for number in &facts.waiting {
        let there = facts.orders.contains_key(number);
        let at = [at[0], at[1], *number];
        violations.equal(5, at, ("in NEW-ORDER", true), ("in ORDER", there));
    }
}

/// Condition 11, in a form that also holds after deliveries, each of which counts at a customer of
/// the district.
fn delivered(
    at: [u32; 2],
    facts: &DistrictFacts,
    customers: &BTreeMap<Who, CustomerFacts>,
    scale: &Scale,
    violations: &mut Violations,
) {
    let deliveries: u64 = customers
        .range([at[0], at[1], 0]..=[at[0], at[1], u32::MAX])
        .map(|(_, customer)| customer.deliveries)
        .sum();
    let gone = facts.orders.len() as i64 - facts.waiting.len() as i64;
    let wanted = i64::from(scale.delivered()) + deliveries as i64;
    violations.equal(
        11,
        at,
        ("ORDER less NEW-ORDER", gone),
        ("delivered at first and since", wanted),
    );
}

fn of_customers(customers: &BTreeMap<Who, CustomerFacts>, violations: &mut Violations) {
    for (who, customer) in customers {
        let CustomerFacts {
            balance,
            ytd_payment,
            delivered,
            paid,
            ..
        } = *customer;
        violations.equal(
            10,
            who,
            ("C_BALANCE", balance),
            ("delivered less paid", delivered - paid),
        );
        let sum = balance + ytd_payment;
        violations.equal(
            12,
            who,
            ("C_BALANCE + C_YTD_PAYMENT", sum),
            ("delivered", delivered),
        );
    }
}
