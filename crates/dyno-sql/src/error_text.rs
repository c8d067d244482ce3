//! Errors of the libraries below in words for a user of the command line.

/// What the engine's library adds to errors that it did not foresee, most of which are mistakes in
/// a statement.
const ADVERT: &str = ".\nThis issue was likely caused by a bug in DataFusion's code.";
/// What stands before the call in an error about a function's arguments.
const CALL: &str = "argument types '";

/// Formats an error and its causes in one line, without causes that repeat what stands before them.
pub fn explain(error: &anyhow::Error) -> String {
    let mut text = plain(&error.to_string());
    for cause in error.chain().skip(1) {
        let cause = plain(&cause.to_string());
        // Libraries often put the cause into their own message as well as into the chain.
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// A library's message without what only its makers can use.
pub fn plain(message: &str) -> String {
    if let Some(text) = call(message) {
        return text;
    }
    let mut text = message.to_owned();
    while let Some(at) = text.find(ADVERT) {
        let rest = &text[at + ADVERT.len()..];
        // The advert goes up to the address of the issue tracker.
        let end = rest
            .find("/issues")
            .map_or(rest.len(), |end| end + "/issues".len());
        text = format!("{}{}", &text[..at], &rest[end..]);
    }
    let mut text = text.replace("Internal error: ", "");
    for prefix in ["Parquet error: ", "Arrow error: ", "External: "] {
        let twice = format!("{prefix}{prefix}");
        while text.contains(&twice) {
            text = text.replace(&twice, prefix);
        }
    }
    text
}

/// A function that was given the wrong arguments: `avg does not take (text)`.
fn call(message: &str) -> Option<String> {
    let (_, rest) = message.split_once(CALL)?;
    let (call, _) = rest.split_once('\'')?;
    let (function, types) = call.strip_suffix(')')?.split_once('(')?;
    let types: Vec<&str> = types.split(", ").map(kind).collect();
    Some(format!("{function} does not take ({})", types.join(", ")))
}

/// What a type is called here.
fn kind(name: &str) -> &str {
    match name {
        "Utf8" | "LargeUtf8" | "Utf8View" => "text",
        "Boolean" => "true or false",
        _ if name.starts_with("Dictionary(") && name.contains("Utf8") => "text",
        _ if name.starts_with("Timestamp(") => "time",
        _ if name.starts_with("Int") || name.starts_with("UInt") || name.starts_with("Float") => {
            "number"
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_wrong_arguments_is_named_by_them() {
        let message = "Error during planning: Internal error: Function 'avg' failed to match any signature, errors: \
                       x.\nThis issue was likely caused by a bug in DataFusion's code. Please help us to resolve this \
                       by filing a bug report in our issue tracker: https://github.com/apache/datafusion/issues No \
                       function matches the given name and argument types 'avg(Utf8)'. You might need to add explicit \
                       type casts.\n\tCandidate functions:\n\tavg(Decimal)";
        assert_eq!(plain(message), "avg does not take (text)");
        let message =
            "No function matches the given name and argument types 'substr(Int32, Boolean)'. x";
        assert_eq!(
            plain(message),
            "substr does not take (number, true or false)"
        );
    }

    #[test]
    fn adverts_and_repetitions_go() {
        let message = "Internal error: it cannot be.\nThis issue was likely caused by a bug in DataFusion's code. \
                       Please help us to resolve this by filing a bug report in our issue tracker: \
                       https://github.com/apache/datafusion/issues";
        assert_eq!(plain(message), "it cannot be");
        let inner =
            anyhow::anyhow!("Parquet error: Parquet error: Parquet files are at least 8 bytes");
        let error = inner.context("cannot open table region");
        assert_eq!(
            explain(&error),
            "cannot open table region: Parquet error: Parquet files are at least 8 bytes"
        );
        let repeated = anyhow::anyhow!("no space").context("cannot write: no space");
        assert_eq!(explain(&repeated), "cannot write: no space");
    }
}
