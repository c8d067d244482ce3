//! Writing records into a body.

use super::{RECORD_BYTES_LEAST, RECORD_BYTES_MAX};
use crate::error::{Code, Error, Result};

/// How many bytes [`encode`] adds for such a record, the length field included.
pub fn encoded_bytes(key: Option<&[u8]>, headers: &[(&str, Option<&[u8]>)], value: &[u8]) -> usize {
    let headers: usize = headers
        .iter()
        .map(|(name, value)| 6 + name.len() + value.map_or(0, <[u8]>::len))
        .sum();
    4 + RECORD_BYTES_LEAST + key.map_or(0, <[u8]>::len) + headers + value.len()
}

/// Refuses a record that is larger than [`RECORD_BYTES_MAX`], given its [`encoded_bytes`].
pub(crate) fn check_length(encoded_bytes: usize) -> Result<()> {
    let bytes = encoded_bytes.saturating_sub(4);
    if bytes <= RECORD_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        Code::RecordTooLarge,
        format_args!(
            "a record of {bytes} bytes is larger than the {RECORD_BYTES_MAX} that are allowed"
        ),
    ))
}

/// Appends one record to a body. `time_us` is in microseconds since 1970.
///
/// # Errors
/// `record-too-large` above 8 MiB; `bad-argument` for more than 65535 headers, or a longer name of
/// one. The body is then as it was.
pub fn encode(
    body: &mut Vec<u8>,
    time_us: i64,
    key: Option<&[u8]>,
    headers: &[(&str, Option<&[u8]>)],
    value: &[u8],
) -> Result<()> {
    let bytes = encoded_bytes(key, headers, value);
    check_length(bytes)?;
    let bytes = bytes - 4;
    // Everything that can be wrong is found before the first byte is written, so that a record that
    // is refused leaves the batch as it was.
    let header_count = u16::try_from(headers.len())
        .map_err(|_| Error::bad_argument(format_args!("{} headers are too many", headers.len())))?;
    if let Some((name, _)) = headers
        .iter()
        .find(|(name, _)| name.len() > usize::from(u16::MAX))
    {
        let bytes = name.len();
        return Err(Error::bad_argument(format_args!(
            "a header's name of {bytes} bytes is too long"
        )));
    }
    body.reserve(bytes + 4);
    put_length(body, bytes);
    body.extend_from_slice(&time_us.to_be_bytes());
    put_optional(body, key);
    body.extend_from_slice(&header_count.to_be_bytes());
    for (name, value) in headers {
        let name_bytes = u16::try_from(name.len()).unwrap_or(u16::MAX);
        body.extend_from_slice(&name_bytes.to_be_bytes());
        body.extend_from_slice(name.as_bytes());
        put_optional(body, *value);
    }
    body.extend_from_slice(value);
    Ok(())
}

/// Writes a length. The caller has checked it against a limit that fits 32 bits.
fn put_length(body: &mut Vec<u8>, bytes: usize) {
    body.extend_from_slice(&u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes());
}

fn put_optional(body: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            put_length(body, bytes.len());
            body.extend_from_slice(bytes);
        }
        None => body.extend_from_slice(&(-1_i32).to_be_bytes()),
    }
}

/// An encoded record without its length and its time.
pub(crate) fn without_time(encoded: &[u8]) -> &[u8] {
    encoded.get(12..).unwrap_or_default()
}
