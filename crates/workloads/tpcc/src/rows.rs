//! The rows of the nine tables (clause 1.3). Money is in cents, rates in hundredths of a percent,
//! times in milliseconds since 1970.

use std::borrow::Cow;

/// A postal address, which several tables have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// First line of the street, 10 to 20 characters.
    pub street_1: String,
    /// Second line of the street, 10 to 20 characters.
    pub street_2: String,
    /// Name of the city, 10 to 20 characters.
    pub city: String,
    /// Abbreviation of the state, two letters.
    pub state: String,
    /// Zip code of nine digits, which ends with 11111.
    pub zip: String,
}

/// A row of WAREHOUSE, with its sum of payments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warehouse {
    /// Number of the warehouse, from 1.
    pub id: u32,
    /// Name of the warehouse, 6 to 10 characters.
    pub name: String,
    /// Address of the warehouse.
    pub address: Address,
    /// Tax, hundredths of a percent.
    pub tax: u32,
    /// Payments since the beginning, cents.
    pub ytd: i64,
}

/// A row of DISTRICT, with its sum of payments and its next order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct District {
    /// Number of its warehouse.
    pub warehouse: u32,
    /// Number within the warehouse, from 1.
    pub id: u32,
    /// Name of the district, 6 to 10 characters.
    pub name: String,
    /// Address of the district.
    pub address: Address,
    /// Tax, hundredths of a percent.
    pub tax: u32,
    /// Payments since the beginning, cents.
    pub ytd: i64,
    /// Number that its next order gets.
    pub next_order: u32,
}

/// A row of CUSTOMER, with the sums that payments and deliveries change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer {
    /// Number of the customer's warehouse.
    pub warehouse: u32,
    /// Number of the customer's district.
    pub district: u32,
    /// Number within the district, from 1.
    pub id: u32,
    /// The customer's first name, 8 to 16 characters.
    pub first: String,
    /// The customer's middle name, which is `OE` for all of them.
    pub middle: String,
    /// Last name, made of three syllables.
    pub last: String,
    /// Address of the customer.
    pub address: Address,
    /// Telephone number of 16 digits, without separators.
    pub phone: String,
    /// Time of the first purchase.
    pub since: i64,
    /// Credit: `GC` (good) or `BC` (bad).
    pub credit: String,
    /// Credit limit in cents, the same for all customers.
    pub credit_limit: i64,
    /// Discount in hundredths of a percent.
    pub discount: u32,
    /// Balance in cents, which may be negative.
    pub balance: i64,
    /// Sum of the customer's payments, in cents.
    pub ytd_payment: i64,
    /// How many payments the customer has made.
    pub payments: u32,
    /// How many orders were delivered to the customer.
    pub deliveries: u32,
    /// Free text, 300 to 500 characters.
    pub data: String,
}

/// A row of HISTORY, one payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Number of the warehouse that was paid.
    pub warehouse: u32,
    /// Number of the district that was paid.
    pub district: u32,
    /// The rest of the key: the terminal that wrote it, and its number there.
    pub unique: [u64; 2],
    /// Number of the customer's warehouse.
    pub customer_warehouse: u32,
    /// Number of the customer's district.
    pub customer_district: u32,
    /// Number of the customer in that district.
    pub customer: u32,
    /// Time of the payment, milliseconds since 1970.
    pub date: i64,
    /// Amount of the payment, in cents.
    pub amount: i64,
    /// Names of warehouse and district.
    pub data: String,
}

/// A row of NEW-ORDER: an order that is not delivered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Number of the order's warehouse.
    pub warehouse: u32,
    /// Number of the order's district.
    pub district: u32,
    /// Number of the order in its district.
    pub order: u32,
}

/// A row of ORDER, which is written once and gets a carrier later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Number of its warehouse.
    pub warehouse: u32,
    /// Number of its district.
    pub district: u32,
    /// Number within the district, from 1.
    pub id: u32,
    /// Number of the customer in that district.
    pub customer: u32,
    /// Time of entry, milliseconds since 1970.
    pub entered: i64,
    /// Number of the carrier; `None` until it is delivered.
    pub carrier: Option<u32>,
    /// How many lines the order has.
    pub lines: u32,
    /// Whether all lines come from its own warehouse.
    pub all_local: bool,
}

/// A row of ORDER-LINE, one item of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderLine<'a> {
    /// Number of its warehouse.
    pub warehouse: u32,
    /// Number of its district.
    pub district: u32,
    /// Number of its order in that district.
    pub order: u32,
    /// Number within the order, from 1.
    pub number: u32,
    /// Number of the item.
    pub item: u32,
    /// Number of the warehouse that supplied it.
    pub supply: u32,
    /// Time of delivery, milliseconds since 1970; `None` until then.
    pub delivered: Option<i64>,
    /// How many of the item were ordered.
    pub quantity: u32,
    /// Amount of the line, in cents.
    pub amount: i64,
    /// The stock's 24 letters for this district.
    pub info: Cow<'a, str>,
}

/// A row of ITEM, which all warehouses share and nothing changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Number of the item, from 1.
    pub id: u32,
    /// Number of the item's image, which nothing else refers to.
    pub image: u32,
    /// Name of the item, 14 to 24 characters.
    pub name: String,
    /// Price in cents, from 100 to 10,000.
    pub price: i64,
    /// Free text, 26 to 50 letters.
    pub data: String,
}

/// A row of STOCK, one item in one warehouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    /// Number of its warehouse.
    pub warehouse: u32,
    /// Number of the item.
    pub item: u32,
    /// How many are in stock; New Order adds 91 when fewer than 10 would be left.
    pub quantity: i64,
    /// 24 letters for each of the ten districts.
    pub districts: [String; 10],
    /// How many were sold since the beginning.
    pub ytd: u64,
    /// How many order lines took from it.
    pub orders: u32,
    /// How many of those were of other warehouses.
    pub remote: u32,
    /// Free text, 26 to 50 letters.
    pub data: String,
}
