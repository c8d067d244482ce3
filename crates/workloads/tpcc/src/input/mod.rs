//! The inputs of terminals (clauses 2.4.1 to 2.8.1), drawn from a seed, and their encoding as the
//! arguments of procedures.

mod bytes;

pub use bytes::BadInput;

use crate::random::{Random, Skew};
use crate::scale::Scale;

/// How an input names its customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// By the customer's number in the district.
    Id(u32),
    /// By the number of a last name: the middle one, by first name, of the customers that have it.
    LastName(u32),
}

/// A customer of a warehouse's district.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustomerRef {
    /// Number of the customer's warehouse.
    pub warehouse: u32,
    /// Number of the customer's district.
    pub district: u32,
    /// The customer in that district.
    pub who: Who,
}

/// A line of a new order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Number of the item; one above the last if the order is to be rolled back.
    pub item: u32,
    /// Number of the warehouse that supplies it.
    pub supply: u32,
    /// How many are ordered, 1 to 10.
    pub quantity: u32,
}

/// Input of New Order (clause 2.4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrder {
    /// Number of the home warehouse.
    pub warehouse: u32,
    /// Number of the district that takes the order.
    pub district: u32,
    /// Number of the customer, in that district.
    pub customer: u32,
    /// The 5 to 15 lines of the order.
    pub lines: Vec<Line>,
    /// Time of entry, milliseconds since 1970.
    pub entered_ms: i64,
}

/// Input of Payment (clause 2.5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// Number of the warehouse that is paid.
    pub warehouse: u32,
    /// Number of the district that is paid.
    pub district: u32,
    /// The paying customer; 15% of them belong to another warehouse.
    pub customer: CustomerRef,
    /// Amount in cents, 100 to 500,000.
    pub amount: i64,
    /// Time of the payment, milliseconds since 1970.
    pub paid_ms: i64,
    /// The terminal that wrote the row of HISTORY and its number there, because that table has no
    /// key in the specification.
    pub unique: [u64; 2],
}

/// Input of Order Status (clause 2.6.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderStatus {
    /// The customer whose last order is shown.
    pub customer: CustomerRef,
}

/// Input of Delivery (clause 2.7.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Number of the warehouse that delivers.
    pub warehouse: u32,
    /// Number of the carrier, 1 to 10.
    pub carrier: u32,
    /// Time of the delivery, milliseconds since 1970.
    pub delivered_ms: i64,
}

/// Input of Stock Level (clause 2.8.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockLevel {
    /// Number of the terminal's warehouse.
    pub warehouse: u32,
    /// Number of the terminal's district.
    pub district: u32,
    /// Stock below this is low, 10 to 20.
    pub threshold: u32,
}

/// The input of one transaction of any type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Places an order of several lines.
    NewOrder(NewOrder),
    /// Records a customer's payment to a district.
    Payment(Payment),
    /// Shows the customer's last order.
    OrderStatus(OrderStatus),
    /// Delivers the oldest order of each district.
    Delivery(Delivery),
    /// Counts the items of the last orders whose stock is low.
    StockLevel(StockLevel),
}

/// The five types of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Places an order (clause 2.4).
    NewOrder,
    /// Records a payment (clause 2.5).
    Payment,
    /// Shows a customer's last order (clause 2.6).
    OrderStatus,
    /// Delivers a warehouse's oldest orders (clause 2.7).
    Delivery,
    /// Counts items with low stock (clause 2.8).
    StockLevel,
}

impl Kind {
    /// All, in the order of the specification.
    pub const ALL: [Kind; 5] = [
        Kind::NewOrder,
        Kind::Payment,
        Kind::OrderStatus,
        Kind::Delivery,
        Kind::StockLevel,
    ];

    /// The name on the command line, in records and of the procedure.
    pub fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => "new-order",
            Kind::Payment => "payment",
            Kind::OrderStatus => "order-status",
            Kind::Delivery => "delivery",
            Kind::StockLevel => "stock-level",
        }
    }
}

impl Input {
    /// The warehouse of its terminal.
    pub fn warehouse(&self) -> u32 {
        match self {
            Input::NewOrder(input) => input.warehouse,
            Input::Payment(input) => input.warehouse,
            Input::OrderStatus(input) => input.customer.warehouse,
            Input::Delivery(input) => input.warehouse,
            Input::StockLevel(input) => input.warehouse,
        }
    }

    /// The type of transaction that takes this input.
    pub fn kind(&self) -> Kind {
        match self {
            Input::NewOrder(_) => Kind::NewOrder,
            Input::Payment(_) => Kind::Payment,
            Input::OrderStatus(_) => Kind::OrderStatus,
            Input::Delivery(_) => Kind::Delivery,
            Input::StockLevel(_) => Kind::StockLevel,
        }
    }
}

/// The types of transactions, and how often each is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// All five: 45, 43, 4, 4 and 4 percent (clause 5.2.3).
    Full,
    /// New Order and Payment, half each: what the original's report measured.
    NewOrderPayment,
}

impl Mix {
    fn draw(self, random: &mut Random) -> Kind {
        let percent = random.within(1, 100);
        match self {
            Mix::NewOrderPayment if percent <= 50 => Kind::NewOrder,
            Mix::NewOrderPayment => Kind::Payment,
            Mix::Full => match percent {
                1..=45 => Kind::NewOrder,
                46..=88 => Kind::Payment,
                89..=92 => Kind::OrderStatus,
                93..=96 => Kind::Delivery,
                _ => Kind::StockLevel,
            },
        }
    }
}

/// How the inputs of a run are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// The numbers of warehouses, customers and items to draw from.
    pub scale: Scale,
    /// The types of transactions and their shares.
    pub mix: Mix,
    /// Of a hundred customers, how many are named by their last name: 60 by the specification
    /// (clauses 2.5.1.2 and 2.6.1.2), 40 in the original's program.
    pub by_last_name: u32,
    /// The constants of the run's skewed numbers.
    pub skew: Skew,
}

/// A terminal, which belongs to one warehouse and one district.
#[derive(Debug, Clone)]
pub struct Terminal {
    draw: Draw,
    warehouse: u32,
    /// The district of Stock Level, which is always the same (clause 2.8.1.1).
    district: u32,
    random: Random,
    /// A number that no other terminal of any run has, and how many inputs it has entered so far.
    unique: [u64; 2],
}

impl Terminal {
    /// Terminal `number` of all: warehouses are assigned in turn, then districts. `run`
    /// distinguishes this run from others on the same database.
    pub fn new(draw: Draw, seed: u64, run: u64, number: u32) -> Terminal {
        let scale = draw.scale;
        Terminal {
            draw,
            warehouse: number % scale.warehouses + 1,
            district: number / scale.warehouses % scale.districts + 1,
            // Each terminal draws from a stream of its own, so its inputs do not depend on how
            // threads are scheduled.
            random: Random::stream(seed, &[0x7E, u64::from(number)]),
            unique: [Random::stream(run, &[0x1D, u64::from(number)]).bits(), 0],
        }
    }

    /// Draws the next input, entered at this time.
    pub fn next(&mut self, now_ms: i64) -> Input {
        self.unique[1] += 1;
        match self.draw.mix.draw(&mut self.random) {
            Kind::NewOrder => Input::NewOrder(self.new_order(now_ms)),
            Kind::Payment => Input::Payment(self.payment(now_ms)),
            Kind::OrderStatus => Input::OrderStatus(OrderStatus {
                customer: CustomerRef {
                    warehouse: self.warehouse,
                    district: self.any_district(),
                    who: self.who(),
                },
            }),
            Kind::Delivery => Input::Delivery(Delivery {
                warehouse: self.warehouse,
                carrier: self.random.within(1, 10),
                delivered_ms: now_ms,
            }),
            Kind::StockLevel => Input::StockLevel(StockLevel {
                warehouse: self.warehouse,
                district: self.district,
                threshold: self.random.within(10, 20),
            }),
        }
    }

    /// The pause before the next transaction in seconds: exponential with this mean, cut at ten
    /// times the mean (clause 5.2.5.4).
    pub fn think_s(&mut self, mean_s: f64) -> f64 {
        (-self.random.unit().ln() * mean_s).min(10.0 * mean_s)
    }

    fn any_district(&mut self) -> u32 {
        self.random.within(1, self.draw.scale.districts)
    }

    fn who(&mut self) -> Who {
        let Draw {
            scale,
            skew,
            by_last_name,
            ..
        } = self.draw;
        if self.random.percent(by_last_name) {
            Who::LastName(skew.last_name(&mut self.random) % scale.last_names())
        } else {
            Who::Id(skew.customer(&mut self.random, scale.customers))
        }
    }

    /// A warehouse other than the terminal's; its own if there is no other.
    fn other_warehouse(&mut self) -> u32 {
        let warehouses = self.draw.scale.warehouses;
        if warehouses == 1 {
            return self.warehouse;
        }
        let other = self.random.within(1, warehouses - 1);
        // Numbers from the own one on move up by one, so all others are equally likely.
        other + u32::from(other >= self.warehouse)
    }

    fn new_order(&mut self, now_ms: i64) -> NewOrder {
        let Draw { scale, skew, .. } = self.draw;
        let district = self.any_district();
        let customer = skew.customer(&mut self.random, scale.customers);
        let count = self.random.within(5, 15);
        let rolled_back = self.random.percent(1);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| Line {
                item: skew.item(&mut self.random, scale.items),
                supply: if self.random.percent(1) {
                    self.other_warehouse()
                } else {
                    self.warehouse
                },
                quantity: self.random.within(1, 10),
            })
            .collect();
        if rolled_back && let Some(last) = lines.last_mut() {
            // The last line, so that the transaction does all other work before it finds out
            // (clause 2.4.1.5).
            last.item = scale.items + 1;
        }
        NewOrder {
            warehouse: self.warehouse,
            district,
            customer,
            lines,
            entered_ms: now_ms,
        }
    }

    fn payment(&mut self, now_ms: i64) -> Payment {
        let district = self.any_district();
        let home = self.random.percent(85);
        let customer = CustomerRef {
            warehouse: if home {
                self.warehouse
            } else {
                self.other_warehouse()
            },
            district: if home { district } else { self.any_district() },
            who: self.who(),
        };
        Payment {
            warehouse: self.warehouse,
            district,
            customer,
            amount: i64::from(self.random.within(100, 500_000)),
            paid_ms: now_ms,
            unique: self.unique,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(mix: Mix, warehouses: u32) -> Terminal {
        let load = Skew::for_load(1);
        let draw = Draw {
            scale: Scale::specified(warehouses),
            mix,
            by_last_name: 60,
            skew: Skew::for_run(1, load),
        };
        Terminal::new(draw, 11, 0, 0)
    }

    #[test]
    fn the_full_mix_has_its_shares() {
        let mut terminal = terminal(Mix::Full, 4);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..100_000 {
            *counts.entry(terminal.next(0).kind()).or_insert(0) += 1;
        }
        for (kind, percent) in Kind::ALL.into_iter().zip([45, 43, 4, 4, 4]) {
            let count: i32 = counts[&kind];
            assert!((count - percent * 1_000).abs() < 700, "{kind:?}: {count}");
        }
    }

    #[test]
    fn remote_rolled_back_and_named_shares() {
        let mut terminal = terminal(Mix::NewOrderPayment, 4);
        let (mut orders, mut bad, mut lines, mut remote) = (0, 0, 0, 0);
        let (mut payments, mut away, mut named) = (0, 0, 0);
        for _ in 0..200_000 {
            match terminal.next(0) {
                Input::NewOrder(order) => {
                    orders += 1;
                    assert!((5..=15).contains(&order.lines.len()));
                    bad += u32::from(order.lines.iter().any(|line| line.item > 100_000));
                    lines += order.lines.len();
                    remote += order.lines.iter().filter(|line| line.supply != 1).count();
                }
                Input::Payment(payment) => {
                    payments += 1;
                    away += u32::from(payment.customer.warehouse != 1);
                    named += u32::from(matches!(payment.customer.who, Who::LastName(_)));
                }
                other => panic!("{other:?} is not of this mix"),
            }
        }
        let share = |part: f64, whole: f64| part / whole * 100.0;
        assert!((share(bad.into(), orders.into()) - 1.0).abs() < 0.15);
        assert!((share(remote as f64, lines as f64) - 1.0).abs() < 0.1);
        assert!((share(away.into(), payments.into()) - 15.0).abs() < 0.6);
        assert!((share(named.into(), payments.into()) - 60.0).abs() < 0.8);
    }

    #[test]
    fn inputs_survive_their_bytes_and_cut_bytes_are_refused() {
        let mut terminal = terminal(Mix::Full, 3);
        for _ in 0..2_000 {
            let input = terminal.next(1_700_000_000_000);
            let bytes = input.to_bytes();
            assert_eq!(Input::from_bytes(&bytes), Ok(input));
            for length in 0..bytes.len() {
                assert!(Input::from_bytes(&bytes[..length]).is_err());
            }
            assert!(Input::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
        }
    }

    #[test]
    fn one_warehouse_has_no_remote_ones() {
        let mut terminal = terminal(Mix::Full, 1);
        for _ in 0..5_000 {
            if let Input::NewOrder(order) = terminal.next(0) {
                assert!(order.lines.iter().all(|line| line.supply == 1));
            }
        }
    }
}
