//! The trees of MindSpore data dump.
//!
//! ```text
//! {path}/rank_{rank}/{net_name}/{graph_id}/{iteration}/{file}            CPU, GPU, Ascend O0/O1
//! {path}/rank_{rank}/{net_name}/{graph_id}/constants/{file}
//! {path}/rank_{rank}/{graphs | execution_order | .dump_metadata}/…
//! {path}/{step}/{time}/{device}/{model_name}/{model_id}/{iteration}/…    Ascend O2; GE has no step
//! {path}/{step}/{time}/{device}/{model_name}/{model_id}/constants/…
//! {file} = {op_type}.{op_name}.{task}.{stream}.{timestamp}.{side}.{slot}.{layout}.{dtype}.npy
//! ```
//!
//! In names, blank `.` `/` `\` become `_`; control characters do too (an addition of ours: they
//! would break `mapping.csv`). Everything else stays as it is.

mod file_name;
mod long_name;
mod place;

use std::path::{Path, PathBuf};

pub use file_name::{LAYOUT_NAMES, TensorFileName};
pub use long_name::{FILE_NAME_BYTES_MAX, NameDigits, SHORT_NAME_END};
pub use place::MindSporePlace;

use super::acl::clean_name;
use super::number;
use crate::file_format::ms_dtype;
use opscope_tensor::DType;

/// Directory of the graph files.
pub const GRAPHS_DIR: &str = "graphs";
/// Directory of the execution orders.
pub const EXECUTION_ORDER_DIR: &str = "execution_order";
/// Directory of a copy of the configuration.
pub const METADATA_DIR: &str = ".dump_metadata";
/// Directory of a graph's constants.
pub const CONSTANTS_DIR: &str = "constants";
/// Name of the statistics file of a directory.
pub const STATISTIC_FILE_NAME: &str = "statistic.csv";
/// Name of the copy of the configuration.
pub const CONFIGURATION_COPY: &str = "data_dump.json";
/// Name of the file about the writer of the dump.
pub const PRODUCER_FILE: &str = "config.json";
/// The operator type that names a parameter.
pub const PARAMETER: &str = "Parameter";
/// The operator type of a value that is written into the graph; its file is named as a parameter's.
pub const CONSTANT: &str = "Constant";
/// The layout of tensors as the host has them.
pub const DEFAULT_LAYOUT: &str = "DefaultFormat";
/// Beginning of a rank's directory.
const RANK_PREFIX: &str = "rank_";
const GRAPH_FILE: &str = "ms_output_trace_code_graph_";
const ORDER_FILE: &str = "ms_execution_order_graph_";
const GLOBAL_ORDER_FILE: &str = "ms_global_execution_order_graph_";
const ACL_CONFIGURATION_PREFIX: &str = "acl_dump_";

/// Whose dump it is, which decides on directories and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeTarget {
    /// The CPU.
    Cpu,
    /// A GPU.
    Gpu,
    /// Ascend, kernel by kernel (compilation levels O0 and O1).
    AscendKernels,
    /// Ascend, whole graphs (compilation level O2).
    AscendGraph,
    /// Ascend, by the graph engine's own dump.
    GraphEngine,
}

impl TreeTarget {
    /// Whether the tree begins with a directory for each rank.
    pub fn has_ranks(self) -> bool {
        matches!(
            self,
            TreeTarget::Cpu | TreeTarget::Gpu | TreeTarget::AscendKernels
        )
    }

    /// Whether a copy of the configuration is kept.
    pub fn has_metadata(self) -> bool {
        matches!(self, TreeTarget::Cpu | TreeTarget::Gpu)
    }

    /// Whether parameters are written at the end of a step.
    pub fn has_parameters(self) -> bool {
        matches!(self, TreeTarget::Cpu | TreeTarget::Gpu)
    }

    /// The dtype as this target spells it in file names; `None` for one that it cannot name.
    pub fn dtype_name(self, dtype: DType) -> Option<&'static str> {
        match self {
            TreeTarget::Cpu => ms_dtype::camel(dtype),
            _ => ms_dtype::lower(dtype),
        }
    }
}

/// The place of a dump for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeTree {
    path: PathBuf,
    target: TreeTarget,
    rank: u32,
    net_name: String,
    /// Without what the file system asks for.
    long_net_name: String,
}

/// Parts that make up the path of a directory in a tree with steps.
#[derive(Clone, Copy, Debug)]
pub struct GraphRun<'a> {
    /// Step of the training; the graph engine's own dump has none.
    pub step: u64,
    /// Local time, `YYYYMMDDhhmmss`.
    pub time: &'a str,
    /// The device.
    pub device: u32,
    /// Name of the model.
    pub model_name: &'a str,
    /// Number of the model.
    pub model_id: u32,
    /// Iteration of the model.
    pub iteration: u64,
}

impl MindSporeTree {
    /// The tree below `path`. `net_name` is cleaned, since it becomes a directory.
    pub fn new(path: &Path, target: TreeTarget, rank: u32, net_name: &str) -> MindSporeTree {
        MindSporeTree {
            path: path.to_owned(),
            target,
            rank,
            net_name: directory_name(net_name),
            long_net_name: clean_name(net_name),
        }
    }

    /// Whose tree it is.
    pub fn target(&self) -> TreeTarget {
        self.target
    }

    /// `{path}/rank_{rank}`, or `{path}` where there are no ranks.
    pub fn rank_dir(&self) -> PathBuf {
        if self.target.has_ranks() {
            self.path.join(format!("{RANK_PREFIX}{}", self.rank))
        } else {
            self.path.clone()
        }
    }

    /// Where the network's name does not fit into a directory's: the directory that says whose name
    /// it is, the name that is used, and the real one.
    pub fn long_net_name(&self) -> Option<(PathBuf, &str, &str)> {
        let is_long = self.target.has_ranks() && self.net_name != self.long_net_name;
        let names = (self.rank_dir(), &*self.net_name, &*self.long_net_name);
        (is_long && !self.long_net_name.is_empty()).then_some(names)
    }

    /// The same for the name of the model that a whole graph comes from.
    pub fn long_model_name(&self, run: &GraphRun<'_>) -> Option<(PathBuf, String, String)> {
        let (short, long) = (directory_name(run.model_name), clean_name(run.model_name));
        // Two levels above `{model_name}/{model_id}`: the mapping is next to the directory that it
        // names.
        let above = self.model_dir(run).ancestors().nth(2).map(Path::to_owned)?;
        (short != long && !long.is_empty()).then_some((above, short, long))
    }

    /// Where a graph's tensors of one iteration go.
    pub fn iteration_dir(&self, graph_id: u32, iteration: u64) -> PathBuf {
        self.graph_dir(graph_id).join(iteration.to_string())
    }

    /// Where a graph's constants go.
    pub fn constants_dir(&self, graph_id: u32) -> PathBuf {
        self.graph_dir(graph_id).join(CONSTANTS_DIR)
    }

    fn graph_dir(&self, graph_id: u32) -> PathBuf {
        self.rank_dir()
            .join(&self.net_name)
            .join(graph_id.to_string())
    }

    /// Where the tensors of a run of a whole graph go: `[{step}/]{time}/{device}/{model_name}/…`.
    pub fn run_dir(&self, run: &GraphRun<'_>) -> PathBuf {
        self.model_dir(run).join(run.iteration.to_string())
    }

    /// Where the constants of a whole graph go: next to the iterations of its model.
    pub fn run_constants_dir(&self, run: &GraphRun<'_>) -> PathBuf {
        self.model_dir(run).join(CONSTANTS_DIR)
    }

    fn model_dir(&self, run: &GraphRun<'_>) -> PathBuf {
        let mut dir = self.path.clone();
        if self.target != TreeTarget::GraphEngine {
            dir.push(run.step.to_string());
        }
        dir.push(directory_name(run.time));
        dir.push(run.device.to_string());
        dir.push(directory_name(run.model_name));
        dir.push(run.model_id.to_string());
        dir
    }

    /// The copy of the configuration.
    pub fn configuration_copy(&self) -> PathBuf {
        self.rank_dir().join(METADATA_DIR).join(CONFIGURATION_COPY)
    }

    /// The file about the writer of the dump.
    pub fn producer_file(&self) -> PathBuf {
        self.rank_dir().join(METADATA_DIR).join(PRODUCER_FILE)
    }

    /// A graph's file with this extension.
    pub fn graph_file(&self, graph_id: u32, extension: &str) -> PathBuf {
        let name = format!("{GRAPH_FILE}{graph_id}.{extension}");
        self.rank_dir().join(GRAPHS_DIR).join(name)
    }

    /// The list of a graph's operators.
    pub fn execution_order_file(&self, graph_id: u32) -> PathBuf {
        let name = format!("{ORDER_FILE}{graph_id}.csv");
        self.rank_dir().join(EXECUTION_ORDER_DIR).join(name)
    }

    /// The list of iterations in which a graph ran.
    pub fn global_execution_order_file(&self, graph_id: u32) -> PathBuf {
        let name = format!("{GLOBAL_ORDER_FILE}{graph_id}.csv");
        self.rank_dir().join(EXECUTION_ORDER_DIR).join(name)
    }

    /// The configuration that the runtime below is given.
    pub fn acl_configuration(&self, device: u32) -> PathBuf {
        let name = format!("{ACL_CONFIGURATION_PREFIX}{device}.json");
        self.path.join(name)
    }
}

/// Name of an operator's arguments file, `{type}.{name}.json`, in which only `.` and `/` are
/// replaced.
pub fn kernel_args_file_name(op_type: &str, full_name: &str) -> String {
    let [op_type, full_name] = [op_type, full_name]
        .map(|text| text.replace(|c: char| matches!(c, '.' | '/') || c.is_control(), "_"));
    format!("{op_type}.{full_name}.json")
}

/// Whether a file's name is that of an operator's arguments.
pub fn is_kernel_args(file_name: &str) -> bool {
    let stem = file_name.strip_suffix(".json").unwrap_or_default();
    let parts: Vec<&str> = stem.split('.').collect();
    matches!(parts[..], [short, name] if !short.is_empty() && !name.is_empty())
}

/// The last part of a full name without its number: `Conv2D` of `Default/conv-Conv2d/Conv2D-op0`.
pub fn short_name(full_name: &str) -> &str {
    let last = full_name.rsplit('/').next().unwrap_or(full_name);
    last.rsplit_once('-').map_or(last, |(short, _)| short)
}

/// The number in a name such as `ms_output_trace_code_graph_3.ir`.
pub fn graph_id_of(file_name: &str) -> Option<u32> {
    let (stem, _) = file_name.rsplit_once('.')?;
    let starts = [GRAPH_FILE, ORDER_FILE, GLOBAL_ORDER_FILE];
    let digits = starts.iter().find_map(|start| stem.strip_prefix(start))?;
    number(digits)
}

/// The rank of the directory that a path leads through.
pub fn rank_above(dir: &Path) -> Option<u32> {
    // A relative path may begin below the directory of the rank.
    let absolute = crate::remote::absolute(dir).ok()?;
    let mut names = absolute.components().rev();
    names.find_map(|name| number(name.as_os_str().to_str()?.strip_prefix(RANK_PREFIX)?))
}

/// Whether a directory's name is that of a rank.
pub fn is_rank(name: &str) -> bool {
    let rank = name.strip_prefix(RANK_PREFIX);
    rank.and_then(number::<u32>).is_some()
}

/// Whether a file's name is that of a graph's list of operators.
pub fn is_execution_order(file_name: &str) -> bool {
    file_name.starts_with(ORDER_FILE) && file_name.ends_with(".csv")
}

/// Whether a file's name is that of a graph's list of iterations.
pub fn is_global_execution_order(file_name: &str) -> bool {
    file_name.starts_with(GLOBAL_ORDER_FILE) && file_name.ends_with(".csv")
}

/// Whether a file's name is that of a graph file with this extension.
pub fn is_graph(file_name: &str, extension: &str) -> bool {
    let stem = file_name
        .strip_suffix(extension)
        .and_then(|s| s.strip_suffix('.'));
    stem.is_some_and(|stem| stem.starts_with(GRAPH_FILE))
}

/// Whether a file's name is that of the configuration for the runtime below.
pub fn is_acl_configuration(file_name: &str) -> bool {
    let digits = file_name
        .strip_prefix(ACL_CONFIGURATION_PREFIX)
        .and_then(|rest| rest.strip_suffix(".json"));
    digits.is_some_and(|digits| number::<u32>(digits).is_some())
}

/// A name that stays one component: nothing in it leads elsewhere.
fn directory_name(name: &str) -> String {
    let cleaned = clean_name(name);
    match cleaned.as_str() {
        "" => "_".to_owned(),
        _ => super::acl::shorten_component(cleaned),
    }
}

#[cfg(test)]
mod tests;
