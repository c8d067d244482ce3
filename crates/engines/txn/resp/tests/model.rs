//! Commands at random against a model of Redis: a map in memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::{BTreeMap, HashMap};

use dyno_random::Random;
use support::{command, serve};

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
const FIELDS: [&str; 3] = ["f", "g", "h"];
const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

/// A value of the model.
#[derive(Debug, Clone)]
enum Value {
    Text(String),
    Hash(BTreeMap<String, String>),
}

#[derive(Default)]
struct Model(HashMap<String, Value>);

fn bulk(text: Option<&String>) -> String {
    text.map_or("$-1\r\n".to_owned(), |text| {
        format!("${}\r\n{text}\r\n", text.len())
    })
}

fn integer(number: i64) -> String {
    format!(":{number}\r\n")
}

impl Model {
    /// The reply to a command, which is carried out.
    fn run(&mut self, words: &[&str]) -> String {
        let key = words[1];
        match (words[0], self.0.get_mut(key)) {
            ("set", _) => {
                self.0
                    .insert(key.to_owned(), Value::Text(words[2].to_owned()));
                "+OK\r\n".to_owned()
            }
            ("del", _) => integer(i64::from(self.0.remove(key).is_some())),
            ("exists", found) => integer(i64::from(found.is_some())),
            ("get", None) => bulk(None),
            ("get", Some(Value::Text(text))) => bulk(Some(text)),
            ("append", None) => {
                self.0
                    .insert(key.to_owned(), Value::Text(words[2].to_owned()));
                integer(words[2].len() as i64)
            }
            ("append", Some(Value::Text(text))) => {
                text.push_str(words[2]);
                integer(text.len() as i64)
            }
            ("incrby", None) => {
                self.0
                    .insert(key.to_owned(), Value::Text(words[2].to_owned()));
                integer(words[2].parse().unwrap())
            }
            ("incrby", Some(Value::Text(text))) => match text.parse::<i64>() {
                Ok(old) if old.to_string() == *text => {
                    let by: i64 = words[2].parse().unwrap();
                    *text = (old + by).to_string();
                    integer(old + by)
                }
                _ => "-ERR value is not an integer or out of range\r\n".to_owned(),
            },
            ("hset", None) => {
                let hash = BTreeMap::from([(words[2].to_owned(), words[3].to_owned())]);
                self.0.insert(key.to_owned(), Value::Hash(hash));
                integer(1)
            }
            ("hset", Some(Value::Hash(hash))) => {
                let old = hash.insert(words[2].to_owned(), words[3].to_owned());
                integer(i64::from(old.is_none()))
            }
            ("hget", None) => bulk(None),
            ("hget", Some(Value::Hash(hash))) => bulk(hash.get(words[2])),
            ("hlen", None) => integer(0),
            ("hlen", Some(Value::Hash(hash))) => integer(hash.len() as i64),
            ("hdel", None) => integer(0),
            ("hdel", Some(Value::Hash(hash))) => {
                let removed = hash.remove(words[2]).is_some();
                if hash.is_empty() {
                    self.0.remove(key);
                }
                integer(i64::from(removed))
            }
            _ => WRONG_TYPE.to_owned(),
        }
    }
}

fn any_command(random: &mut Random) -> Vec<String> {
    let mut one = |list: &[&str]| list[random.index(list.len())].to_owned();
    let name = one(&[
        "set", "get", "del", "exists", "append", "incrby", "hset", "hget", "hlen", "hdel",
    ]);
    let mut words = vec![name, one(&KEYS)];
    match words[0].as_str() {
        "set" | "append" => words.push(one(&["1", "22", "text", ""])),
        "incrby" => words.push(one(&["1", "-3", "100"])),
        "hget" | "hdel" => words.push(one(&FIELDS)),
        "hset" => words.extend([one(&FIELDS), one(&["1", "text"])]),
        _ => {}
    }
    words
}

#[test]
fn commands_do_what_the_model_does() {
    for partitions in [1, 3] {
        let served = serve(partitions);
        let (mut client, mut model) = (served.client(), Model::default());
        let mut random = Random::new(u64::from(partitions));
        for _ in 0..300 {
            let list: Vec<_> = (0..1 + random.below(20))
                .map(|_| any_command(&mut random))
                .collect();
            client.send(
                &list
                    .iter()
                    .flat_map(|words| command(words))
                    .collect::<Vec<u8>>(),
            );
            for words in list {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let reply = String::from_utf8(client.reply()).unwrap();
                assert_eq!(reply, model.run(&words), "{words:?}");
            }
        }
        let size = client.ask("dbsize");
        assert_eq!(size, integer(model.0.len() as i64));
    }
}
