//! Transactions: how databases of every engine are opened.

mod open;

pub use dyno_txn_node::{
    Durability, OpenOptions, Role, ServeOptions, Server, Share, restore, serve,
};
pub use open::{OpenHow, open, procedures};
