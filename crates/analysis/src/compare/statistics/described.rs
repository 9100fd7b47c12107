//! The known numbers of a slot, from a table or from its elements, under common names.

use opscope_tensor::digest::hex;
use opscope_tensor::sequential::{sequential_md5, sequential_sha1, sequential_stats};

use super::number::Number;
use crate::compare::side::{LoadError, Slot};
use crate::compare::verdict::is_float_name;

/// The file that MindSpore's statistics are in.
const MINDSPORE_FILE: &str = "statistic.csv";

/// A statistic, whatever a table calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Max,
    Min,
    Mean,
    L2Norm,
    Count,
    /// Elements below zero, which MindSpore calls negative zeros.
    Negative,
    /// Elements above zero.
    Positive,
    Zero,
    NanCount,
    PositiveInfCount,
    NegativeInfCount,
}

/// How a NaN shows in extremes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// It is the extreme.
    Through,
    /// It is passed over, unless it is the first element.
    Passed,
}

/// A name in results, and the titles of columns in lower case.
const TITLES: [(Name, &str, &[&str]); 11] = [
    (Name::Max, "max", &["max value", "max"]),
    (Name::Min, "min", &["min value", "min"]),
    (Name::Mean, "mean", &["avg value", "avg", "mean"]),
    (
        Name::L2Norm,
        "l2_norm",
        &["l2norm value", "l2norm", "l2 norm"],
    ),
    (Name::Count, "count", &["count"]),
    (Name::Negative, "n_negative", &["negative zero count"]),
    (Name::Positive, "n_positive", &["positive zero count"]),
    (Name::Zero, "n_zero", &["zero count"]),
    (Name::NanCount, "n_nan", &["nan count"]),
    (
        Name::PositiveInfCount,
        "n_positive_inf",
        &["positive inf count"],
    ),
    (
        Name::NegativeInfCount,
        "n_negative_inf",
        &["negative inf count"],
    ),
];

/// Titles of digests.
const DIGESTS: [&str; 2] = ["md5", "sha1"];

impl Name {
    /// Those that are numbers with digits.
    pub(super) const REALS: [Name; 4] = [Name::Max, Name::Min, Name::Mean, Name::L2Norm];
    /// Those that count elements which a rounding may move.
    pub(super) const SHARES: [Name; 3] = [Name::Negative, Name::Positive, Name::Zero];

    /// The name in results.
    pub(super) fn text(self) -> &'static str {
        let known = TITLES.iter().find(|(name, ..)| *name == self);
        known.map_or("", |(_, text, _)| text)
    }

    pub(super) fn is_extreme(self) -> bool {
        matches!(self, Name::Max | Name::Min)
    }

    fn from_title(title: &str) -> Option<Name> {
        let title = title.trim().to_lowercase();
        let known = TITLES
            .iter()
            .find(|(.., titles)| titles.contains(&title.as_str()));
        known.map(|(name, ..)| *name)
    }

    fn is_count(self) -> bool {
        !Name::REALS.contains(&self)
    }
}

/// Everything known of a slot without comparing elements.
pub(super) struct Described {
    pub(super) family: Family,
    pub(super) numbers: Vec<(Name, Number)>,
    /// Kinds of digests, `md5` or `sha1`, with their digits.
    pub(super) digests: Vec<(&'static str, String)>,
    /// Name of the dtype that the digests are of.
    pub(super) dtype: String,
    /// Bytes of elements that were read.
    pub(super) n_bytes: u64,
}

impl Described {
    /// From the elements if there are any, otherwise from the table.
    pub(super) fn of(slot: &Slot) -> Result<Described, LoadError> {
        if slot.has_elements {
            Described::of_elements(slot)
        } else {
            Ok(Described::of_table(slot))
        }
    }

    pub(super) fn get(&self, name: Name) -> Option<Number> {
        let mut found = self.numbers.iter().filter(|(known, _)| *known == name);
        found.next().map(|(_, number)| *number)
    }

    fn of_elements(slot: &Slot) -> Result<Described, LoadError> {
        let loaded = slot.load(None)?;
        let view = loaded.view();
        let mut described = Described {
            family: Family::Through,
            numbers: vec![(Name::Count, Number::exact(view.shape.n_elements() as f64))],
            digests: Vec::new(),
            dtype: slot.dtype_name.clone(),
            n_bytes: view.bytes.len() as u64,
        };
        if let Ok(stats) = sequential_stats(view) {
            described.numbers.extend(
                [
                    (Name::Max, stats.max),
                    (Name::Min, stats.min),
                    (Name::Mean, stats.mean),
                    (Name::L2Norm, stats.l2),
                    (Name::Negative, stats.n_negative as f64),
                    (Name::Positive, stats.n_positive as f64),
                    (Name::Zero, stats.n_zero as f64),
                    (Name::NanCount, stats.n_nan as f64),
                    (Name::PositiveInfCount, stats.n_pos_inf as f64),
                    (Name::NegativeInfCount, stats.n_neg_inf as f64),
                ]
                .map(|(name, value)| (name, Number::exact(value))),
            );
        }
        // A file that holds other bytes than the tensor had, has another digest too.
        if slot.dtype == Some(view.dtype) {
            described.digests = vec![
                (DIGESTS[0], hex(&sequential_md5(view))),
                (DIGESTS[1], hex(&sequential_sha1(view))),
            ];
        }
        Ok(described)
    }

    fn of_table(slot: &Slot) -> Described {
        let is_mindspore = slot
            .path
            .file_name()
            .is_some_and(|name| name == MINDSPORE_FILE);
        let is_integer = !slot.dtype_name.is_empty() && !is_float_name(&slot.dtype_name);
        let mut described = Described {
            family: if is_mindspore {
                Family::Through
            } else {
                Family::Passed
            },
            numbers: Vec::new(),
            digests: Vec::new(),
            dtype: slot.dtype_name.clone(),
            n_bytes: 0,
        };
        for (title, text) in &slot.statistics {
            let Some(text) = text else {
                continue;
            };
            if let Some(name) = Name::from_title(title) {
                let is_exact = name.is_count() || (is_integer && name.is_extreme());
                let number = Number::printed(text.trim(), is_exact);
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
        let n = slot.shape.as_ref().and_then(|dims| super::n_elements(dims));
        if let (None, Some(n)) = (described.get(Name::Count), n) {
            described
                .numbers
                .push((Name::Count, Number::exact(n as f64)));
        }
        described
    }
}
