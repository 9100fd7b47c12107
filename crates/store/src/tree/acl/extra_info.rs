//! Where the dumps of failing operators go: `{dump_path}/extra-info/data-dump/{device_id}/`.

use std::path::{Path, PathBuf};

use super::{AclPlace, AclTree, clean_name, stream_id, task_id};
use crate::record::Record;

/// Suffix of the text file that accompanies a failing operator's dump.
pub const TRACE_SUFFIX: &str = ".txt";

/// How the dump of a failing operator is named. All end with the local time at which it failed, as
/// 17 digits `YYYYMMDDHHMMSSmmm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureFile {
    /// `exception_info.{stream_id}.{task_id}.{time}`
    Brief,
    /// `exception_info.{stream_id}.{task_id}.{core_type}.{core_id}.{time}`, the same as it is
    /// handed to a registered function. Both core numbers are 0.
    BriefMessage,
    /// `{op_type}.{op_name}.{task_id}.{time}`
    Named,
}

/// `{dump_path}/extra-info/data-dump`, with a directory for each device in it.
pub fn failure_root(dump_path: &Path) -> PathBuf {
    dump_path.join("extra-info").join("data-dump")
}

/// Name of a file with tensors that a program hands over itself, at `local_time` (17 digits).
pub fn custom_file_name(name: &str, local_time: &str) -> String {
    format!("{name}.custom.{local_time}")
}

impl AclTree {
    /// The place of `record`, whose operator failed at `local_time`.
    pub fn failure_place(&self, record: &Record, file: FailureFile, local_time: &str) -> AclPlace {
        let operator = &record.operator;
        let (task_id, stream_id) = (task_id(record), stream_id(&record.model));
        let file_name = match file {
            FailureFile::Brief => format!("exception_info.{stream_id}.{task_id}.{local_time}"),
            FailureFile::BriefMessage => {
                format!("exception_info.{stream_id}.{task_id}.0.0.{local_time}")
            }
            FailureFile::Named => {
                let (op_type, op_name) =
                    (clean_name(&operator.op_type), clean_name(&operator.op_name));
                format!("{op_type}.{op_name}.{task_id}.{local_time}")
            }
        };
        AclPlace {
            dir: self.failure_dir(record.model.device),
            file_name,
        }
    }

    /// `{dump_path}/extra-info/data-dump/{device_id}`.
    pub fn failure_dir(&self, device: u32) -> PathBuf {
        failure_root(&self.dump_path).join(device.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::record::{ModelId, Operator};

    #[test]
    fn names() {
        let record = Record {
            model: Arc::new(ModelId {
                load: Some(1),
                device: 3,
                ..ModelId::default()
            }),
            operator: Arc::new(Operator {
                task_id: 7,
                op_type: "Conv".into(),
                op_name: "a/b.c".into(),
                ..Operator::default()
            }),
            step: 0,
            timestamp_us: 0,
            inputs: vec![],
            outputs: vec![],
        };
        let tree = AclTree::new(Path::new("/d"), "20240102030405");
        for (file, expected) in [
            (FailureFile::Brief, "exception_info.0.7.20240102030405678"),
            (
                FailureFile::BriefMessage,
                "exception_info.0.7.0.0.20240102030405678",
            ),
            (FailureFile::Named, "Conv.a_b_c.7.20240102030405678"),
        ] {
            let place = tree.failure_place(&record, file, "20240102030405678");
            assert_eq!(place.dir, Path::new("/d/extra-info/data-dump/3"));
            assert_eq!(place.file_name, expected);
        }
    }
}
