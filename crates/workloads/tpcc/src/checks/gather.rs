//! Gathers what the conditions compare, in one pass over each table of a warehouse.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dyno_txn_api::{Database, Operations, Options, Result, Row, Scan, Transact};

use crate::schema::{
    Tables, customer_sums, district_order, each_line, history, key, numbers_of, order, ytd,
};

/// How long reading one warehouse may take.
const DEADLINE: Duration = Duration::from_secs(300);

/// A customer's warehouse, district and number.
pub(super) type Who = [u32; 3];

/// What is gathered of one order.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct OrderFacts {
    pub customer: u32,
    pub lines: u64,
    pub delivered: bool,
    /// Rows of ORDER-LINE that were found for it.
    pub lines_found: u64,
    pub lines_delivered: u64,
}

/// What is summed for a customer over all tables.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct CustomerFacts {
    pub balance: i64,
    pub ytd_payment: i64,
    pub deliveries: u64,
    /// Sum of the amounts of delivered lines, in cents.
    pub delivered: i64,
    /// Sum of the customer's payments, at any warehouse, in cents.
    pub paid: i64,
}

/// What is gathered of one district.
#[derive(Debug, Default)]
pub(super) struct DistrictFacts {
    pub ytd: i64,
    pub next: u64,
    pub paid: i64,
    pub waiting: BTreeSet<u32>,
    pub orders: BTreeMap<u32, OrderFacts>,
    /// Lines whose order is missing.
    pub stray_lines: u64,
}

/// What is gathered of one warehouse.
#[derive(Debug, Default)]
pub(super) struct WarehouseFacts {
    pub ytd: i64,
    pub districts: BTreeMap<u32, DistrictFacts>,
}

/// Reads a warehouse in one transaction, and adds to the sums of customers.
pub(super) fn warehouse(
    db: &dyn Database,
    tables: &Tables,
    number: u32,
    customers: &mut BTreeMap<Who, CustomerFacts>,
) -> Result<WarehouseFacts> {
    let options = Options {
        deadline: DEADLINE,
        read_only: true,
        ..Options::default()
    };
    let outcome = db.transact_with(&options, |t| {
        // The sums are new in each attempt: a transaction that is retried must not count rows
        // twice.
        let mut sums = BTreeMap::new();
        let facts = read(&mut *t, tables, number, &mut sums)?;
        Ok((facts, sums))
    })?;
    let (facts, sums) = outcome.value;
    for (who, sum) in sums {
        let known: &mut CustomerFacts = customers.entry(who).or_default();
        known.balance += sum.balance;
        known.ytd_payment += sum.ytd_payment;
        known.deliveries += sum.deliveries;
        known.delivered += sum.delivered;
        known.paid += sum.paid;
    }
    Ok(facts)
}

fn read<T: Operations + ?Sized>(
    t: &mut T,
    tables: &Tables,
    number: u32,
    sums: &mut BTreeMap<Who, CustomerFacts>,
) -> Result<WarehouseFacts> {
    let prefix = key(&[number]);
    let mut facts = WarehouseFacts::default();
    each(
        t,
        Scan::prefix(tables.warehouse_ytd, prefix.clone()),
        |_, row| {
            facts.ytd = row.i64(ytd::YTD)?;
            Ok(())
        },
    )?;
    each(
        t,
        Scan::prefix(tables.district_ytd, prefix.clone()),
        |at, row| {
            facts.district(at[1]).ytd = row.i64(ytd::YTD)?;
            Ok(())
        },
    )?;
    each(
        t,
        Scan::prefix(tables.district_order, prefix.clone()),
        |at, row| {
            facts.district(at[1]).next = row.u64(district_order::NEXT)?;
            Ok(())
        },
    )?;
    let scan = Scan::prefix(tables.history, prefix.clone()).columns(&[
        history::CUSTOMER_WAREHOUSE,
        history::CUSTOMER_DISTRICT,
        history::CUSTOMER,
        history::AMOUNT,
    ]);
    each(t, scan, |at, row| {
        let who = [row.u64(0)? as u32, row.u64(1)? as u32, row.u64(2)? as u32];
        // A customer may have paid at another warehouse, so sums of customers are complete only
        // after all warehouses.
        sums.entry(who).or_default().paid += row.i64(3)?;
        facts.district(at[1]).paid += row.i64(3)?;
        Ok(())
    })?;
    keys(t, Scan::prefix(tables.waiting, prefix.clone()), |at| {
        facts.district(at[1]).waiting.insert(at[2]);
    })?;
    orders(t, tables, &prefix, &mut facts)?;
    lines(t, tables, number, &mut facts, sums)?;
    let scan = Scan::prefix(tables.customer_sums, prefix).columns(&[
        customer_sums::BALANCE,
        customer_sums::YTD_PAYMENT,
        customer_sums::DELIVERIES,
    ]);
    each(t, scan, |at, row| {
        let sum = sums.entry([at[0], at[1], at[2]]).or_default();
        sum.balance += row.i64(0)?;
        sum.ytd_payment += row.i64(1)?;
        sum.deliveries += row.u64(2)?;
        Ok(())
    })?;
    Ok(facts)
}

fn orders<T: Operations + ?Sized>(
    t: &mut T,
    tables: &Tables,
    prefix: &[u8],
    facts: &mut WarehouseFacts,
) -> Result<()> {
    let scan = Scan::prefix(tables.order, prefix.to_vec()).columns(&[
        order::CUSTOMER,
        order::LINES,
        order::CARRIER,
    ]);
    each(t, scan, |at, row| {
        let found = OrderFacts {
            customer: row.u64(0)? as u32,
            lines: row.u64(1)?,
            delivered: row.get(2)?.kind().is_some(),
            ..OrderFacts::default()
        };
        facts.district(at[1]).orders.insert(at[2], found);
        Ok(())
    })
}

fn lines<T: Operations + ?Sized>(
    t: &mut T,
    tables: &Tables,
    number: u32,
    facts: &mut WarehouseFacts,
    sums: &mut BTreeMap<Who, CustomerFacts>,
) -> Result<()> {
    pages(
        t,
        Scan::prefix(tables.order_line, key(&[number])),
        |at, value| {
            each_line(tables.layout, at, value, |line| {
                let district = facts.district(line.district);
                let Some(order) = district.orders.get_mut(&line.order) else {
                    district.stray_lines += 1;
                    return Ok(());
                };
                order.lines_found += 1;
                if line.delivered.is_some() {
                    order.lines_delivered += 1;
                    let who = [number, line.district, order.customer];
                    sums.entry(who).or_default().delivered += line.amount;
                }
                Ok(())
            })
        },
    )
}

impl WarehouseFacts {
    fn district(&mut self, number: u32) -> &mut DistrictFacts {
        self.districts.entry(number).or_default()
    }
}

/// Calls a function with every row of a range, page by page, and with up to four numbers of its
/// key.
pub(super) fn each<T: Operations + ?Sized>(
    t: &mut T,
    scan: Scan,
    mut row: impl FnMut([u32; 4], Row<'_>) -> Result<()>,
) -> Result<()> {
    pages(t, scan, |key, value| {
        row(numbers_of(key), Row::parse(value)?)
    })
}

fn keys<T: Operations + ?Sized>(
    t: &mut T,
    scan: Scan,
    mut key: impl FnMut([u32; 4]),
) -> Result<()> {
    pages(t, scan, |bytes, _| {
        key(numbers_of(bytes));
        Ok(())
    })
}

/// Calls a function with every key and value of a range, page by page.
pub(super) fn pages<T: Operations + ?Sized>(
    t: &mut T,
    mut scan: Scan,
    mut found: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    loop {
        let page = t.scan(&scan)?;
        for row in &page.rows {
            found(&row.key, &row.value)?;
        }
        match page.next {
            Some(next) => scan = scan.after(next),
            None => return Ok(()),
        }
    }
}
