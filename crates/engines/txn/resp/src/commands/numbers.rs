//! Commands that add to integers.

use super::strings::{take_text, text};
use super::{Call, Done, NOT_AN_INTEGER, WRONG_TYPE};
use crate::hash::Hash;
use crate::row::{Row, Value};
use crate::wire::integer;

const OVERFLOW: &str = "ERR increment or decrement would overflow";

pub fn incr(call: &mut Call<'_, '_>) -> Done {
    add(call, 1)
}

pub fn decr(call: &mut Call<'_, '_>) -> Done {
    add(call, -1)
}

pub fn incrby(call: &mut Call<'_, '_>) -> Done {
    let by = call.integer(2)?;
    add(call, by)
}

pub fn decrby(call: &mut Call<'_, '_>) -> Done {
    // The smallest integer has no negative.
    let by = call.integer(2)?.checked_neg();
    add(call, by.ok_or("ERR decrement would overflow")?)
}

fn add(call: &mut Call<'_, '_>, by: i64) -> Done {
    let key = call.arguments[1];
    let old = match text(call.keys, key)? {
        Some(text) => integer(text).ok_or(NOT_AN_INTEGER)?,
        None => 0,
    };
    let new = old.checked_add(by).ok_or(OVERFLOW)?;
    let expires_at = take_text(call.keys, key)?.and_then(|(_, expires_at)| expires_at);
    let value = Value::Text(new.to_string().into_bytes());
    call.keys.put(key, value, expires_at)?;
    call.reply.integer(new);
    Ok(())
}

pub fn hincrby(call: &mut Call<'_, '_>) -> Done {
    let (key, field) = (call.arguments[1], call.arguments[2]);
    let by = call.integer(3)?;
    let empty = Hash::default();
    let (hash, expires_at) = match call.keys.get(key)? {
        None => (&empty, None),
        Some(Row {
            value: Value::Hash(hash),
            expires_at,
            ..
        }) => (hash, *expires_at),
        Some(_) => return Err(WRONG_TYPE.into()),
    };
    let old = match hash.get(field) {
        Some(text) => integer(text).ok_or("ERR hash value is not an integer")?,
        None => 0,
    };
    let new = old.checked_add(by).ok_or(OVERFLOW)?;
    let text = new.to_string();
    super::check_size(hash.bytes().len() + field.len() + text.len() + 8)?;
    let mut hash = hash.clone();
    hash.set_many(&[field, text.as_bytes()]);
    call.keys.put(key, Value::Hash(hash), expires_at)?;
    call.reply.integer(new);
    Ok(())
}
