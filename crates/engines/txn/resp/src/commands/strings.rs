//! Commands that read strings, or change a part of one.

use super::{Call, Done, Failure, WRONG_TYPE, check_size};
use crate::keyspace::Keyspace;
use crate::row::{Row, Value};

/// The string of a key; `None` if the key is absent.
pub fn text<'a>(keys: &'a mut Keyspace<'_>, key: &[u8]) -> Result<Option<&'a [u8]>, Failure> {
    match keys.get(key)? {
        None => Ok(None),
        Some(Row {
            value: Value::Text(text),
            ..
        }) => Ok(Some(text)),
        Some(_) => Err(WRONG_TYPE.into()),
    }
}

/// A string, and when it expires.
type Expiring = (Vec<u8>, Option<u64>);

/// Takes the string of a key out, to be changed in place: the key must be put back.
pub fn take_text(keys: &mut Keyspace<'_>, key: &[u8]) -> Result<Option<Expiring>, Failure> {
    match keys.take(key)? {
        None => Ok(None),
        Some(Row {
            value: Value::Text(text),
            expires_at,
            ..
        }) => Ok(Some((text, expires_at))),
        other => {
            keys.restore(key, other)?;
            Err(WRONG_TYPE.into())
        }
    }
}

pub fn get(call: &mut Call<'_, '_>) -> Done {
    let found = text(call.keys, call.arguments[1])?;
    call.reply.optional(found);
    Ok(())
}

pub fn mget(call: &mut Call<'_, '_>) -> Done {
    let keys = &call.arguments[1..];
    call.reply.array(keys.len());
    for key in keys {
        // A key of another type counts as absent here, as it does in Redis.
        match text(call.keys, key) {
            Ok(found) => call.reply.optional(found),
            Err(Failure::Reply(_)) => call.reply.null(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub fn strlen(call: &mut Call<'_, '_>) -> Done {
    let length = text(call.keys, call.arguments[1])?.map_or(0, <[u8]>::len);
    call.reply.count(length);
    Ok(())
}

pub fn getrange(call: &mut Call<'_, '_>) -> Done {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let text = text(call.keys, call.arguments[1])?.unwrap_or(&[]);
    call.reply.bulk(range(text, start, end));
    Ok(())
}

/// The bytes from `start` to `end`, both included; negative places count from the end.
fn range(text: &[u8], start: i64, end: i64) -> &[u8] {
    let length = text.len() as i64;
    // Before they are brought into the string, because Redis looks at them in this order: a range
    // that is backwards and before the beginning is empty, and not the first byte.
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let place = |at: i64| {
        if at < 0 {
            (length.saturating_add(at)).max(0)
        } else {
            at
        }
    };
    let (start, end) = (place(start), place(end).min(length - 1));
    if start <= end {
        &text[start as usize..=end as usize]
    } else {
        &[]
    }
}

pub fn append(call: &mut Call<'_, '_>) -> Done {
    let (key, tail) = (call.arguments[1], call.arguments[2]);
    // The size is checked before anything is taken out.
    let before = text(call.keys, key)?.map_or(0, <[u8]>::len);
    check_size(before + tail.len())?;
    let (mut text, expires_at) = take_text(call.keys, key)?.unwrap_or_default();
    text.extend_from_slice(tail);
    call.reply.count(text.len());
    call.keys.put(key, Value::Text(text), expires_at)?;
    Ok(())
}

pub fn setrange(call: &mut Call<'_, '_>) -> Done {
    let (key, patch) = (call.arguments[1], call.arguments[3]);
    let offset = call.integer(2)?;
    if offset < 0 {
        return Err("ERR offset is out of range".into());
    }
    let before = text(call.keys, key)?.map_or(0, <[u8]>::len);
    // Nothing to write, so that an absent key is not made.
    if patch.is_empty() {
        call.reply.count(before);
        return Ok(());
    }
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let end = offset.saturating_add(patch.len());
    check_size(end)?;
    let (mut text, expires_at) = take_text(call.keys, key)?.unwrap_or_default();
    if text.len() < end {
        text.resize(end, 0);
    }
    text[offset..end].copy_from_slice(patch);
    call.reply.count(text.len());
    call.keys.put(key, Value::Text(text), expires_at)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn ranges_are_those_of_redis() {
        for (start, end, found) in [
            (0, 3, "This"),
            (-3, -1, "ing"),
            (0, -1, "This is a string"),
            (10, 100, "string"),
            (5, 3, ""),
            (-1, -5, ""),
            (-100, 1, "Th"),
            (i64::MIN, i64::MAX, "This is a string"),
            (100, 200, ""),
        ] {
            let range = range(b"This is a string", start, end);
            assert_eq!(range, found.as_bytes(), "{start} {end}");
        }
        assert_eq!(range(b"", 0, -1), b"");
    }
}
