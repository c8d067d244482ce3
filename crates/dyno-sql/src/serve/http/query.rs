//! `POST /query`: a statement in the body, its answer in the form that the client asks for.

use std::sync::Arc;

use super::answer::Answer;
use super::forms::Form;
use super::request::Request;
use crate::serve::engine::{Engine, Question};
use crate::serve::reads;
use crate::serve::refusal::{Kind, Refusal};

pub(super) async fn answer(engine: &Arc<Engine>, request: &Request, body: &[u8]) -> Answer {
    // A statement may also stand in the address, for a browser and for a data source that only
    // sends GET. It reads, so a cache or a prefetch does no harm.
    let sql = match request.method.as_str() {
        "POST" => std::str::from_utf8(body).ok(),
        "GET" | "HEAD" => request.parameter("sql"),
        _ => {
            return Answer::error(405, "method not allowed", "send the statement by POST");
        }
    };
    let started = Form::from_request(request).and_then(|form| {
        let sql = sql.ok_or_else(|| {
            Refusal::new(Kind::Syntax, "send one statement, as UTF-8, in the body")
        })?;
        Ok((form, reads::one(sql)?))
    });
    match started {
        Ok((form, statement)) => {
            Answer::rows(engine, Question::from_statement(statement), form).await
        }
        Err(refusal) => Answer::refused(&refusal),
    }
}
