//! A page that shows a dump, or the comparison of two dumps.
//!
//! [`ViewedRuns`] opens the dumps and analyses them with `analysis`; [`PageServer`] answers the
//! page's requests over HTTP, and [`report`] writes page and answers as one file. The page itself
//! is built from `web/`.

mod answers;
mod filter;
pub mod graph;
mod json;
mod links;
mod live;
mod page;
pub mod report;
mod server;
mod shown;
mod unfinished;
mod viewed;

use opscope_analysis::compare::side::ExecutionSlot;
use opscope_analysis::elements::NumpyArray;

pub use filter::mistake_in;
pub use live::LiveDump;
pub use server::{PageServer, RunningPage, ServerOptions};
pub use shown::{PageState, RunProgress, ShownRuns};
pub use unfinished::UnfinishedSurvey;
pub use viewed::{Findings, OperatorFinding, ShownSide, ViewError, ViewedDump, ViewedRuns};

/// The elements of a slot, in a dtype that numpy supports.
///
/// # Errors
/// Text that says why there are none.
pub fn elements_of(slot: &ExecutionSlot) -> Result<NumpyArray, String> {
    answers::elements::array_of(slot).map_err(|error| error.to_string())
}
