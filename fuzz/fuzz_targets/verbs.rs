//! The bodies of pubsub's verbs: the first byte is the verb, the second whether it is an answer.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engines/pubsub/tests/any_body/mod.rs"]
mod any_body;

fuzz_target!(|bytes: &[u8]| {
    if let [verb, answer, body @ ..] = bytes {
        any_body::check(*verb, answer & 1 == 1, body);
    }
});
