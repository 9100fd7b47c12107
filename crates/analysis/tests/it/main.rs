//! Tests from outside of the crate, in one program: linking takes longer than they do.

mod catalogue;
mod compare_agreement;
mod compare_attribution;
mod compare_large;
mod compare_statistics;
mod compare_verdict;
mod convert;
mod damaged;
mod graphs;
mod hostile;
mod last_file;
mod matching;
mod relayout;
