//! Bodies of the wire that nobody wrote by hand.

mod any_body;

use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_an_error(
        verb in 0_u8..25,
        answer: bool,
        bytes in vec(any::<u8>(), 0..120),
    ) {
        any_body::check(verb, answer, &bytes);
    }
}
