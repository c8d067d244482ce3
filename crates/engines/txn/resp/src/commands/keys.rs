//! Commands on keys of any type.

use super::{Call, Done};
use crate::row::Row;

pub fn del(call: &mut Call<'_, '_>) -> Done {
    let mut removed = 0;
    for key in &call.arguments[1..] {
        removed += i64::from(call.keys.remove(key)?);
    }
    call.reply.integer(removed);
    Ok(())
}

pub fn exists(call: &mut Call<'_, '_>) -> Done {
    let mut found = 0;
    // A key that is named twice counts twice.
    for key in &call.arguments[1..] {
        found += i64::from(call.keys.get(key)?.is_some());
    }
    call.reply.integer(found);
    Ok(())
}

pub fn type_of(call: &mut Call<'_, '_>) -> Done {
    let found = call.keys.get(call.arguments[1])?;
    let name = found.map_or("none", |Row { value, .. }| value.type_name());
    call.reply.simple(name);
    Ok(())
}
