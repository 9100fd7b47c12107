//! Lowers settings to a dump.

use opscope_capture::{FailureDetail, Purpose, SlotSides};
use opscope_store::tree::mindspore::TreeTarget;

use super::dump::{
    DevicePrecision, DumpedKernels, FileFormat, MindSporeDumpPlan, RuleKind, SavedParts,
};
use super::iteration;
use super::settings::{DeviceBackend, FAILURES, MindSporeSettings, OVERFLOW};
use crate::dialect::findings::{ConfigRefusal, IssueCollector};
use crate::text_position::TextPosition;
use crate::{ConfigIssue, Severity};

/// The dump that the settings request, if any.
pub(super) fn dump(
    text: &str,
    target: TreeTarget,
    settings: &MindSporeSettings,
    findings: &mut IssueCollector,
) -> Result<Option<MindSporeDumpPlan>, ConfigRefusal> {
    if !has_dump(target, settings, findings)? {
        return Ok(None);
    }
    let is_graph = is_graph(target);
    let purpose = purpose(target, settings, findings);
    let saved = settings.saved_data;
    // Only the dump of kernels samples; graphs and other devices write whole tensors.
    let is_sampled = settings.sample_mode == 1 && target == TreeTarget::AscendKernels;
    // Zero means no limit in MindSpore.
    let is_limited = settings.overflow_number > 0 && purpose == Purpose::Overflow;
    Ok(Some(MindSporeDumpPlan {
        target,
        path: settings.path.clone().into(),
        net_name: settings.net_name.clone(),
        iteration: iteration::steps(&settings.iteration),
        initial_iteration: settings.initial_iteration.into(),
        sides: match settings.input_output {
            1 => SlotSides::Inputs,
            2 => SlotSides::Outputs,
            _ => SlotSides::Both,
        },
        purpose,
        kernels: match settings.dump_mode {
            1 if !settings.kernels.is_empty() => DumpedKernels::Listed(settings.kernels.clone()),
            2 => DumpedKernels::BySetDump,
            _ => DumpedKernels::Every,
        },
        saved: SavedParts {
            tensors: saved.has_tensors(),
            statistics: saved.has_statistics().then(|| settings.categories.clone()),
        },
        overflow_number: is_limited.then(|| settings.overflow_number.into()),
        file_format: if is_graph && !saved.has_statistics() {
            settings.graph_file_format
        } else {
            FileFormat::Npy
        },
        device_precision: device_precision(target, settings),
        // Only Ascend has special layouts. Elsewhere tensors already have the host's layout.
        trans_flag: settings.trans_flag
            || DeviceBackend::for_target(target) != DeviceBackend::Ascend,
        n_samples: is_sampled.then(|| settings.sample_num.into()),
        saves_kernel_args: settings.saves_kernel_args
            // MindSpore saves them only if it waits for each operator.
            && settings.is_sync
            && target == TreeTarget::AscendKernels,
        devices: settings.devices.clone(),
        text: text.to_owned(),
    }))
}

/// Devices compute statistics only kernel by kernel, and only if nothing else is saved.
fn device_precision(target: TreeTarget, settings: &MindSporeSettings) -> Option<DevicePrecision> {
    let precision = if settings.is_stat_precise {
        DevicePrecision::High
    } else {
        DevicePrecision::Low
    };
    let is_on_device = settings.is_stat_on_device && target == TreeTarget::AscendKernels;
    is_on_device.then_some(precision)
}

/// Whether whole graphs are dumped.
pub(super) fn is_graph(target: TreeTarget) -> bool {
    matches!(target, TreeTarget::AscendGraph | TreeTarget::GraphEngine)
}

/// Whether this target and device dump anything.
fn has_dump(
    target: TreeTarget,
    settings: &MindSporeSettings,
    findings: &mut IssueCollector,
) -> Result<bool, ConfigRefusal> {
    if target == TreeTarget::GraphEngine && settings.op_debug_mode == FAILURES {
        let message = "the graph engine's dump has no `op_debug_mode` 4";
        return Err(findings.refuse(of_file(Severity::Error, message)));
    }
    let message = if !settings.is_e2e_enabled && !settings.is_async_enabled {
        "nothing is dumped on this device"
    } else if target == TreeTarget::AscendKernels && settings.is_async_enabled {
        // Without the second section MindSpore uses the graph's dump, and a run kernel by kernel
        // has no graph.
        "nothing is dumped: without `e2e_dump_settings` Ascend dumps whole graphs only"
    } else {
        let has_type = settings
            .kernels
            .iter()
            .any(|rule| rule.kind == RuleKind::Type);
        if is_graph(target) && has_type {
            let message = "dumps of whole graphs have no types: entries of `kernels` without `/` are \
                           compared with whole names";
            findings.warn(of_file(Severity::Warning, message));
        }
        return Ok(true);
    };
    findings.warn(of_file(Severity::Warning, message));
    Ok(false)
}

fn purpose(
    target: TreeTarget,
    settings: &MindSporeSettings,
    findings: &mut IssueCollector,
) -> Purpose {
    match settings.op_debug_mode {
        OVERFLOW if target == TreeTarget::Cpu => {
            let message =
                "on a CPU `op_debug_mode` 3 dumps all operators, not only those that overflow";
            findings.warn(of_file(Severity::Warning, message));
            Purpose::Values
        }
        OVERFLOW => Purpose::Overflow,
        FAILURES => Purpose::Failures(FailureDetail::Brief),
        _ => Purpose::Values,
    }
}

fn of_file(severity: Severity, message: &str) -> ConfigIssue {
    ConfigIssue::of_file(severity, TextPosition { line: 1, column: 1 }, message)
}
