//! A comparison in parts: units of work that many processes share, and the files that they leave.
//!
//! | module | job |
//! | --- | --- |
//! | `facts` | answers that reading elements gave, kept so that nobody reads them twice |
//! | [`part_file`] | facts on disk |
//! | `steps` | the ranks and steps of a dump, opened one by one |
//! | [`units`] | the work by rank and step |
//! | [`merge`] | the result, from the parts |
//!
//! The pass over all elements is the part of a comparison that takes long. A unit is that pass over
//! one step of one rank, and its part holds the numbers that came out. Matching, causes and verdicts need
//! all ranks and steps at once and little time: they are made when the parts are put together, from
//! the tables of both dumps and the numbers of the parts. A part is a memory and no result: what
//! none of them knows is read from the dumps, so that the outcome is that of one process.

pub(super) mod facts;
pub mod merge;
pub mod part_file;
mod steps;
pub mod units;

pub use facts::SharedFacts;
