//! From an engine's tensors to records in a sink.
//!
//! A [`Plan`] says what to keep. A [`Session`] holds a plan, a [`Sink`] and the writer threads
//! between them. For each loaded model the session hands out a [`Tap`]; an engine opens a [`Probe`]
//! on it for every operator that it executes, shows it the tensors, and submits it. What the plan
//! does not select costs a table look-up; what it selects travels by reference count through a queue
//! that is bounded by bytes. A [`Control`] switches a session on and off, or gives it another plan,
//! while models run.
//!
//! This crate knows no configuration file and no engine. It never panics its host, never blocks it
//! without a bound other than the sink's own speed, and counts everything it does not write.

mod budget;
mod control;
mod counters;
mod failure;
mod home;
mod kernels;
mod memos;
mod non_finite;
mod operator_context;
mod overwrite;
mod parameters;
mod plan;
mod policy;
mod pool;
mod probe;
mod quantised;
mod queue;
mod record_intake;
mod record_order;
mod recorder;
mod ring;
mod running_step;
mod select;
mod session;
pub mod sink;
mod tap;
mod tensor_intake;
mod tensor_rule;
mod writer;

pub use opscope_overflow as overflow;

pub use control::{Control, PlanRefused};
pub use counters::{Counters, Dropped, FirstOverflow};
pub use failure::{Failure, FailureTrace};
pub use kernels::{KernelRule, KernelSelection, PatternError, rule_for_name, rule_for_operator};
pub use non_finite::{DeliberateInfinities, FirstNonFinite, NonFiniteOrigin};
pub use overwrite::{Difference, Overwrite};
pub use plan::{
    Exclusion, FailureDetail, ModelSelection, NameRange, OperatorKey, OperatorSelection, Plan,
    Purpose, Sides, Steps,
};
pub use policy::{FailurePolicy, WhenBehind};
pub use pool::{Pool, PooledBytes};
pub use probe::Probe;
pub use quantised::{FloatView, Place, Quantised, QuantisedKind, Showing};
pub use ring::{
    KeptSteps, N_STEPS_BEHIND_MAX, RingOptions, RingReport, TriggerCause, TriggerKind, Triggered,
    Triggers,
};
pub use select::{GraphInput, GraphView, Kept, Role, Selected, select};
pub use session::{Session, SessionOptions, Summary, Watch};
pub use sink::{
    BatchPreparer, Removed, Sink, SinkError, StepRemover, TensorSummarizer, Whole, Written,
};
pub use tap::Tap;
pub use tensor_intake::BorrowError;
pub use tensor_rule::{TensorRule, TensorRuleError, TensorRules};
