//! Messages as JSON, in both directions: one object a line.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use dyno_pubsub::Message;
use serde_json::{Map, Value, json};

/// Names and values; a name may come more than once.
type Headers = Vec<(String, Option<Vec<u8>>)>;

/// A record to send, as a line of input gives it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    pub key: Option<Vec<u8>>,
    pub value: Vec<u8>,
    pub headers: Headers,
    /// The partition, if the line names one.
    pub partition: Option<u32>,
}

/// Fields that the log adds to a message. They are ignored in input, so that the output of
/// `consume` can be produced again.
const OF_THE_LOG: [&str; 3] = ["offset", "time_us", "appended_at_us"];

/// Bytes as text, or as `{"base64": ...}` if they are not UTF-8.
pub fn shown(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "base64": BASE64_STANDARD.encode(bytes) }),
    }
}

/// A message as it is printed. A header that comes more than once is a list.
pub fn print(message: &Message) -> Value {
    let mut headers = Map::new();
    for (name, value) in &message.headers {
        let value = value.as_ref().map_or(Value::Null, |value| shown(value));
        match headers.get_mut(name) {
            None => {
                headers.insert(name.clone(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(one) => *one = json!([one.take(), value]),
        }
    }
    json!({
        "partition": message.partition,
        "offset": message.offset,
        "time_us": message.time_us,
        "appended_at_us": message.appended_at_us,
        "key": message.key.as_ref().map(|key| shown(key)),
        "headers": headers,
        "value": shown(&message.value),
    })
}

/// Reads a line, or says what is wrong with it.
pub fn read(line: &[u8]) -> Result<Outgoing, String> {
    let object: Map<String, Value> =
        serde_json::from_slice(line).map_err(|e| format!("it is not a JSON object: {e}"))?;
    let mut outgoing = Outgoing::default();
    let mut has_value = false;
    for (name, value) in object {
        match name.as_str() {
            "value" => {
                has_value = true;
                outgoing.value = bytes("value", value)?
                    .ok_or("value is null: a record has a value, empty perhaps")?;
            }
            "key" => outgoing.key = bytes("key", value)?,
            "headers" => outgoing.headers = headers(value)?,
            "partition" => outgoing.partition = partition(&value)?,
            name if OF_THE_LOG.contains(&name) => {}
            // A name that is misspelt must not be dropped silently: `vaule` would send a record
            // without its value.
            name => {
                return Err(format!(
                    "{name:?} is not one of value, key, headers and partition"
                ));
            }
        }
    }
    if has_value {
        Ok(outgoing)
    } else {
        Err("it has no value".to_owned())
    }
}

fn partition(value: &Value) -> Result<Option<u32>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number
        .map(Some)
        .ok_or_else(|| format!("partition {value} is not the number of one"))
}

fn bytes(name: &str, value: Value) -> Result<Option<Vec<u8>>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.into_bytes())),
        Value::Object(object) if object.len() == 1 => match object.get("base64") {
            Some(Value::String(text)) => BASE64_STANDARD
                .decode(text)
                .map(Some)
                .map_err(|e| format!("{name}: base64: {e}")),
            _ => Err(not_bytes(name)),
        },
        _ => Err(not_bytes(name)),
    }
}

fn not_bytes(name: &str) -> String {
    format!("{name} is neither a text nor {{\"base64\": \"...\"}}")
}

fn headers(value: Value) -> Result<Headers, String> {
    let Value::Object(object) = value else {
        return Err("headers is not an object".to_owned());
    };
    let mut headers = Vec::new();
    for (name, value) in object {
        let values = match value {
            Value::Array(values) => values,
            one => vec![one],
        };
        for value in values {
            let value = bytes(&format!("header {name:?}"), value)?;
            headers.push((name.clone(), value));
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_again() {
        let message = Message {
            partition: 1,
            offset: 2,
            time_us: 3,
            appended_at_us: 4,
            key: Some(b"k\xFF".to_vec().into()),
            headers: vec![
                ("a".to_owned(), Some(b"1".to_vec().into())),
                ("a".to_owned(), None),
                ("b".to_owned(), Some(b"\x80".to_vec().into())),
            ],
            value: b"line\nend".to_vec().into(),
        };
        let line = print(&message).to_string();
        assert!(!line.contains('\n'));
        let again = read(line.as_bytes()).unwrap();
        assert_eq!(again.key.as_deref(), message.key.as_deref());
        assert_eq!(again.value, message.value);
        assert_eq!(again.partition, Some(1));
        assert_eq!(
            again.headers,
            [
                ("a".to_owned(), Some(b"1".to_vec())),
                ("a".to_owned(), None),
                ("b".to_owned(), Some(vec![0x80])),
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, reason) in [
            ("", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("{}", "has no value"),
            (r#"{"value":null}"#, "value is null"),
            (r#"{"value":1}"#, "neither a text"),
            (r#"{"value":"a","kee":"b"}"#, "\"kee\" is not one of"),
            (r#"{"value":{"base64":"a"}}"#, "value: base64"),
            (r#"{"value":"a","headers":{"h":2}}"#, "header \"h\""),
            (r#"{"value":"a","partition":-1}"#, "partition -1"),
        ] {
            let said = read(line.as_bytes()).unwrap_err();
            assert!(said.contains(reason), "{line}: {said}");
        }
    }
}
