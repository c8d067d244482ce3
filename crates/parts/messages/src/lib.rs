//! `eprintln!` and `eprint!` that never end the program.
//!
//! The macros of the standard library panic when standard error cannot be written, and a release
//! build aborts on a panic. A run of hours then dies with the pipe of its ssh session, or with the
//! full disk that its log is on. A message that cannot be delivered is lost here, and the work goes
//! on: what a command has to say reliably is in its exit code, its files and its standard output.
//!
//! A crate takes the macros of the same names by a line in its root, and `clippy.toml` refuses
//! those of the standard library everywhere:
//!
//! ```
//! #[macro_use]
//! extern crate dyno_messages;
//!
//! fn main() {
//!     eprintln!("{} of {} done", 1, 2);
//! }
//! ```

use std::fmt;
use std::io::Write;

/// Writes a message to standard error, if that can be written. The message is put together first
/// and handed over in one piece, so that lines of several threads do not mix.
pub fn write(message: fmt::Arguments<'_>) {
    let text = message.to_string();
    // A reader that went away, and a disk without space, must not end the work; see the crate's
    // documentation.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// As the macro of the standard library, but a message that cannot be written is lost.
#[macro_export]
macro_rules! eprint {
    ($($message:tt)*) => {
        $crate::write(::std::format_args!($($message)*))
    };
}

/// As the macro of the standard library, but a message that cannot be written is lost.
#[macro_export]
macro_rules! eprintln {
    () => {
        $crate::write(::std::format_args!("\n"))
    };
    ($($message:tt)*) => {
        $crate::write(::std::format_args!("{}\n", ::std::format_args!($($message)*)))
    };
}
