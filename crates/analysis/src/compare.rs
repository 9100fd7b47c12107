//! Comparing two dumps: where do they diverge, and which operator is at fault?
//!
//! | module | job |
//! | --- | --- |
//! | [`side`] | a dump as operators with slots |
//! | [`matching`] | which operator and slot of one side is which of the other |
//! | [`measure`] | the numbers of every pair of slots |
//! | `agreement` | values that are on the other side under another operator |
//! | [`opscope_difference`] | metrics, and the difference of two tensors as one operation |
//! | [`verdict`] | what the numbers mean |
//! | `contract` | inputs, outputs and weights of both models, which decide the verdict |
//! | [`replay`] | an operator that was run again from its inputs: its own error |
//! | [`attribution`] | first divergence, what each operator added, where NaN comes from |
//! | [`whole`] | tensors that are put together from the parts that ranks hold |
//! | `steps` | the first of several steps that differs, and which to dump next |
//! | [`run`] | all of these, from two paths to a result |
//! | [`parts`] | a comparison that many processes share |
//! | [`report`] | the result as files for people and programs |
//! | [`result`] | everything a comparison found, to be saved and read again |

mod agreement;
mod allow;
mod argument_names;
mod attributes_across;
pub mod attribution;
mod certainty;
mod contract;
mod coverage;
mod differing;
pub mod document;
mod edges;
mod evidence;
pub mod experiments;
mod explained;
mod flow;
mod listed_parameter;
mod locate;
mod lost_tensors;
pub mod matching;
pub mod measure;
mod nearest;
mod noise;
mod operator_attributes;
mod parameters;
pub mod parts;
mod program_names;
mod rank_local;
pub mod replay;
pub mod report;
pub mod result;
pub mod run;
mod run_origin;
mod selection;
pub mod side;
mod skip_reason;
mod skips;
mod slot_key;
mod slot_ranks;
mod statistics;
mod step_findings;
mod steps;
mod tensor_summary;
pub mod verdict;
mod verdict_level;
mod verdict_options;
mod weight_effect;
mod weight_reads;
pub mod whole;

use opscope_difference::{change, metric, metrics, number, party};

pub use allow::SkipPattern;
pub use selection::Selection;
