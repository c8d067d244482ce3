//! Every case of a suite names the limit that bounds it, or says why none is known: a figure beside
//! no limit does not tell how much is left.

use super::Finding;
use super::tree::Tree;

const CASE: &str = "[[case]]";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let suites = tree.files.iter().filter(|file| {
        let name = file.path.strip_prefix("suites/");
        name.is_some_and(|name| name.ends_with(".toml") && !name.contains('/'))
    });
    suites
        .flat_map(|file| findings(&file.path, &file.text))
        .collect()
}

fn findings(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut open: Option<usize> = None;
    let close = |open: Option<usize>, found: &mut Vec<Finding>| {
        if let Some(line) = open {
            let text = "the case has neither `limit` nor `no_limit`: name what bounds it, or say why \
                        no limit is known";
            found.push(Finding::breach(path, line, text));
        }
    };
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            // Tables inside a case have no heading of their own in our suites, so any heading ends
            // the case.
            close(open.take(), &mut found);
            open = (line == CASE).then_some(index + 1);
        } else if line.starts_with("limit = ") || line.starts_with("no_limit = ") {
            open = None;
        }
    }
    close(open, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_without_a_limit_is_found() {
        let text = "[[case]]\nname = \"a\"\nlimit = \"fsync\"\n[[case]]\nname = \"b\"\n\
                    [[case]]\nno_limit = \"its length is a setting\"\n[[case]]\n[[table]]\n";
        let lines: Vec<usize> = findings("suites/x.toml", text)
            .iter()
            .map(|f| f.line)
            .collect();
        assert_eq!(lines, [4, 8]);
    }
}
