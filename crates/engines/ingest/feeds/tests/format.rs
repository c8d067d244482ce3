//! The book says what the feeds' columns are.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use dyno_ingest_feeds::{FEEDS, Feed, Kind};

fn table(feed: &Feed) -> String {
    let mut text = String::from("| column | Parquet type | gaps | meaning |\n|---|---|---|---|\n");
    for field in feed.rows.as_ref().unwrap().fields {
        let kind = match field.kind {
            Kind::Integer { bits, signed: true } => format!("INT_{bits}"),
            Kind::Integer {
                bits,
                signed: false,
            } => format!("UINT_{bits}"),
            Kind::Moment => "TIMESTAMP(MILLIS, UTC)".to_owned(),
            Kind::Thousandths => "DECIMAL(15, 3)".to_owned(),
            Kind::Word => "STRING, dictionary".to_owned(),
            Kind::Text => "STRING, zstd".to_owned(),
        };
        let gaps = if field.nullable { "yes" } else { "" };
        writeln!(
            text,
            "| `{}` | {kind} | {gaps} | {} |",
            field.name, field.about
        )
        .unwrap();
    }
    text
}

#[test]
fn each_feeds_columns_are_in_the_book() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../../docs/formats/feeds.md"
    );
    let format = std::fs::read_to_string(path).unwrap();
    for feed in FEEDS.iter().filter(|feed| feed.rows.is_some()) {
        let expected = format!("## Feed `{}`\n\n{}\n", feed.name, table(feed));
        assert!(
            format.contains(&expected),
            "docs/formats/feeds.md should hold this:\n{expected}"
        );
    }
}
