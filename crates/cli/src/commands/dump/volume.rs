//! The content that a run writes: tensors, statistics or both, for everything or for tensors that
//! match rules.

use opscope_capture::{SelectedOperators, TensorRule, TensorRules};
use opscope_config::dialect::acl::AclContent;
use opscope_dump::{DumpForm, MindSporeOptions, NativeContent, NativeOptions};
use opscope_engine::LoadedModel;
use opscope_store::file_format::statistic_csv::StatisticCategory;
use opscope_store::file_format::stats_csv::StatsColumns;
use opscope_store::record::ModelId;

use crate::console::report;
use crate::exit::{CommandFailure, CommandResult, USAGE};

/// Options about the content to write.
#[derive(clap::Args)]
pub(crate) struct VolumeArguments {
    /// Content to write for each selected operator [default: from the configuration; with `--out`,
    /// tensors]
    #[arg(
        long,
        value_enum,
        value_name = "CONTENT",
        conflicts_with = "stats",
        help_heading = "Volume"
    )]
    content: Option<ContentKind>,
    /// Write statistics of everything, but only matching tensors: `name:NAME`, `type:TYPE`,
    /// `regex:PATTERN` (the operator), `slot:NAME/output.0`, `non-finite` (NaN or an infinity) or
    /// `above:1e4` (a larger magnitude, or NaN). May be repeated: one match is enough
    #[arg(
        long = "tensors",
        value_name = "RULE",
        conflicts_with = "stats",
        help_heading = "Volume"
    )]
    rules: Vec<TensorRule>,
    /// Run the model and write nothing: report how many files and bytes a dump would write, and
    /// whether they fit on the disk. Inputs are random by default
    #[arg(long, conflicts_with = "stats", help_heading = "Volume")]
    pub(super) dry_run: bool,
}

/// Content to write of a selected operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ContentKind {
    /// Tensors
    Tensors,
    /// Tables of statistics
    Statistics,
    /// Both
    Both,
}

impl VolumeArguments {
    /// The rules that select tensors.
    pub(super) fn rules(&self) -> TensorRules {
        TensorRules::new(self.rules.clone())
    }

    /// Refuses contradictory options, and options about files if none are written.
    pub(super) fn check(&self, has_place: bool) -> CommandResult {
        let is_both = matches!(self.content, None | Some(ContentKind::Both));
        if !self.rules.is_empty() && !is_both {
            let message = "`--tensors` selects tensors to write in addition to statistics";
            let hint = "omit `--content`, or pass `--content both`";
            return Err(CommandFailure::message(USAGE, message).with_hint(hint));
        }
        let is_used = self.content.is_some() || !self.rules.is_empty() || self.dry_run;
        if is_used && !has_place {
            let message =
                "`--content`, `--tensors` and `--dry-run` apply to files, and none are written";
            let hint = "pass `--out DIR` or `--config FILE`";
            return Err(CommandFailure::message(USAGE, message).with_hint(hint));
        }
        Ok(())
    }

    /// Returns the content that the options request, if any.
    fn kind(&self) -> Option<ContentKind> {
        // Rules select tensors in addition to statistics, so both are written.
        let of_rules = (!self.rules.is_empty()).then_some(ContentKind::Both);
        self.content.or(of_rules)
    }

    /// Applies the requested content to a form.
    pub(super) fn apply(&self, form: DumpForm) -> DumpForm {
        let Some(kind) = self.kind() else {
            return form;
        };
        match form {
            DumpForm::Acl { places, content } => DumpForm::Acl {
                places,
                content: kind.of_acl(content),
            },
            DumpForm::MindSpore(options) => DumpForm::MindSpore(kind.of_mindspore(options)),
            DumpForm::Native(options) => DumpForm::Native(NativeOptions {
                content: kind.of_native(),
                ..options
            }),
        }
    }
}

impl ContentKind {
    fn of_native(self) -> NativeContent {
        match self {
            ContentKind::Tensors => NativeContent::Tensors,
            ContentKind::Statistics => NativeContent::Statistics,
            ContentKind::Both => NativeContent::Both,
        }
    }

    /// Keeps the configuration's columns.
    fn of_acl(self, configured: AclContent) -> AclContent {
        let columns = match configured {
            AclContent::Tensors | AclContent::StepTable => StatsColumns::Plain,
            AclContent::Statistics(columns) | AclContent::Both(columns) => columns,
        };
        match self {
            ContentKind::Tensors => AclContent::Tensors,
            ContentKind::Statistics => AclContent::Statistics(columns),
            ContentKind::Both => AclContent::Both(columns),
        }
    }

    /// As in a configuration, statistics exclude files of whole operators, and with tensors the
    /// host computes them.
    fn of_mindspore(self, configured: MindSporeOptions) -> MindSporeOptions {
        let has_tensors = self != ContentKind::Statistics;
        let has_statistics = self != ContentKind::Tensors;
        let device_statistics = configured.device_statistics.filter(|_| !has_tensors);
        let columns = configured
            .statistics
            .unwrap_or_else(|| StatisticCategory::DEFAULT.to_vec());
        MindSporeOptions {
            has_tensors,
            statistics: has_statistics.then_some(columns),
            device_statistics,
            is_bin: configured.is_bin && !has_statistics,
            ..configured
        }
    }
}

/// Warns of rules that match nothing selected. A rule for separately run operators may refer to the
/// others.
pub(super) fn warn_unused(
    rules: &TensorRules,
    selected: &SelectedOperators,
    model: &dyn LoadedModel,
    id: &ModelId,
) {
    if id.load.is_none() {
        return;
    }
    for rule in rules.unused(selected, model.operators()) {
        report!("opscope: warning: `--tensors {rule}` matches nothing that is selected");
    }
}
