//! Commands on hashes.

use super::{Call, Done, Failure, WRONG_TYPE, check_size, wrong_arity};
use crate::hash::Hash;
use crate::keyspace::Keyspace;
use crate::row::{Row, Value};

/// The hash of a key; `None` if the key is absent.
fn hash<'a>(keys: &'a mut Keyspace<'_>, key: &[u8]) -> Result<Option<&'a Hash>, Failure> {
    match keys.get(key)? {
        None => Ok(None),
        Some(Row {
            value: Value::Hash(hash),
            ..
        }) => Ok(Some(hash)),
        Some(_) => Err(WRONG_TYPE.into()),
    }
}

/// Takes the hash of a key out, to be changed in place: the key must be put back or removed.
fn take(keys: &mut Keyspace<'_>, key: &[u8]) -> Result<(Hash, Option<u64>), Failure> {
    match keys.take(key)? {
        None => Ok((Hash::default(), None)),
        Some(Row {
            value: Value::Hash(hash),
            expires_at,
            ..
        }) => Ok((hash, expires_at)),
        other => {
            keys.restore(key, other)?;
            Err(WRONG_TYPE.into())
        }
    }
}

pub fn hset(call: &mut Call<'_, '_>) -> Done {
    let new = set_fields(call)?;
    call.reply.count(new);
    Ok(())
}

/// The older form of `HSET`, which clients still send. Only its reply differs.
pub fn hmset(call: &mut Call<'_, '_>) -> Done {
    set_fields(call)?;
    call.reply.simple("OK");
    Ok(())
}

/// Sets the fields that the arguments name, and returns how many of them are new.
fn set_fields(call: &mut Call<'_, '_>) -> Result<usize, Failure> {
    let (key, pairs) = (call.arguments[1], &call.arguments[2..]);
    if !pairs.len().is_multiple_of(2) {
        return Err(wrong_arity(call.name).into());
    }
    // Checked as if all fields were new, before the hash is taken out. A hash that is almost as
    // large as it may be can be refused a change that would just have fitted.
    let before = hash(call.keys, key)?.map_or(0, |hash| hash.bytes().len());
    let more: usize = pairs.iter().map(|bytes| bytes.len() + 4).sum();
    check_size(before + more)?;
    let (mut hash, expires_at) = take(call.keys, key)?;
    let new = hash.set_many(pairs);
    call.keys.put(key, Value::Hash(hash), expires_at)?;
    Ok(new)
}

pub fn hsetnx(call: &mut Call<'_, '_>) -> Done {
    let (key, field) = (call.arguments[1], call.arguments[2]);
    if hash(call.keys, key)?.is_some_and(|hash| hash.get(field).is_some()) {
        call.reply.integer(0);
        return Ok(());
    }
    hset(call)
}

pub fn hget(call: &mut Call<'_, '_>) -> Done {
    let found = hash(call.keys, call.arguments[1])?;
    let value = found.and_then(|hash| hash.get(call.arguments[2]));
    call.reply.optional(value);
    Ok(())
}

pub fn hmget(call: &mut Call<'_, '_>) -> Done {
    let names = &call.arguments[2..];
    let found = hash(call.keys, call.arguments[1])?;
    call.reply.array(names.len());
    match found {
        Some(hash) => {
            for value in hash.get_many(names) {
                call.reply.optional(value);
            }
        }
        None => names.iter().for_each(|_| call.reply.null()),
    }
    Ok(())
}

pub fn hgetall(call: &mut Call<'_, '_>) -> Done {
    let found = hash(call.keys, call.arguments[1])?;
    call.reply.map(found.map_or(0, Hash::len));
    for (field, value) in found.into_iter().flat_map(Hash::iter) {
        call.reply.bulk(field);
        call.reply.bulk(value);
    }
    Ok(())
}

pub fn hkeys(call: &mut Call<'_, '_>) -> Done {
    let found = hash(call.keys, call.arguments[1])?;
    call.reply.array(found.map_or(0, Hash::len));
    for (field, _) in found.into_iter().flat_map(Hash::iter) {
        call.reply.bulk(field);
    }
    Ok(())
}

pub fn hvals(call: &mut Call<'_, '_>) -> Done {
    let found = hash(call.keys, call.arguments[1])?;
    call.reply.array(found.map_or(0, Hash::len));
    for (_, value) in found.into_iter().flat_map(Hash::iter) {
        call.reply.bulk(value);
    }
    Ok(())
}

pub fn hlen(call: &mut Call<'_, '_>) -> Done {
    let fields = hash(call.keys, call.arguments[1])?.map_or(0, Hash::len);
    call.reply.count(fields);
    Ok(())
}

pub fn hexists(call: &mut Call<'_, '_>) -> Done {
    let found = hash(call.keys, call.arguments[1])?;
    let is_there = found.is_some_and(|hash| hash.get(call.arguments[2]).is_some());
    call.reply.integer(i64::from(is_there));
    Ok(())
}

pub fn hstrlen(call: &mut Call<'_, '_>) -> Done {
    let found = hash(call.keys, call.arguments[1])?;
    let value = found.and_then(|hash| hash.get(call.arguments[2]));
    call.reply.count(value.map_or(0, <[u8]>::len));
    Ok(())
}

pub fn hdel(call: &mut Call<'_, '_>) -> Done {
    let (key, names) = (call.arguments[1], &call.arguments[2..]);
    let Some(found) = hash(call.keys, key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    // Looked for first: a command that removes nothing writes nothing.
    if found.get_many(names).iter().all(Option::is_none) {
        call.reply.integer(0);
        return Ok(());
    }
    let mut hash = found.clone();
    let expires_at = call.keys.get(key)?.and_then(|row| row.expires_at);
    let removed = hash.remove_many(names);
    if hash.is_empty() {
        call.keys.remove(key)?;
    } else {
        call.keys.put(key, Value::Hash(hash), expires_at)?
    }
    call.reply.count(removed);
    Ok(())
}
