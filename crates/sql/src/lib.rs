//! SQL over the tables of `opscope index`, by Apache DataFusion.
//!
//! A crate of its own, as the engine takes longer to build than all the rest. `docs/sql.md` has the
//! tables, views and functions.

mod answer;
mod compared;
mod database;
mod functions;
mod pairs;
mod ranged;
mod source;
mod text;

pub use answer::SqlAnswer;
pub use database::{SqlDatabase, SqlOptions};
pub use source::TableSource;

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;

/// How the engine asks for reports of its mistakes.
const BUG_NOTICE: &str = "This issue was likely caused by a bug";

/// A question that has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The question itself: its syntax, or a name in it.
    #[error("{}", one_line(.0))]
    Question(DataFusionError),
    /// Something while the answer was made: a damaged file, too little memory.
    #[error("{}", one_line(.0))]
    Answer(DataFusionError),
    /// The answer's reader failed.
    #[error("cannot write the answer: {0}")]
    Output(#[from] std::io::Error),
}

impl SqlError {
    /// Whether the answer needs more memory than was given.
    pub fn is_out_of_memory(&self) -> bool {
        let SqlError::Answer(error) = self else {
            return false;
        };
        matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
    }
}

/// The message alone: the engine names its own types before it, and puts hints for its developers
/// below.
fn one_line(error: &DataFusionError) -> String {
    let text = match error.find_root() {
        DataFusionError::SQL(parser, _) => match &**parser {
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.clone(),
            ParserError::RecursionLimitExceeded => "the question is nested too deep".to_owned(),
        },
        DataFusionError::Plan(text) | DataFusionError::NotImplemented(text) => text.clone(),
        error => error.strip_backtrace(),
    };
    // It takes mistakes of the question for its own at times; a report would reach the wrong
    // people.
    let text = text.split(BUG_NOTICE).next().unwrap_or_default();
    text.replace('\n', " ").trim_end().to_owned()
}
