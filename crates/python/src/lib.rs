//! The native half of the Python module `dynolab`: tables of TPC-H as streams of Arrow's C data
//! interface.
//!
//! Python calls these functions through `ctypes`, so that one library serves every version of
//! Python, and wraps the stream into the capsule of Arrow's PyCapsule interface
//! (`dynolab/_native.py`). The batches are made when the consumer asks for them, in memory that it
//! takes over: nothing is copied on the way.
//!
//! This module has `unsafe` code: it hands out and takes back raw pointers. Each function says what
//! the caller must keep.

use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use arrow::ffi_stream::FFI_ArrowArrayStream;
use dyno_tpch::{Generator, Scale, Table};
use dyno_tpch_arrow::Stream;

/// Makes a stream of all rows of a table at a scale factor. If the table or the scale factor does
/// not exist, returns null and puts the reason into `error`.
///
/// The caller frees the stream by [`dynolab_free_stream`], and the reason by [`dynolab_free_text`].
///
/// # Safety
/// `table` is a string that ends with a zero byte, and `error` may be written to.
// SAFETY: no other function of the programs that this is linked into has the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dynolab_tpch_stream(
    table: *const c_char,
    scale_factor: f64,
    error: *mut *mut c_char,
) -> *mut FFI_ArrowArrayStream {
    // SAFETY: the caller hands a string that ends with a zero byte.
    let table = unsafe { CStr::from_ptr(table) };
    // A panic must not run through Python's frames.
    let made = catch_unwind(AssertUnwindSafe(|| stream(table, scale_factor)))
        .unwrap_or_else(|_| Err("the generator panicked".to_owned()));
    match made {
        Ok(stream) => Box::into_raw(Box::new(stream)),
        Err(reason) => {
            let reason = CString::new(reason.replace('\0', " ")).unwrap_or_default();
            // SAFETY: the caller says that it may be written to.
            unsafe { error.write(reason.into_raw()) };
            ptr::null_mut()
        }
    }
}

fn stream(table: &CStr, scale_factor: f64) -> Result<FFI_ArrowArrayStream, String> {
    let table = table.to_str().map_err(|error| error.to_string())?;
    let table: Table = table.parse().map_err(|error| format!("{error}"))?;
    let scale = Scale::new(scale_factor).map_err(|error| error.to_string())?;
    let units = 0..scale.units(table);
    let generator = Arc::new(Generator::new(scale));
    let stream = Stream::new(generator, table, units).map_err(|error| error.to_string())?;
    Ok(FFI_ArrowArrayStream::new(Box::new(stream)))
}

/// Frees a stream. If a consumer has taken its content over, which it shows by clearing `release`,
/// only the structure itself is freed.
///
/// # Safety
/// `stream` is from [`dynolab_tpch_stream`] and was not freed before.
// SAFETY: no other function of the programs that this is linked into has the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dynolab_free_stream(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: it was made by `Box::into_raw`, and this is the only time that it is freed.
    drop(unsafe { Box::from_raw(stream) });
}

/// Frees the reason of an error.
///
/// # Safety
/// `text` is from this library and was not freed before.
// SAFETY: no other function of the programs that this is linked into has the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dynolab_free_text(text: *mut c_char) {
    // SAFETY: it was made by `CString::into_raw`, and this is the only time that it is freed.
    drop(unsafe { CString::from_raw(text) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::ffi_stream::ArrowArrayStreamReader;

    fn made(table: &CStr, scale_factor: f64) -> Result<*mut FFI_ArrowArrayStream, String> {
        let mut error = ptr::null_mut();
        // SAFETY: both pointers are of this function.
        let stream = unsafe { dynolab_tpch_stream(table.as_ptr(), scale_factor, &mut error) };
        if !stream.is_null() {
            return Ok(stream);
        }
        // SAFETY: a null stream comes with a reason, which is freed once.
        unsafe {
            let reason = CStr::from_ptr(error).to_string_lossy().into_owned();
            dynolab_free_text(error);
            Err(reason)
        }
    }

    #[test]
    fn a_consumer_gets_all_rows_and_the_structure_is_freed_after_it() {
        let stream = made(c"orders", 0.01).expect("a stream");
        // SAFETY: the stream is valid; its content moves to the reader, which clears `release`.
        let reader = unsafe { ArrowArrayStreamReader::from_raw(stream) }.expect("a reader");
        // SAFETY: it is freed once.
        unsafe { dynolab_free_stream(stream) };
        let rows: usize = reader.map(|batch| batch.expect("a batch").num_rows()).sum();
        assert_eq!(rows, 15_000);
    }

    #[test]
    fn what_does_not_exist_is_named() {
        let reason = made(c"orderz", 1.0).expect_err("no such table");
        assert!(reason.contains("orderz"), "{reason}");
        let reason = made(c"orders", -1.0).expect_err("no such scale factor");
        assert!(reason.contains("-1"), "{reason}");
    }
}
