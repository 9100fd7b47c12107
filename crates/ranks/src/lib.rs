//! A run of several processes as a whole: how their executions follow one another, and how values
//! move between ranks.
//!
//! | module | job |
//! | --- | --- |
//! | [`run`] | the dumps of all ranks as one run |
//! | [`sequence`] | the executions of each rank in order |
//! | [`collective_type`] | which operator types are collectives |
//! | [`meetings`] | which executions of several ranks form one collective |
//! | [`order`] | which execution comes before which, without clocks |
//! | [`content`] | whether tensors are equal, and with what certainty |
//! | [`recomputed`] | a collective's results, recomputed from its inputs |
//! | [`spread`] | which rank produced a NaN first, and the collectives that carried it |
//! | [`overflow_order`] | overflow records of several ranks in that order |
//! | [`divergence`] | where replicas diverge, and the rank that caused it |
//! | `parameters` | parameters that were equal on several ranks and no longer are |
//! | [`finding`] | findings, as data |
//! | [`restart`] | the same ranks in another run |
//! | [`document`] | findings as JSON |
//!
//! `docs/ranks.md` lists the reports and their evidence.

pub mod collective_type;
pub mod content;
pub mod divergence;
pub mod document;
pub mod finding;
mod groups;
pub mod meetings;
pub mod order;
pub mod overflow_order;
mod parameters;
pub mod recomputed;
mod replicas;
pub mod restart;
mod results;
pub mod run;
pub mod sequence;
pub mod spread;
