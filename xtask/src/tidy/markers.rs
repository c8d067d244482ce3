//! Notes to oneself that were to go before the commit.

use super::Finding;
use super::code::is_name;
use super::tree::Tree;

/// Written in halves, so that this file does not find itself.
const MARKERS: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("HA", "CK"),
    concat!("<<<<", "<<<"),
    concat!(">>>>", ">>>"),
];
/// Looked for in code only, because comments may speak of them.
const CALLS: [&str; 3] = [
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("db", "g!("),
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (at, line) in file.text.lines().enumerate() {
            for marker in MARKERS.iter().filter(|marker| has_word(line, marker)) {
                let text = format!("leftover marker {marker}: do it, or write an issue");
                findings.push(Finding::breach(&file.path, at + 1, text));
            }
        }
        for (at, line) in file.code.lines().enumerate() {
            for call in CALLS.iter().filter(|call| has_word(line, call)) {
                let text = format!("leftover {call}...)");
                findings.push(Finding::breach(&file.path, at + 1, text));
            }
        }
    }
    findings
}

/// Whether `word` stands in the line by itself, not as a part of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_name) && (word.ends_with('(') || !after.is_some_and(is_name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_as_words() {
        let note = concat!("// TO", "DO: later\nlet name_X", "XX_y = 1;\n");
        let findings = check(&Tree::from_files(&[("a.rs", note)]));
        assert_eq!(findings.iter().map(|f| f.line).collect::<Vec<_>>(), [1]);
        let call = concat!("fn a() { to", "do!() }\n// db", "g!(x)\n");
        assert_eq!(check(&Tree::from_files(&[("a.rs", call)])).len(), 1);
    }
}
