//! The plan of a configured dump.

use opscope_capture::{
    CompiledKernelRule, KernelSelection, ModelSelection, OperatorSelection, PatternError, Plan,
    Purpose, SlotSides,
};

use super::dump::{DumpedKernels, MindSporeDumpPlan, RuleKind};

impl MindSporeDumpPlan {
    /// The capture plan of the configuration.
    ///
    /// # Errors
    /// [`PatternError`] for an entry of `kernels` that is not a regular expression.
    pub fn plan(&self) -> Result<Plan, PatternError> {
        let has_ranks = self.target.has_ranks();
        let has_parameters_only = self.has_parameters_only();
        let operators = match &self.kernels {
            _ if has_parameters_only => OperatorSelection::none(),
            DumpedKernels::Every => OperatorSelection::every(),
            DumpedKernels::Listed(rules) => {
                let rules = rules.iter().map(|entry| rule(entry, has_ranks));
                let rules = rules.collect::<Result<_, _>>()?;
                OperatorSelection::by_kernels(KernelSelection::Rules(rules))
            }
            DumpedKernels::BySetDump => OperatorSelection::by_kernels(KernelSelection::Marked),
        };
        let purpose = match self.purpose {
            Purpose::Failures(_) if has_parameters_only => Purpose::Values,
            // Kernel by kernel, outputs are checked for non-finite values; a whole graph has a
            // status register.
            Purpose::Overflow if has_ranks => Purpose::NonFinite,
            purpose => purpose,
        };
        Ok(Plan {
            purpose,
            models: ModelSelection::Every(operators),
            excluded: Vec::new(),
            sides: match self.purpose {
                // The outputs of a failed operator are meaningless.
                Purpose::Failures(_) if !has_parameters_only && has_ranks => SlotSides::Inputs,
                _ => self.sides,
            },
            steps: self.iteration.clone().counted_from(self.initial_iteration),
            has_graph_inputs: false,
            has_parameters: self.target.has_parameters(),
            has_constants: !has_parameters_only,
            shows_quantising: false,
            n_overflows_max: self.overflow_number,
        })
    }

    /// Whether only parameters are dumped: CPU and GPU do not report failing operators, and write
    /// only parameters then.
    pub fn has_parameters_only(&self) -> bool {
        self.target.has_parameters() && matches!(self.purpose, Purpose::Failures(_))
    }
}

/// Dumps of whole graphs have no types, only names; their regular expressions may match a part of
/// one.
fn rule(rule: &super::KernelEntry, has_ranks: bool) -> Result<CompiledKernelRule, PatternError> {
    match rule.kind {
        RuleKind::Name => Ok(CompiledKernelRule::name(&rule.text)),
        RuleKind::Type if has_ranks => Ok(CompiledKernelRule::op_type(&rule.text)),
        RuleKind::Type => Ok(CompiledKernelRule::name(&rule.text)),
        RuleKind::Regex if has_ranks => CompiledKernelRule::regex(&rule.text, rule.pattern()),
        RuleKind::Regex => CompiledKernelRule::regex_anywhere(&rule.text, rule.pattern()),
    }
}
