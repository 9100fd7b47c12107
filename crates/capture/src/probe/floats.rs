//! The floats that an operator's quantised values stand for.

use opscope_store::record::Record;
use opscope_tensor::Tensor;

use super::{Probe, now_us};
use crate::FloatView;
use crate::Place;
use crate::counters::{DropReason, add};
use crate::quantised::{Execution, Parts};
use crate::queue::{Job, Work};

impl Probe {
    /// The same; this execution shows those of its views.
    pub(crate) fn with_views(self, views: Vec<usize>) -> Probe {
        let mut probe = self;
        probe.views = views;
        probe
    }

    /// The views that this execution shows.
    pub(super) fn views(&self) -> impl Iterator<Item = &FloatView> {
        self.views.iter().filter_map(|&i| self.kept.views.get(i))
    }

    /// Whether a view takes the tensor at this place.
    pub(super) fn is_part(&self, place: Place) -> bool {
        self.views().any(|view| view.needs(place))
    }

    /// Keeps a tensor that a view takes, before a sink may let go of its elements.
    pub(super) fn show_part(&mut self, place: Place, tensor: &Tensor) {
        if self.is_part(place)
            && let Some(open) = &mut self.open
        {
            open.parts.show(place, tensor);
        }
    }

    /// Hands over the records of the views, for writers to compute the floats.
    pub(super) fn submit_views(&self, parts: &Parts, execution: &Execution) {
        let counters = &self.shared.counters;
        for (nth, view) in self.views().enumerate() {
            let n_slots = view.n_slots();
            let Some((beside, floats)) = parts.view(view, execution) else {
                counters.drop(DropReason::NotShown, n_slots);
                continue;
            };
            let n_bytes = beside.n_bytes().saturating_add(floats.n_bytes);
            if let Err(reason) = self.admit(n_slots, n_bytes) {
                counters.drop(reason, n_slots);
                continue;
            }
            add(&counters.n_bytes_selected, n_bytes);
            let nth = self.kept.graph_inputs.len() + nth;
            self.shared.queue_or_drop(Job {
                notes: self.notes.clone(),
                order: (self.order, u32::try_from(nth).unwrap_or(u32::MAX)),
                record: Record {
                    timestamp_us: now_us(&self.shared, n_slots),
                    ..beside
                },
                work: Work::WriteBeside,
                floats: Some(floats),
                hold: self.hold_for_record(),
            });
        }
    }
}
