//! The steps of one model that may still be removed, and which of them are.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use opscope_store::record::ModelId;

/// Steps of a model that are on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSteps {
    /// The model.
    pub model: Arc<ModelId>,
    /// The steps, in the order in which they ran.
    pub steps: Vec<RangeInclusive<u64>>,
}

/// Counts the steps of a session in the order in which they began.
pub(super) type Serial = u64;

pub(super) struct RingModel {
    pub(super) id: Arc<ModelId>,
    /// In the order in which they began. Steps leave at the front only.
    steps: VecDeque<RingStep>,
    kept: Vec<RangeInclusive<u64>>,
}

struct RingStep {
    serial: Serial,
    number: u64,
    /// Taps that are in it, each with the operators that run.
    n_open: usize,
    /// Records that are not written yet.
    n_records: usize,
    /// Whether a trigger has kept it.
    is_kept: bool,
    /// Whether a later step has the same number.
    is_superseded: bool,
}

impl RingStep {
    /// Whether all is known of it.
    fn is_settled(&self) -> bool {
        self.n_open == 0 && self.n_records == 0
    }
}

impl RingModel {
    pub(super) fn new(id: Arc<ModelId>) -> RingModel {
        RingModel {
            id,
            steps: VecDeque::new(),
            kept: Vec::new(),
        }
    }

    /// Adds a step, held by its tap. Returns its serial, which differs from `serial` if the newest
    /// step begins again.
    pub(super) fn begin(&mut self, serial: Serial, number: u64) -> Serial {
        if let Some(last) = self.steps.back_mut()
            && last.number == number
        {
            last.n_open += 1;
            return last.serial;
        }
        // Steps of one number share a directory: the last of them takes all of it along.
        for step in &mut self.steps {
            step.is_superseded |= step.number == number;
        }
        self.steps.push_back(RingStep {
            serial,
            number,
            n_open: 1,
            n_records: 0,
            is_kept: false,
            is_superseded: false,
        });
        serial
    }

    /// How many steps there are from the first one on that waits for a writer.
    pub(super) fn n_behind(&self) -> usize {
        let mut steps = self.steps.iter();
        let first = steps.position(|step| step.n_records > 0);
        first.map_or(0, |first| self.steps.len() - first)
    }

    pub(super) fn newest(&self) -> Option<Serial> {
        self.steps.back().map(|step| step.serial)
    }

    /// The latest step with this number.
    pub(super) fn serial_of(&self, number: u64) -> Option<Serial> {
        let mut steps = self.steps.iter().rev();
        let found = steps.find(|step| step.number == number);
        found.map(|step| step.serial)
    }

    pub(super) fn hold_for_record(&mut self, serial: Serial) {
        if let Some(step) = self.find(serial) {
            step.n_records += 1;
        }
    }

    /// Takes a hold back; whether it was the step's last.
    pub(super) fn release(&mut self, serial: Serial, is_record: bool) -> bool {
        let Some(step) = self.find(serial) else {
            return false;
        };
        let count = step.count(is_record);
        *count = count.saturating_sub(1);
        step.is_settled()
    }

    /// Keeps a step and those before it, `n` together; returns the step's number.
    pub(super) fn keep(&mut self, serial: Serial, n: usize) -> Option<u64> {
        let last = self.position(serial)?;
        let first = (last + 1).saturating_sub(n);
        for step in self.steps.range_mut(first..=last) {
            step.is_kept = true;
        }
        self.steps.get(last).map(|step| step.number)
    }

    /// The steps that leave a ring of `n` now, with whether they are kept.
    pub(super) fn leave(&mut self, n: usize) -> Vec<(u64, bool)> {
        let mut left = Vec::new();
        while let Some(first) = self.steps.front() {
            let is_decided = match first.is_kept {
                // The newest may begin again.
                true => self.steps.len() > 1 && first.is_settled(),
                // Any of these steps could keep the first.
                false => self.steps.len() > n && self.steps.range(..n).all(RingStep::is_settled),
            };
            if !is_decided {
                break;
            }
            let Some(step) = self.steps.pop_front() else {
                break;
            };
            self.let_go(&step, step.is_kept, &mut left);
        }
        left
    }

    fn let_go(&mut self, step: &RingStep, is_kept: bool, left: &mut Vec<(u64, bool)>) {
        if is_kept {
            self.note_kept(step.number);
        }
        // The directory belongs to the later step of the same number, which decides on it.
        if is_kept || !step.is_superseded {
            left.push((step.number, is_kept));
        }
    }

    /// Ends the steps that are left when nothing more is written: the last `n` stay if
    /// `keeps_rest`. Returns each with whether it stays, without superseded ones that go.
    pub(super) fn end(&mut self, n: usize, keeps_rest: bool) -> Vec<(u64, bool)> {
        let steps = std::mem::take(&mut self.steps);
        let n_before = steps.len().saturating_sub(n);
        let mut left = Vec::with_capacity(steps.len());
        for (i, step) in steps.into_iter().enumerate() {
            let is_kept = step.is_kept || (keeps_rest && i >= n_before);
            self.let_go(&step, is_kept, &mut left);
        }
        left
    }

    pub(super) fn take_kept(&mut self) -> Option<KeptSteps> {
        let steps = std::mem::take(&mut self.kept);
        (!steps.is_empty()).then(|| KeptSteps {
            model: self.id.clone(),
            steps,
        })
    }

    fn note_kept(&mut self, number: u64) {
        match self.kept.last_mut() {
            // Steps are reported as ranges: an endless run must not make the report grow forever.
            Some(last) if last.end().checked_add(1) == Some(number) => {
                *last = *last.start()..=number;
            }
            _ => self.kept.push(number..=number),
        }
    }

    fn position(&self, serial: Serial) -> Option<usize> {
        self.steps
            .binary_search_by_key(&serial, |step| step.serial)
            .ok()
    }

    fn find(&mut self, serial: Serial) -> Option<&mut RingStep> {
        let position = self.position(serial)?;
        self.steps.get_mut(position)
    }
}

impl RingStep {
    fn count(&mut self, is_record: bool) -> &mut usize {
        if is_record {
            &mut self.n_records
        } else {
            &mut self.n_open
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs steps 0, 1, … of a ring of `n`; each is settled before the next unless it is in `late`,
    /// and those in `triggers` keep what is there. Returns the steps that stay.
    fn check(n: usize, n_steps: u64, triggers: &[u64], keeps_rest: bool, expected: &[u64]) {
        for is_late in [false, true] {
            let mut model = RingModel::new(Arc::default());
            let mut kept = Vec::new();
            let mut n_removed = 0;
            let mut tell = |(step, is_kept): (u64, bool)| {
                if is_kept {
                    kept.push(step);
                } else {
                    n_removed += 1;
                }
            };
            let fire = |model: &mut RingModel, step| {
                if triggers.contains(&step) {
                    assert_eq!(model.keep(step, n), Some(step));
                }
            };
            for step in 0..n_steps {
                assert_eq!(model.begin(step, step), step);
                model.hold_for_record(step);
                assert!(!model.release(step, false));
                if !is_late {
                    fire(&mut model, step);
                    assert!(model.release(step, true));
                }
                model.leave(n).into_iter().for_each(&mut tell);
                assert!(is_late || model.steps.len() <= n);
            }
            // Found last, and in the wrong order.
            for step in (0..n_steps).rev().filter(|_| is_late) {
                fire(&mut model, step);
                model.release(step, true);
            }
            model.leave(n).into_iter().for_each(&mut tell);
            model.end(n, keeps_rest).into_iter().for_each(&mut tell);
            assert_eq!(kept, expected, "late: {is_late}");
            assert_eq!(n_removed + kept.len() as u64, n_steps);
        }
    }

    #[test]
    fn what_stays_does_not_depend_on_when_it_is_known() {
        check(3, 10, &[], true, &[7, 8, 9]);
        check(3, 2, &[], true, &[0, 1]);
        check(3, 10, &[], false, &[]);
        check(3, 10, &[4], true, &[2, 3, 4, 7, 8, 9]);
        check(3, 10, &[4], false, &[2, 3, 4]);
        check(3, 10, &[9], false, &[7, 8, 9]);
        check(3, 10, &[0], false, &[0]);
        check(3, 10, &[4, 5], false, &[2, 3, 4, 5]);
        check(3, 10, &[2, 6], false, &[0, 1, 2, 4, 5, 6]);
        check(1, 5, &[1, 3], true, &[1, 3, 4]);
        check(1, 5, &[], true, &[4]);
        check(100, 5, &[], true, &[0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_ring_begins_anew_after_a_trigger() {
        // Of the last three steps, 8 was kept by the trigger anyway.
        check(3, 10, &[8], true, &[6, 7, 8, 9]);
    }

    #[test]
    fn a_number_that_comes_again_takes_its_directory_along() {
        let mut model = RingModel::new(Arc::default());
        for (serial, number) in [(0, 7), (1, 8), (2, 7)] {
            assert_eq!(model.begin(serial, number), serial);
        }
        assert_eq!(model.begin(3, 7), 2, "it begins again");
        for serial in [0, 1, 2] {
            model.release(serial, false);
        }
        assert_eq!(model.leave(1), [(8, false)]);
        assert_eq!(model.end(1, false), [(7, false)]);

        model.begin(4, 9);
        model.release(4, false);
        model.keep(4, 1);
        assert_eq!(model.leave(1), []);
        assert_eq!(model.begin(5, 9), 4, "it begins again, and is kept");
        assert_eq!(model.end(1, false), [(9, true)]);
    }

    #[test]
    fn kept_steps_are_told_as_ranges() {
        let mut model = RingModel::new(Arc::default());
        for step in [0, 1, 2, 5, 4, u64::MAX] {
            model.note_kept(step);
        }
        let kept = model.take_kept().unwrap().steps;
        assert_eq!(kept, [0..=2, 5..=5, 4..=4, u64::MAX..=u64::MAX]);
        assert_eq!(model.take_kept(), None);
    }
}
