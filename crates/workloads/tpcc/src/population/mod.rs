//! The initial population (clause 4.3.3.1). Each part has a random stream of its own, so several
//! loaders can make parts in any order and get the same rows.

use crate::random::{Random, Skew};
use crate::rows::{
    Address, Customer, District, History, Item, Order, OrderLine, Stock, Waiting, Warehouse,
};
use crate::scale::Scale;
use crate::text::{data, digits, last_name, letters, zip};

/// The time of all rows: 2026-01-01, so that loads at different times give the same rows.
pub const EPOCH_MS: i64 = 1_767_225_600_000;

/// What every customer has paid at the beginning, in cents.
const PAID: i64 = 1_000;

/// The parts that have a random stream of their own.
#[derive(Clone, Copy)]
enum RandomStream {
    Items = 1,
    Warehouse,
    Stock,
    District,
    Customers,
    Orders,
}

/// The parameters of the initial rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Population {
    /// Numbers of warehouses, customers and items.
    pub scale: Scale,
    /// Equal seeds give equal rows.
    pub seed: u64,
}

/// An order of the population with the rows that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedOrder {
    /// The row of ORDER.
    pub order: Order,
    /// The rows of ORDER-LINE, in order.
    pub lines: Vec<OrderLine<'static>>,
    /// The row of NEW-ORDER, if it is not delivered.
    pub waiting: Option<Waiting>,
}

impl Population {
    fn stream(&self, stream: RandomStream, of: &[u32]) -> Random {
        let mut path = vec![stream as u64];
        path.extend(of.iter().map(|number| u64::from(*number)));
        Random::stream(self.seed, &path)
    }

    /// All rows of ITEM, in order of numbers.
    pub fn items(&self) -> impl Iterator<Item = Item> + use<> {
        let mut random = self.stream(RandomStream::Items, &[]);
        (1..=self.scale.items).map(move |id| Item {
            id,
            image: random.within(1, 10_000),
            name: letters(&mut random, 14, 24),
            price: i64::from(random.within(100, 10_000)),
            data: data(&mut random),
        })
    }

    /// The row of WAREHOUSE with this number.
    pub fn warehouse(&self, id: u32) -> Warehouse {
        let mut random = self.stream(RandomStream::Warehouse, &[id]);
        Warehouse {
            id,
            name: letters(&mut random, 6, 10),
            address: address(&mut random),
            tax: random.within(0, 2_000),
            ytd: i64::from(self.scale.districts * self.scale.customers) * PAID,
        }
    }

    /// The stock of a warehouse.
    pub fn stock(&self, warehouse: u32) -> impl Iterator<Item = Stock> + use<> {
        let mut random = self.stream(RandomStream::Stock, &[warehouse]);
        (1..=self.scale.items).map(move |item| Stock {
            warehouse,
            item,
            quantity: i64::from(random.within(10, 100)),
            districts: std::array::from_fn(|_| letters(&mut random, 24, 24)),
            ytd: 0,
            orders: 0,
            remote: 0,
            data: data(&mut random),
        })
    }

    /// The row of DISTRICT with this number.
    pub fn district(&self, warehouse: u32, id: u32) -> District {
        let mut random = self.stream(RandomStream::District, &[warehouse, id]);
        District {
            warehouse,
            id,
            name: letters(&mut random, 6, 10),
            address: address(&mut random),
            tax: random.within(0, 2_000),
            ytd: i64::from(self.scale.customers) * PAID,
            next_order: self.scale.customers + 1,
        }
    }

    /// The customers of a district, each with its row of HISTORY.
    pub fn customers(
        &self,
        warehouse: u32,
        district: u32,
    ) -> impl Iterator<Item = (Customer, History)> + use<> {
        let mut random = self.stream(RandomStream::Customers, &[warehouse, district]);
        let names = self.scale.last_names();
        let skew = Skew::for_load(self.seed);
        (1..=self.scale.customers).map(move |id| {
            let name = if id <= names {
                // The first customers have one of each name, so that every name occurs (clause
                // 4.3.3.1).
                id - 1
            } else {
                skew.last_name(&mut random) % names
            };
            let customer = customer(&mut random, warehouse, district, id, name);
            let history = History {
                warehouse,
                district,
                // Terminals have random numbers, so 0 keeps these rows apart from those of runs.
                unique: [0, u64::from(id)],
                customer_warehouse: warehouse,
                customer_district: district,
                customer: id,
                date: EPOCH_MS,
                amount: PAID,
                data: letters(&mut random, 12, 24),
            };
            (customer, history)
        })
    }

    /// The orders of a district: one for each customer, with the customers in random order.
    pub fn orders(
        &self,
        warehouse: u32,
        district: u32,
    ) -> impl Iterator<Item = PlacedOrder> + use<> {
        let mut random = self.stream(RandomStream::Orders, &[warehouse, district]);
        let scale = self.scale;
        let mut customers: Vec<u32> = (1..=scale.customers).collect();
        // A permutation: every customer has exactly one order.
        random.shuffle(&mut customers);
        (1..=scale.customers).map(move |id| {
            let customer = customers[id as usize - 1];
            placed(&mut random, &scale, (warehouse, district, id), customer)
        })
    }
}

fn placed(
    random: &mut Random,
    scale: &Scale,
    (warehouse, district, id): (u32, u32, u32),
    customer: u32,
) -> PlacedOrder {
    let delivered = id <= scale.delivered();
    let order = Order {
        warehouse,
        district,
        id,
        customer,
        entered: EPOCH_MS,
        carrier: delivered.then(|| random.within(1, 10)),
        lines: random.within(5, 15),
        all_local: true,
    };
    let lines = (1..=order.lines)
        .map(|number| OrderLine {
            warehouse,
            district,
            order: id,
            number,
            item: random.within(1, scale.items),
            supply: warehouse,
            delivered: delivered.then_some(EPOCH_MS),
            quantity: 5,
            amount: if delivered {
                // Delivered lines cost nothing, so that the balances of customers match without
                // them (clause 4.3.3.1).
                0
            } else {
                i64::from(random.within(1, 999_999))
            },
            info: letters(random, 24, 24).into(),
        })
        .collect();
    let waiting = (!delivered).then_some(Waiting {
        warehouse,
        district,
        order: id,
    });
    PlacedOrder {
        order,
        lines,
        waiting,
    }
}

fn customer(random: &mut Random, warehouse: u32, district: u32, id: u32, name: u32) -> Customer {
    Customer {
        warehouse,
        district,
        id,
        first: letters(random, 8, 16),
        middle: "OE".to_owned(),
        last: last_name(name),
        address: address(random),
        phone: digits(random, 16, 16),
        since: EPOCH_MS,
        credit: if random.percent(10) { "BC" } else { "GC" }.to_owned(),
        credit_limit: 5_000_000,
        discount: random.within(0, 5_000),
        balance: -PAID,
        ytd_payment: PAID,
        payments: 1,
        deliveries: 0,
        data: letters(random, 300, 500),
    }
}

fn address(random: &mut Random) -> Address {
    Address {
        street_1: letters(random, 10, 20),
        street_2: letters(random, 10, 20),
        city: letters(random, 10, 20),
        state: letters(random, 2, 2),
        zip: zip(random),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn population() -> Population {
        Population {
            scale: Scale::specified(1),
            seed: 4,
        }
    }

    #[test]
    fn a_district_has_its_orders() {
        let orders: Vec<PlacedOrder> = population().orders(1, 2).collect();
        assert_eq!(orders.len(), 3_000);
        let customers: BTreeSet<u32> = orders.iter().map(|placed| placed.order.customer).collect();
        assert_eq!(customers.len(), 3_000);
        let waiting: Vec<u32> = orders
            .iter()
            .filter_map(|placed| placed.waiting.map(|waiting| waiting.order))
            .collect();
        assert_eq!(waiting, (2_101..=3_000).collect::<Vec<_>>());
        for placed in &orders {
            let delivered = placed.order.id <= 2_100;
            assert_eq!(placed.lines.len(), placed.order.lines as usize);
            assert_eq!(placed.order.carrier.is_some(), delivered);
            for line in &placed.lines {
                assert_eq!(line.delivered.is_some(), delivered);
                assert_eq!(line.amount == 0, delivered);
            }
        }
    }

    #[test]
    fn every_last_name_occurs_and_a_tenth_has_bad_credit() {
        let customers: Vec<Customer> = population()
            .customers(1, 1)
            .map(|(customer, _)| customer)
            .collect();
        let names: BTreeSet<&str> = customers.iter().map(|c| &*c.last).collect();
        assert_eq!(names.len(), 1_000);
        let bad = customers.iter().filter(|c| c.credit == "BC").count();
        assert!((230..370).contains(&bad), "{bad}");
    }

    #[test]
    fn a_part_is_the_same_whenever_it_is_made() {
        let first: Vec<Stock> = population().stock(1).take(50).collect();
        let again: Vec<Stock> = population().stock(1).take(50).collect();
        assert_eq!(first, again);
        let other: Vec<Stock> = population().stock(2).take(50).collect();
        assert_ne!(first, other);
    }
}
