//! What `scripts/test` has installed for tests.

use std::path::{Path, PathBuf};

/// The file at this place among what is installed, if it is there.
pub fn installed(place: &str) -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".local/share")));
    let path = data?.join("dynolab/peers").join(place);
    path.exists().then_some(path)
}
