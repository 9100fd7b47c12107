//! Recomputes a collective's results from its ranks' inputs.
//!
//! Sums may be evaluated in any order: a result fits if it is as close to the exact sum as the
//! dtype allows for that number of additions. Moved data must be equal bit for bit. Only
//! collectives with one tensor per side and parts along the first axis are checked.

use std::collections::HashMap;

use opscope_store::record::SlotSide;
use opscope_store::record::parallel::{CollectiveKind, Reduction};
use opscope_tensor::digest::xxh3_128;
use opscope_tensor::{DType, Numbers, largest_finite};

use super::content::{ContentMark, MarkKind};
use super::meetings::{Meeting, MeetingCall};
use super::run::RankedRun;
use opscope_analysis::compare::side::ExecutionSlot;
use opscope_analysis::elements::{ElementsAccess, NumpyArray};

/// How a rank's result compares with the recomputed one.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultFit {
    /// Equal within the dtype's tolerance.
    Fits,
    /// Different.
    Differs(ResultDifference),
    /// The right parts in another order: for each place, the rank whose part is there.
    Reordered(Vec<u32>),
}

/// Where a result differs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResultDifference {
    /// Number of elements beyond the tolerance, for sums.
    pub n_elements: u64,
    /// Index of the first one.
    pub first: u64,
    /// The actual and the expected value there.
    pub values: [f64; 2],
}

/// The result for each call of a meeting, in order; `None` for unchecked calls.
pub type MeetingFits = Vec<Option<ResultFit>>;

/// A hash of all elements.
type Digest = [u8; 16];

/// The contributions of all ranks, reduced.
struct Reduced {
    reduction: Reduction,
    dtype: DType,
    n_ranks: usize,
    values: Vec<f64>,
    /// Sums of magnitudes, which bound the rounding error of sums.
    magnitudes: Vec<f64>,
}

/// Checks the results of a collective. Returns no fits unless the dump has the inputs of all its
/// ranks.
pub fn check(run: &RankedRun, meeting: &Meeting) -> MeetingFits {
    let nothing = vec![None; meeting.calls.len()];
    if !meeting.missing.is_empty() || meeting.calls.len() < 2 {
        return nothing;
    }
    let checked = match meeting.kind {
        CollectiveKind::AllReduce(reduction) | CollectiveKind::Reduce(reduction, Some(_)) => {
            reduced(run, meeting, reduction, false)
        }
        CollectiveKind::ReduceScatter(reduction) => reduced(run, meeting, reduction, true),
        CollectiveKind::AllGather | CollectiveKind::Gather(Some(_)) => gathered(run, meeting),
        CollectiveKind::AllToAll => exchanged(run, meeting),
        CollectiveKind::Broadcast(Some(_)) | CollectiveKind::Receive(_) => handed_on(run, meeting),
        _ => None,
    };
    checked.unwrap_or(nothing)
}

/// The only tensor on a side of an execution.
fn only(run: &RankedRun, call: &MeetingCall, side: SlotSide) -> Option<usize> {
    let slots = run.dump.runs[call.run].slots.iter().enumerate();
    let mut slots = slots.filter(|(_, slot)| slot.side == side);
    let (at, _) = slots.next()?;
    slots.next().is_none().then_some(at)
}

fn slot<'a>(run: &'a RankedRun, call: &MeetingCall, side: SlotSide) -> Option<&'a ExecutionSlot> {
    let at = only(run, call, side)?;
    run.dump.runs[call.run].slots.get(at)
}

/// The decoded elements of the only tensor on a side.
fn elements(run: &RankedRun, call: &MeetingCall, side: SlotSide) -> Option<NumpyArray> {
    let slot = slot(run, call, side)?;
    if !slot.has_elements || slot.problem.is_some() {
        return None;
    }
    NumpyArray::decoded(&slot.elements_record(), None, ElementsAccess::Read).ok()
}

fn reduced(
    run: &RankedRun,
    meeting: &Meeting,
    reduction: Option<Reduction>,
    is_cut: bool,
) -> Option<MeetingFits> {
    // An in-place call may show its output as its input.
    let is_in_place = meeting.calls.iter().all(|call| {
        let input = bits(run, call, SlotSide::Input);
        input.is_some() && input == bits(run, call, SlotSide::Output)
    });
    if is_in_place {
        return None;
    }
    let known = [reduction.unwrap_or(Reduction::Sum)];
    // If the reduction is unknown, take the first that fits a rank.
    let tried = [
        Reduction::Sum,
        Reduction::Mean,
        Reduction::Max,
        Reduction::Min,
    ];
    let tried = if reduction.is_some() {
        &known[..]
    } else {
        &tried[..]
    };
    let mut fits = None;
    for &reduction in tried {
        let reduced = Reduced::of_meeting(run, meeting, reduction)?;
        let checked = reduced.check(run, meeting, is_cut)?;
        let has_fit = checked.contains(&Some(ResultFit::Fits));
        fits = Some(checked);
        if has_fit {
            return fits;
        }
    }
    fits.filter(|_| reduction.is_some())
}

impl Reduced {
    fn of_meeting(run: &RankedRun, meeting: &Meeting, reduction: Reduction) -> Option<Reduced> {
        // Only one contribution is in memory at a time: groups have hundreds of ranks.
        let mut reduced: Option<Reduced> = None;
        for call in &meeting.calls {
            let dtype = slot(run, call, SlotSide::Input)?.dtype?;
            let array = elements(run, call, SlotSide::Input)?;
            let numbers = Numbers::new(array.dtype, array.bytes())?;
            let into = reduced.get_or_insert_with(|| Reduced {
                reduction,
                dtype,
                n_ranks: 0,
                values: Vec::new(),
                magnitudes: Vec::new(),
            });
            if into.n_ranks > 0 && numbers.len() != into.values.len() || dtype != into.dtype {
                return None;
            }
            into.add(numbers)?;
        }
        reduced
    }

    /// Adds the contribution of a rank; `None` for a reduction that is not supported.
    fn add(&mut self, numbers: Numbers<'_>) -> Option<()> {
        self.n_ranks += 1;
        if self.n_ranks == 1 {
            self.values.reserve_exact(numbers.len());
            numbers.for_each(0..usize::MAX, |number| self.values.push(number));
            self.magnitudes = self.values.iter().map(|number| number.abs()).collect();
            return Some(());
        }
        // In double precision, whose rounding is far below the bound of narrower dtypes.
        let combine: fn(f64, f64) -> f64 = match self.reduction {
            Reduction::Sum | Reduction::Mean => |a, b| a + b,
            Reduction::Max => f64::max,
            Reduction::Min => f64::min,
            _ => return None,
        };
        let mut at = 0;
        numbers.for_each(0..usize::MAX, |number| {
            self.values[at] = combine(self.values[at], number);
            self.magnitudes[at] += number.abs();
            at += 1;
        });
        Some(())
    }

    fn check(&self, run: &RankedRun, meeting: &Meeting, is_cut: bool) -> Option<MeetingFits> {
        let n = meeting.calls.len();
        let n_part = if is_cut {
            self.values.len() / n
        } else {
            self.values.len()
        };
        let mut fits = Vec::new();
        let mut of_content: HashMap<(Digest, usize), ResultFit> = HashMap::new();
        for (at, call) in meeting.calls.iter().enumerate() {
            if !meeting.takes(at) {
                fits.push(None);
                continue;
            }
            let array = elements(run, call, SlotSide::Output)?;
            let numbers = Numbers::new(array.dtype, array.bytes())?;
            if numbers.len() != n_part || is_cut && !is_cut_along_first(run, call, n) {
                return None;
            }
            // After a reduce-scatter, each rank has the part with its own index.
            let nth = if is_cut { call.nth_in_group } else { 0 };
            // Ranks with equal results, which are nearly all, are checked once.
            let key = (xxh3_128(array.bytes()), nth);
            let known = of_content.get(&key).cloned();
            let fit = known.unwrap_or_else(|| {
                let first = nth * n_part;
                match self.difference(numbers, first) {
                    None => ResultFit::Fits,
                    Some(difference) => (0..n * usize::from(is_cut))
                        .find(|&other| self.difference(numbers, other * n_part).is_none())
                        .map_or(ResultFit::Differs(difference), |other| {
                            ResultFit::Reordered(vec![meeting.group[other]])
                        }),
                }
            });
            of_content.insert(key, fit.clone());
            fits.push(Some(fit));
        }
        Some(fits)
    }

    /// Compares numbers with the part of the reduced ones that starts at `first`.
    fn difference(&self, numbers: Numbers<'_>, first: usize) -> Option<ResultDifference> {
        let epsilon = match self.dtype {
            DType::F16 => 2_f64.powi(-10),
            DType::BF16 => 2_f64.powi(-7),
            DType::F32 => 2_f64.powi(-23),
            DType::F64 => 2_f64.powi(-52),
            DType::F8E4M3FN => 2_f64.powi(-3),
            DType::F8E5M2 => 2_f64.powi(-2),
            _ => 0.0,
        };
        let is_sum = matches!(self.reduction, Reduction::Sum | Reduction::Mean);
        let divisor = if self.reduction == Reduction::Mean {
            self.n_ranks as f64
        } else {
            1.0
        };
        // Beyond this magnitude an infinite result is expected.
        let largest = largest_finite(self.dtype).unwrap_or(f64::MAX);
        let mut difference = ResultDifference::default();
        let mut at = 0;
        numbers.for_each(0..usize::MAX, |number| {
            let expected = self.values[first + at] / divisor;
            let magnitude = self.magnitudes[first + at];
            // Twice the rounding bound of sequential additions, plus the result's own rounding; a
            // mean may be divided before or after.
            let bound = match is_sum {
                true => epsilon * (self.n_ranks as f64 + 1.0) * magnitude / divisor,
                false => 0.0,
            };
            let is_near = (number - expected).abs() <= bound + 2_f64.powi(-149) * 64.0;
            // Partial sums may overflow even if the total does not.
            let may_overflow = magnitude >= largest;
            let is_same = number.is_nan() && expected.is_nan() || number == expected;
            let is_fit = is_same || is_near || may_overflow || !expected.is_finite();
            if !is_fit {
                if difference.n_elements == 0 {
                    difference.first = at as u64;
                    difference.values = [number, expected];
                }
                difference.n_elements += 1;
            }
            at += 1;
        });
        (difference.n_elements > 0).then_some(difference)
    }
}

/// The shapes of a rank's input and result.
fn shapes<'a>(run: &'a RankedRun, call: &MeetingCall) -> [Option<&'a [u64]>; 2] {
    let sides = [SlotSide::Input, SlotSide::Output];
    sides.map(|side| slot(run, call, side)?.shape.as_deref())
}

/// Whether a rank's result has the shape of a part along the first axis of its input.
fn is_cut_along_first(run: &RankedRun, call: &MeetingCall, n: usize) -> bool {
    match shapes(run, call) {
        [Some([first, rest @ ..]), Some([part, others @ ..])] => {
            rest == others && *first == part * n as u64
        }
        _ => false,
    }
}

/// Results that concatenate the contributions of all ranks.
fn gathered(run: &RankedRun, meeting: &Meeting) -> Option<MeetingFits> {
    let n = meeting.group.len();
    let mut given = Vec::new();
    for call in &meeting.calls {
        let array = elements(run, call, SlotSide::Input)?;
        given.push((xxh3_128(array.bytes()), array.bytes().len()));
    }
    let n_bytes = given[0].1;
    if n_bytes == 0 || given.iter().any(|(_, n)| *n != n_bytes) {
        return None;
    }
    let expected: Vec<Digest> = given.iter().map(|(digest, _)| *digest).collect();
    let mut fits = Vec::new();
    for (at, call) in meeting.calls.iter().enumerate() {
        if !meeting.takes(at) {
            fits.push(None);
            continue;
        }
        let array = elements(run, call, SlotSide::Output)?;
        // If another axis is gathered, the parts are interleaved.
        let is_along_first = {
            let [Some(part), Some(whole)] = shapes(run, call) else {
                return None;
            };
            let is_stacked = whole
                .split_first()
                .is_some_and(|(first, rest)| *first == n as u64 && rest == part);
            is_stacked
                || part.len() == whole.len()
                    && !part.is_empty()
                    && whole[0] == part[0] * n as u64
                    && whole[1..] == part[1..]
        };
        if array.bytes().len() != n_bytes * n || !is_along_first {
            return None;
        }
        let parts = array.bytes().chunks(n_bytes).map(xxh3_128);
        let parts: Vec<Digest> = parts.collect();
        fits.push(Some(fit_of_parts(&parts, &expected, &meeting.group)));
    }
    Some(fits)
}

/// Results that contain an equal-sized part of each rank's contribution.
fn exchanged(run: &RankedRun, meeting: &Meeting) -> Option<MeetingFits> {
    let n = meeting.group.len();
    let mut given: Vec<Vec<Digest>> = Vec::new();
    let mut n_bytes = None;
    for call in &meeting.calls {
        let shapes = [SlotSide::Input, SlotSide::Output]
            .map(|side| slot(run, call, side).and_then(|slot| slot.shape.clone()));
        let [Some(shape), Some(other)] = shapes else {
            return None;
        };
        // Uneven parts depend on arguments that dumps do not have.
        let is_uneven = shape.first().is_none_or(|first| first % n as u64 != 0);
        if shape != other || is_uneven {
            return None;
        }
        let array = elements(run, call, SlotSide::Input)?;
        // One part per rank, all of the same length.
        let length = array.bytes().len() / n;
        if length == 0 || *n_bytes.get_or_insert(length) != length {
            return None;
        }
        given.push(array.bytes().chunks(length).map(xxh3_128).collect());
    }
    let mut fits = Vec::new();
    for (at, call) in meeting.calls.iter().enumerate() {
        let array = elements(run, call, SlotSide::Output)?;
        let parts: Vec<Digest> = array.bytes().chunks(n_bytes?).map(xxh3_128).collect();
        let expected = given.iter().map(|parts| parts.get(at).copied());
        let expected: Vec<Digest> = expected.collect::<Option<_>>()?;
        // Parts in another order reveal how the group was numbered.
        fits.push(Some(fit_of_parts(&parts, &expected, &meeting.group)));
    }
    Some(fits)
}

fn fit_of_parts(parts: &[Digest], expected: &[Digest], group: &[u32]) -> ResultFit {
    if parts == expected {
        return ResultFit::Fits;
    }
    let mut sorted = [parts.to_vec(), expected.to_vec()];
    sorted.iter_mut().for_each(|parts| parts.sort_unstable());
    if sorted[0] != sorted[1] {
        return ResultFit::Differs(ResultDifference::default());
    }
    // Equal parts are interchangeable, so the first free one is as good as any.
    let mut is_taken = vec![false; expected.len()];
    let order = parts.iter().enumerate().filter_map(|(place, part)| {
        let mut places = std::iter::once(place).chain(0..expected.len());
        let at = places.find(|&at| expected[at] == *part && !is_taken[at])?;
        is_taken[at] = true;
        group.get(at).copied()
    });
    ResultFit::Reordered(order.collect())
}

/// Results that equal one rank's contribution: digests are enough.
fn handed_on(run: &RankedRun, meeting: &Meeting) -> Option<MeetingFits> {
    let giver = meeting.givers().next()?;
    let side = match meeting.kind {
        // A root that only shows its output had the same data before the call.
        CollectiveKind::Broadcast(_) if only(run, giver, SlotSide::Input).is_none() => {
            SlotSide::Output
        }
        _ => SlotSide::Input,
    };
    // Digests of every bit make reading elements unnecessary.
    let given = bits(run, giver, side)?;
    let fits = meeting.calls.iter().enumerate().map(|(at, call)| {
        if !meeting.takes(at) {
            return None;
        }
        Some(match bits(run, call, SlotSide::Output)? == given {
            true => ResultFit::Fits,
            false => ResultFit::Differs(ResultDifference::default()),
        })
    });
    Some(fits.collect())
}

/// The mark of the only tensor on a side, if it covers every bit.
fn bits(run: &RankedRun, call: &MeetingCall, side: SlotSide) -> Option<ContentMark> {
    let at = only(run, call, side)?;
    let mark = run.marks.get(call.run, at)?;
    (mark.kind == MarkKind::Bits).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_in_another_order_are_told_by_rank() {
        let part = |n: u8| [n; 16];
        let group = [4, 6, 8];
        let check = |parts: [u8; 3], expected| {
            let parts = parts.map(part);
            let fit = fit_of_parts(&parts, &[1, 2, 3].map(part), &group);
            assert_eq!(fit, expected, "{parts:?}");
        };
        check([1, 2, 3], ResultFit::Fits);
        check([2, 1, 3], ResultFit::Reordered(vec![6, 4, 8]));
        check([1, 2, 2], ResultFit::Differs(ResultDifference::default()));
        // Each of several equal parts is used once.
        let fit = fit_of_parts(&[2, 1, 1].map(part), &[1, 1, 2].map(part), &group);
        assert_eq!(fit, ResultFit::Reordered(vec![8, 6, 4]));
    }

    #[test]
    fn sums_fit_in_any_order() {
        let bytes = |numbers: &[f32]| -> Vec<u8> {
            numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect()
        };
        let reduced = |reduction, contributions: &[&[f32]]| {
            let mut reduced = Reduced {
                reduction,
                dtype: DType::F32,
                n_ranks: 0,
                values: Vec::new(),
                magnitudes: Vec::new(),
            };
            for numbers in contributions {
                let bytes = bytes(numbers);
                reduced
                    .add(Numbers::new(DType::F32, &bytes).unwrap())
                    .unwrap();
            }
            reduced
        };
        let check = |reduction, contributions: &[&[f32]], result: &[f32], n_elements| {
            let bytes = bytes(result);
            let numbers = Numbers::new(DType::F32, &bytes).unwrap();
            let found = reduced(reduction, contributions).difference(numbers, 0);
            assert_eq!(
                found.map_or(0, |found| found.n_elements),
                n_elements,
                "{result:?}"
            );
        };
        let many: &[&[f32]] = &[&[1e8, 1.0], &[1.0, 2.0], &[-1e8, 3.0]];
        // Small terms are lost or kept, depending on the order of additions.
        check(Reduction::Sum, many, &[0.0, 6.0], 0);
        check(Reduction::Sum, many, &[1.0, 6.0], 0);
        check(Reduction::Sum, many, &[1.0, 6.5], 1);
        check(Reduction::Mean, many, &[0.33, 2.0], 0);
        check(Reduction::Max, many, &[1e8, 3.0], 0);
        check(Reduction::Max, many, &[1e8, 2.0], 1);
        // Small numbers never sum to an infinity; large ones may.
        check(Reduction::Sum, &[&[1.0], &[1.0]], &[f32::INFINITY], 1);
        check(Reduction::Sum, &[&[3e38], &[3e38]], &[f32::INFINITY], 0);
    }
}
