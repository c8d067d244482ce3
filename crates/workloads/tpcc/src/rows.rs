//! The rows of the nine tables (clause 1.3). Money is in cents, rates in hundredths of a percent,
//! times in milliseconds since 1970.

use std::borrow::Cow;

/// A place (part of several rows).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// First line.
    pub street_1: String,
    /// Second line.
    pub street_2: String,
    /// City.
    pub city: String,
    /// Two letters.
    pub state: String,
    /// Nine digits.
    pub zip: String,
}

/// WAREHOUSE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warehouse {
    /// Number.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Address.
    pub address: Address,
    /// Tax, hundredths of a percent.
    pub tax: u32,
    /// Payments since the beginning, cents.
    pub ytd: i64,
}

/// DISTRICT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct District {
    /// Warehouse.
    pub warehouse: u32,
    /// Number.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Address.
    pub address: Address,
    /// Tax, hundredths of a percent.
    pub tax: u32,
    /// Payments since the beginning, cents.
    pub ytd: i64,
    /// Number of the next order.
    pub next_order: u32,
}

/// CUSTOMER.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer {
    /// Warehouse.
    pub warehouse: u32,
    /// District.
    pub district: u32,
    /// Number.
    pub id: u32,
    /// First name.
    pub first: String,
    /// Middle name.
    pub middle: String,
    /// Last name.
    pub last: String,
    /// Address.
    pub address: Address,
    /// 16 digits.
    pub phone: String,
    /// Time of the first purchase.
    pub since: i64,
    /// GC or BC.
    pub credit: String,
    /// Cents.
    pub credit_limit: i64,
    /// Hundredths of a percent.
    pub discount: u32,
    /// Cents.
    pub balance: i64,
    /// Cents.
    pub ytd_payment: i64,
    /// Payments.
    pub payments: u32,
    /// Deliveries.
    pub deliveries: u32,
    /// 300 to 500 characters.
    pub data: String,
}

/// HISTORY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Warehouse that was paid.
    pub warehouse: u32,
    /// District that was paid.
    pub district: u32,
    /// The rest of the key: who wrote it, and its number there.
    pub unique: [u64; 2],
    /// Customer's warehouse.
    pub customer_warehouse: u32,
    /// Customer's district.
    pub customer_district: u32,
    /// Customer.
    pub customer: u32,
    /// Time.
    pub date: i64,
    /// Cents.
    pub amount: i64,
    /// Names of warehouse and district.
    pub data: String,
}

/// NEW-ORDER: an order that is not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Warehouse.
    pub warehouse: u32,
    /// District.
    pub district: u32,
    /// Order.
    pub order: u32,
}

/// ORDER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Warehouse.
    pub warehouse: u32,
    /// District.
    pub district: u32,
    /// Number.
    pub id: u32,
    /// Customer.
    pub customer: u32,
    /// Time of entry.
    pub entered: i64,
    /// Carrier; None until it is delivered.
    pub carrier: Option<u32>,
    /// Lines.
    pub lines: u32,
    /// Whether all lines come from its own warehouse.
    pub all_local: bool,
}

/// ORDER-LINE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderLine<'a> {
    /// Warehouse.
    pub warehouse: u32,
    /// District.
    pub district: u32,
    /// Order.
    pub order: u32,
    /// Number within it, from 1.
    pub number: u32,
    /// Item.
    pub item: u32,
    /// Warehouse that supplied it.
    pub supply: u32,
    /// Time of delivery; None until then.
    pub delivered: Option<i64>,
    /// Quantity.
    pub quantity: u32,
    /// Cents.
    pub amount: i64,
    /// 24 letters of the stock's district.
    pub info: Cow<'a, str>,
}

/// ITEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Number.
    pub id: u32,
    /// Image.
    pub image: u32,
    /// Name.
    pub name: String,
    /// Cents.
    pub price: i64,
    /// 26 to 50 letters.
    pub data: String,
}

/// STOCK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    /// Warehouse.
    pub warehouse: u32,
    /// Item.
    pub item: u32,
    /// Quantity, may not be negative.
    pub quantity: i64,
    /// 24 letters for each of ten districts.
    pub districts: [String; 10],
    /// Sold since the beginning.
    pub ytd: u64,
    /// Orders.
    pub orders: u32,
    /// Orders from other warehouses.
    pub remote: u32,
    /// 26 to 50 letters.
    pub data: String,
}
