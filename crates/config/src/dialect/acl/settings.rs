//! Parses the words of a configuration.

use opscope_capture::{FailureDetail, SlotSides};
use opscope_store::file_format::stats_csv::StatsColumn;

use super::object::{ConfigRefusal, IssueCollector};
use super::raw::{RawDump, RawText};

/// The settings with a fixed set of values, defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclSettings {
    /// `dump_mode`: the sides. It affects dumps of values only.
    pub sides: SlotSides,
    /// `dump_data`: whether rows of statistics are written instead of tensors.
    pub is_statistics: bool,
    /// `dump_stats`: the statistics as listed; `None` if absent.
    pub columns: Option<Vec<StatsColumn>>,
    /// `dump_op_switch`: whether operators outside a model are dumped.
    pub is_op_switch_on: bool,
    /// `dump_level`: the kind of files.
    pub level: DumpLevel,
    /// `dump_debug`: whether overflows are dumped.
    pub is_debug_on: bool,
    /// `dump_scene`.
    pub scene: Option<DumpScene>,
    /// `dump_kernel_data`: the kernels' output, as listed; `None` if absent.
    pub kernel_data: Option<Vec<String>>,
}

/// Files of operators, or of their kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpLevel {
    /// Operators.
    Operators,
    /// Kernels, which models do not run.
    Kernels,
    /// Both.
    All,
}

/// A dump other than a plain dump of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpScene {
    /// Of operators that other operators may overwrite.
    Watcher,
    /// A dump of failing operators.
    Failures(FailureDetail),
}

/// The words of one key, each with its meaning.
pub(super) type Words<T> = &'static [(&'static str, T)];

const MODES: Words<SlotSides> = &[
    ("input", SlotSides::Inputs),
    ("output", SlotSides::Outputs),
    ("all", SlotSides::Both),
];
const DATA: Words<bool> = &[("tensor", false), ("stats", true)];
const SWITCH: Words<bool> = &[("off", false), ("on", true)];
const LEVELS: Words<DumpLevel> = &[
    ("op", DumpLevel::Operators),
    ("kernel", DumpLevel::Kernels),
    ("all", DumpLevel::All),
];
const SCENES: Words<DumpScene> = &[
    ("watcher", DumpScene::Watcher),
    ("lite_exception", DumpScene::Failures(FailureDetail::Brief)),
    (
        "aic_err_brief_dump",
        DumpScene::Failures(FailureDetail::Brief),
    ),
    (
        "aic_err_norm_dump",
        DumpScene::Failures(FailureDetail::Normal),
    ),
    (
        "aic_err_detail_dump",
        DumpScene::Failures(FailureDetail::Full),
    ),
];
const KERNEL_DATA: Words<()> = &[
    ("all", ()),
    ("printf", ()),
    ("tensor", ()),
    ("assert", ()),
    ("timestamp", ()),
];
const COLUMNS: Words<StatsColumn> = &[
    ("Max", StatsColumn::Max),
    ("Min", StatsColumn::Min),
    ("Avg", StatsColumn::Average),
    ("Nan", StatsColumn::NanCount),
    ("Negative Inf", StatsColumn::NegativeInfCount),
    ("Positive Inf", StatsColumn::PositiveInfCount),
    ("L2norm", StatsColumn::L2Norm),
];

impl AclSettings {
    /// Checks the words, in the vendor's order.
    pub(super) fn read(
        raw: &RawDump<'_>,
        findings: &mut IssueCollector,
    ) -> Result<AclSettings, ConfigRefusal> {
        Ok(AclSettings {
            sides: word(&raw.mode, MODES, findings)?.unwrap_or(SlotSides::Outputs),
            is_statistics: word(&raw.data, DATA, findings)?.unwrap_or(false),
            is_op_switch_on: word(&raw.op_switch, SWITCH, findings)?.unwrap_or(false),
            // The documented default, which includes files of operators.
            level: word(&raw.level, LEVELS, findings)?.unwrap_or(DumpLevel::All),
            is_debug_on: word(&raw.debug, SWITCH, findings)?.unwrap_or(false),
            scene: word(&raw.scene, SCENES, findings)?,
            kernel_data: match &raw.kernel_data {
                Some(text) => Some(kernel_data(text, findings)?),
                None => None,
            },
            columns: match &raw.stats {
                Some(list) => Some(
                    list.members
                        .iter()
                        .map(|text| one_of(text, text.value, COLUMNS, findings))
                        .collect::<Result<_, _>>()?,
                ),
                None => None,
            },
        })
    }
}

/// The failures for a scene in the environment, which does not accept the scenes of older versions.
pub(super) fn environment_scene(scene: &str) -> Option<FailureDetail> {
    let (_, found) = SCENES.iter().find(|(word, _)| *word == scene)?;
    match found {
        // `lite_exception` is the word of older versions, which the variable does not accept.
        DumpScene::Failures(detail) if scene.starts_with("aic_err_") => Some(*detail),
        _ => None,
    }
}

/// The word for a column in `dump_stats`.
pub(super) fn column_word(column: StatsColumn) -> &'static str {
    let found = COLUMNS.iter().find(|(_, known)| *known == column);
    found.map_or("", |(word, _)| word)
}

fn kernel_data(
    text: &RawText<'_>,
    findings: &mut IssueCollector,
) -> Result<Vec<String>, ConfigRefusal> {
    text.value
        .split(',')
        .map(|part| {
            one_of(text, part, KERNEL_DATA, findings)?;
            Ok(part.to_owned())
        })
        .collect()
}

fn word<T: Copy>(
    text: &Option<RawText<'_>>,
    words: Words<T>,
    findings: &mut IssueCollector,
) -> Result<Option<T>, ConfigRefusal> {
    match text {
        None => Ok(None),
        Some(text) => one_of(text, text.value, words, findings).map(Some),
    }
}

/// The meaning of `value`, which is `text` or a part of it.
fn one_of<T: Copy>(
    text: &RawText<'_>,
    value: &str,
    words: Words<T>,
    findings: &mut IssueCollector,
) -> Result<T, ConfigRefusal> {
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == value) {
        return Ok(*meaning);
    }
    let allowed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let issue = if value.is_empty() {
        text.at.empty(&allowed.join("/"))
    } else {
        text.at.unknown_word(value, &allowed)
    };
    Err(findings.refuse(issue))
}
