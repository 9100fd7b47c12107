//! Limits that were combined before: large comparisons have many slots of few kinds.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use opscope_store::SharedText;
use opscope_tensor::DType;

use super::{MetricBounds, Thresholds};
use crate::compare::metric::MetricId;

/// A dtype, a type of operator and its name.
type SlotKind = (Option<DType>, SharedText, SharedText);

/// Limits by dtype and operator.
pub(super) struct KnownLimits<'a> {
    thresholds: &'a Thresholds,
    limits: HashMap<SlotKind, Vec<(MetricId, MetricBounds)>>,
    judged: HashMap<(SharedText, SharedText), bool>,
}

/// Maximum number of remembered kinds. More there are only if limits go by names, of which few
/// operators share one.
const N_KNOWN_MAX: usize = 1 << 12;

impl<'a> KnownLimits<'a> {
    pub(super) fn new(thresholds: &'a Thresholds) -> KnownLimits<'a> {
        KnownLimits {
            thresholds,
            limits: HashMap::new(),
            judged: HashMap::new(),
        }
    }

    /// [`Thresholds::bounds`].
    pub(super) fn bounds(
        &mut self,
        dtype: Option<DType>,
        op_type: &SharedText,
        op_name: &SharedText,
    ) -> &[(MetricId, MetricBounds)] {
        if self.limits.len() >= N_KNOWN_MAX {
            self.limits.clear();
        }
        let key = (dtype, op_type.clone(), self.telling(op_name));
        match self.limits.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.thresholds.bounds(dtype, op_type, op_name)),
        }
    }

    /// [`Thresholds::is_judged`].
    pub(super) fn is_judged(&mut self, op_type: &SharedText, op_name: &SharedText) -> bool {
        if self.judged.len() >= N_KNOWN_MAX {
            self.judged.clear();
        }
        let key = (op_type.clone(), self.telling(op_name));
        let known = self.judged.entry(key);
        *known.or_insert_with(|| self.thresholds.is_judged(op_type, op_name))
    }

    /// The name, if any limits go by names.
    fn telling(&self, op_name: &SharedText) -> SharedText {
        if self.thresholds.names.is_empty() {
            SharedText::default()
        } else {
            op_name.clone()
        }
    }
}
