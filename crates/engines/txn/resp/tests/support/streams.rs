//! Commands at random: mostly right ones on few keys, and some that are wrong in every way that
//! Redis has an error for.

use dyno_random::Random;

pub type Command = Vec<Vec<u8>>;

const KEYS: [&str; 6] = ["a", "b", "c", "key:4", "key:5", "\u{1f511}"];
const FIELDS: [&str; 4] = ["f", "g", "h", "field"];
const VALUES: [&str; 9] = [
    "",
    "1",
    "-7",
    "10",
    "9223372036854775807",
    "text",
    "a\r\nb",
    "3.5",
    "007",
];
const NUMBERS: [&str; 7] = [
    "0",
    "1",
    "-1",
    "5",
    "x",
    "9223372036854775807",
    "-9223372036854775808",
];

fn one<'a>(random: &mut Random, list: &[&'a str]) -> &'a str {
    list[random.index(list.len())]
}

/// What each letter of a template stands for: a key, a field, a value, a number, or an expiry that
/// is either long or over.
fn word(letter: &str, random: &mut Random) -> String {
    match letter {
        "K" => one(random, &KEYS).to_owned(),
        "F" => one(random, &FIELDS).to_owned(),
        "V" => one(random, &VALUES).to_owned(),
        "N" => one(random, &NUMBERS).to_owned(),
        "E" => one(
            random,
            &["100000", "200000", "0", "-5", "x", "9223372036854775807"],
        )
        .to_owned(),
        "A" => one(random, &["1", "4102444800", "x", "-5"]).to_owned(),
        "P" => one(random, &["1", "4102444800000", "x"]).to_owned(),
        "S" => one(random, &["4102444800", "x", "-5"]).to_owned(),
        "O" => one(random, &["nx", "XX", "gt", "LT", "other"]).to_owned(),
        "M" => one(random, &["*", "k*", "[ab]", "key:?", "nothing"]).to_owned(),
        other => other.to_owned(),
    }
}

// `client getname` is left out: a name that a transaction sets is set here even if a watched key
// stops that transaction, as the book says.
const TEMPLATES: &[&str] = &[
    "get K",
    "get K",
    "set K V",
    "set K V",
    "set K V ex E",
    "set K V PX E",
    "set K V exat S",
    "set K V pxat 4102444800000",
    "set K V nx",
    "set K V xx",
    "set K V get",
    "set K V nx get",
    "set K V keepttl",
    "set K V xx keepttl get",
    "set K V nx xx",
    "set K V ex",
    "set K V ex E px E",
    "set K V keepttl ex E",
    "mget K K K",
    "mset K V K V",
    "mset K V K",
    "msetnx K V K V",
    "del K",
    "unlink K K",
    "exists K K K",
    "type K",
    "incr K",
    "decr K",
    "incrby K N",
    "decrby K N",
    "append K V",
    "strlen K",
    "getrange K N N",
    "setrange K N V",
    "setrange K 3 V",
    "setrange K 600000000 V",
    "setnx K V",
    "setex K E V",
    "psetex K E V",
    "getset K V",
    "getdel K",
    "getex K",
    "getex K ex E",
    "getex K persist",
    "getex K pxat P",
    "getex K keepttl",
    "hset K F V",
    "hset K F V F V",
    "hset K F V F",
    "hmset K F V",
    "hmset K F V F",
    "hsetnx K F V",
    "hget K F",
    "hmget K F F",
    "hgetall K",
    "hdel K F",
    "hdel K F F F",
    "hexists K F",
    "hlen K",
    "hkeys K",
    "hvals K",
    "hincrby K F N",
    "hstrlen K F",
    "expire K E",
    "expire K E O",
    "expire K E O O",
    "pexpire K E",
    "expireat K A",
    "pexpireat K P",
    "expireat K A O",
    "ttl K",
    "expiretime K",
    "persist K",
    "keys M",
    "flushall",
    "flushdb async",
    "flushall now",
    "multi",
    "multi",
    "exec",
    "exec",
    "exec",
    "discard",
    "watch K",
    "watch K K",
    "unwatch",
    "ping",
    "ping V",
    "ping a b",
    "echo V",
    "select 0",
    "select x",
    "nothing",
    "nothing K V",
    "get",
    "get K K",
    "hset K F",
    "exec now",
    "client setname K",
    "client nothing",
    "client setname",
    "config get",
    "scan x",
    "scan 0 count 0",
    "scan 0 count x",
    "scan 0 other",
    "scan 0 match",
    "reset",
    "GET K",
    "SeT K V",
];

/// The next command.
pub fn next(random: &mut Random) -> Command {
    let template = one(random, TEMPLATES);
    let words = template.split(' ');
    words
        .map(|letter| word(letter, random).into_bytes())
        .collect()
}
