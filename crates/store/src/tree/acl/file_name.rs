//! `{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}` and its variants.

use std::fmt;

use crate::decimal::{is_digits, number};

/// The parts of a dump file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpFileName {
    /// The operator's type, characters replaced.
    pub op_type: String,
    /// The operator's name, characters replaced.
    pub op_name: String,
    /// Position of the operator in execution order, or the device's task number.
    pub task_id: u32,
    /// The stream; older files have none.
    pub stream_id: Option<u32>,
    /// Microseconds since 1970-01-01 UTC (16 digits today); exception dumps use local time of 17
    /// digits, so the digits are kept.
    pub timestamp: String,
    /// Four more numbers that newer runtimes append.
    pub sub_task: Option<SubTask>,
}

/// Which part of a task wrote the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubTask {
    /// Kind of task: 0 AI Core, 1 AI CPU, 2 debug, 3 HCCL, 4 FFTS+.
    pub task_type: u32,
    /// Context.
    pub context_id: u32,
    /// Thread within the context.
    pub thread_id: u32,
    /// Device.
    pub device_id: u32,
}

impl DumpFileName {
    /// Splits a file name, or returns `None` if it does not follow the pattern.
    pub fn parse(name: &str) -> Option<DumpFileName> {
        // Types and names lost their dots when the file was written, so the number of fields
        // distinguishes the variants.
        let fields: Vec<&str> = name.split('.').collect();
        let (head, sub_task) = match fields.len() {
            4 | 5 => (&fields[..], None),
            9 => (&fields[..5], Some(SubTask::parse(&fields[5..])?)),
            _ => return None,
        };
        let [op_type, op_name, task_id] = [head[0], head[1], head[2]];
        let (stream_id, timestamp) = match head.len() {
            4 => (None, head[3]),
            _ => (Some(number(head[3])?), head[4]),
        };
        if op_type.is_empty() || !is_digits(timestamp) {
            return None;
        }
        Some(DumpFileName {
            op_type: op_type.to_owned(),
            op_name: op_name.to_owned(),
            task_id: number(task_id)?,
            stream_id,
            timestamp: timestamp.to_owned(),
            sub_task,
        })
    }
}

impl DumpFileName {
    /// The same of a file that holds one output as JSON: `….output.{i}.json` appended.
    pub fn parse_json(name: &str) -> Option<DumpFileName> {
        let (rest, index) = name.strip_suffix(".json")?.rsplit_once('.')?;
        number::<u32>(index)?;
        DumpFileName::parse(rest.strip_suffix(".output")?)
    }
}

impl SubTask {
    fn parse(fields: &[&str]) -> Option<SubTask> {
        Some(SubTask {
            task_type: number(fields[0])?,
            context_id: number(fields[1])?,
            thread_id: number(fields[2])?,
            device_id: number(fields[3])?,
        })
    }
}

impl fmt::Display for DumpFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.op_type, self.op_name, self.task_id)?;
        if let Some(stream_id) = self.stream_id {
            write!(f, ".{stream_id}")?;
        }
        write!(f, ".{}", self.timestamp)?;
        if let Some(SubTask {
            task_type,
            context_id,
            thread_id,
            device_id,
        }) = self.sub_task
        {
            write!(f, ".{task_type}.{context_id}.{thread_id}.{device_id}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_come_back() {
        for name in [
            "Add.Default_Add-op0.2.7.1634155934514051",
            "Pooling.pool1.1.1732082705016774",
            "Opdebug.Node_OpDebug.1.5.1732082705016774.4.1.2.0",
            "exception_info..2.1.20250611171538370",
        ] {
            assert_eq!(DumpFileName::parse(name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn other_names_are_none() {
        for name in [
            "",
            "mapping.csv",
            "a.b.c.d.e",
            "Add.a.1.2",
            "Add.a.1.2.3.4",
            "Add.a.+1.2.3",
            "Add.a.1.2.x",
            ".a.1.2.3",
            "Add.a.1.0.1634155934514051.output.0.npy",
        ] {
            let parsed = DumpFileName::parse(name);
            // `Add.a.1.2` has four fields and a numeric end: it is a name without a stream.
            assert_eq!(parsed.is_some(), name == "Add.a.1.2", "{name}: {parsed:?}");
        }
    }
}
