//! Columns of values or codes into Parquet pages.
