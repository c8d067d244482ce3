//! Patterns by which users choose cases.

/// Whether `name` is what `pattern` says, where each `*` stands for any number of any letters.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((front, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(front) else {
        return false;
    };
    // A star tries every rest of the name, and each star in it does so again. Names are short, and
    // the pattern is the user's own.
    let starts = name.char_indices().map(|(at, _)| at);
    starts
        .chain([name.len()])
        .any(|at| matches_pattern(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, name) in [
            ("load", "load"),
            ("load*", "load"),
            ("*", "load-gz-2"),
            ("load-*-2", "load-gz-2"),
            ("*gz*", "load-gz-2"),
            ("l*-*2", "load-gz-2"),
        ] {
            assert!(matches_pattern(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("load", "load-gz"),
            ("load-*-2", "load-2"),
            ("*gz", "load-gz-2"),
            ("", "load"),
        ] {
            assert!(!matches_pattern(pattern, name), "{pattern} {name}");
        }
    }
}
