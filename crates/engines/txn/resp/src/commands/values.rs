//! Commands that set whole strings, with or without an expiry.

use super::expiry::{Unit, moment};
use super::strings::text;
use super::{Call, Done, Failure, SYNTAX, check_size, wrong_arity};
use crate::row::Value;

/// The condition of a `SET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Only {
    Absent,
    Present,
}

/// What becomes of the expiry of a key that is set or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expiry<'a> {
    /// It goes if the key is set, and stays if the key is read.
    Default,
    Keep,
    Remove,
    At(Unit, &'a [u8]),
}

/// The options of `SET` and `GETEX`.
struct SetOptions<'a> {
    only: Option<Only>,
    get: bool,
    expiry: Expiry<'a>,
}

/// Which command the options are of: each has some that the other has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Set,
    GetEx,
}

/// Parses options in any order, and refuses those that contradict each other.
fn options<'a>(list: &[&'a [u8]], kind: Kind) -> Result<SetOptions<'a>, Failure> {
    let mut options = SetOptions {
        only: None,
        get: false,
        expiry: Expiry::Default,
    };
    let mut rest = list.iter();
    while let Some(option) = rest.next() {
        let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
        let is_free = options.expiry == Expiry::Default;
        if is("nx") && kind == Kind::Set && options.only != Some(Only::Present) {
            options.only = Some(Only::Absent);
        } else if is("xx") && kind == Kind::Set && options.only != Some(Only::Absent) {
            options.only = Some(Only::Present);
        } else if is("get") && kind == Kind::Set {
            options.get = true;
        } else if is("keepttl")
            && kind == Kind::Set
            && matches!(options.expiry, Expiry::Default | Expiry::Keep)
        {
            options.expiry = Expiry::Keep;
        } else if is("persist")
            && kind == Kind::GetEx
            && matches!(options.expiry, Expiry::Default | Expiry::Remove)
        {
            options.expiry = Expiry::Remove;
        } else if let (Some(unit), Some(amount)) = (Unit::from_option(option), rest.next()) {
            // The same option twice is not an error in Redis: the last one counts.
            let is_same = matches!(options.expiry, Expiry::At(before, _) if before == unit);
            if !is_free && !is_same {
                return Err(SYNTAX.into());
            }
            options.expiry = Expiry::At(unit, amount);
        } else {
            return Err(SYNTAX.into());
        }
    }
    Ok(options)
}

pub fn set(call: &mut Call<'_, '_>) -> Done {
    let (key, value) = (call.arguments[1], call.arguments[2]);
    let options = options(&call.arguments[3..], Kind::Set)?;
    let expires_at = match options.expiry {
        Expiry::At(unit, amount) => Some(moment(call, unit, amount)?),
        _ => None,
    };
    check_size(value.len())?;
    if options.get {
        // The old value, which may be of another type: then nothing is set.
        let old = text(call.keys, key)?;
        call.reply.optional(old);
    }
    let old = call.keys.get(key)?;
    let is_refused = match options.only {
        Some(Only::Absent) => old.is_some(),
        Some(Only::Present) => old.is_none(),
        None => false,
    };
    let expires_at = match options.expiry {
        Expiry::Keep => old.and_then(|row| row.expires_at),
        _ => expires_at,
    };
    if is_refused {
        if !options.get {
            call.reply.null();
        }
        return Ok(());
    }
    put(call, key, value, expires_at)?;
    if !options.get {
        call.reply.simple("OK");
    }
    Ok(())
}

/// Sets a string. One that would have expired already is not set at all.
fn put(call: &mut Call<'_, '_>, key: &[u8], value: &[u8], expires_at: Option<u64>) -> Done {
    match expires_at {
        Some(at) if at < call.keys.now_ms => {
            call.keys.remove(key)?;
            // In Redis it is there for a moment, so a client that watches it is told.
            call.keys.touch(key);
        }
        _ => call
            .keys
            .put(key, Value::Text(value.to_vec()), expires_at)?,
    }
    Ok(())
}

pub fn setnx(call: &mut Call<'_, '_>) -> Done {
    let (key, value) = (call.arguments[1], call.arguments[2]);
    check_size(value.len())?;
    let is_absent = call.keys.get(key)?.is_none();
    if is_absent {
        put(call, key, value, None)?;
    }
    call.reply.integer(i64::from(is_absent));
    Ok(())
}

pub fn setex(call: &mut Call<'_, '_>) -> Done {
    set_for(call, Unit::Seconds)
}

pub fn psetex(call: &mut Call<'_, '_>) -> Done {
    set_for(call, Unit::Millis)
}

fn set_for(call: &mut Call<'_, '_>, unit: Unit) -> Done {
    let (key, value) = (call.arguments[1], call.arguments[3]);
    let at = moment(call, unit, call.arguments[2])?;
    check_size(value.len())?;
    put(call, key, value, Some(at))?;
    call.reply.simple("OK");
    Ok(())
}

pub fn getset(call: &mut Call<'_, '_>) -> Done {
    let (key, value) = (call.arguments[1], call.arguments[2]);
    check_size(value.len())?;
    let old = text(call.keys, key)?;
    call.reply.optional(old);
    put(call, key, value, None)
}

pub fn getdel(call: &mut Call<'_, '_>) -> Done {
    let key = call.arguments[1];
    let old = text(call.keys, key)?;
    call.reply.optional(old);
    call.keys.remove(key)?;
    Ok(())
}

pub fn getex(call: &mut Call<'_, '_>) -> Done {
    let key = call.arguments[1];
    let options = options(&call.arguments[2..], Kind::GetEx)?;
    let Some(old) = text(call.keys, key)? else {
        call.reply.null();
        return Ok(());
    };
    let old = old.to_vec();
    let expires_at = match options.expiry {
        Expiry::At(unit, amount) => Some(moment(call, unit, amount)?),
        Expiry::Remove => None,
        Expiry::Default | Expiry::Keep => {
            call.reply.bulk(&old);
            return Ok(());
        }
    };
    call.reply.bulk(&old);
    let had = call.keys.get(key)?.and_then(|row| row.expires_at);
    match expires_at {
        Some(at) if at <= call.keys.now_ms => drop(call.keys.remove(key)?),
        // What does not change is not written, so clients that watch the key see the same version.
        None if had.is_none() => {}
        expires_at => call.keys.put(key, Value::Text(old), expires_at)?,
    }
    Ok(())
}

pub fn mset(call: &mut Call<'_, '_>) -> Done {
    set_pairs(call)?;
    call.reply.simple("OK");
    Ok(())
}

pub fn msetnx(call: &mut Call<'_, '_>) -> Done {
    check_pairs(call)?;
    for pair in call.arguments[1..].chunks_exact(2) {
        if call.keys.get(pair[0])?.is_some() {
            call.reply.integer(0);
            return Ok(());
        }
    }
    set_pairs(call)?;
    call.reply.integer(1);
    Ok(())
}

fn check_pairs(call: &Call<'_, '_>) -> Done {
    if call.arguments.len().is_multiple_of(2) {
        return Err(wrong_arity(call.name).into());
    }
    // All sizes before the first change, because a command that fails changes nothing.
    let mut pairs = call.arguments[1..].chunks_exact(2);
    pairs.try_for_each(|pair| check_size(pair[1].len()))
}

fn set_pairs(call: &mut Call<'_, '_>) -> Done {
    check_pairs(call)?;
    for pair in call.arguments[1..].chunks_exact(2) {
        let value = Value::Text(pair[1].to_vec());
        call.keys.put(pair[0], value, None)?;
    }
    Ok(())
}
