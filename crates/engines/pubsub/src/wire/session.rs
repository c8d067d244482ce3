//! The connection itself: who the client is, what the broker counts, why a request was refused.

use super::Ask;
use super::message::{fields, message};

message! {
    Hello,
    /// The first request of a connection. Nothing else is answered before it.
    Hello {
        /// The secret of the broker; empty if the broker wants none.
        token: String,
        /// A name for the client, for people who look at the broker.
        client: String,
    }
}

message! {
    Hello,
    /// The client is admitted.
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
        /// The value at the time of the answer.
        value: u64,
    }
}

message! {
    Status,
    /// The answer to [`Status`].
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
        /// 0 means that a retry is safe, 1 that it is of no use, and 2 that the outcome is unknown.
        retry: u8,
        /// A sentence for people, which names the object and the reason.
        text: String,
    }
}
