//! A table's columns: what a feed requires of them, as SQL, and how an existing table has them.

use dyno_ingest::contract::{COLUMNS, MODE};
use dyno_ingest_feeds::{Kind, RowFormat};

use crate::address::Address;
use crate::error::{Error, Result};
use crate::http::{Client, quoted};

/// The types of WSPR's contract, in its order.
const TYPES: [&str; COLUMNS.len()] = [
    "UInt64",
    "DateTime('UTC')",
    "FixedString(16)",
    "FixedString(8)",
    "Int8",
    "UInt64",
    "FixedString(16)",
    "FixedString(8)",
    "Int8",
    "Int8",
    "UInt32",
    "UInt16",
    "Int32",
    "FixedString(8)",
    "FixedString(8)",
    "UInt8",
    "UInt8",
];

/// The column in tables of other feeds that names a row's archive, and by which the table is
/// partitioned.
pub(crate) const ARCHIVE: &str = "archive";
/// The type of a time in whole seconds.
const SECOND: &str = "DateTime('UTC')";
/// The type of a string with a dictionary.
const DICTIONARY: &str = "LowCardinality(String)";
/// The setting that old servers require for a column with a dictionary.
const DICTIONARY_SETTING: &str = "allow_experimental_low_cardinality_type";
/// The longest fixed string that is accepted, in bytes, because a longer one would only hold zeros.
const MOST_FIXED: usize = 64;

/// What a feed requires of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contract {
    columns: Vec<RequiredColumn>,
    partition_by: &'static str,
    order_by: String,
    /// Whether its partitions are months, whose start depends on the server's time zone.
    pub by_month: bool,
}

/// A column that the table must have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RequiredColumn {
    name: &'static str,
    /// The type in a table that we create, without `Nullable`.
    kind: String,
    nullable: bool,
    also: Also,
}

/// Which types of an existing column are accepted besides the one of a table that we create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Also {
    /// No other type.
    Nothing,
    /// The same time in another zone.
    Zones,
    /// Another zone, and milliseconds since 1970.
    Milliseconds,
    /// Decimals with more digits before the point, as long as they have 64 bits.
    Digits,
    /// Strings of any kind, except fixed ones with fewer bytes than this.
    Strings(usize),
    /// Only strings with a dictionary.
    Dictionary,
}

impl Contract {
    /// The contract for spots of WSPR.
    pub fn for_spots() -> Contract {
        let required = |(name, kind): (&&'static str, &str)| RequiredColumn {
            name,
            kind: kind.to_owned(),
            nullable: false,
            also: match kind {
                SECOND => Also::Zones,
                text if text.starts_with("Fixed") && *name == "mode" => Also::Strings(MODE.len()),
                text if text.starts_with("Fixed") => Also::Strings(1),
                _ => Also::Nothing,
            },
        };
        Contract {
            columns: COLUMNS.iter().zip(TYPES).map(required).collect(),
            partition_by: "toYYYYMM(timestamp)",
            order_by: "timestamp, band, callsign".to_owned(),
            by_month: true,
        }
    }

    /// The contract for another feed. Its archives are days, hours, logs or whole histories, whose
    /// rows may lie anywhere in time. Each is a partition, so that it can be swapped without
    /// touching another.
    pub fn from_format(format: &RowFormat) -> Contract {
        let layout = format.layout;
        let (mut columns, mut order) = (Vec::new(), vec![String::new(); layout.order.len()]);
        columns.push(RequiredColumn {
            name: ARCHIVE,
            kind: "String".to_owned(),
            nullable: false,
            also: Also::Nothing,
        });
        for field in format.fields {
            let (kind, also, zero) = match field.kind {
                Kind::Integer { bits, signed } => {
                    let sign = if signed { "" } else { "U" };
                    (format!("{sign}Int{bits}"), Also::Nothing, "0")
                }
                Kind::Moment if layout.seconds.contains(&field.name) => {
                    (SECOND.to_owned(), Also::Milliseconds, "toDateTime(0)")
                }
                Kind::Moment => ("Int64".to_owned(), Also::Milliseconds, "0"),
                Kind::Thousandths => ("Decimal(15, 3)".to_owned(), Also::Digits, "0"),
                Kind::Word => ("String".to_owned(), Also::Dictionary, "''"),
                Kind::Text => ("String".to_owned(), Also::Nothing, "''"),
            };
            if let Some(at) = layout.order.iter().position(|name| *name == field.name) {
                order[at] = if field.nullable {
                    // A server does not sort by a nullable column.
                    format!("ifNull(`{}`, {zero})", field.name)
                } else {
                    format!("`{}`", field.name)
                };
            }
            columns.push(RequiredColumn {
                name: field.name,
                kind,
                nullable: field.nullable,
                also,
            });
        }
        Contract {
            columns,
            partition_by: ARCHIVE,
            order_by: order.join(", "),
            by_month: false,
        }
    }
}

impl RequiredColumn {
    /// The type in a table that we create.
    fn made(&self, dictionary_types: bool) -> String {
        let coded = matches!(self.also, Also::Strings(_) | Also::Dictionary);
        match (dictionary_types && coded, self.nullable) {
            (true, false) => DICTIONARY.to_owned(),
            (true, true) => "LowCardinality(Nullable(String))".to_owned(),
            (false, true) => format!("Nullable({})", self.kind),
            (false, false) => self.kind.clone(),
        }
    }

    /// Whether a column of type `kind`, given without `Nullable`, is accepted.
    fn takes(&self, kind: &str) -> bool {
        let time = || kind == "DateTime" || kind.starts_with("DateTime(");
        kind == self.kind
            || match self.also {
                Also::Nothing => false,
                Also::Zones => time(),
                Also::Milliseconds => time() || kind == "Int64",
                Also::Digits => (15..=18).any(|digits| kind == format!("Decimal({digits}, 3)")),
                Also::Dictionary => kind == DICTIONARY,
                Also::Strings(least) => match Text::parse(kind) {
                    Some(Text::Fixed(len)) => len >= least,
                    other => other.is_some(),
                },
            }
    }
}

/// A type without `Nullable`, and whether it had it.
fn without_nullable(kind: &str) -> (String, bool) {
    // The word may stand inside another type: `LowCardinality(Nullable(String))`.
    match kind.split_once("Nullable(") {
        Some((before, inner)) => {
            let inner = inner.strip_suffix(')').unwrap_or(inner);
            (format!("{before}{inner}"), true)
        }
        None => (kind.to_owned(), false),
    }
}

/// How the server stores strings of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// This many bytes each, padded with zeros.
    Fixed(usize),
    /// With their own length.
    Plain,
    /// As codes into a dictionary of the block.
    Coded,
}

impl Text {
    fn parse(kind: &str) -> Option<Text> {
        let fixed = || kind.strip_prefix("FixedString(")?.strip_suffix(')');
        match kind {
            "String" => Some(Text::Plain),
            DICTIONARY => Some(Text::Coded),
            _ => fixed()
                .and_then(|n| n.parse().ok())
                .filter(|n| (1..=MOST_FIXED).contains(n))
                .map(Text::Fixed),
        }
    }
}

/// A column of the contract, as the table has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// The column's name, as in the contract.
    pub name: &'static str,
    /// The full type, as ClickHouse writes it.
    pub kind: String,
    /// How its strings are stored; `None` for numbers.
    pub text: Option<Text>,
    /// Whether the type is `Nullable`.
    pub nullable: bool,
}

impl Column {
    /// Whether it is a `DateTime`, whose values are seconds.
    pub fn is_time(&self) -> bool {
        self.kind.contains("DateTime")
    }
}

/// The names of columns, for an INSERT.
pub(crate) fn names(columns: &[Column]) -> String {
    let names = columns.iter().map(|column| format!("`{}`", column.name));
    names.collect::<Vec<_>>().join(", ")
}

/// The statement that creates the table, with strings as dictionaries or in the contract's types.
pub(crate) fn create(
    contract: &Contract,
    table: &str,
    on_cluster: &str,
    dictionary_types: bool,
) -> String {
    let column = |required: &RequiredColumn| {
        format!("`{}` {}", required.name, required.made(dictionary_types))
    };
    let columns: Vec<String> = contract.columns.iter().map(column).collect();
    format!(
        "CREATE TABLE IF NOT EXISTS {table}{on_cluster} ({}) ENGINE = MergeTree \
         PARTITION BY {} ORDER BY ({})",
        columns.join(", "),
        contract.partition_by,
        contract.order_by
    )
}

/// Runs a statement that creates a table, on servers too that treat dictionaries as an experimental
/// feature.
pub(crate) fn make(client: &Client, action: &str, sql: &str) -> Result<()> {
    match client.query(action, sql) {
        // Servers that no longer know the setting would refuse it, so it is sent only to those that
        // ask for it by name.
        Err(Error::Refused { message, .. }) if message.contains(DICTIONARY_SETTING) => {
            let settings = [(DICTIONARY_SETTING, "1")];
            client.query_with(&settings, action, sql).map(drop)
        }
        made => made.map(drop),
    }
}

/// The contract's columns, as `table` in the database of `address` has them on this server.
pub(crate) fn columns(
    client: &Client,
    address: &Address,
    table: &str,
    contract: &Contract,
) -> Result<Vec<Column>> {
    let wrong = |reason: String| Error::Schema {
        table: format!("{}.{table}", address.database),
        reason,
    };
    let named = format!(
        "database = {} AND {{}} = {}",
        quoted(&address.database),
        quoted(table)
    );
    let of_table = named.replace("{}", "name");
    let sql = format!("SELECT engine FROM system.tables WHERE {of_table}");
    let engine = client.rows("look at the table", &sql)?;
    match engine
        .first()
        .and_then(|row| row.first())
        .map(String::as_str)
    {
        Some("MergeTree") => {}
        Some(other) => {
            return Err(wrong(format!(
                "its engine is {other}, and only partitions of a MergeTree are swapped"
            )));
        }
        None => return Err(wrong("it is not there".to_owned())),
    }
    let of_columns = named.replace("{}", "table");
    let sql = format!("SELECT name, type FROM system.columns WHERE {of_columns}");
    let found = client.rows("look at the table's columns", &sql)?;
    let column = |required: &RequiredColumn| {
        let name = required.name;
        let kind = found.iter().find(|row| row[0] == name);
        let kind = kind.and_then(|row| row.get(1));
        let kind = kind.ok_or_else(|| wrong(format!("it has no column {name}")))?;
        let (inner, nullable) = without_nullable(kind);
        if nullable == required.nullable && required.takes(&inner) {
            Ok(Column {
                name,
                kind: kind.clone(),
                text: Text::parse(&inner),
                nullable,
            })
        } else {
            Err(wrong(format!(
                "its column {name} is of type {kind}, not {}",
                required.made(false)
            )))
        }
    };
    contract.columns.iter().map(column).collect()
}

/// The months of a table without a time zone depend on the server's, so it must be UTC.
pub(crate) fn check_time_zone(client: &Client, table: &str, columns: &[Column]) -> Result<()> {
    let bare = columns.iter().any(|column| column.kind == "DateTime");
    if !bare {
        return Ok(());
    }
    let zone = client.query("ask for the time zone", "SELECT timezone()")?;
    match zone.trim() {
        "UTC" | "Etc/UTC" | "Universal" | "GMT" | "Etc/GMT" | "Etc/Universal" => Ok(()),
        zone => Err(Error::Schema {
            table: table.to_owned(),
            reason: format!(
                "its column timestamp has no time zone and the server's is {zone}, so that its \
                 partitions are not the months of UTC; make it DateTime('UTC')"
            ),
        }),
    }
}
