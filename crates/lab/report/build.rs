//! Lists the planted faults and the sound files of `corpus`, so that each becomes a part of the
//! linter's own score by lying in its folder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let corpus = Path::new(&manifest).join("corpus");
    let planted = listed(&corpus.join("planted"))?;
    let sound = listed(&corpus.join("sound"))?;
    let code = format!(
        "const PLANTED: &[(&str, &str)] = &{planted};\nconst SOUND: &[(&str, &str)] = &{sound};\n"
    );
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    fs::write(Path::new(&out).join("corpus.rs"), code)
}

/// An array of file names without extension and contents, in the order of the names.
fn listed(folder: &Path) -> io::Result<String> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    files.sort();
    let mut array = String::from("[\n");
    for path in files {
        let name = path.file_stem().unwrap_or_default();
        let _ = writeln!(array, "({name:?}, include_str!({path:?})),");
    }
    array.push(']');
    Ok(array)
}
