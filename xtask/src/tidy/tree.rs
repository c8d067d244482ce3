//! The files that the rules look at, read once.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::code;

/// One text file, with the form that rules on code read.
pub struct File {
    /// Relative to the workspace, with `/` between its parts.
    pub path: String,
    /// The text as it is on disk.
    pub text: String,
    /// For Rust: the same lines with comments and the insides of literals blanked; else empty.
    pub code: String,
}

impl File {
    /// A file as it would be read.
    pub fn new(path: &str, text: &str) -> File {
        let code = if path.ends_with(".rs") {
            code::only(text)
        } else {
            String::new()
        };
        File {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
        }
    }

    /// The name without its folder.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether it is a Rust source.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// The workspace's own text files, in order of their paths.
pub struct Tree {
    /// The files that rules read; see [`File`].
    pub files: Vec<File>,
    /// Paths of everything else: pictures, fixtures, lock files. Rules only ask whether they exist.
    pub others: Vec<String>,
}

/// Folders that hold what tools make.
const MADE: [&str; 7] = [
    "target",
    "runs",
    "corpus",
    "artifacts",
    "node_modules",
    "fixtures",
    ".git",
];
/// Endings of the files whose text rules read.
const READ: [&str; 7] = ["rs", "toml", "md", "sh", "yml", "py", "sql"];
/// Folders whose files are read whatever their names end in: programs without an ending, and units.
const TEXT_FOLDERS: [&str; 3] = ["scripts", ".ci", "systemd"];

impl Tree {
    /// Reads the workspace around the current folder.
    pub fn read() -> Result<Tree, String> {
        let here =
            env::current_dir().map_err(|e| format!("cannot tell the current folder: {e}"))?;
        let root = here
            .ancestors()
            .find(|folder| folder.join("rust-toolchain.toml").exists())
            .ok_or_else(|| format!("{} is not inside the workspace", here.display()))?;
        let mut tree = Tree {
            files: Vec::new(),
            others: Vec::new(),
        };
        tree.read_folder(root, root)?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    /// A tree made up by a test: (path, text).
    #[cfg(test)]
    pub fn from_files(files: &[(&str, &str)]) -> Tree {
        Tree {
            files: files
                .iter()
                .map(|(path, text)| File::new(path, text))
                .collect(),
            others: Vec::new(),
        }
    }

    /// Whether a file or a folder of this path exists.
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        let found = |known: &str| known == path || known.starts_with(&folder);
        self.files.iter().any(|file| found(&file.path)) || self.others.iter().any(|o| found(o))
    }

    fn read_folder(&mut self, root: &Path, folder: &Path) -> Result<(), String> {
        let cannot =
            |path: &Path, e: std::io::Error| format!("cannot read {}: {e}", path.display());
        for entry in fs::read_dir(folder).map_err(|e| cannot(folder, e))? {
            let path: PathBuf = entry.map_err(|e| cannot(folder, e))?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                if name == ".work" {
                    continue;
                }
                // A folder of made files counts as there, so that documents may point at it, but
                // nothing in it is read.
                if MADE.contains(&name.as_str()) {
                    self.others.push(relative(root, &path) + "/");
                } else {
                    self.read_folder(root, &path)?;
                }
                continue;
            }
            let extension = path.extension().unwrap_or_default().to_string_lossy();
            let holder = folder.file_name().unwrap_or_default();
            let is_text = TEXT_FOLDERS.iter().any(|name| holder == *name);
            if READ.contains(&&*extension) || is_text {
                let text = fs::read_to_string(&path).map_err(|e| cannot(&path, e))?;
                self.files.push(File::new(&relative(root, &path), &text));
            } else {
                self.others.push(relative(root, &path));
            }
        }
        Ok(())
    }
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .to_string_lossy()
        .replace('\\', "/")
}
