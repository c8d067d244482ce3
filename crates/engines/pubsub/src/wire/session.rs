//! The connection itself: who asks, what the broker counts, why something was refused.

use super::Ask;
use super::message::{fields, message};

message! {
    Hello,
    /// The first request of a connection. Nothing else is answered before it.
    Hello {
        /// The secret of the broker; empty when it asks for none.
        token: String,
        /// A name for the client, for people who look at the broker.
        client: String,
    }
}

message! {
    Hello,
    /// The client is let in.
    Welcome {
        /// The broker's name, new with every start.
        broker: String,
        /// The longest body that it takes, in bytes.
        most_body_bytes: u32,
    }
}

impl Ask for Hello {
    type Answer = Welcome;
}

message! {
    Status,
    /// Asks what the broker counts.
    Status {}
}

fields! {
    /// One thing that is counted.
    Counter {
        /// Its name, with the unit last.
        name: String,
        /// How many.
        value: u64,
    }
}

message! {
    Status,
    /// What the broker counts.
    StatusIs {
        /// Everything, in a fixed order.
        counters: Vec<Counter>,
    }
}

impl Ask for Status {
    type Answer = StatusIs;
}

message! {
    Error,
    /// Why a request was not carried out.
    Failed {
        /// A stable code, such as `unknown-topic`.
        code: String,
        /// 0: a retry is safe. 1: it is of no use. 2: the outcome is unknown.
        retry: u8,
        /// A sentence for people.
        text: String,
    }
}
