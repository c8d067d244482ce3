//! Rust text without comments and without what is inside literals, line by line as it was.

/// Blanks comments, strings and character literals; quotes and line feeds stay where they are.
pub fn only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let previous = out.chars().next_back();
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            // In the middle of a name these letters begin no literal.
            'r' | 'b' | 'c' if !previous.is_some_and(is_name) => prefixed_string(rest),
            '\'' => character(rest),
            _ => 0,
        };
        if length == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (blanked, after) = rest.split_at(length);
        let is_comment = blanked.starts_with('/');
        for c in blanked.chars() {
            out.push(if c == '\n' || (c == '"' && !is_comment) {
                c
            } else {
                ' '
            });
        }
        rest = after;
    }
    out
}

/// Whether a character can be part of a name.
pub fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `r"..."`, `br#"..."#`, `b"..."`, `c"..."`; 0 for an ordinary name.
fn prefixed_string(text: &str) -> usize {
    let after_letters = text.trim_start_matches(['r', 'b', 'c']);
    let letters = text.len() - after_letters.len();
    if letters > 2 {
        return 0;
    }
    let after_hashes = after_letters.trim_start_matches('#');
    let hashes = after_letters.len() - after_hashes.len();
    if !after_hashes.starts_with('"') {
        return 0;
    }
    if !text[..letters].contains('r') {
        return if hashes == 0 {
            letters + string(after_letters)
        } else {
            0
        };
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let start = letters + hashes + 1;
    text[start..]
        .find(&end)
        .map_or(text.len(), |at| start + at + end.len())
}

/// A character literal, but not a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        // The quote is looked for behind the escaped character, which may be a quote itself.
        (Some((_, '\\')), Some((at, _))) => text[at + 1..]
            .find('\'')
            .map_or(text.len(), |end| at + 1 + end + 1),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::only;

    #[test]
    fn literals_and_comments_are_blanked() {
        assert_eq!(only("a // {\nb"), "a     \nb");
        assert_eq!(only("/* { /* */ } */x"), "               x");
        assert_eq!(
            only(r#"f("{\"", '{', '\'', 'a)"#),
            r#"f("  "", '{', '\'', 'a)"#.replace("'{'", "   ").replace(r"'\''", "    ")
        );
        assert_eq!(only("r#\"}\"#;br"), "  \" \" ;br");
        assert_eq!(only("<'a>(x: &'a str)"), "<'a>(x: &'a str)");
    }
}
