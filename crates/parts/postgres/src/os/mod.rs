//! The operating system's side of a server: the user it runs as, its processes, and replacing
//! files.

mod files;
mod guarded;
mod owner;
mod processes;

pub(crate) use files::{first_other_entry, last_lines, make_dir, replace_file, sync_dir};
pub use guarded::spawn as spawn_guarded;
pub(crate) use owner::Owner;
pub(crate) use processes::{Process, of_directory, one_of_directory};
