//! `dyno-sql serve`: a table for clients of PostgreSQL and of HTTP.

pub mod catalogue;
mod columns;
pub mod counts;
mod depth;
pub mod engine;
pub mod http;
pub mod reads;
pub mod refusal;
pub mod stop;
pub mod tables;
pub mod wire;
