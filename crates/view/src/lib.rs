//! A page that shows a dump, or two dumps and what a comparison of them found.
//!
//! [`ViewedRuns`] opens the dumps and asks `analysis` about them; [`PageServer`] answers the page's
//! questions over HTTP, and [`report`] writes page and answers as one file. The page itself is built
//! from `web/`.

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

pub use filter::mistake_in;
pub use live::LiveDump;
pub use server::{PageServer, RunningPage, ServerOptions};
pub use shown::{PageState, ShownRuns};
pub use unfinished::UnfinishedSurvey;
pub use viewed::{Findings, ShownSide, ViewError, ViewedDump, ViewedRuns};
