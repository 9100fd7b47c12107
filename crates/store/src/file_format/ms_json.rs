//! The small JSON files in `MindSpore`'s trees.

use serde_json::{Map, Value, json};

use super::op_debug::BlockRecord;

/// Selects no operator at all in a list of operators, which may not be empty there.
pub const NO_OPERATOR: &str = "NoSetDumpTarget";
/// A step that never comes.
const NEVER: &str = "2147483647";

/// Who wrote a dump: `{"device_target":"CPU","ms_version":"2.10.0"}`.
pub fn producer(device_target: &str, version: &str) -> String {
    json!({"device_target": device_target, "ms_version": version}).to_string()
}

/// The arguments of an operator: sorted by name, indented by four spaces, every value a string.
pub fn kernel_args(arguments: &[(String, String)]) -> String {
    let mut sorted: Vec<_> = arguments.iter().collect();
    sorted.sort();
    let pairs = sorted.into_iter();
    let object: Map<_, _> = pairs
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect();
    let mut text = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
    // Neither a `Value` nor a vector in memory can fail to serialize.
    let _ = serde::Serialize::serialize(&Value::Object(object), &mut serializer);
    String::from_utf8(text).unwrap_or_default()
}

/// An overflow record: compact, sorted by key, addresses as hexadecimal text.
pub fn overflow(record: &BlockRecord) -> String {
    let mut object = record.to_json();
    // The vendor's converter keeps the order of the record; MindSpore sorts.
    object.sort_all_objects();
    object.to_string()
}

/// Selection for the runtime below a whole graph: the items it dumps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeDump<'a> {
    /// Operators.
    Operators {
        /// Their names; none for all of them.
        names: Option<&'a [String]>,
        /// `all`, `input` or `output`.
        mode: &'a str,
        /// Where to.
        dump_path: &'a str,
        /// Whether the selected steps are still to come.
        is_waiting: bool,
    },
    /// Overflow.
    Overflow {
        /// Where to.
        dump_path: &'a str,
    },
    /// Operators that fail.
    Exceptions,
}

impl RuntimeDump<'_> {
    /// The configuration file: compact, sorted by key.
    pub fn to_json_text(&self) -> String {
        let dump = match self {
            RuntimeDump::Operators {
                names,
                mode,
                dump_path,
                is_waiting,
            } => {
                let list = match names {
                    None => json!([]),
                    // The runtime takes an empty list for every operator, so none at all needs a
                    // dummy name.
                    Some([]) => json!([{ "layer": [NO_OPERATOR] }]),
                    Some(names) => json!([{ "layer": names }]),
                };
                let mut dump = json!({
                    "dump_list": list,
                    "dump_mode": mode,
                    "dump_op_switch": "on",
                    "dump_path": dump_path,
                });
                if *is_waiting {
                    // The runtime is set up before the first selected step, and must not write
                    // until then.
                    dump["dump_step"] = NEVER.into();
                }
                dump
            }
            RuntimeDump::Overflow { dump_path } => {
                json!({"dump_debug": "on", "dump_path": dump_path})
            }
            RuntimeDump::Exceptions => json!({"dump_scene": "lite_exception"}),
        };
        json!({ "dump": dump }).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        assert_eq!(
            producer("CPU", "2.10.0"),
            r#"{"device_target":"CPU","ms_version":"2.10.0"}"#
        );
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            kernel_args(&[pair("transpose_b", "False"), pair("pad", "[3 3]")]),
            "{\n    \"pad\": \"[3 3]\",\n    \"transpose_b\": \"False\"\n}"
        );
        assert_eq!(
            RuntimeDump::Exceptions.to_json_text(),
            r#"{"dump":{"dump_scene":"lite_exception"}}"#
        );
        assert_eq!(
            RuntimeDump::Overflow { dump_path: "/d/3" }.to_json_text(),
            r#"{"dump":{"dump_debug":"on","dump_path":"/d/3"}}"#
        );
        let operators = |names, is_waiting| {
            let (mode, dump_path) = ("input", "/d/0");
            RuntimeDump::Operators {
                names,
                mode,
                dump_path,
                is_waiting,
            }
            .to_json_text()
        };
        assert_eq!(
            operators(None, true),
            r#"{"dump":{"dump_list":[],"dump_mode":"input","dump_op_switch":"on","dump_path":"/d/0","dump_step":"2147483647"}}"#
        );
        assert!(operators(Some(&[]), false).contains(r#"[{"layer":["NoSetDumpTarget"]}]"#));
        assert!(operators(Some(&["a/b".into()]), false).contains(r#"[{"layer":["a/b"]}]"#));
    }

    #[test]
    fn overflow_is_sorted() {
        let mut record = BlockRecord::default();
        record.ai_core.task.pc_start = 0x1080;
        record.dha_status = 3;
        let zeros = r#""model_id":0,"para_base":"0x0","pc_start":"0x0","status":"#;
        let tail = r#","stream_id":0,"task_id":0,"task_type":0}"#;
        let core = r#"{"block_idx":0,"kernel_code":"0x0","model_id":0,"para_base":"0x0","pc_start":"0x1080","status":0"#;
        let expected = format!(
            "{{\"AI Core\":{core}{tail},\"DHA Atomic Add\":{{{zeros}3{tail},\
             \"L2 Atomic Add\":{{{zeros}0{tail}}}"
        );
        assert_eq!(overflow(&record), expected);
    }
}
