//! Warns about valid settings without effect.
//!
//! Settings that the framework itself warns about are reported where they are parsed.

use opscope_store::tree::mindspore::TreeTarget;

use super::dump::FileFormat;
use super::lower::is_graph;
use super::section::{COMMON, ConfigSection, E2E};
use super::settings::MindSporeSettings;
use crate::dialect::findings::IssueCollector;
use crate::json::{JsonNode, JsonValue};

/// Warns about settings without effect on this target, or with the other settings.
pub(super) fn warn(
    root: &JsonNode,
    target: TreeTarget,
    settings: &MindSporeSettings,
    findings: &mut IssueCollector,
) {
    if let Some(section) = ConfigSection::find(root, COMMON) {
        warn_common(&section, target, settings, findings);
    }
    if let Some(section) = ConfigSection::find(root, E2E) {
        warn_e2e(&section, target, settings, findings);
    }
}

fn warn_common(
    section: &ConfigSection<'_>,
    target: TreeTarget,
    settings: &MindSporeSettings,
    findings: &mut IssueCollector,
) {
    let mut warn = |name, message: &str| {
        if let Some(item) = section.item(name) {
            findings.warn(item.warning(message));
        }
    };
    let kernels = section.item("kernels");
    let has_kernels = kernels.is_some_and(
        |item| matches!(&item.node.value, JsonValue::Array(entries) if !entries.is_empty()),
    );
    // The list is required in every file, so an empty one needs no warning.
    if has_kernels && settings.dump_mode != 1 {
        warn("kernels", "it has no effect: `dump_mode` is not 1");
    }
    let has_statistics = settings.saved_data.has_statistics();
    if is_graph(target) && has_statistics && settings.graph_file_format == FileFormat::Bin {
        let message = "`bin` has no effect: statistics go with npy files";
        warn("file_format", message);
    }
    // MindSpore detects overflows on Ascend and on a GPU only.
    if settings.overflow_number > 0 && target == TreeTarget::Cpu {
        let message = "it has no effect: on a CPU every operator is dumped";
        warn("overflow_number", message);
    }
}

fn warn_e2e(
    section: &ConfigSection<'_>,
    target: TreeTarget,
    settings: &MindSporeSettings,
    findings: &mut IssueCollector,
) {
    let is_by_kernels = target == TreeTarget::AscendKernels;
    let mut warn = |name, message: &str| {
        if let Some(item) = section.item(name) {
            findings.warn(item.warning(message));
        }
    };
    let elsewhere =
        "it has no effect: it applies to Ascend kernel by kernel (`ascend-o0`, `ascend-o1`)";
    if !settings.trans_flag && !is_by_kernels {
        warn("trans_flag", elsewhere);
    }
    if settings.saves_kernel_args && !is_by_kernels {
        warn("save_kernel_args", elsewhere);
    }
    if settings.saves_kernel_args && is_by_kernels && !settings.is_sync {
        warn(
            "save_kernel_args",
            "it has no effect unless `enable` is true",
        );
    }
    if settings.sample_mode == 1 && !is_by_kernels {
        warn("sample_mode", elsewhere);
    }
    if !settings.is_stat_precise && !settings.is_stat_on_device {
        let message = "it has no effect: the host computes the statistics, if any are saved";
        warn("device_stat_precision_mode", message);
    }
}
