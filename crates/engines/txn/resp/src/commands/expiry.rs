//! Commands about when keys expire.

use super::{Call, Done, Failure, NOT_AN_INTEGER};
use crate::wire::integer;

/// In what a time is counted, and from when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds from now, as `EX` and `EXPIRE` have them.
    Seconds,
    /// Milliseconds from now, as `PX` and `PEXPIRE` have them.
    Millis,
    /// Seconds since 1970, as `EXAT` and `EXPIREAT` have them.
    UnixSeconds,
    /// Milliseconds since 1970, as `PXAT` and `PEXPIREAT` have them.
    UnixMillis,
}

impl Unit {
    /// The unit that an option of `SET` names.
    pub fn from_option(option: &[u8]) -> Option<Unit> {
        let units = [
            ("ex", Unit::Seconds),
            ("px", Unit::Millis),
            ("exat", Unit::UnixSeconds),
            ("pxat", Unit::UnixMillis),
        ];
        let is = |(name, _): &&(&str, Unit)| option.eq_ignore_ascii_case(name.as_bytes());
        units.iter().find(is).map(|(_, unit)| *unit)
    }

    /// The moment in milliseconds since 1970, which may be before that. `None` if it is beyond what
    /// a signed number holds.
    fn moment(self, amount: i64, now_ms: u64) -> Option<i64> {
        let millis = match self {
            Unit::Seconds | Unit::UnixSeconds => amount.checked_mul(1000)?,
            Unit::Millis | Unit::UnixMillis => amount,
        };
        match self {
            Unit::Seconds | Unit::Millis => millis.checked_add(now_ms as i64),
            Unit::UnixSeconds | Unit::UnixMillis => Some(millis),
        }
    }
}

/// When a key that is set now expires. Commands that set a key refuse a time that is not positive.
pub fn moment(call: &Call<'_, '_>, unit: Unit, amount: &[u8]) -> Result<u64, Failure> {
    let amount = integer(amount).ok_or(NOT_AN_INTEGER)?;
    let at = if amount > 0 {
        unit.moment(amount, call.keys.now_ms)
    } else {
        None
    };
    at.map(|at| at as u64).ok_or_else(|| invalid(call))
}

fn invalid(call: &Call<'_, '_>) -> Failure {
    format!("ERR invalid expire time in '{}' command", call.name).into()
}

pub fn expire(call: &mut Call<'_, '_>) -> Done {
    expire_by(call, Unit::Seconds)
}

pub fn pexpire(call: &mut Call<'_, '_>) -> Done {
    expire_by(call, Unit::Millis)
}

pub fn expireat(call: &mut Call<'_, '_>) -> Done {
    expire_by(call, Unit::UnixSeconds)
}

pub fn pexpireat(call: &mut Call<'_, '_>) -> Done {
    expire_by(call, Unit::UnixMillis)
}

/// The conditions of the four commands above.
#[derive(Debug, Default)]
struct Conditions {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

fn conditions(options: &[&[u8]]) -> Result<Conditions, Failure> {
    let mut found = Conditions::default();
    for option in options {
        match option.to_ascii_lowercase().as_slice() {
            b"nx" => found.nx = true,
            b"xx" => found.xx = true,
            b"gt" => found.gt = true,
            b"lt" => found.lt = true,
            _ => {
                let option = String::from_utf8_lossy(option);
                return Err(format!("ERR Unsupported option {option}").into());
            }
        }
    }
    if found.nx && (found.xx || found.gt || found.lt) {
        let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
        return Err(text.into());
    }
    if found.gt && found.lt {
        return Err("ERR GT and LT options at the same time are not compatible".into());
    }
    Ok(found)
}

impl Conditions {
    /// Whether the expiry may change from `old` to `new`. A key without one counts as expiring
    /// after every moment.
    fn allow(&self, old: Option<u64>, new: i64) -> bool {
        let old = old.map(|at| at as i64);
        !(self.nx && old.is_some()
            || self.xx && old.is_none()
            || self.gt && old.is_none_or(|old| new <= old)
            || self.lt && old.is_some_and(|old| new >= old))
    }
}

fn expire_by(call: &mut Call<'_, '_>, unit: Unit) -> Done {
    let key = call.arguments[1];
    let conditions = conditions(&call.arguments[3..])?;
    let amount = call.integer(2)?;
    let at = unit.moment(amount, call.keys.now_ms);
    let at = at.ok_or_else(|| invalid(call))?;
    let Some(row) = call.keys.get(key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    if !conditions.allow(row.expires_at, at) {
        call.reply.integer(0);
        return Ok(());
    }
    // A moment that has passed removes the key at once.
    if at <= call.keys.now_ms as i64 {
        call.keys.remove(key)?;
    } else if let Some(row) = call.keys.take(key)? {
        call.keys.put(key, row.value, Some(at as u64))?;
    }
    call.reply.integer(1);
    Ok(())
}

pub fn persist(call: &mut Call<'_, '_>) -> Done {
    let key = call.arguments[1];
    let has_expiry = call
        .keys
        .get(key)?
        .is_some_and(|row| row.expires_at.is_some());
    if has_expiry && let Some(row) = call.keys.take(key)? {
        call.keys.put(key, row.value, None)?;
    }
    call.reply.integer(i64::from(has_expiry));
    Ok(())
}

pub fn ttl(call: &mut Call<'_, '_>) -> Done {
    expiry(call, |at, now| seconds(at.saturating_sub(now)))
}

pub fn pttl(call: &mut Call<'_, '_>) -> Done {
    expiry(call, |at, now| at.saturating_sub(now))
}

pub fn expiretime(call: &mut Call<'_, '_>) -> Done {
    expiry(call, |at, _| seconds(at))
}

pub fn pexpiretime(call: &mut Call<'_, '_>) -> Done {
    expiry(call, |at, _| at)
}

/// Rounded to the nearest second, as Redis does.
fn seconds(millis: u64) -> u64 {
    (millis + 500) / 1000
}

/// Answers with when a key expires, as `shown` has it of that moment and of now.
fn expiry(call: &mut Call<'_, '_>, shown: fn(u64, u64) -> u64) -> Done {
    let now_ms = call.keys.now_ms;
    let left = match call.keys.get(call.arguments[1])? {
        None => -2,
        Some(row) => match row.expires_at {
            None => -1,
            Some(at) => shown(at, now_ms) as i64,
        },
    };
    call.reply.integer(left);
    Ok(())
}
