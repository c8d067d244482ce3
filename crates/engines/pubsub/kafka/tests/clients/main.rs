//! Clients that are not ours against a server of Kafka's protocol, a broker and PostgreSQL.

mod kcat;
mod python;
mod served;
