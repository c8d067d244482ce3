//! The little Markdown that suites write (paragraphs, lists, `code`, *emphasis*), as HTML. It
//! escapes first and adds tags after, so no text can bring tags of its own.

/// Turns Markdown into HTML that is safe to insert as it is.
pub(super) fn to_html(markdown: &str) -> String {
    let mut html = String::new();
    for block in markdown.replace("\r\n", "\n").split("\n\n") {
        let lines: Vec<&str> = block.lines().filter(|l| !l.trim().is_empty()).collect();
        if lines.is_empty() {
            continue;
        }
        let item = |line: &&str| line.trim_start().strip_prefix("- ").map(str::to_owned);
        if lines.iter().all(|line| item(line).is_some()) {
            html.push_str("<ul>");
            for text in lines.iter().filter_map(item) {
                html.push_str(&format!("<li>{}</li>", spans(&text)));
            }
            html.push_str("</ul>");
        } else {
            html.push_str(&format!("<p>{}</p>", spans(&lines.join(" "))));
        }
    }
    html
}

/// Text inside a block: code spans keep their content, the rest knows `**` and `*`.
fn spans(text: &str) -> String {
    let escaped = escape(text);
    let parts: Vec<&str> = escaped.split('`').collect();
    // An odd number of ticks leaves the last one as it is.
    let closed = parts.len() - usize::from(parts.len().is_multiple_of(2));
    let mut html = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index >= closed {
            html.push('`');
            html.push_str(part);
        } else if index % 2 == 1 {
            html.push_str(&format!("<code>{part}</code>"));
        } else {
            html.push_str(&paired(&paired(part, "**", "strong"), "*", "em"));
        }
    }
    html
}

fn paired(text: &str, mark: &str, tag: &str) -> String {
    let parts: Vec<&str> = text.split(mark).collect();
    if parts.len().is_multiple_of(2) {
        return text.to_owned();
    }
    let mut html = String::new();
    for (index, part) in parts.iter().enumerate() {
        match index % 2 {
            1 => html.push_str(&format!("<{tag}>{part}</{tag}>")),
            _ => html.push_str(part),
        }
    }
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn marks_become_tags() {
        let html = to_html("One `a*b*c` *two*.\nThree.\n\n- x\n- **y**\n\n1 * 2 ` 3");
        assert_eq!(
            html,
            "<p>One <code>a*b*c</code> <em>two</em>. Three.</p>\
             <ul><li>x</li><li><strong>y</strong></li></ul><p>1 * 2 ` 3</p>"
        );
    }

    proptest! {
        /// Whatever is written, only our own tags come out.
        #[test]
        fn no_foreign_tag(text in "[<>&a-z\"'`*/= \n-]{0,80}") {
            let mut html = to_html(&text);
            for tag in ["p", "ul", "li", "code", "em", "strong"] {
                html = html.replace(&format!("<{tag}>"), "").replace(&format!("</{tag}>"), "");
            }
            prop_assert!(!html.contains('<') && !html.contains('>'));
        }
    }
}
