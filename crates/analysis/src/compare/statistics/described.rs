//! The known numbers of a slot, from a table or from its elements, under common names.

use opscope_store::file_format::debug_mode::{HASH_TITLE, NORM_TITLE, XOR_TITLE};
use opscope_store::tree::native::StepFile;
use opscope_tensor::digest::{hex, xxh3_128};
use opscope_tensor::sequential::{sequential_md5, sequential_sha1, sequential_stats};

use super::number::RoundedNumber;
use crate::compare::metric::TensorStatistic;
use crate::compare::side::{ExecutionSlot, LoadError};
use crate::compare::verdict::is_float_name;

/// The file that MindSpore's statistics are in.
const MINDSPORE_FILE: &str = "statistic.csv";

/// How a NaN shows in extremes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatisticFamily {
    /// It is the extreme.
    Through,
    /// It is passed over, unless it is the first element.
    Passed,
}

/// The titles of columns in lower case.
const TITLES: [(TensorStatistic, &[&str]); 11] = [
    (TensorStatistic::Max, &["max value", "max"]),
    (TensorStatistic::Min, &["min value", "min"]),
    (TensorStatistic::Mean, &["avg value", "avg", "mean"]),
    (
        TensorStatistic::L2Norm,
        &["l2norm value", "l2norm", "l2 norm"],
    ),
    (TensorStatistic::Count, &["count"]),
    (TensorStatistic::Negative, &["negative zero count"]),
    (TensorStatistic::Positive, &["positive zero count"]),
    (TensorStatistic::Zero, &["zero count"]),
    (TensorStatistic::NanCount, &["nan count"]),
    (TensorStatistic::PositiveInfCount, &["positive inf count"]),
    (TensorStatistic::NegativeInfCount, &["negative inf count"]),
];

/// Statistics that are numbers with digits.
pub(super) const REALS: [TensorStatistic; 4] = [
    TensorStatistic::Max,
    TensorStatistic::Min,
    TensorStatistic::Mean,
    TensorStatistic::L2Norm,
];

/// Farthest that sums of integers of a device may be from those of the host, as a part of the
/// largest magnitude; `docs/statistics.md`.
const DEVICE_SUM_ERROR: f64 = 1e-11;

/// Statistics that count elements which a rounding may move.
pub(super) const SHARES: [TensorStatistic; 3] = [
    TensorStatistic::Negative,
    TensorStatistic::Positive,
    TensorStatistic::Zero,
];

/// Titles of digests. The first three are computed of elements, too; the others are compared with
/// their like alone.
const DIGESTS: [&str; 8] = [
    "md5", "sha1", "xxh3", "crc32", "xor64", NORM_TITLE, XOR_TITLE, HASH_TITLE,
];

pub(super) fn is_extreme(statistic: TensorStatistic) -> bool {
    matches!(statistic, TensorStatistic::Max | TensorStatistic::Min)
}

fn statistic_of_title(title: &str) -> Option<TensorStatistic> {
    let title = title.trim().to_lowercase();
    let mut known = TITLES.iter();
    known
        .find(|(_, titles)| titles.contains(&title.as_str()))
        .map(|(statistic, _)| *statistic)
}

/// Everything known of a slot without comparing elements.
pub(super) struct DescribedSlot {
    pub(super) family: StatisticFamily,
    pub(super) numbers: Vec<(TensorStatistic, RoundedNumber)>,
    /// Kinds of digests, such as `md5`, with their digits.
    pub(super) digests: Vec<(&'static str, String)>,
    /// Name of the dtype that the digests are of.
    pub(super) dtype: String,
    /// Bytes of elements that were read.
    pub(super) n_bytes: u64,
}

impl DescribedSlot {
    /// From the elements if there are any, otherwise from the table.
    pub(super) fn describe(slot: &ExecutionSlot) -> Result<DescribedSlot, LoadError> {
        if slot.has_elements {
            DescribedSlot::of_elements(slot)
        } else {
            Ok(DescribedSlot::of_table(slot))
        }
    }

    pub(super) fn get(&self, name: TensorStatistic) -> Option<RoundedNumber> {
        let mut found = self.numbers.iter().filter(|(known, _)| *known == name);
        found.next().map(|(_, number)| *number)
    }

    /// Whether digests of the same bytes differ; none if both have none of the same kind.
    pub(super) fn digest_mismatch(&self, other: &DescribedSlot) -> Option<bool> {
        // A hash may be all that a log says of a result.
        if self.dtype != other.dtype || (self.dtype.is_empty() && !self.is_hashed_alone()) {
            return None;
        }
        let pairs = self.shared_digests(other);
        // Weak hashes can be the same of other elements, so that each of them counts.
        let differs = pairs.map(|(_, own, digest)| !own.eq_ignore_ascii_case(digest));
        differs.reduce(|any, differs| any || differs)
    }

    /// The distance of hashes that are norms, over the golden side's. It is infinite where one of
    /// them is no finite number, or the golden side's is 0.
    pub(super) fn digest_distance(&self, golden: &DescribedSlot) -> Option<f64> {
        self.digest_mismatch(golden)?;
        let mut pairs = self.shared_digests(golden);
        let (_, own, digest) = pairs.find(|(kind, ..)| *kind == NORM_TITLE)?;
        if own == digest {
            return Some(0.0);
        }
        let [own, golden]: [f64; 2] = [own.parse().ok()?, digest.parse().ok()?];
        let distance = (own - golden).abs() / golden.abs();
        Some(if distance.is_nan() {
            f64::INFINITY
        } else {
            distance
        })
    }

    fn is_hashed_alone(&self) -> bool {
        let of_logs = [NORM_TITLE, XOR_TITLE, HASH_TITLE];
        self.digests.iter().all(|(kind, _)| of_logs.contains(kind))
    }

    /// Kinds of digests that both have, with the texts of both.
    fn shared_digests<'a>(
        &'a self,
        other: &'a DescribedSlot,
    ) -> impl Iterator<Item = (&'static str, &'a str, &'a str)> {
        self.digests.iter().filter_map(|(kind, own)| {
            let (_, digest) = other.digests.iter().find(|(known, _)| known == kind)?;
            Some((*kind, own.as_str(), digest.as_str()))
        })
    }

    fn of_elements(slot: &ExecutionSlot) -> Result<DescribedSlot, LoadError> {
        let loaded = slot.load(None)?;
        let view = loaded.view();
        let mut described = DescribedSlot {
            family: StatisticFamily::Through,
            numbers: vec![(
                TensorStatistic::Count,
                RoundedNumber::exact(view.shape.n_elements() as f64),
            )],
            digests: Vec::new(),
            dtype: slot.dtype_name.to_string(),
            n_bytes: view.bytes.len() as u64,
        };
        if let Ok(stats) = sequential_stats(view) {
            described.numbers.extend(
                [
                    (TensorStatistic::Max, stats.max),
                    (TensorStatistic::Min, stats.min),
                    (TensorStatistic::Mean, stats.mean),
                    (TensorStatistic::L2Norm, stats.l2),
                    (TensorStatistic::Negative, stats.n_negative as f64),
                    (TensorStatistic::Positive, stats.n_positive as f64),
                    (TensorStatistic::Zero, stats.n_zero as f64),
                    (TensorStatistic::NanCount, stats.n_nan as f64),
                    (TensorStatistic::PositiveInfCount, stats.n_pos_inf as f64),
                    (TensorStatistic::NegativeInfCount, stats.n_neg_inf as f64),
                ]
                .map(|(name, value)| (name, RoundedNumber::exact(value))),
            );
        }
        // A file that holds other bytes than the tensor had, has another digest too.
        if slot.dtype == Some(view.dtype) {
            described.digests = vec![
                (DIGESTS[0], hex(&sequential_md5(view))),
                (DIGESTS[1], hex(&sequential_sha1(view))),
                (DIGESTS[2], hex(&xxh3_128(view.bytes))),
            ];
        }
        Ok(described)
    }

    /// Marks sums as computed on a device, which adds in another order than the host, if limits of
    /// integers are 0. Tensors that the host has read have a digest as well.
    fn note_device(&mut self) {
        let ends = [TensorStatistic::Max, TensorStatistic::Min]
            .map(|name| self.get(name).map(|number| number.value.abs()));
        let largest = ends.into_iter().flatten().fold(0.0, f64::max);
        for (name, number) in &mut self.numbers {
            if REALS.contains(name) && !is_extreme(*name) {
                let scale = number.value.abs().max(largest);
                *number = number.within(DEVICE_SUM_ERROR * scale);
            }
        }
    }

    pub(super) fn of_table(slot: &ExecutionSlot) -> DescribedSlot {
        let is_native = StepFile::parse(&slot.path).is_some();
        let mut name = slot.path.file_name().into_iter();
        let is_through = is_native || name.any(|name| name == MINDSPORE_FILE);
        let is_integer = !slot.dtype_name.is_empty() && !is_float_name(&slot.dtype_name);
        let mut described = DescribedSlot {
            family: if is_through {
                StatisticFamily::Through
            } else {
                StatisticFamily::Passed
            },
            numbers: Vec::new(),
            digests: Vec::new(),
            dtype: slot.dtype_name.to_string(),
            n_bytes: 0,
        };
        for (title, text) in slot.statistics.iter() {
            let Some(text) = text else {
                continue;
            };
            if let Some(name) = statistic_of_title(title) {
                let is_exact = !REALS.contains(&name) || (is_integer && is_extreme(name));
                let number = if is_native {
                    // Printed with as many digits as bring back the same number.
                    text.parse().ok().map(RoundedNumber::exact)
                } else {
                    RoundedNumber::printed(text.trim(), is_exact)
                };
                described
                    .numbers
                    .extend(number.map(|number| (name, number)));
            } else if let Some(kind) = DIGESTS
                .iter()
                .find(|kind| title.trim().eq_ignore_ascii_case(kind))
            {
                described.digests.push((kind, text.trim().to_owned()));
            }
        }
        if is_native && is_integer && described.digests.is_empty() {
            described.note_device();
        }
        // Shares and root mean squares need a count, and a table need not have one.
        let n = slot.shape.as_ref().and_then(|dims| super::n_elements(dims));
        if let (None, Some(n)) = (described.get(TensorStatistic::Count), n) {
            described
                .numbers
                .push((TensorStatistic::Count, RoundedNumber::exact(n as f64)));
        }
        described
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(dtype: &str, digests: &[(&'static str, &str)]) -> DescribedSlot {
        let digests = digests.iter();
        DescribedSlot {
            family: StatisticFamily::Passed,
            numbers: Vec::new(),
            digests: digests
                .map(|(kind, text)| (*kind, (*text).to_owned()))
                .collect(),
            dtype: dtype.to_owned(),
            n_bytes: 0,
        }
    }

    #[test]
    fn sums_of_a_device_are_near() {
        let number = |name, value| (name, RoundedNumber::exact(value));
        let described = |norm: f64| {
            let mut slot = slot("int64", &[]);
            slot.numbers = vec![
                number(TensorStatistic::Max, 1e9),
                number(TensorStatistic::Mean, 0.5),
                number(TensorStatistic::L2Norm, norm),
            ];
            slot
        };
        let distance = |a: &DescribedSlot, b: &DescribedSlot, name| {
            let numbers = a.get(name).zip(b.get(name));
            numbers.map(|(a, b)| a.distance(b) > 0.0)
        };
        let (host, mut device) = (described(3e9), described(3e9 * (1.0 + 1e-15)));
        let norm = TensorStatistic::L2Norm;
        assert_eq!(distance(&host, &device, norm), Some(true));
        device.note_device();
        assert_eq!(distance(&host, &device, norm), Some(false));
        let mut other = described(3e9 + 1.0);
        other.note_device();
        assert_eq!(distance(&host, &other, norm), Some(true));
        // Extremes are those of the host.
        let mut other = described(3e9);
        other.numbers[0] = number(TensorStatistic::Max, 1e9 - 1.0);
        other.note_device();
        assert_eq!(distance(&host, &other, TensorStatistic::Max), Some(true));
    }

    #[test]
    fn digests_are_compared_with_their_like() {
        let norm = |text| slot("float32", &[(NORM_TITLE, text)]);
        let both = |xor| slot("float32", &[(NORM_TITLE, "2.0"), (XOR_TITLE, xor)]);
        let unseen = |text| slot("", &[(NORM_TITLE, text)]);
        let cases = [
            (norm("2.0"), norm("2.0"), Some(false), Some(0.0)),
            (norm("3.0"), norm("2.0"), Some(true), Some(0.5)),
            (norm("nan"), norm("nan"), Some(false), Some(0.0)),
            (norm("nan"), norm("2.0"), Some(true), Some(f64::INFINITY)),
            (norm("1.0"), norm("0.0"), Some(true), Some(f64::INFINITY)),
            // A norm can be the same of other elements.
            (both("7"), both("8"), Some(true), Some(0.0)),
            (both("7"), norm("2.0"), Some(false), Some(0.0)),
            (unseen("1.0"), unseen("1.0"), Some(false), Some(0.0)),
            (unseen("1.0"), norm("1.0"), None, None),
            (norm("1.0"), slot("float32", &[("md5", "1.0")]), None, None),
            (
                slot("", &[("md5", "a")]),
                slot("", &[("md5", "a")]),
                None,
                None,
            ),
            (
                slot("int8", &[("xor64", "0xA")]),
                slot("int8", &[("xor64", "0xa")]),
                Some(false),
                None,
            ),
        ];
        for (target, golden, differs, distance) in cases {
            let at = format!("{:?} {:?}", target.digests, golden.digests);
            assert_eq!(target.digest_mismatch(&golden), differs, "{at}");
            assert_eq!(target.digest_distance(&golden), distance, "{at}");
        }
    }
}
