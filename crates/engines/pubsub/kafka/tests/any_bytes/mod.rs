//! Any bytes as what a client of Kafka sends, shared with the fuzz target `kafka`.

use bytes::Bytes;

/// What a batch may become; far below what a machine has, far above what the corpus needs.
const MOST_BYTES: usize = 1 << 20;

/// Reads the bytes as a request and as a batch: an error or not, but no panic and no memory for
/// lengths that cannot be right.
pub fn check(bytes: &[u8]) -> (bool, bool) {
    let bytes = Bytes::copy_from_slice(bytes);
    let is_request = dyno_pubsub_kafka::is_request(bytes.clone());
    (is_request, dyno_pubsub_kafka::is_batch(bytes, MOST_BYTES))
}
