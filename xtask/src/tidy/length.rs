//! Files and functions that a reader can hold in mind.

use super::Finding;
use super::code::is_name;
use super::tree::Tree;

/// Lines from which a file deserves a second look.
const FILE_WARN: usize = 500;
/// Lines that no file may exceed.
const FILE_MAX: usize = 800;
/// Lines that no function may exceed, from `fn` to its closing brace.
const FUNCTION_MAX: usize = 70;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|f| f.is_rust() && !f.path.contains("/generated/"))
    {
        let lines = file.text.lines().count();
        if lines > FILE_MAX {
            let text = format!("{lines} lines, {FILE_MAX} at most: split it by what it is about");
            findings.push(Finding::breach(&file.path, 0, text));
        } else if lines > FILE_WARN {
            let text = format!("{lines} lines: look whether it is still one idea");
            findings.push(Finding::warning(&file.path, 0, text));
        }
        for function in functions(&file.code) {
            if function.lines > FUNCTION_MAX {
                let text = format!(
                    "function {} has {} lines, {FUNCTION_MAX} at most",
                    function.name, function.lines
                );
                findings.push(Finding::breach(&file.path, function.start, text));
            }
        }
    }
    findings
}

struct Function<'a> {
    name: &'a str,
    start: usize,
    lines: usize,
}

/// Functions with a body, nested ones too.
fn functions(code: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        // What was found may be the end of a longer name, such as `my_fn`.
        if code[..at].chars().next_back().is_some_and(is_name) {
            continue;
        }
        let rest = &code[at + 3..];
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        let Some(end) = body_end(rest) else { continue };
        if !name.is_empty() {
            let start = code[..at].matches('\n').count() + 1;
            let lines = rest[..end].matches('\n').count() + 1;
            found.push(Function { name, start, lines });
        }
    }
    found
}

/// Where the body behind a signature ends; `None` for a declaration or a function type.
fn body_end(text: &str) -> Option<usize> {
    let mut brackets = 0;
    let mut braces = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            // The signature stood inside another bracket: it was the type of a function.
            ')' | ']' if braces == 0 && brackets == 0 => return None,
            ')' | ']' => brackets -= 1,
            ';' if braces == 0 && brackets == 0 => return None,
            '{' => braces += 1,
            '}' if braces == 0 => return None,
            '}' => {
                braces -= 1;
                if braces == 0 && brackets == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(lines: usize) -> String {
        format!(
            "fn a(x: [u8; 2]) -> u8\nwhere\n{{\n{}}}\nfn b() {{}}\n",
            "    x;\n".repeat(lines)
        )
    }

    #[test]
    fn long_functions_are_named_where_they_start() {
        let tree = Tree::from_files(&[("src/a.rs", &body(70))]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 1);
        assert_eq!(findings[0].text, "function a has 74 lines, 70 at most");
        assert_eq!(check(&Tree::from_files(&[("src/a.rs", &body(66))])), []);
    }

    #[test]
    fn long_files_warn_and_then_fail() {
        let lines = |count: usize| {
            let tree = Tree::from_files(&[("src/a.rs", &"x;\n".repeat(count))]);
            check(&tree).iter().map(|f| f.breach).collect::<Vec<_>>()
        };
        assert_eq!(lines(500), []);
        assert_eq!(lines(501), [false]);
        assert_eq!(lines(801), [true]);
    }

    #[test]
    fn declarations_and_types_have_no_body() {
        let names = |code| {
            functions(code)
                .iter()
                .map(|f| f.name.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("trait T { fn a(&self); fn b() {} }"), ["b"]);
        assert_eq!(names("type F = fn (u8) -> u8; const fn c() {}"), ["c"]);
    }
}
