//! The tree of AscendCL data dump.
//!
//! ```text
//! {dump_path}/{time}/{device_id}/{model_name}/{model_id}/{data_index}/{file}
//! {dump_path}/{time}/{device_id}/{file}                 operators that run on their own
//! {file} = {op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}
//! ```
//!
//! `time` is the local time at which the configuration was accepted (14 digits), `model_id` counts
//! loads from 1, `data_index` counts executions of the model from 0, `timestamp` is in
//! microseconds. In names, blank `.` `/` `\` become `_`; control characters do too (an addition of
//! ours: they would break `mapping.csv`). A file name longer than the file system allows is
//! replaced by the decimal libstdc++ `std::hash` of the full path, and `mapping.csv` in the same
//! directory keeps the real name.

mod extra_info;
mod file_name;
mod long_name;
mod origin;
mod result_name;

use std::path::{Path, PathBuf};

pub use extra_info::{FailureFile, TRACE_SUFFIX, custom_file_name, failure_root};
pub use file_name::{DumpFileName, SubTask};
pub(super) use long_name::shorten_component;
pub use long_name::{FILE_NAME_BYTES_MAX, hash_file_name, hash_name};
pub use origin::PathOrigin;
pub use result_name::ResultName;

use crate::record::{ModelId, Record};

/// The directory of a model's operator below `dump_path`, for display.
pub const MODEL_FILE: &str = "{time}/{device_id}/{model_name}/{model_id}/{data_index}/\
                              {op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}";
/// The same of an operator that runs outside a model.
pub const SINGLE_FILE: &str =
    "{time}/{device_id}/{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}";
/// The directory of operators that failed.
pub const FAILURE_DIR: &str = "extra-info/data-dump/{device_id}";

/// The stream that engines without streams report.
pub const STREAM_ID: u32 = 0;
/// The file below `{dump_path}/{time}` that lists overwritten watched values.
pub const OVERWRITES_FILE: &str = "overwrites.json";
/// An unknown task or stream, as of an operator outside a model.
pub const UNKNOWN_ID: u32 = 65535;

/// Where one accepted configuration writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclTree {
    dump_path: PathBuf,
    root: PathBuf,
}

/// A record's place in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclPlace {
    /// The directory.
    pub dir: PathBuf,
    /// The file's name by the pattern, however long.
    pub file_name: String,
}

impl AclTree {
    /// The tree below `dump_path` of a configuration accepted at `time` (`YYYYMMDDHHMMSS`).
    pub fn new(dump_path: &Path, time: &str) -> AclTree {
        AclTree {
            dump_path: dump_path.to_owned(),
            root: dump_path.join(time),
        }
    }

    /// `{dump_path}`.
    pub fn dump_path(&self) -> &Path {
        &self.dump_path
    }

    /// `{dump_path}/{time}`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `{dump_path}/{time}/{device_id}/{model_name}/{model_id}`; of operators that run on their own
    /// `{dump_path}/{time}/{device_id}`.
    pub fn model_dir(&self, model: &ModelId) -> PathBuf {
        let device_dir = self.root.join(model.device.to_string());
        let Some(load) = model.load else {
            return device_dir;
        };
        let name = if model.file_stem.is_empty() {
            &model.graph_name
        } else {
            &model.file_stem
        };
        let name = match clean_name(name) {
            // An empty component would vanish, and a reader would take the levels for each other.
            name if name.is_empty() => "_".to_owned(),
            name => shorten_component(name),
        };
        device_dir.join(name).join(load.to_string())
    }

    /// The directory of one execution of `model`.
    pub fn step_dir(&self, model: &ModelId, step: u64) -> PathBuf {
        let model_dir = self.model_dir(model);
        match model.load {
            Some(_) => model_dir.join(step.to_string()),
            None => model_dir,
        }
    }

    /// Directory and file name of `record`, stamped with `timestamp_us`.
    pub fn place(&self, record: &Record, timestamp_us: u64) -> AclPlace {
        let operator = &record.operator;
        let file_name = DumpFileName {
            op_type: clean_name(&operator.op_type),
            op_name: clean_name(&operator.op_name),
            task_id: task_id(record),
            stream_id: Some(stream_id(&record.model)),
            timestamp: timestamp_us.to_string(),
            sub_task: None,
        };
        AclPlace {
            dir: self.step_dir(&record.model, record.step),
            file_name: file_name.to_string(),
        }
    }

    /// Directory and file name of the overflow record of `record`'s operator, stamped with
    /// `timestamp_us`.
    pub fn op_debug_place(&self, record: &Record, timestamp_us: u64) -> AclPlace {
        let task_id = task_id(record);
        AclPlace {
            dir: self.step_dir(&record.model, record.step),
            file_name: op_debug_file_name(task_id, stream_id(&record.model), timestamp_us),
        }
    }
}

/// The name of the file that carries the overflow record of a task:
/// `Opdebug.Node_OpDebug.{task_id}.{stream_id}.{timestamp}`, stamped with `timestamp_us`.
pub fn op_debug_file_name(task_id: u32, stream_id: u32, timestamp_us: u64) -> String {
    let name = DumpFileName {
        op_type: "Opdebug".to_owned(),
        op_name: "Node_OpDebug".to_owned(),
        task_id,
        stream_id: Some(stream_id),
        timestamp: timestamp_us.to_string(),
        sub_task: None,
    };
    name.to_string()
}

/// The task that the operator of `record` reports.
pub fn task_id(record: &Record) -> u32 {
    match record.model.load {
        Some(_) => record.operator.task_id,
        None => UNKNOWN_ID,
    }
}

/// The stream that operators of `model` report.
pub fn stream_id(model: &ModelId) -> u32 {
    match model.load {
        Some(_) => STREAM_ID,
        None => UNKNOWN_ID,
    }
}

/// The name of a model, an operator or a node as it appears in paths.
pub fn clean_name(name: &str) -> String {
    name.replace(
        |c: char| matches!(c, ' ' | '.' | '/' | '\\') || c.is_control(),
        "_",
    )
}

#[cfg(test)]
mod tests {
    use std::path::Component;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::file_format::op_debug;
    use crate::record::Operator;

    fn record(model: &str, op_type: &str, op_name: &str) -> Record {
        Record {
            model: Arc::new(ModelId::first_load(model, "graph")),
            operator: Arc::new(Operator {
                task_id: 7,
                op_type: op_type.into(),
                op_name: op_name.into(),
                inputs: vec![],
                outputs: vec![],
                ..Operator::default()
            }),
            step: 3,
            timestamp_us: 0,
            inputs: vec![],
            outputs: vec![],
        }
    }

    #[test]
    fn layout_and_replacement() {
        let tree = AclTree::new(Path::new("/d"), "20240102030405");
        let place = tree.place(
            &record("my net.v1", "Conv", "/a/b.c\\d e:f"),
            1_700_000_000_000_100,
        );
        assert_eq!(place.dir, Path::new("/d/20240102030405/0/my_net_v1/1/3"));
        assert_eq!(place.file_name, "Conv._a_b_c_d_e:f.7.0.1700000000000100");
        let place = tree.place(&record("", "T", "n"), 1);
        assert_eq!(place.dir, Path::new("/d/20240102030405/0/graph/1/3"));
    }

    #[test]
    fn an_operator_on_its_own_has_no_model_directories() {
        let tree = AclTree::new(Path::new("/d"), "20240102030405");
        let mut record = record("", "Add", "add");
        record.model = Arc::new(ModelId {
            device: 2,
            ..ModelId::default()
        });
        let place = tree.place(&record, 9);
        assert_eq!(place.dir, Path::new("/d/20240102030405/2"));
        assert_eq!(place.file_name, "Add.add.65535.65535.9");
    }

    #[test]
    fn name_of_an_overflow_record() {
        let name = op_debug_file_name(57, 563, 1_634_155_934_600_000);
        assert_eq!(name, "Opdebug.Node_OpDebug.57.563.1634155934600000");
        assert!(op_debug::is_record_name(&name));
    }

    proptest! {
        #[test]
        fn no_name_leaves_the_tree(model in ".{0,12}", op_type in ".{0,12}", op_name in ".{0,12}") {
            let tree = AclTree::new(Path::new("/d"), "t");
            let place = tree.place(&record(&model, &op_type, &op_name), 1);
            let path = place.dir.join(&place.file_name);
            let below: Vec<_> = path.strip_prefix("/d").unwrap().components().collect();
            prop_assert_eq!(below.len(), 6);
            prop_assert!(below.iter().all(|c| matches!(c, Component::Normal(_))));
        }
    }
}
