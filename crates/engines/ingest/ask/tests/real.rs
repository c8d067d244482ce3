//! The endpoint's interface as llama.cpp's server speaks it.

mod llama;

use std::time::Duration;

use dyno_ingest_ask::{AskError, Endpoint, Message, Question, Request, Role, ask};
use llama::Llama;

#[test]
fn a_server_that_we_did_not_write_is_understood() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = Llama::start(folder.path(), "an endpoint of a language model") else {
        return;
    };
    let wait = Duration::from_secs(120);
    let mut endpoint = Endpoint::new(&server.address, None, None, wait).expect("an address");
    let model = endpoint.settle_model().expect("a model");
    assert!(model.contains("a random model of one layer"), "{model}");
    let messages = [Message::new(Role::User, "say something")];
    let request = Request {
        messages: &messages,
        most_tokens: 12,
        ignore_end: true,
    };
    let streamed = endpoint.stream(&request).expect("a stream");
    assert_eq!(
        streamed.usage.map(|usage| usage.completion_tokens),
        Some(12)
    );
    assert!((1..=12).contains(&streamed.pieces.len()), "{streamed:?}");
    let completion = endpoint.complete(&request).expect("an answer");
    assert!(completion.cut);
    assert_eq!(completion.usage.completion_tokens, 12);
    // The same weights, the same words; bytes that are not UTF-8 aside, which a stream may cut
    // elsewhere.
    assert_eq!(completion.text.chars().next(), streamed.text.chars().next());
    // Noise is not a statement, or one that cannot be run; either is said.
    let question = Question {
        words: "How many spots are there?",
        about: "",
        mends: 0,
        most_tokens: 32,
    };
    let error =
        ask(&endpoint, &question, |sql| Err(format!("cannot run {sql}"))).expect_err("noise");
    assert!(
        matches!(error, AskError::NoSql { .. } | AskError::NotRun { .. }),
        "{error}"
    );
}
