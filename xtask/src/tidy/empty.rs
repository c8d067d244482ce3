//! Files without any text, which are what an accident leaves: a unit of systemd that lost its lines
//! was packed and installed, and only failed when it was started.

use super::Finding;
use super::tree::Tree;

/// The name of the files that are empty on purpose: Python looks only whether they exist.
const MAY_BE_EMPTY: &str = "__init__.py";

pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.files
        .iter()
        .filter(|file| file.text.trim().is_empty() && file.name() != MAY_BE_EMPTY)
        .map(|file| Finding::breach(&file.path, 0, "is empty: restore its text, or remove it"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_text_is_refused() {
        let tree = Tree::from_files(&[
            ("systemd/a.service", ""),
            ("systemd/b.service", "[Unit]\n"),
            ("docs/a.md", "\n"),
            ("peers/a/__init__.py", ""),
        ]);
        let paths: Vec<_> = check(&tree).into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["systemd/a.service", "docs/a.md"]);
    }
}
