//! The operators and slots that a plan keeps of a model.

use std::collections::HashMap;
use std::sync::Arc;

use opscope_store::record::Operator;

use crate::FloatView;

/// The operators and tensors that a plan keeps of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedOperators {
    /// The operators with anything kept, by task id.
    pub kept: HashMap<u32, Arc<SelectedSlots>>,
    /// Operator names in the plan that the model lacks, each once: listed ones in the plan's order,
    /// then ends of ranges, watched ones, excluded ones.
    pub unmatched: Vec<String>,
    /// Texts of the rules of [`OperatorSelection::kernels`](crate::OperatorSelection::kernels) that
    /// choose nothing, or only operators that an earlier rule chooses.
    pub unused_rules: Vec<String>,
    /// Whether the choice is left to marks and there is none at all.
    pub is_unmarked: bool,
    /// Whether that is every operator, as far as names and rules go.
    pub is_every: bool,
    /// Whether floats are to be computed of any operator's tensors.
    pub has_views: bool,
    /// Whether the plan has a rule for this model at all.
    pub is_model_matched: bool,
}

/// The tensors that a plan keeps of one operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedSlots {
    /// Positions of the inputs in the operator's own record.
    pub inputs: Vec<usize>,
    /// Positions of the outputs in the operator's own record.
    pub outputs: Vec<usize>,
    /// Graph inputs with a separate record.
    pub graph_inputs: Vec<GraphInput>,
    /// Inputs that no operator produces, to be kept at the end of the step.
    pub parameters: Vec<GraphInput>,
    /// Dequantised views of its own quantised values, with separate records.
    pub views: Vec<FloatView>,
    /// How the operator relates to watched ones.
    pub role: WatchRole,
}

/// A graph input that is kept under an operator that reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphInput {
    /// Where the operator reads it; the first place if there are several.
    pub position: usize,
    /// The operator of its record: the type `Data`, the input's name, the reader's task.
    pub operator: Arc<Operator>,
}

/// How an operator relates to watched ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchRole {
    /// Nothing: the plan watches none.
    #[default]
    None,
    /// Its outputs are watched.
    Watched,
    /// It may overwrite watched outputs, so they are compared after it. Collective operators leave
    /// no record of that.
    Suspect {
        /// Whether it is collective.
        is_collective: bool,
    },
}
