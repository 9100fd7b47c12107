//! Splits a comparison into units of work for many processes, each of which writes a part.
//!
//! | module | job |
//! | --- | --- |
//! | `facts` | results of reading elements, cached so that no element is read twice |
//! | [`part_file`] | facts on disk |
//! | `steps` | the ranks and steps of a dump, opened one by one |
//! | [`units`] | the work by rank and step |
//! | [`merge`] | the result, from the parts |
//!
//! Reading all elements takes most of the time of a comparison. A unit reads one step of one rank,
//! and its part holds the resulting numbers. Matching, causes and verdicts need all ranks and steps
//! at once but little time: they are computed when the parts are merged, from the tables of both
//! dumps and the numbers of the parts. A part is a cache and no result: missing numbers are read
//! from the dumps, so the outcome equals that of a single process.

pub(super) mod facts;
pub mod merge;
pub mod part_file;
mod steps;
pub mod units;

pub use facts::SharedFacts;
