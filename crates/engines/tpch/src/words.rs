//! The words of coded columns (clause 4.2.2.13 of the specification), in the order in which dbgen
//! draws them. A value's code is its index here.

/// Values of `r_name`, by `r_regionkey`.
pub(crate) static REGIONS: [&str; 5] = [
    "AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST",
];

/// Values of `n_name`, by `n_nationkey`.
pub(crate) static NATIONS: [&str; 25] = [
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY",
    "INDIA", "INDONESIA", "IRAN", "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE",
    "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA", "VIETNAM", "RUSSIA", "UNITED KINGDOM",
    "UNITED STATES",
];

/// Values of `n_regionkey`, by `n_nationkey`.
pub(crate) static REGION_OF_NATION: [i64; 25] = [
    0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1,
];

/// The words that `p_name` is made of.
pub(crate) static COLORS: [&str; 92] = [
    "almond", "antique", "aquamarine", "azure", "beige", "bisque", "black", "blanched", "blue",
    "blush", "brown", "burlywood", "burnished", "chartreuse", "chiffon", "chocolate", "coral",
    "cornflower", "cornsilk", "cream", "cyan", "dark", "deep", "dim", "dodger", "drab",
    "firebrick", "floral", "forest", "frosted", "gainsboro", "ghost", "goldenrod", "green",
    "grey", "honeydew", "hot", "indian", "ivory", "khaki", "lace", "lavender", "lawn", "lemon",
    "light", "lime", "linen", "magenta", "maroon", "medium", "metallic", "midnight", "mint",
    "misty", "moccasin", "navajo", "navy", "olive", "orange", "orchid", "pale", "papaya",
    "peach", "peru", "pink", "plum", "powder", "puff", "purple", "red", "rose", "rosy", "royal",
    "saddle", "salmon", "sandy", "seashell", "sienna", "sky", "slate", "smoke", "snow", "spring",
    "steel", "tan", "thistle", "tomato", "turquoise", "violet", "wheat", "white", "yellow",
];

/// Values of the column `p_mfgr`.
pub(crate) static MANUFACTURERS: [&str; 5] = [
    "Manufacturer#1", "Manufacturer#2", "Manufacturer#3", "Manufacturer#4", "Manufacturer#5",
];

/// Values of the column `p_brand`, five for each manufacturer.
pub(crate) static BRANDS: [&str; 25] = [
    "Brand#11", "Brand#12", "Brand#13", "Brand#14", "Brand#15", "Brand#21", "Brand#22",
    "Brand#23", "Brand#24", "Brand#25", "Brand#31", "Brand#32", "Brand#33", "Brand#34",
    "Brand#35", "Brand#41", "Brand#42", "Brand#43", "Brand#44", "Brand#45", "Brand#51",
    "Brand#52", "Brand#53", "Brand#54", "Brand#55",
];

/// Values of the column `p_type`.
pub(crate) static TYPES: [&str; 150] = [
    "STANDARD ANODIZED TIN", "STANDARD ANODIZED NICKEL", "STANDARD ANODIZED BRASS",
    "STANDARD ANODIZED STEEL", "STANDARD ANODIZED COPPER", "STANDARD BURNISHED TIN",
    "STANDARD BURNISHED NICKEL", "STANDARD BURNISHED BRASS", "STANDARD BURNISHED STEEL",
    "STANDARD BURNISHED COPPER", "STANDARD PLATED TIN", "STANDARD PLATED NICKEL",
    "STANDARD PLATED BRASS", "STANDARD PLATED STEEL", "STANDARD PLATED COPPER",
    "STANDARD POLISHED TIN", "STANDARD POLISHED NICKEL", "STANDARD POLISHED BRASS",
    "STANDARD POLISHED STEEL", "STANDARD POLISHED COPPER", "STANDARD BRUSHED TIN",
    "STANDARD BRUSHED NICKEL", "STANDARD BRUSHED BRASS", "STANDARD BRUSHED STEEL",
    "STANDARD BRUSHED COPPER", "SMALL ANODIZED TIN", "SMALL ANODIZED NICKEL",
    "SMALL ANODIZED BRASS", "SMALL ANODIZED STEEL", "SMALL ANODIZED COPPER",
    "SMALL BURNISHED TIN", "SMALL BURNISHED NICKEL", "SMALL BURNISHED BRASS",
    "SMALL BURNISHED STEEL", "SMALL BURNISHED COPPER", "SMALL PLATED TIN", "SMALL PLATED NICKEL",
    "SMALL PLATED BRASS", "SMALL PLATED STEEL", "SMALL PLATED COPPER", "SMALL POLISHED TIN",
    "SMALL POLISHED NICKEL", "SMALL POLISHED BRASS", "SMALL POLISHED STEEL",
    "SMALL POLISHED COPPER", "SMALL BRUSHED TIN", "SMALL BRUSHED NICKEL", "SMALL BRUSHED BRASS",
    "SMALL BRUSHED STEEL", "SMALL BRUSHED COPPER", "MEDIUM ANODIZED TIN",
    "MEDIUM ANODIZED NICKEL", "MEDIUM ANODIZED BRASS", "MEDIUM ANODIZED STEEL",
    "MEDIUM ANODIZED COPPER", "MEDIUM BURNISHED TIN", "MEDIUM BURNISHED NICKEL",
    "MEDIUM BURNISHED BRASS", "MEDIUM BURNISHED STEEL", "MEDIUM BURNISHED COPPER",
    "MEDIUM PLATED TIN", "MEDIUM PLATED NICKEL", "MEDIUM PLATED BRASS", "MEDIUM PLATED STEEL",
    "MEDIUM PLATED COPPER", "MEDIUM POLISHED TIN", "MEDIUM POLISHED NICKEL",
    "MEDIUM POLISHED BRASS", "MEDIUM POLISHED STEEL", "MEDIUM POLISHED COPPER",
    "MEDIUM BRUSHED TIN", "MEDIUM BRUSHED NICKEL", "MEDIUM BRUSHED BRASS",
    "MEDIUM BRUSHED STEEL", "MEDIUM BRUSHED COPPER", "LARGE ANODIZED TIN",
    "LARGE ANODIZED NICKEL", "LARGE ANODIZED BRASS", "LARGE ANODIZED STEEL",
    "LARGE ANODIZED COPPER", "LARGE BURNISHED TIN", "LARGE BURNISHED NICKEL",
    "LARGE BURNISHED BRASS", "LARGE BURNISHED STEEL", "LARGE BURNISHED COPPER",
    "LARGE PLATED TIN", "LARGE PLATED NICKEL", "LARGE PLATED BRASS", "LARGE PLATED STEEL",
    "LARGE PLATED COPPER", "LARGE POLISHED TIN", "LARGE POLISHED NICKEL", "LARGE POLISHED BRASS",
    "LARGE POLISHED STEEL", "LARGE POLISHED COPPER", "LARGE BRUSHED TIN", "LARGE BRUSHED NICKEL",
    "LARGE BRUSHED BRASS", "LARGE BRUSHED STEEL", "LARGE BRUSHED COPPER", "ECONOMY ANODIZED TIN",
    "ECONOMY ANODIZED NICKEL", "ECONOMY ANODIZED BRASS", "ECONOMY ANODIZED STEEL",
    "ECONOMY ANODIZED COPPER", "ECONOMY BURNISHED TIN", "ECONOMY BURNISHED NICKEL",
    "ECONOMY BURNISHED BRASS", "ECONOMY BURNISHED STEEL", "ECONOMY BURNISHED COPPER",
    "ECONOMY PLATED TIN", "ECONOMY PLATED NICKEL", "ECONOMY PLATED BRASS",
    "ECONOMY PLATED STEEL", "ECONOMY PLATED COPPER", "ECONOMY POLISHED TIN",
    "ECONOMY POLISHED NICKEL", "ECONOMY POLISHED BRASS", "ECONOMY POLISHED STEEL",
    "ECONOMY POLISHED COPPER", "ECONOMY BRUSHED TIN", "ECONOMY BRUSHED NICKEL",
    "ECONOMY BRUSHED BRASS", "ECONOMY BRUSHED STEEL", "ECONOMY BRUSHED COPPER",
    "PROMO ANODIZED TIN", "PROMO ANODIZED NICKEL", "PROMO ANODIZED BRASS",
    "PROMO ANODIZED STEEL", "PROMO ANODIZED COPPER", "PROMO BURNISHED TIN",
    "PROMO BURNISHED NICKEL", "PROMO BURNISHED BRASS", "PROMO BURNISHED STEEL",
    "PROMO BURNISHED COPPER", "PROMO PLATED TIN", "PROMO PLATED NICKEL", "PROMO PLATED BRASS",
    "PROMO PLATED STEEL", "PROMO PLATED COPPER", "PROMO POLISHED TIN", "PROMO POLISHED NICKEL",
    "PROMO POLISHED BRASS", "PROMO POLISHED STEEL", "PROMO POLISHED COPPER", "PROMO BRUSHED TIN",
    "PROMO BRUSHED NICKEL", "PROMO BRUSHED BRASS", "PROMO BRUSHED STEEL", "PROMO BRUSHED COPPER",
];

/// Values of the column `p_container`.
pub(crate) static CONTAINERS: [&str; 40] = [
    "SM CASE", "SM BOX", "SM BAG", "SM JAR", "SM PACK", "SM PKG", "SM CAN", "SM DRUM", "LG CASE",
    "LG BOX", "LG BAG", "LG JAR", "LG PACK", "LG PKG", "LG CAN", "LG DRUM", "MED CASE",
    "MED BOX", "MED BAG", "MED JAR", "MED PACK", "MED PKG", "MED CAN", "MED DRUM", "JUMBO CASE",
    "JUMBO BOX", "JUMBO BAG", "JUMBO JAR", "JUMBO PACK", "JUMBO PKG", "JUMBO CAN", "JUMBO DRUM",
    "WRAP CASE", "WRAP BOX", "WRAP BAG", "WRAP JAR", "WRAP PACK", "WRAP PKG", "WRAP CAN",
    "WRAP DRUM",
];

/// Values of the column `c_mktsegment`.
pub(crate) static SEGMENTS: [&str; 5] = [
    "AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY",
];

/// Values of the column `o_orderpriority`.
pub(crate) static PRIORITIES: [&str; 5] = [
    "1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW",
];

/// Values of `o_orderstatus`, which say that all lines have been shipped, none, or some.
pub(crate) static ORDER_STATUSES: [&str; 3] = ["F", "O", "P"];

/// Values of `l_returnflag`, which are the two that are drawn and the one for what has not arrived.
pub(crate) static RETURN_FLAGS: [&str; 3] = ["R", "A", "N"];

/// Values of `l_linestatus`, which are shipped and open.
pub(crate) static LINE_STATUSES: [&str; 2] = ["F", "O"];

/// Values of the column `l_shipinstruct`.
pub(crate) static INSTRUCTIONS: [&str; 4] = [
    "DELIVER IN PERSON", "COLLECT COD", "TAKE BACK RETURN", "NONE",
];

/// Values of the column `l_shipmode`.
pub(crate) static MODES: [&str; 7] = [
    "REG AIR", "AIR", "RAIL", "TRUCK", "MAIL", "FOB", "SHIP",
];

/// Values of `l_quantity`, in hundredths.
pub(crate) static QUANTITIES: [i64; 50] = quantities();

/// Values of `l_discount`, in hundredths.
pub(crate) static DISCOUNTS: [i64; 11] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// Values of `l_tax`, in hundredths.
pub(crate) static TAXES: [i64; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

const fn quantities() -> [i64; 50] {
    let mut values = [0; 50];
    let mut at = 0;
    while at < values.len() {
        values[at] = 100 * (at as i64 + 1);
        at += 1;
    }
    values
}
