//! Any bytes as a client: the server ends without a panic, and says no more than the requests can
//! ask for.

use crate::script::{self, FLAGS, STRUCTURED};

const PAGES: u64 = 16;

/// The first byte chooses how far a decent client comes before the bytes begin.
pub fn check(first: u8, bytes: &[u8]) {
    let disk = script::disk(PAGES, 1 << 18);
    let exports = script::exports(&disk);
    let mut client = Vec::new();
    if first & 1 != 0 {
        client.extend(FLAGS);
    }
    if first & 2 != 0 {
        client.extend(script::option(STRUCTURED, &[]));
    }
    if first & 4 != 0 {
        client.extend(script::go(["pages", "fixed"][usize::from(first >> 4 & 1)]));
    }
    client.extend(bytes);
    let (_, said) = script::run(&exports, &client, first & 8 != 0);
    // A request of 28 bytes can ask for the whole disk, an option of 16 for a few hundred bytes.
    let most =
        1000 + (client.len() / 16 + 1) * 1000 + (client.len() / 28) * (disk.bytes() as usize + 100);
    assert!(
        said.len() <= most,
        "{} bytes for {}",
        said.len(),
        client.len()
    );
}
