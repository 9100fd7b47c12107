//! Rounding results and weights of operators while a model runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use opscope_store::record::Operator;
use opscope_tensor::{Channels, DType, RoundingFormat};

/// Which operators have their results rounded, and to which format.
///
/// Such an operator also reads its float weights and constants rounded, while other readers of the
/// same weight have the original. An `int8` weight has a scale for each output channel, and a bias
/// stays as it is then.
///
/// All float outputs of such an operator are rounded, each by itself, as soon as the operator has
/// computed them and before anything reads them, those that are results of the model too; an
/// operator in a loop is rounded in each iteration.
#[derive(Clone, Debug, Default)]
pub struct ResultRounding {
    formats: HashMap<u32, RoundingFormat>,
    /// Whether a finite element has become none. Clones share it.
    has_overflowed: Arc<AtomicBool>,
}

impl ResultRounding {
    /// Rounds the results of the operators with these tasks, all to one format.
    pub fn new(format: RoundingFormat, tasks: impl IntoIterator<Item = u32>) -> ResultRounding {
        let formats = tasks.into_iter().map(|task_id| (task_id, format));
        ResultRounding {
            formats: formats.collect(),
            has_overflowed: Arc::default(),
        }
    }

    /// Whether an operator's results are rounded.
    pub fn rounds(&self, task_id: u32) -> bool {
        self.formats.contains_key(&task_id)
    }

    /// The format that an operator's results and weights are rounded to.
    pub fn format_of(&self, task_id: u32) -> Option<RoundingFormat> {
        self.formats.get(&task_id).copied()
    }

    /// Rounds a result of an operator, if it is to be rounded and of a dtype that is.
    pub fn round(&self, task_id: u32, dtype: DType, bytes: &mut [u8]) {
        self.round_weight(task_id, dtype, Channels::WHOLE, bytes);
    }

    /// Rounds an input of an operator likewise, with an `int8` scale for each of these channels.
    pub fn round_weight(&self, task_id: u32, dtype: DType, channels: Channels, bytes: &mut [u8]) {
        let Some(format) = self.formats.get(&task_id) else {
            return;
        };
        let is_beyond = format.is_beyond(dtype, bytes);
        format.round_channels(dtype, channels, bytes);
        if is_beyond {
            self.note_overflow();
        }
    }

    /// Notes that rounding has made an infinity of a finite element.
    pub fn note_overflow(&self) {
        self.has_overflowed.store(true, Ordering::Relaxed);
    }

    /// Whether a weight of an operator stays as it is: a bias does for `int8`.
    pub fn keeps_weight(&self, task_id: u32, is_bias: bool) -> bool {
        match self.formats.get(&task_id) {
            Some(RoundingFormat::Int8) => is_bias,
            format => format.is_none(),
        }
    }

    /// Whether rounding has made an infinity of a finite element, in any run with it so far.
    pub fn has_overflowed(&self) -> bool {
        self.has_overflowed.load(Ordering::Relaxed)
    }
}

/// The operators that ran, with the types of their results.
#[derive(Clone, Debug, Default)]
pub struct ResultSurvey(BTreeMap<u32, SurveyedOperator>);

/// An operator that ran.
#[derive(Clone, Debug)]
pub struct SurveyedOperator {
    /// The operator.
    pub operator: Arc<Operator>,
    /// Types of its outputs by position, as far as they are tensors that the engine shows.
    pub dtypes: BTreeMap<usize, DType>,
}

impl SurveyedOperator {
    /// Positions and types of the outputs that would be rounded.
    pub fn float_outputs(&self) -> impl Iterator<Item = (usize, DType)> {
        let dtypes = self
            .dtypes
            .iter()
            .map(|(position, dtype)| (*position, *dtype));
        dtypes.filter(|(_, dtype)| RoundingFormat::applies_to(*dtype))
    }
}

impl ResultSurvey {
    /// Notes that an operator has run.
    pub fn note(&mut self, operator: &Arc<Operator>) -> &mut SurveyedOperator {
        let of_task = self.0.entry(operator.task_id);
        of_task.or_insert_with(|| SurveyedOperator {
            operator: operator.clone(),
            dtypes: BTreeMap::new(),
        })
    }

    /// Adds what ran in another run of the same model.
    pub fn merge(&mut self, other: &ResultSurvey) {
        for surveyed in other.operators() {
            let known = self.note(&surveyed.operator);
            known.dtypes.extend(&surveyed.dtypes);
        }
    }

    /// The operators in file order.
    pub fn operators(&self) -> impl Iterator<Item = &SurveyedOperator> {
        self.0.values()
    }

    /// Whether the operator of this task ran.
    pub fn contains(&self, task_id: u32) -> bool {
        self.0.contains_key(&task_id)
    }
}
