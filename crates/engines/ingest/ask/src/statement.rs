//! The statement in what a model wrote.

/// The SQL in `text`: what stands between the last pair of code fences; without fences, the text
/// itself when it begins like a query. What a model thought aloud before it answered does not
/// count.
pub(crate) fn statement_in(text: &str) -> Option<String> {
    let answer = text.rsplit_once("</think>").map_or(text, |(_, rest)| rest);
    let fenced = last_fence(answer).map(str::trim);
    let bare = || Some(answer.trim()).filter(|text| begins_as_query(text));
    let sql = fenced.filter(|sql| !sql.is_empty()).or_else(bare)?;
    // It will be shown on a terminal, which control characters can lead astray.
    let plain = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    let sql: String = sql.chars().map(plain).collect();
    let sql = sql.trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    (!sql.is_empty()).then(|| sql.to_owned())
}

/// The inside of the last fence that is closed, or of one that is not when there is no other.
fn last_fence(text: &str) -> Option<&str> {
    let pieces: Vec<&str> = text.split("```").collect();
    // Pieces with odd places are within fences; the last of them may lack its end.
    let inside = (1..pieces.len()).rev().find(|place| place % 2 == 1)?;
    let piece = pieces[inside];
    // The first line of a fence may name a language.
    Some(match piece.split_once('\n') {
        Some((name, rest))
            if name.trim().chars().all(char::is_alphanumeric) && !begins_as_query(name) =>
        {
            rest
        }
        _ => piece,
    })
}

fn begins_as_query(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    ["select", "with", "explain", "show"]
        .iter()
        .any(|word| first.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_is_found_wherever_models_put_it() {
        for (text, sql) in [
            ("SELECT 1", "SELECT 1"),
            ("select 1 ;\n", "select 1"),
            ("Here:\n```sql\nSELECT 1;\n```\nThat counts.", "SELECT 1"),
            ("```\nSELECT 2\n```", "SELECT 2"),
            ("```SELECT 3```", "SELECT 3"),
            (
                "```sql\nSELECT 1\n```\nBetter:\n```sql\nSELECT 2\n```",
                "SELECT 2",
            ),
            (
                "<think>```sql\nSELECT 0\n```</think>\n```sql\nSELECT 4\n```",
                "SELECT 4",
            ),
            ("```sql\nSELECT 5", "SELECT 5"),
            ("```sql\nDROP TABLE spots\n```", "DROP TABLE spots"),
            ("```select\n1```", "select\n1"),
            ("SELECT '\x1b[2J'\r\n, 1", "SELECT ' [2J' \n, 1"),
        ] {
            assert_eq!(statement_in(text).as_deref(), Some(sql), "{text}");
        }
        for text in ["", "I cannot say.", "```\n```", "<think>SELECT 1", ";"] {
            assert_eq!(statement_in(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[`a-z<>/;\\n ]{0,60}") {
            if let Some(sql) = statement_in(&text) {
                prop_assert!(!sql.trim().is_empty());
            }
        }
    }
}
