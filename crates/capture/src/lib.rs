//! From an engine's tensors to records in a sink.
//!
//! A [`Plan`] selects what to keep. A [`CaptureSession`] holds a plan, a [`Sink`] and the writer
//! threads between them. For each loaded model the session returns a [`Tap`]; an engine opens a
//! [`Probe`] on it for every operator that it executes, passes it the tensors, and submits it. An
//! operator that the plan does not select costs a table look-up. Selected tensors pass by reference
//! count through a queue bounded in bytes. A [`SessionControl`] switches a session on and off, or
//! gives it another plan, while models run.
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
mod step_end;
mod tap;
mod tensor_intake;
mod tensor_rule;
mod writer;

pub use opscope_overflow as overflow;

pub use control::{PlanRefusal, SessionControl};
pub use counters::{Counters, DropCounts, FirstOverflow};
pub use failure::{FailureTrace, OperatorFailure};
pub use kernels::{
    CompiledKernelRule, KernelSelection, PatternError, rule_for_name, rule_for_operator,
};
pub use non_finite::{DeliberateInfinities, FirstNonFinite, NonFiniteOrigin};
pub use overwrite::{ByteDifference, OverwrittenValue};
pub use plan::{
    Exclusion, FailureDetail, ModelSelection, NameRange, OperatorRule, OperatorSelection, Plan,
    Purpose, SlotSides, Steps,
};
pub use policy::{FailurePolicy, WhenBehind};
pub use pool::{Pool, PooledBytes};
pub use probe::Probe;
pub use quantised::{FloatView, QuantisedKind, QuantisedPlace, ShowingRule, SlotPosition};
pub use ring::{
    KeptSteps, N_STEPS_BEHIND_MAX, RingOptions, RingReport, TriggerCause, TriggerEvent,
    TriggerKind, Triggers,
};
pub use select::{GraphInput, GraphView, SelectedOperators, SelectedSlots, WatchRole, select};
pub use session::{CaptureSession, SessionCounts, SessionOptions, SessionSummary};
pub use sink::{
    BatchPreparer, Sink, SinkError, StepRemoval, StepRemover, TensorSummarizer, WholeTensors,
    WrittenFiles,
};
pub use tap::Tap;
pub use tensor_intake::BorrowError;
pub use tensor_rule::{TensorRule, TensorRuleError, TensorRules};
