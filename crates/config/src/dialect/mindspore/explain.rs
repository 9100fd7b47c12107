//! Explains a configuration in plain words.

use opscope_capture::{Purpose, SlotSides};
use opscope_store::file_format::statistic_csv::{COMMON_COLUMNS, StatisticCategory};
use opscope_store::tree::mindspore::TreeTarget;

use super::config::MindSporeConfig;
use super::dump::{DevicePrecision, DumpedKernels, FileFormat, MindSporeDumpPlan, RuleKind};
use crate::dialect::explanation::{Explanation, list, list_ranges};
use crate::dialect::findings::shown;

/// Describes the dump: its contents, form and directory. Settings without effect are among the
/// configuration's issues.
pub fn explain(config: &MindSporeConfig) -> Explanation {
    let Some(dump) = &config.dump else {
        return Explanation {
            summary: "Nothing is dumped.".to_owned(),
            rows: Vec::new(),
        };
    };
    let mut rows = vec![("target", target(dump.target).to_owned())];
    kernels(dump, &mut rows);
    rows.push(("sides", sides(dump).to_owned()));
    let numbered = match dump.initial_iteration {
        0 => "they count from 0".to_owned(),
        first => format!("they count from {first}"),
    };
    rows.push((
        "iterations",
        match dump.iteration.ranges() {
            None => format!("every one ({numbered})"),
            Some(ranges) => format!("{} ({numbered})", list_ranges(ranges)),
        },
    ));
    if let Some(n) = dump.overflow_number {
        rows.push(("at most", format!("{n} operators that overflow")));
    }
    form(dump, &mut rows);
    if dump.target != TreeTarget::Cpu {
        let devices: Vec<String> = dump.devices.iter().map(u32::to_string).collect();
        rows.push(("devices", list(&devices)));
    }
    rows.push(("files", place(dump)));
    Explanation {
        summary: summary(dump).to_owned(),
        rows,
    }
}

fn summary(dump: &MindSporeDumpPlan) -> &'static str {
    match (dump.purpose, dump.target) {
        (Purpose::Overflow | Purpose::NonFinite, _) => {
            "Operators whose arithmetic overflows are dumped."
        }
        // Neither of these devices reports failing operators.
        (Purpose::Failures(_), TreeTarget::Cpu | TreeTarget::Gpu) => {
            "Only parameters are dumped, after each iteration."
        }
        (Purpose::Failures(_), _) => "Inputs of operators that fail are dumped.",
        (Purpose::Values | Purpose::Watch, _) => "Operators' inputs and outputs are dumped.",
    }
}

fn target(target: TreeTarget) -> &'static str {
    match target {
        TreeTarget::Cpu => "a CPU",
        TreeTarget::Gpu => "a GPU",
        TreeTarget::AscendKernels => "Ascend, kernel by kernel (O0, O1)",
        TreeTarget::AscendGraph => "Ascend, whole graphs (O2)",
        TreeTarget::GraphEngine => "Ascend, by the graph engine's own dump",
    }
}

fn kernels(dump: &MindSporeDumpPlan, rows: &mut Vec<(&'static str, String)>) {
    let rules = match &dump.kernels {
        DumpedKernels::Every => return rows.push(("operators", "every operator".to_owned())),
        DumpedKernels::BySetDump => {
            return rows.push(("operators", "those that the model marks".to_owned()));
        }
        DumpedKernels::Listed(rules) => rules,
    };
    // Dumps of whole graphs have no types, and search names for regular expressions.
    let (matches, contains) = if dump.target.has_ranks() {
        ("whole name matches", "type contains")
    } else {
        ("name has a part that matches", "name is")
    };
    for (kind, subject) in [
        (RuleKind::Regex, matches),
        (RuleKind::Name, "name is"),
        (RuleKind::Type, contains),
    ] {
        let rules = rules.iter().filter(|rule| rule.kind == kind);
        // Backslashes in a rule are already doubled.
        let patterns: Vec<String> = rules
            .map(|rule| format!("`{}`", shown(rule.pattern()).replace(r"\\", r"\")))
            .collect();
        if !patterns.is_empty() {
            rows.push(("operators", format!("{subject} {}", list(&patterns))));
        }
    }
}

fn sides(dump: &MindSporeDumpPlan) -> &'static str {
    match (dump.purpose, dump.sides) {
        (Purpose::Failures(_), SlotSides::Outputs) => {
            "none: only inputs of failing operators are dumped"
        }
        (Purpose::Failures(_), _) | (_, SlotSides::Inputs) => "inputs",
        (_, SlotSides::Outputs) => "outputs",
        (_, SlotSides::Both) => "inputs and outputs",
    }
}

fn form(dump: &MindSporeDumpPlan, rows: &mut Vec<(&'static str, String)>) {
    if dump.saved.tensors {
        let what = match dump.n_samples {
            Some(n) => format!("the first {n} elements of each tensor"),
            None => "whole tensors".to_owned(),
        };
        let files = match dump.file_format {
            FileFormat::Npy => "one npy file for each tensor",
            FileFormat::Bin => "one file in CANN's format for each operator",
        };
        let layout = if dump.trans_flag || dump.target != TreeTarget::AscendKernels {
            ""
        } else {
            ", as the device has them"
        };
        rows.push(("form", format!("{what}{layout}, {files}")));
    }
    if let Some(categories) = &dump.saved.statistics {
        let names = categories
            .iter()
            .map(|category| StatisticCategory::name(*category));
        let names: Vec<String> = names.map(str::to_owned).collect();
        let n = COMMON_COLUMNS.len();
        let text = format!(
            "statistics in `statistic.csv`: {n} columns and {}{}",
            list(&names),
            by_device(dump)
        );
        rows.push(("form", text));
    }
    if dump.saves_kernel_args {
        rows.push((
            "form",
            "arguments of operators, one JSON file each".to_owned(),
        ));
    }
}

fn by_device(dump: &MindSporeDumpPlan) -> &'static str {
    match dump.device_precision {
        None => "",
        Some(DevicePrecision::High) => ", as a device computes them, means and norms in float32",
        Some(DevicePrecision::Low) => {
            ", as a device computes them, all in the types of the tensors"
        }
    }
}

fn place(dump: &MindSporeDumpPlan) -> String {
    let path = dump.path.to_string_lossy();
    // The configured path may end with slashes, which would be doubled.
    let path = path.trim_end_matches('/');
    let run = "{time}/{device_id}/{model_name}/{model_id}/{iteration}";
    match dump.target {
        TreeTarget::Cpu | TreeTarget::Gpu | TreeTarget::AscendKernels => {
            let net_name = &dump.net_name;
            format!("{path}/rank_{{rank}}/{net_name}/{{graph_id}}/{{iteration}}")
        }
        TreeTarget::AscendGraph => format!("{path}/{{step}}/{run}"),
        TreeTarget::GraphEngine => format!("{path}/{run}"),
    }
}
