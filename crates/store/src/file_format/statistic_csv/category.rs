//! Categories of statistics.

/// One column of statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StatisticCategory {
    /// The largest element.
    Max,
    /// The smallest element.
    Min,
    /// The arithmetic mean.
    Average,
    /// Number of elements.
    Count,
    /// Number of elements below zero, whatever the name says.
    NegativeZeroCount,
    /// Number of elements above zero, whatever the name says.
    PositiveZeroCount,
    /// Number of NaN elements.
    NanCount,
    /// Number of elements that are `-inf`.
    NegativeInfCount,
    /// Number of elements that are `+inf`.
    PositiveInfCount,
    /// Number of elements equal to zero.
    ZeroCount,
    /// The square root of the sum of squares.
    L2Norm,
    /// MD5 of the bytes.
    Md5,
    /// SHA-1 of the bytes.
    Sha1,
}

/// Name in a configuration, column, whether devices can compute it.
const TABLE: &[(StatisticCategory, &str, &str, bool)] = &[
    (StatisticCategory::Max, "max", "Max Value", true),
    (StatisticCategory::Min, "min", "Min Value", true),
    (StatisticCategory::Average, "avg", "Avg Value", true),
    (StatisticCategory::Count, "count", "Count", false),
    (
        StatisticCategory::NegativeZeroCount,
        "negative zero count",
        "Negative Zero Count",
        false,
    ),
    (
        StatisticCategory::PositiveZeroCount,
        "positive zero count",
        "Positive Zero Count",
        false,
    ),
    (StatisticCategory::NanCount, "nan count", "NaN Count", false),
    (
        StatisticCategory::NegativeInfCount,
        "negative inf count",
        "Negative Inf Count",
        false,
    ),
    (
        StatisticCategory::PositiveInfCount,
        "positive inf count",
        "Positive Inf Count",
        false,
    ),
    (
        StatisticCategory::ZeroCount,
        "zero count",
        "Zero Count",
        false,
    ),
    (StatisticCategory::L2Norm, "l2norm", "L2Norm Value", true),
    (StatisticCategory::Md5, "md5", "MD5", false),
    // MindSpore means SHA-1 where a configuration names no algorithm.
    (StatisticCategory::Sha1, "hash", "SHA1", false),
];
/// Other names for the same.
const ALIASES: &[(&str, StatisticCategory)] = &[
    ("hash:md5", StatisticCategory::Md5),
    ("hash:sha1", StatisticCategory::Sha1),
];

impl StatisticCategory {
    /// The default categories.
    pub const DEFAULT: [StatisticCategory; 3] = [
        StatisticCategory::Max,
        StatisticCategory::Min,
        StatisticCategory::L2Norm,
    ];

    /// The category of a name, in its exact letters.
    pub fn from_name(name: &str) -> Option<StatisticCategory> {
        let known = TABLE.iter().find(|(_, known, ..)| *known == name);
        known.map(|(category, ..)| *category).or_else(|| {
            ALIASES
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, category)| *category)
        })
    }

    /// Its name in a configuration, the first where there are several.
    pub fn name(self) -> &'static str {
        let known = TABLE.iter().find(|(category, ..)| *category == self);
        known.map_or("", |(_, name, ..)| name)
    }

    /// The category of a column.
    pub fn from_column(column: &str) -> Option<StatisticCategory> {
        let known = TABLE.iter().find(|(_, _, known, _)| *known == column)?;
        Some(known.0)
    }

    /// The column's title.
    pub fn column(self) -> &'static str {
        let known = TABLE.iter().find(|(category, ..)| *category == self);
        known.map_or("", |(_, _, column, _)| column)
    }

    /// Whether devices can compute it.
    pub fn is_on_device(self) -> bool {
        TABLE
            .iter()
            .any(|(category, _, _, is)| *category == self && *is)
    }
}
