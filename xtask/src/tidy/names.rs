//! Names of modules that say nothing of what is inside.

use super::Finding;
use super::tree::Tree;

/// Modules and folders of these names collect whatever has no place; name the thing instead.
const BANNED: [&str; 7] = [
    "util", "utils", "helper", "helpers", "common", "misc", "stuff",
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.is_rust()) {
        let path = file.path.trim_end_matches(".rs");
        if let Some(name) = path.split('/').find(|part| BANNED.contains(part)) {
            let text = format!("`{name}` says nothing: name the thing that is in it");
            findings.push(Finding::breach(&file.path, 0, text));
        }
        for (at, line) in file.code.lines().enumerate() {
            let mut words = line.split_whitespace().skip_while(|word| *word != "mod");
            let name = words.nth(1).unwrap_or("").trim_end_matches([';', '{']);
            if BANNED.contains(&name) {
                let text = format!("`mod {name}` says nothing: name the thing that is in it");
                findings.push(Finding::breach(&file.path, at + 1, text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grab_bags_are_refused_as_files_folders_and_modules() {
        let tree = Tree::from_files(&[
            ("src/utils.rs", ""),
            ("src/misc/a.rs", ""),
            ("src/lib.rs", "pub mod common {\n}\nmod uncommon;"),
        ]);
        let found: Vec<_> = check(&tree).into_iter().map(|f| (f.path, f.line)).collect();
        let expected = [("src/utils.rs", 0), ("src/misc/a.rs", 0), ("src/lib.rs", 1)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }
}
