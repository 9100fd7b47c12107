//! Orders of calls, with the codes of the vendor's library.
//!
//! The sequences were derived from the public sources of that library; each starts in a separate
//! process.

mod support;

use std::path::PathBuf;
use std::sync::Arc;

use opscope_acl::{Answer, DumpCallback};
use serde_json::Value;

use support::Fixture;

const SEQUENCES: &str = include_str!("golden/api_sequences.json");
/// `acldumpType`.
const DATA_DUMP: i32 = 4;

struct Run<'a> {
    fixture: Fixture,
    configs: &'a Value,
}

impl Run<'_> {
    fn path(&self, argument: &Value) -> Option<PathBuf> {
        match argument.as_str()? {
            "@NOFILE@" => Some(self.fixture.dir.path().join("missing.json")),
            "@DIR@" => Some(self.fixture.out()),
            name => {
                let text = self.configs[name].as_str().unwrap();
                Some(self.fixture.file(&format!("{name}.json"), text))
            }
        }
    }

    /// Makes a call and returns its result in the notation of the file.
    fn call(&self, call: &Value) -> Option<String> {
        let process = &self.fixture.process;
        let argument = &call["args"][0];
        let takes_path = matches!(call["call"].as_str(), Some("aclInit" | "aclmdlSetDump"));
        let path = takes_path.then(|| self.path(argument)).flatten();
        let callback: DumpCallback = Arc::new(|_| 0);
        let answer: Answer = match call["call"].as_str().unwrap() {
            "aclInit" => process.init(path.as_deref()),
            "aclFinalize" => process.finalize(),
            "aclFinalizeReference" => process.finalize_reference().1,
            "aclmdlInitDump" => process.init_dump(),
            "aclmdlSetDump" => process.set_dump(path.as_deref()),
            "aclmdlFinalizeDump" => process.finalize_dump(),
            "acldumpRegCallback" => {
                let flag = call["args"][1].as_i64().unwrap();
                let callback = (!argument.is_null()).then_some(callback);
                process.register_callback(callback, flag.try_into().unwrap())
            }
            "acldumpUnregCallback" => {
                process.unregister_callback();
                return None;
            }
            "acldumpGetPath" => {
                assert_eq!(argument, "DATA_DUMP");
                return process.dump_path(DATA_DUMP);
            }
            other => panic!("unknown call {other}"),
        };
        Some(match answer {
            Ok(()) => "ACL_SUCCESS".to_owned(),
            Err(status) => status.name().unwrap().to_owned(),
        })
    }
}

#[test]
fn every_order_of_calls_gives_the_known_codes() {
    let golden: Value = serde_json::from_str(SEQUENCES).unwrap();
    let sequences = golden["sequences"].as_array().unwrap();
    assert_eq!(sequences.len(), 40);
    for sequence in sequences {
        let run = Run {
            fixture: Fixture::new(),
            configs: &golden["configs"],
        };
        for (i, call) in sequence["calls"].as_array().unwrap().iter().enumerate() {
            let found = run.call(call);
            // A remark may follow the code.
            let expected = call["returns"].as_str();
            let expected = expected.map(|text| text.split(' ').next().unwrap());
            assert_eq!(
                found.as_deref(),
                expected,
                "{} call {i}: {call}",
                sequence["id"]
            );
        }
    }
}
