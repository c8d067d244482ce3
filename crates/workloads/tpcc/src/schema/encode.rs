//! Encodes rows as keys and values.

use dyno_txn_api::{Key, ValueRef, encode_row};

use super::{Tables, history_key, key, lines};
use crate::rows::{
    Address, Customer, District, History, Item, Order, OrderLine, Stock, Waiting, Warehouse,
};

/// A row that can be encoded for storage.
pub trait Stored {
    /// Appends keys and values, several for a row that is split.
    fn store(&self, tables: &Tables, out: &mut Vec<(Key, Vec<u8>)>);
}

fn number(value: u32) -> ValueRef<'static> {
    ValueRef::U64(u64::from(value))
}

fn address(address: &Address) -> [ValueRef<'_>; 5] {
    [
        ValueRef::Text(&address.street_1),
        ValueRef::Text(&address.street_2),
        ValueRef::Text(&address.city),
        ValueRef::Text(&address.state),
        ValueRef::Text(&address.zip),
    ]
}

impl Stored for Warehouse {
    fn store(&self, tables: &Tables, out: &mut Vec<(Key, Vec<u8>)>) {
        let mut row = vec![number(self.tax), ValueRef::Text(&self.name)];
        row.extend(address(&self.address));
        let at = key(&[self.id]);
        out.push((Key::new(tables.warehouse, at.clone()), encode_row(&row)));
        let sum = encode_row(&[ValueRef::I64(self.ytd)]);
        out.push((Key::new(tables.warehouse_ytd, at), sum));
    }
}

impl Stored for District {
    fn store(&self, tables: &Tables, out: &mut Vec<(Key, Vec<u8>)>) {
        let mut row = vec![ValueRef::Text(&self.name)];
        row.extend(address(&self.address));
        let at = key(&[self.warehouse, self.id]);
        out.push((Key::new(tables.district, at.clone()), encode_row(&row)));
        let sum = encode_row(&[ValueRef::I64(self.ytd)]);
        out.push((Key::new(tables.district_ytd, at.clone()), sum));
        // The tax never changes, but New Order reads it together with the number, so both are in
        // one row.
        let next = encode_row(&[number(self.tax), number(self.next_order)]);
        out.push((Key::new(tables.district_order, at), next));
    }
}

impl Stored for Customer {
    fn store(&self, tables: &Tables, out: &mut Vec<(Key, Vec<u8>)>) {
        let mut row = vec![
            number(self.warehouse),
            number(self.district),
            ValueRef::Text(&self.last),
            ValueRef::Text(&self.first),
            ValueRef::Text(&self.middle),
        ];
        row.extend(address(&self.address));
        row.extend([
            ValueRef::Text(&self.phone),
            ValueRef::Text(&self.credit),
            ValueRef::Text(&self.data),
            number(self.discount),
            ValueRef::I64(self.credit_limit),
            ValueRef::I64(self.since),
        ]);
        let at = key(&[self.warehouse, self.district, self.id]);
        out.push((Key::new(tables.customer, at.clone()), encode_row(&row)));
        let sums = encode_row(&[
            number(self.payments),
            number(self.deliveries),
            ValueRef::I64(self.balance),
            ValueRef::I64(self.ytd_payment),
        ]);
        out.push((Key::new(tables.customer_sums, at), sums));
    }
}

impl Stored for History {
    fn store(&self, tables: &Tables, out: &mut Vec<(Key, Vec<u8>)>) {
        let row = [
            number(self.customer_warehouse),
            number(self.customer_district),
            number(self.customer),
            ValueRef::I64(self.date),
            ValueRef::I64(self.amount),
            ValueRef::Text(&self.data),
        ];
        let at = history_key(self.warehouse, self.district, self.unique);
        out.push((Key::new(tables.history, at), encode_row(&row)));
    }
}

impl Stored for Waiting {
    fn store(&self, tables: &Tables, out: &mut Vec<(Key, Vec<u8>)>) {
        let at = key(&[self.warehouse, self.district, self.order]);
        // The key says everything, so the value is empty.
        out.push((Key::new(tables.waiting, at), Vec::new()));
    }
}

impl Stored for Order {
    fn store(&self, tables: &Tables, out: &mut Vec<(Key, Vec<u8>)>) {
        let row = [
            number(self.warehouse),
            number(self.district),
            number(self.customer),
            number(self.lines),
            number(u32::from(self.all_local)),
            ValueRef::I64(self.entered),
            self.carrier.map_or(ValueRef::Null, number),
        ];
        let at = key(&[self.warehouse, self.district, self.id]);
        out.push((Key::new(tables.order, at), encode_row(&row)));
    }
}

/// The lines of one order.
impl Stored for Vec<OrderLine<'_>> {
    fn store(&self, tables: &Tables, out: &mut Vec<(Key, Vec<u8>)>) {
        lines::store(tables, self, out);
    }
}

impl Stored for Item {
    fn store(&self, tables: &Tables, out: &mut Vec<(Key, Vec<u8>)>) {
        let row = [
            number(self.image),
            ValueRef::I64(self.price),
            ValueRef::Text(&self.name),
            ValueRef::Text(&self.data),
        ];
        let at = key(&[self.id]);
        out.push((Key::new(tables.item, at), encode_row(&row)));
    }
}

impl Stored for Stock {
    fn store(&self, tables: &Tables, out: &mut Vec<(Key, Vec<u8>)>) {
        let numbers = encode_row(&[
            ValueRef::I64(self.quantity),
            ValueRef::U64(self.ytd),
            number(self.orders),
            number(self.remote),
        ]);
        let at = key(&[self.warehouse, self.item]);
        out.push((Key::new(tables.stock, at.clone()), numbers));
        let texts = self.districts.iter().chain([&self.data]);
        let texts: Vec<_> = texts.map(|text| ValueRef::Text(text)).collect();
        out.push((Key::new(tables.stock_info, at), encode_row(&texts)));
    }
}
