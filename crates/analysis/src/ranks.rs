//! A run of several processes as one: how their executions follow one another, and what went from
//! rank to rank.
//!
//! | module | job |
//! | --- | --- |
//! | [`run`] | the dumps of all ranks as one run |
//! | [`sequence`] | the executions of each rank in order |
//! | [`collective_type`] | which types of operators are collectives |
//! | [`meetings`] | which executions of several ranks are one collective |
//! | [`order`] | what comes before what, without clocks |
//! | [`content`] | whether tensors are equal, and how certain that is |
//! | [`recomputed`] | a collective's results, computed again from what it was given |
//! | [`spread`] | which rank made a NaN first, and through which collectives it went |
//! | [`overflow_order`] | overflow records of several ranks in that order |
//! | [`divergence`] | where replicas stop agreeing, and whose fault that is |
//! | `parameters` | parameters that were equal on several ranks and are not any more |
//! | [`finding`] | findings, as data |
//! | [`restart`] | the same ranks in another run |
//! | [`document`] | findings for programs |
//!
//! `docs/ranks.md` says what is told on which evidence.

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
