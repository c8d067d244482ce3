//! A message of PSK Reporter: a flat object of JSON with thirteen keys, and whatever is added to
//! them one day.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The keys that have columns, in the order of the columns.
pub(super) const KEYS: [&str; 13] = [
    "sq", "f", "md", "rp", "t", "t_tx", "sc", "sl", "rc", "rl", "sa", "ra", "b",
];

/// Where a key is in [`KEYS`].
pub(super) fn column_of(key: &str) -> Option<usize> {
    KEYS.iter().position(|known| *known == key)
}

/// The values of the known keys, and everything else.
#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    /// In the order of [`KEYS`].
    pub(super) known: [Option<Scalar<'a>>; KEYS.len()],
    /// All other keys, with their values.
    pub(super) extra: Map<String, Value>,
}

/// A value, borrowed from the text where it can be.
#[derive(Debug, Clone)]
pub(super) enum Scalar<'a> {
    Integer(i64),
    Text(Cow<'a, str>),
    /// What no column can hold.
    Other(Value),
}

impl Scalar<'_> {
    pub(super) fn into_value(self) -> Value {
        match self {
            Scalar::Integer(number) => number.into(),
            Scalar::Text(text) => text.into_owned().into(),
            Scalar::Other(value) => value,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Message<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Keys)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Message<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Message<'de>, A::Error> {
        let mut message = Message::default();
        while let Some((Key(key), value)) = map.next_entry::<Key<'de>, Scalar<'de>>()? {
            let twice = match column_of(&key) {
                Some(at) => message.known[at].replace(value).is_some(),
                None => {
                    let value = value.into_value();
                    message
                        .extra
                        .insert(key.clone().into_owned(), value)
                        .is_some()
                }
            };
            // Readers of JSON disagree about which of two values counts, so neither is taken.
            if twice {
                return Err(A::Error::custom(format!("key {key} occurs twice")));
            }
        }
        Ok(message)
    }
}

struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match from.deserialize_str(Any)? {
            Scalar::Text(text) => Ok(Key(text)),
            _ => Err(D::Error::custom("a key is not text")),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Integer(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Scalar<'de>, E> {
        Ok(match i64::try_from(value) {
            Ok(value) => Scalar::Integer(value),
            // No column holds such a number, and as a signed one it would be negative.
            Err(_) => Scalar::Other(value.into()),
        })
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other(
            Number::from_f64(value).map_or(Value::Null, Value::Number),
        ))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar<'de>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element::<Value>()? {
            values.push(value);
        }
        Ok(Scalar::Other(Value::Array(values)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar<'de>, A::Error> {
        let mut values = Map::new();
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            values.insert(key, value);
        }
        Ok(Scalar::Other(Value::Object(values)))
    }
}
