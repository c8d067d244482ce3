//! Indexes of the columns that transactions and checks use.

macro_rules! places {
    ($($(#[$doc:meta])+ $table:ident { $($column:ident = $place:literal,)+ })+) => {
        $($(#[$doc])+ pub mod $table {
            $(#[allow(missing_docs, reason = "the names are the specification's")]
            pub const $column: u16 = $place;)+
        })+
    };
}

places! {
    /// Columns of WAREHOUSE without its sum.
    warehouse { TAX = 0, NAME = 1, STREET_1 = 2, }
    /// The sums of WAREHOUSE and DISTRICT.
    ytd { YTD = 0, }
    /// Columns of DISTRICT without its sum.
    district { NAME = 0, STREET_1 = 1, }
    /// What New Order reads of DISTRICT.
    district_order { TAX = 0, NEXT = 1, }
    /// Columns of CUSTOMER without its sums.
    customer {
        WAREHOUSE = 0, DISTRICT = 1, LAST = 2, FIRST = 3, MIDDLE = 4,
        CREDIT = 11, DATA = 12, DISCOUNT = 13, CREDIT_LIMIT = 14,
    }
    /// What payments and deliveries change of CUSTOMER.
    customer_sums { PAYMENTS = 0, DELIVERIES = 1, BALANCE = 2, YTD_PAYMENT = 3, }
    /// Columns of HISTORY that are used.
    history {
        CUSTOMER_WAREHOUSE = 0, CUSTOMER_DISTRICT = 1, CUSTOMER = 2, DATE = 3, AMOUNT = 4,
    }
    /// Columns of ORDER that are used.
    order {
        CUSTOMER = 2, LINES = 3, ALL_LOCAL = 4, ENTERED = 5, CARRIER = 6,
    }
    /// Columns of ORDER-LINE that are used.
    order_line {
        ITEM = 0, SUPPLY = 1, QUANTITY = 2, AMOUNT = 3, DELIVERED = 4, INFO = 5,
    }
    /// Columns of ITEM that are used.
    item { IMAGE = 0, PRICE = 1, NAME = 2, DATA = 3, }
    /// The numeric columns of STOCK.
    stock { QUANTITY = 0, YTD = 1, ORDERS = 2, REMOTE = 3, }
    /// The text columns of STOCK.
    stock_info { DISTRICT_1 = 0, DATA = 10, }
}
