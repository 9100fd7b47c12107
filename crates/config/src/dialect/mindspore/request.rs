//! From a dump that is asked for to a plan, and to what the sink of MindSpore's trees is told.

use opscope_capture::sink::{Dedup, MindSporeOptions, MindSporeSink, RuntimeMode};
use opscope_capture::{
    KernelRule, KernelSelection, ModelSelection, OperatorSelection, PatternError, Plan, Purpose,
    Sides,
};
use opscope_store::atomic_file::Modes;
use opscope_store::tree::mindspore::Target;

use super::{FileFormat, Kernels, MindSporeConfig, MindSporeDump, RuleKind};

/// Rules that choose the values to keep, and the place where they go.
#[derive(Clone, Debug)]
pub struct Request {
    /// Rules that choose the values to keep.
    pub plan: Plan,
    /// Where it goes, and in which form.
    pub options: MindSporeOptions,
}

impl Request {
    /// Builds the request of a configuration; `None` if it asks for nothing. `time` names
    /// directories of whole graphs, `YYYYMMDDhhmmss`.
    ///
    /// # Errors
    /// [`PatternError`] for an entry of `kernels` that is no regular expression.
    pub fn new(
        config: MindSporeConfig,
        rank: u32,
        modes: Modes,
        time: String,
    ) -> Result<Option<Request>, PatternError> {
        let Some(dump) = config.dump else {
            return Ok(None);
        };
        let plan = plan(&dump)?;
        let options = MindSporeOptions {
            target: dump.target,
            path: dump.path,
            rank,
            net_name: dump.net_name,
            first_iteration: dump.initial_iteration,
            has_tensors: dump.saved.tensors,
            statistics: dump.saved.statistics,
            device_statistics: dump.device_precision,
            n_samples: dump.n_samples,
            has_host_layout: dump.trans_flag,
            is_bin: dump.file_format == FileFormat::Bin,
            dedup: Dedup::default(),
            compression: None,
            has_kernel_args: dump.saves_kernel_args,
            has_parameters_only: has_parameters_only(dump.target, dump.purpose),
            runtime: match dump.purpose {
                Purpose::Values | Purpose::Watch => {
                    RuntimeMode::Values(MindSporeSink::mode_word(dump.sides))
                }
                Purpose::Overflow | Purpose::NonFinite => RuntimeMode::Overflow,
                Purpose::Failures(_) => RuntimeMode::Exceptions,
            },
            configuration: dump.text.into_bytes(),
            time,
            modes,
        };
        Ok(Some(Request { plan, options }))
    }

    /// Threads that may write: rows of statistics keep their order with one only.
    pub fn n_writers_max(options: &MindSporeOptions) -> usize {
        match options.statistics {
            Some(_) => 1,
            None => usize::MAX,
        }
    }
}

/// Neither CPU nor GPU tells of operators that fail; parameters are all that they write then.
fn has_parameters_only(target: Target, purpose: Purpose) -> bool {
    target.has_parameters() && matches!(purpose, Purpose::Failures(_))
}

fn plan(dump: &MindSporeDump) -> Result<Plan, PatternError> {
    let has_ranks = dump.target.has_ranks();
    let is_nothing_but_parameters = has_parameters_only(dump.target, dump.purpose);
    let operators = match &dump.kernels {
        _ if is_nothing_but_parameters => OperatorSelection::none(),
        Kernels::Every => OperatorSelection::every(),
        Kernels::Listed(rules) => {
            let rules = rules.iter().map(|entry| rule(entry, has_ranks));
            let rules = rules.collect::<Result<_, _>>()?;
            OperatorSelection::by_kernels(KernelSelection::Rules(rules))
        }
        Kernels::BySetDump => OperatorSelection::by_kernels(KernelSelection::Marked),
    };
    let purpose = match dump.purpose {
        Purpose::Failures(_) if is_nothing_but_parameters => Purpose::Values,
        // Kernel by kernel it is what an operator makes that tells; a whole graph has a register.
        Purpose::Overflow if has_ranks => Purpose::NonFinite,
        purpose => purpose,
    };
    Ok(Plan {
        purpose,
        models: ModelSelection::Every(operators),
        excluded: Vec::new(),
        sides: match dump.purpose {
            // What a failing operator makes is worth nothing.
            Purpose::Failures(_) if !is_nothing_but_parameters && has_ranks => Sides::Inputs,
            _ => dump.sides,
        },
        steps: dump.iteration.clone().counted_from(dump.initial_iteration),
        has_graph_inputs: false,
        has_parameters: dump.target.has_parameters(),
        has_constants: !is_nothing_but_parameters,
        shows_quantising: false,
        n_overflows_max: dump.overflow_number,
    })
}

/// Dumps of whole graphs know no types, only names; their regular expressions may match a part of one.
fn rule(rule: &super::KernelRule, has_ranks: bool) -> Result<KernelRule, PatternError> {
    match rule.kind {
        RuleKind::Name => Ok(KernelRule::name(&rule.text)),
        RuleKind::Type if has_ranks => Ok(KernelRule::op_type(&rule.text)),
        RuleKind::Type => Ok(KernelRule::name(&rule.text)),
        RuleKind::Regex if has_ranks => KernelRule::regex(&rule.text, rule.pattern()),
        RuleKind::Regex => KernelRule::regex_anywhere(&rule.text, rule.pattern()),
    }
}
