//! The page's requests, answered without a server.

use serde_json::Value;

use crate::answers::{Answer, AnswerError, Query, answer};
use crate::viewed::ViewedRuns;

/// The answer to a request with a JSON answer.
pub(super) fn json(
    runs: &ViewedRuns,
    path: &str,
    query: &[(&str, &str)],
) -> Result<Value, AnswerError> {
    match answer(runs, path, &as_query(query))? {
        Answer::Json(value) => Ok(value),
        Answer::Bytes(_) | Answer::File(..) => {
            Err(AnswerError::Missing(format!("`{path}` is not JSON")))
        }
    }
}

pub(super) fn as_query(pairs: &[(&str, &str)]) -> Query {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}
