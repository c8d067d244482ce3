//! The body of the fuzz target `resp` on a seeded corpus.

#[path = "any_bytes/mod.rs"]
mod any_bytes;

use dyno_random::Random;

const COMMANDS: [&[u8]; 4] = [
    b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n",
    b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n",
    b"set k \"a\\x41 b\" 'c'\r\nget k\n",
    b"*0\r\n\r\n*1\r\n$0\r\n\r\n",
];

#[test]
fn damaged_commands_are_errors() {
    let mut random = Random::new(3);
    for (command, count) in COMMANDS.into_iter().zip([1, 2, 2, 1]) {
        assert_eq!(any_bytes::check(command), count, "{command:02x?}");
        for _ in 0..20_000 {
            let mut bytes = command.to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] = random.bits() as u8;
            }
            bytes.truncate(1 + random.below(bytes.len()));
            any_bytes::check(&bytes);
        }
    }
}
