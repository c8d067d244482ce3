//! Commands that look at many keys without naming them.
//!
//! All but `SCAN` read the whole table within one transaction, so their answer is one moment of the
//! database. That costs a walk over all rows, also for `DBSIZE`: a counter would be a row that
//! every transaction writes, and every transaction would wait for it.

use std::collections::BTreeMap;

use dyno_txn_api::{Operation, Result, Scan, ScanRow, prefix_end};

use super::{Call, Done, Failure, NOT_AN_INTEGER, SYNTAX};
use crate::glob::{self, matches};
use crate::keyspace::{Keyspace, unreadable};
use crate::row::{HASH_END, hash_of, head_of, split_key};
use crate::wire::integer;

/// Keys that one `SCAN` looks at if the client does not say how many.
const COUNT: usize = 10;
/// Keys that one `SCAN` looks at, however many the client asks for.
const COUNT_MAX: usize = 10_000;
/// Bytes of values after which one step of a scan ends.
const ROWS_BYTES: usize = 8 << 20;
/// Ranges in which a walk over all keys reads the pages of several partitions.
const RANGES: u64 = 64;
/// Bytes of values that a walk reads of each of several partitions. Those of other partitions are
/// kept until the walk ends.
const PARTITION_BYTES_MAX: u64 = 256 << 20;
/// Bytes of keys that one `KEYS` returns.
const KEYS_BYTES_MAX: usize = 2 << 20;

/// A key that a scan found.
struct FoundKey {
    hash: u64,
    key: Vec<u8>,
    type_name: &'static str,
}

pub fn dbsize(call: &mut Call<'_, '_>) -> Done {
    let mut keys = 0;
    each_key(call.keys, |_| {
        keys += 1;
        Ok(())
    })?;
    call.reply.integer(keys);
    Ok(())
}

pub fn keys(call: &mut Call<'_, '_>) -> Done {
    let pattern = call.arguments[1];
    glob::check(pattern)?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    each_key(call.keys, |key| {
        if matches(pattern, &key.key) {
            bytes += key.key.len() + 16;
            if bytes > KEYS_BYTES_MAX {
                return Err("ERR too many keys for one answer, use SCAN instead".into());
            }
            found.push(key.key);
        }
        Ok(())
    })?;
    call.reply.array(found.len());
    for key in found {
        call.reply.bulk(&key);
    }
    Ok(())
}

pub fn flush(call: &mut Call<'_, '_>) -> Done {
    let is_known =
        |mode: &[u8]| mode.eq_ignore_ascii_case(b"sync") || mode.eq_ignore_ascii_case(b"async");
    match call.arguments[1..] {
        [] => {}
        [mode] if is_known(mode) => {}
        _ => return Err(SYNTAX.into()),
    }
    let mut keys = Vec::new();
    each_key(call.keys, |key| {
        keys.push(key.key);
        Ok(())
    })?;
    for key in keys {
        // Without reading the row again: the scan has found it, and it is removed whatever it is.
        call.keys.remove_found(key);
    }
    call.reply.simple("OK");
    Ok(())
}

/// Calls `each` with every key that is there, in no order that means anything.
fn each_key(
    keys: &mut Keyspace<'_>,
    mut each: impl FnMut(FoundKey) -> Result<(), Failure>,
) -> Done {
    let (mut scans, mut bytes) = (walk(keys), 0);
    while !scans.is_empty() {
        let operations: Vec<_> = scans.iter().cloned().map(Operation::Scan).collect();
        let answers = keys.transaction.run(&operations)?;
        let mut rest = Vec::new();
        for (mut scan, answer) in scans.into_iter().zip(answers) {
            let page = answer.page()?;
            for row in page.rows {
                bytes += row.value.len() as u64;
                if let Some(key) = living(keys, row)? {
                    each(key)?;
                }
            }
            if page.next.is_some() {
                scan.after = page.next;
                rest.push(scan);
            }
        }
        if keys.partitions > 1 && bytes > u64::from(keys.partitions) * PARTITION_BYTES_MAX {
            return Err(
                "ERR too much is stored for one transaction over all keys, use SCAN".into(),
            );
        }
        scans = rest;
    }
    for key in changed(keys, 0..HASH_END) {
        each(key)?;
    }
    Ok(())
}

/// The scans of a walk over all keys, which are read page by page side by side.
///
/// A procedure that needs a page of another partition is run again from the start once the page is
/// there. So with several partitions many ranges are asked for at once, and what one partition has
/// of them comes in one round.
fn walk(keys: &Keyspace<'_>) -> Vec<Scan> {
    let ranges = if keys.partitions > 1 { RANGES } else { 1 };
    let bound = |number: u64| (HASH_END / ranges * number).to_be_bytes().to_vec();
    let each = (0..ranges).map(|number| {
        let end = (number + 1 < ranges).then(|| bound(number + 1));
        Scan::range(keys.table, bound(number), end)
    });
    each.collect()
}

/// A row that a scan found as a key; `None` if the key is expired, or if this batch has written or
/// removed it: then [`changed`] has what it is now.
fn living(keys: &Keyspace<'_>, row: ScanRow) -> Result<Option<FoundKey>> {
    let (hash, key) = split_key(&row.key).ok_or_else(unreadable)?;
    let (type_name, expires_at) = head_of(&row.value).ok_or_else(unreadable)?;
    if expires_at.is_some_and(|at| keys.now_ms > at) || keys.is_changed(key) {
        return Ok(None);
    }
    let key = key.to_vec();
    Ok(Some(FoundKey {
        hash,
        key,
        type_name,
    }))
}

/// Keys that this batch has set, with hashes in a range.
fn changed(keys: &Keyspace<'_>, range: std::ops::Range<u64>) -> Vec<FoundKey> {
    let set = keys.entries.iter().filter(|(_, entry)| entry.is_changed);
    let living = set.filter_map(|(key, entry)| {
        let row = entry.row.as_ref()?;
        Some(FoundKey {
            hash: hash_of(key),
            key: key.clone(),
            type_name: row.value.type_name(),
        })
    });
    living.filter(|key| range.contains(&key.hash)).collect()
}

/// What a `SCAN` asks for.
struct ScanOptions<'a> {
    cursor: u64,
    count: usize,
    pattern: Option<&'a [u8]>,
    type_name: Option<&'a [u8]>,
}

fn scan_options<'a>(arguments: &[&'a [u8]]) -> Result<ScanOptions<'a>, Failure> {
    // Any number is a cursor in Redis; one that no scan has returned finds what it finds.
    let cursor = std::str::from_utf8(arguments[1]).ok();
    let cursor = cursor.and_then(|text| text.parse::<u64>().ok());
    let mut options = ScanOptions {
        cursor: cursor.ok_or("ERR invalid cursor")?,
        count: COUNT,
        pattern: None,
        type_name: None,
    };
    for pair in arguments[2..].chunks(2) {
        let [name, value] = *pair else {
            return Err(SYNTAX.into());
        };
        match name.to_ascii_lowercase().as_slice() {
            b"count" => {
                let count = integer(value).ok_or(NOT_AN_INTEGER)?;
                if count < 1 {
                    return Err(SYNTAX.into());
                }
                options.count = (count as usize).min(COUNT_MAX);
            }
            b"match" => {
                glob::check(value)?;
                options.pattern = Some(value);
            }
            b"type" => options.type_name = Some(value),
            _ => return Err(SYNTAX.into()),
        }
    }
    Ok(options)
}

pub fn scan(call: &mut Call<'_, '_>) -> Done {
    let options = scan_options(call.arguments)?;
    let (rows, next) = rows_from(call.keys, options.cursor, options.count)?;
    let mut keys = Vec::new();
    for row in rows {
        keys.extend(living(call.keys, row)?);
    }
    let end = if next == 0 { HASH_END } else { next };
    keys.extend(changed(call.keys, options.cursor..end));
    keys.retain(|key| {
        let is_type = |name: &[u8]| name.eq_ignore_ascii_case(key.type_name.as_bytes());
        options
            .pattern
            .is_none_or(|pattern| matches(pattern, &key.key))
            && options.type_name.is_none_or(is_type)
    });
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(keys.len());
    for key in keys {
        call.reply.bulk(&key.key);
    }
    Ok(())
}

/// About `count` rows whose hashes are not below `cursor`, and the cursor behind them, which is 0
/// at the end of the table. Rows of one hash are returned together, because a cursor cannot stand
/// between them.
pub fn rows_from(
    keys: &mut Keyspace<'_>,
    cursor: u64,
    count: usize,
) -> Result<(Vec<ScanRow>, u64)> {
    let mut scan = Scan::range(keys.table, cursor.to_be_bytes().to_vec(), None);
    // One more than is returned, whose hash is where the next scan begins.
    scan = scan.limit(count as u32 + 1);
    let (mut rows, mut bytes, mut is_end) = (Vec::new(), 0, false);
    // Pages have the values, too, so their bytes are bounded as well.
    while rows.len() <= count && bytes < ROWS_BYTES && !is_end {
        let page = keys.transaction.scan(&scan)?;
        bytes += page.rows.iter().map(|row| row.value.len()).sum::<usize>();
        rows.extend(page.rows);
        is_end = page.next.is_none();
        scan.after = page.next;
    }
    if is_end {
        return Ok((rows, 0));
    }
    let hash = |row: &ScanRow| split_key(&row.key).map_or(0, |(hash, _)| hash);
    let boundary = rows.last().map_or(0, hash);
    let before = rows.partition_point(|row| hash(row) < boundary);
    if before > 0 {
        rows.truncate(before);
        return Ok((rows, boundary));
    }
    // All of them have one hash, which happens only if a client searched for such keys. The scan
    // has to go past them nevertheless.
    let bucket = one_hash(keys, boundary)?;
    Ok((bucket, boundary + 1))
}

/// All rows whose keys have this hash.
fn one_hash(keys: &mut Keyspace<'_>, hash: u64) -> Result<Vec<ScanRow>> {
    let prefix = hash.to_be_bytes().to_vec();
    let end = prefix_end(&prefix);
    let mut scan = Scan::range(keys.table, prefix, end);
    let mut rows = BTreeMap::new();
    loop {
        let page = keys.transaction.scan(&scan)?;
        rows.extend(page.rows.into_iter().map(|row| (row.key, row.value)));
        match page.next {
            Some(next) => scan.after = Some(next),
            None => break,
        }
    }
    let rows = rows.into_iter().map(|(key, value)| ScanRow { key, value });
    Ok(rows.collect())
}
