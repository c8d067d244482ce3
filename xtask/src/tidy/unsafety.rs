//! `unsafe` only where a file says so at its top, and each use with its SAFETY line.

use super::Finding;
use super::code::is_name;
use super::tree::Tree;

const KEYWORD: &str = "unsafe";
/// How far above a use its SAFETY comment may begin; attributes and long comments lie between.
const REACH: usize = 8;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.is_rust()) {
        let uses: Vec<usize> = file
            .code
            .lines()
            .enumerate()
            .filter(|(_, line)| uses_unsafe(line))
            .map(|(at, _)| at)
            .collect();
        let Some(first) = uses.first() else { continue };
        let mut top = file.text.lines().take_while(|line| line.starts_with("//!"));
        if !top.any(|line| line.to_lowercase().contains(KEYWORD)) {
            let text = "uses unsafe code: say so, and why, in the //! text at the top of the file";
            findings.push(Finding::breach(&file.path, first + 1, text));
        }
        let lines: Vec<&str> = file.text.lines().collect();
        let code: Vec<&str> = file.code.lines().collect();
        for at in uses {
            // An `unsafe fn` puts the duty on its caller; its docs say so, and clippy asks for
            // them.
            if code[at].contains("unsafe fn") || code[at].contains("unsafe extern") {
                continue;
            }
            let above = &lines[at.saturating_sub(REACH)..=at];
            if !above.iter().any(|line| line.contains("SAFETY:")) {
                let text = "unsafe without a SAFETY comment right above it";
                findings.push(Finding::breach(&file.path, at + 1, text));
            }
        }
    }
    findings
}

fn uses_unsafe(code: &str) -> bool {
    code.match_indices(KEYWORD).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + KEYWORD.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_needs_a_word_at_the_top_and_a_reason() {
        let texts = |text: &str| {
            let found = check(&Tree::from_files(&[("a.rs", text)]));
            found.into_iter().map(|f| f.line).collect::<Vec<_>>()
        };
        assert_eq!(texts("//! A.\nfn a() {\n    unsafe { b() }\n}\n"), [3, 3]);
        let good =
            "//! A, with unsafe loads.\n// SAFETY: b has no duties.\nlet a = unsafe { b() };\n";
        assert_eq!(texts(good), []);
        assert_eq!(
            texts("//! Nothing.\n// unsafe\n#![deny(unsafe_op_in_unsafe_fn)]\n"),
            []
        );
    }
}
