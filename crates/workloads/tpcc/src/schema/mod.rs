//! The nine tables (clause 1.3) as tables of the engine, and how they are split.
//!
//! Four rows of the specification are stored as several (clause 1.4.5 allows it). WAREHOUSE and
//! DISTRICT, because different transactions write different parts of them: the sums of payments,
//! and the number of DISTRICT's next order. CUSTOMER and STOCK, because what is written often is a
//! tenth of their bytes. Keys begin with the warehouse, which is what rows are spread over
//! partitions by; ITEM has no warehouse and is spread by its number. The lines of an order are one
//! row on key-value engines ([`Layout`]).

mod columns;
mod encode;
mod lines;

pub use columns::{
    customer, customer_sums, district, district_order, history, item, order, order_line, stock,
    stock_info, warehouse, ytd,
};
pub use encode::Stored;
pub use lines::{Layout, as_row, each_line, find_lines, lines_found, pack};

use dyno_txn_api::{
    Change, Code, Database, Key, Kind, Operations, Result, Rows, TableDef, TableId, Tuple,
};

/// Bytes of a key that determine its partition: the warehouse.
const PREFIX: u16 = 8;

/// Table numbers in a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tables {
    /// WAREHOUSE without W_YTD, which payments change.
    pub warehouse: TableId,
    /// W_YTD, the sum of a warehouse's payments.
    pub warehouse_ytd: TableId,
    /// DISTRICT without its sum, its tax and its next order.
    pub district: TableId,
    /// D_YTD, the sum of a district's payments.
    pub district_ytd: TableId,
    /// D_TAX and D_NEXT_O_ID, which New Order reads together.
    pub district_order: TableId,
    /// CUSTOMER without the sums that payments and deliveries change.
    pub customer: TableId,
    /// The columns of CUSTOMER that payments and deliveries change.
    pub customer_sums: TableId,
    /// HISTORY, one row for each payment.
    pub history: TableId,
    /// NEW-ORDER, the orders that are not delivered yet.
    pub waiting: TableId,
    /// ORDER, with an index by customer.
    pub order: TableId,
    /// ORDER-LINE, in the order of lines.
    pub order_line: TableId,
    /// How ORDER-LINE is stored.
    pub layout: Layout,
    /// ITEM, which is partitioned by its number.
    pub item: TableId,
    /// The numeric columns of STOCK, which New Order changes.
    pub stock: TableId,
    /// The text columns of STOCK, which never change.
    pub stock_info: TableId,
    /// What the database was loaded with, in one row.
    pub loaded: TableId,
}

/// The index of CUSTOMER by last and first name.
pub const CUSTOMER_BY_NAME: u16 = 0;
/// The index of ORDER by customer.
pub const ORDER_BY_CUSTOMER: u16 = 0;

/// Names of the tables, in the order of [`Tables`]. That of ORDER-LINE is the one of
/// [`Layout::Rows`].
pub const NAMES: [&str; 15] = [
    "tpcc-warehouse",
    "tpcc-warehouse-ytd",
    "tpcc-district",
    "tpcc-district-ytd",
    "tpcc-district-order",
    "tpcc-customer",
    "tpcc-customer-sums",
    "tpcc-history",
    "tpcc-new-order",
    "tpcc-order",
    "tpcc-order-line",
    "tpcc-item",
    "tpcc-stock",
    "tpcc-stock-info",
    "tpcc-loaded",
];

/// The names of a database's tables.
fn names(layout: Layout) -> [&'static str; NAMES.len()] {
    NAMES.map(|name| {
        if name == Layout::Rows.table_name() {
            layout.table_name()
        } else {
            name
        }
    })
}

impl Tables {
    /// Creates the tables in this layout, or finds those that exist in either of them.
    pub fn create(db: &dyn Database, layout: Layout) -> Result<Tables> {
        match Tables::find(db) {
            Err(error) if error.kind() == Code::NoSuchTable => {}
            found => return found,
        }
        let mut numbers = Vec::with_capacity(NAMES.len());
        for def in definitions(layout)? {
            numbers.push(db.create_table(&def)?);
        }
        Ok(Tables::numbered(&numbers, layout))
    }

    /// Finds the tables. The error names the first missing one.
    pub fn find(db: &dyn Database) -> Result<Tables> {
        Tables::look_up(|name| db.table(name).map(|table| table.id))
    }

    /// Finds the tables inside a transaction.
    pub fn within(transaction: &mut dyn Operations) -> Result<Tables> {
        Tables::look_up(|name| transaction.table(name))
    }

    fn look_up(mut number: impl FnMut(&str) -> Result<TableId>) -> Result<Tables> {
        let layout = match number(Layout::Packed.table_name()) {
            Err(error) if error.kind() == Code::NoSuchTable => Layout::Rows,
            found => found.map(|_| Layout::Packed)?,
        };
        let numbers: Result<Vec<TableId>> = names(layout).into_iter().map(number).collect();
        Ok(Tables::numbered(&numbers?, layout))
    }

    /// The numbers of all tables, in the order of [`NAMES`].
    pub fn numbers(&self) -> [TableId; NAMES.len()] {
        [
            self.warehouse,
            self.warehouse_ytd,
            self.district,
            self.district_ytd,
            self.district_order,
            self.customer,
            self.customer_sums,
            self.history,
            self.waiting,
            self.order,
            self.order_line,
            self.item,
            self.stock,
            self.stock_info,
            self.loaded,
        ]
    }

    fn numbered(of: &[TableId], layout: Layout) -> Tables {
        Tables {
            warehouse: of[0],
            warehouse_ytd: of[1],
            district: of[2],
            district_ytd: of[3],
            district_order: of[4],
            customer: of[5],
            customer_sums: of[6],
            history: of[7],
            waiting: of[8],
            order: of[9],
            order_line: of[10],
            layout,
            item: of[11],
            stock: of[12],
            stock_info: of[13],
            loaded: of[14],
        }
    }
}

/// Bytes of a key's parts: warehouse and district as wide as columns, which indexes begin with;
/// customers, orders and lines, which make keys long and are many, no wider than they must be.
const WIDTHS: [usize; 4] = [8, 8, 4, 2];

/// A key of up to four numbers, big-endian: warehouse, district, customer or order, line; or
/// warehouse and item; or item alone.
pub fn key(parts: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(WIDTHS.iter().sum());
    append_key(parts, &mut bytes);
    bytes
}

fn append_key(parts: &[u32], bytes: &mut Vec<u8>) {
    for (part, width) in parts.iter().zip(WIDTHS) {
        // Big-endian, so that the order of the bytes is that of the numbers.
        bytes.extend_from_slice(&u64::from(*part).to_be_bytes()[size_of::<u64>() - width..]);
    }
}

/// Keys of rows that are read together, in one buffer.
pub(crate) struct Keys {
    bytes: Vec<u8>,
    /// The table of each key, and the end of the key in the buffer.
    list: Vec<(TableId, usize)>,
}

impl Keys {
    /// An empty list with room for `keys` keys.
    pub fn with_capacity(keys: usize) -> Keys {
        Keys {
            bytes: Vec::with_capacity(keys * WIDTHS.iter().sum::<usize>()),
            list: Vec::with_capacity(keys),
        }
    }

    /// Appends the key of a row.
    pub fn push(&mut self, table: TableId, parts: &[u32]) {
        append_key(parts, &mut self.bytes);
        self.list.push((table, self.bytes.len()));
    }

    /// Reads the rows in one call.
    pub fn get(&self, transaction: &mut dyn Operations) -> Result<Rows> {
        transaction.get_many(&self.listed())
    }

    /// Writes, then reads the rows, in one call.
    pub fn get_after(
        &self,
        write: (Key, Change),
        transaction: &mut dyn Operations,
    ) -> Result<Rows> {
        transaction.write_then_get(vec![write], &self.listed())
    }

    fn listed(&self) -> Vec<(TableId, &[u8])> {
        let mut start = 0;
        let keys = self.list.iter().map(|&(table, end)| {
            let key = &self.bytes[start..end];
            start = end;
            (table, key)
        });
        keys.collect()
    }
}

/// The numbers of a key; 0 for those that it lacks.
pub fn numbers_of(key: &[u8]) -> [u32; 4] {
    let mut rest = key;
    WIDTHS.map(|width| {
        let (part, behind) = rest.split_at(width.min(rest.len()));
        rest = behind;
        part.iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte))
    })
}

/// The key of a row of HISTORY.
pub fn history_key(warehouse: u32, district: u32, unique: [u64; 2]) -> Vec<u8> {
    Tuple::after(key(&[warehouse, district]))
        .u64(unique[0])
        .u64(unique[1])
        .finish()
}

const ADDRESS: [&str; 5] = ["street_1", "street_2", "city", "state", "zip"];

/// The definitions, in the order of [`NAMES`].
fn definitions(layout: Layout) -> Result<Vec<TableDef>> {
    // All tables but ITEM begin their keys with the warehouse, so all rows of a warehouse are in
    // one partition.
    let tables = names(layout).map(|name| TableDef::hash(name, PREFIX));
    let [
        warehouse,
        warehouse_ytd,
        district,
        district_ytd,
        district_order,
        customer,
        customer_sums,
        history,
        waiting,
        order,
        order_line,
        item,
        stock,
        stock_info,
        loaded,
    ] = tables;
    Ok(vec![
        texts(texts(numbers(warehouse, &["tax"]), &["name"]), &ADDRESS),
        money(warehouse_ytd, &["ytd"]),
        texts(texts(district, &["name"]), &ADDRESS),
        money(district_ytd, &["ytd"]),
        numbers(district_order, &["tax", "next_o_id"]),
        customer_columns(customer)?,
        money(
            numbers(customer_sums, &["payment_cnt", "delivery_cnt"]),
            &["balance", "ytd_payment"],
        ),
        texts(
            money(
                numbers(history, &["c_w_id", "c_d_id", "c_id"]),
                &["date", "amount"],
            ),
            &["data"],
        ),
        waiting,
        order_columns(order)?,
        match layout {
            Layout::Packed => order_line,
            Layout::Rows => order_line_columns(order_line),
        },
        texts(
            money(numbers(item, &["im_id"]), &["price"]),
            &["name", "data"],
        ),
        numbers(
            money(stock, &["quantity"]),
            &["ytd", "order_cnt", "remote_cnt"],
        ),
        stock_info_columns(stock_info),
        numbers(
            loaded,
            &[
                "warehouses",
                "districts",
                "customers",
                "items",
                "seed",
                "complete",
            ],
        ),
    ])
}

fn customer_columns(table: TableDef) -> Result<TableDef> {
    let table = numbers(table, &["w_id", "d_id"]);
    let table = texts(texts(table, &["last", "first", "middle"]), &ADDRESS);
    let table = texts(table, &["phone", "credit", "data"]);
    let table = numbers(table, &["discount"]);
    money(table, &["credit_lim", "since"]).index(
        "by-name",
        &["w_id", "d_id", "last", "first"],
        2 * PREFIX,
    )
}

fn order_columns(table: TableDef) -> Result<TableDef> {
    let table = numbers(table, &["w_id", "d_id", "c_id", "ol_cnt", "all_local"]);
    money(table, &["entry_d"])
        // An order has no carrier until it is delivered. The index has no such column, so Delivery
        // does not move an entry.
        .nullable("carrier_id", Kind::U64)
        .index("by-customer", &["w_id", "d_id", "c_id"], 2 * PREFIX)
}

fn order_line_columns(table: TableDef) -> TableDef {
    let table = numbers(table, &["i_id", "supply_w_id", "quantity"]);
    money(table, &["amount"])
        .nullable("delivery_d", Kind::I64)
        .column("dist_info", Kind::Text)
}

fn stock_info_columns(mut table: TableDef) -> TableDef {
    for district in 1..=10 {
        table = texts(table, &[&format!("dist_{district:02}")]);
    }
    texts(table, &["data"])
}

fn numbers(table: TableDef, names: &[&str]) -> TableDef {
    with(table, names, Kind::U64)
}

fn money(table: TableDef, names: &[&str]) -> TableDef {
    with(table, names, Kind::I64)
}

fn texts(table: TableDef, names: &[&str]) -> TableDef {
    with(table, names, Kind::Text)
}

fn with(table: TableDef, names: &[&str], kind: Kind) -> TableDef {
    let each = |table: TableDef, name: &&str| table.column(name, kind);
    names.iter().fold(table, each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_numbers_that_transactions_use() {
        let defs = definitions(Layout::Rows).expect("they are well formed");
        let number = |table: usize, name: &str| {
            defs[table]
                .column_number(name)
                .expect("a column of the table")
        };
        assert_eq!(number(0, "tax"), warehouse::TAX);
        assert_eq!(number(0, "name"), warehouse::NAME);
        assert_eq!(number(2, "name"), district::NAME);
        assert_eq!(number(4, "next_o_id"), district_order::NEXT);
        for (name, column) in [
            ("last", customer::LAST),
            ("first", customer::FIRST),
            ("credit", customer::CREDIT),
            ("data", customer::DATA),
            ("discount", customer::DISCOUNT),
        ] {
            assert_eq!(number(5, name), column, "{name}");
        }
        for (name, column) in [
            ("payment_cnt", customer_sums::PAYMENTS),
            ("delivery_cnt", customer_sums::DELIVERIES),
            ("balance", customer_sums::BALANCE),
            ("ytd_payment", customer_sums::YTD_PAYMENT),
        ] {
            assert_eq!(number(6, name), column, "{name}");
        }
        assert_eq!(number(7, "amount"), history::AMOUNT);
        for (name, column) in [
            ("c_id", order::CUSTOMER),
            ("ol_cnt", order::LINES),
            ("carrier_id", order::CARRIER),
            ("entry_d", order::ENTERED),
        ] {
            assert_eq!(number(9, name), column, "{name}");
        }
        for (name, column) in [
            ("i_id", order_line::ITEM),
            ("amount", order_line::AMOUNT),
            ("delivery_d", order_line::DELIVERED),
        ] {
            assert_eq!(number(10, name), column, "{name}");
        }
        assert_eq!(number(11, "price"), item::PRICE);
        for (name, column) in [
            ("quantity", stock::QUANTITY),
            ("ytd", stock::YTD),
            ("order_cnt", stock::ORDERS),
            ("remote_cnt", stock::REMOTE),
        ] {
            assert_eq!(number(12, name), column, "{name}");
        }
        for (name, column) in [
            ("dist_01", stock_info::DISTRICT_1),
            ("dist_10", stock_info::DISTRICT_1 + 9),
            ("data", stock_info::DATA),
        ] {
            assert_eq!(number(13, name), column, "{name}");
        }
    }

    #[test]
    fn keys_are_in_the_order_of_their_numbers_and_lead_back() {
        let line = [7, 10, u32::MAX, 15];
        assert_eq!(numbers_of(&key(&line)), line);
        assert_eq!(numbers_of(&key(&[7, 100_000])), [7, 100_000, 0, 0]);
        assert!(key(&[1, 2, 255, 9]) < key(&[1, 2, 256, 1]));
        assert!(key(&[1, 2, 3]) < key(&[1, 2, 3, 1]));
    }

    #[test]
    fn definitions_are_accepted_and_named_as_they_should() {
        let defs_of = |layout| definitions(layout).expect("they are well formed");
        for layout in [Layout::Packed, Layout::Rows] {
            let defs = defs_of(layout);
            let named: Vec<&str> = defs.iter().map(|def| &*def.name).collect();
            assert_eq!(named, names(layout));
            defs.iter().for_each(|def| def.check().expect(&def.name));
        }
        assert_eq!(names(Layout::Rows), NAMES);
        // A table has one name for each form of its values, so that none is taken for another.
        for (packed, rows) in defs_of(Layout::Packed).iter().zip(defs_of(Layout::Rows)) {
            assert_eq!(packed.name == rows.name, *packed == rows, "{packed:?}");
        }
    }
}
