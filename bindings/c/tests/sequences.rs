//! Results of the dump functions in every order of calls, each sequence in a separate process.
//!
//! `golden/api_sequences.json` lists the calls with the results of the vendor's library.

mod support;

use serde_json::Value;
use support::Program;

/// The numeric code of a named result.
fn code(name: &str) -> &'static str {
    // A remark may follow the name.
    match name.split(' ').next().unwrap_or_default() {
        "ACL_SUCCESS" => "0",
        "ACL_ERROR_INVALID_PARAM" => "100000",
        "ACL_ERROR_UNINITIALIZE" => "100001",
        "ACL_ERROR_REPEAT_INITIALIZE" => "100002",
        "ACL_ERROR_INVALID_FILE" => "100003",
        "ACL_ERROR_PARSE_FILE" => "100006",
        "ACL_ERROR_INVALID_DUMP_CONFIG" => "100009",
        "ACL_ERROR_REPEAT_FINALIZE" => "100037",
        "ACL_ERROR_DUMP_NOT_RUN" => "100045",
        "ACL_ERROR_FAILURE" => "500001",
        other => panic!("the result `{other}` has no known code"),
    }
}

/// An argument of a call in the form that the program reads: the name of a configuration becomes
/// its path.
fn argument(program: &Program, configs: &Value, argument: &Value) -> String {
    let dir = program.dir().display().to_string();
    match argument {
        Value::Null => "-".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text == "@DIR@" => dir,
        Value::String(text) if text == "@NOFILE@" => format!("{dir}/no_such_file.json"),
        Value::String(text) => match configs.get(text).and_then(Value::as_str) {
            Some(config) => {
                let config = config.replace("@DIR@", &dir);
                let path = program.file(&format!("{text}.json"), config);
                path.display().to_string()
            }
            None => text.clone(),
        },
        other => panic!("unknown argument {other}"),
    }
}

#[test]
fn every_order_of_calls_gives_the_results_of_the_vendor() {
    let golden = include_str!("golden/api_sequences.json");
    let golden: Value = serde_json::from_str(golden).expect("the list is JSON");
    let sequences = golden["sequences"].as_array().expect("it has sequences");
    assert_eq!(sequences.len(), 40);
    let program = Program::compile("sequence.c");
    let mut wrong = Vec::new();
    for sequence in sequences {
        let calls = sequence["calls"].as_array().expect("a sequence has calls");
        let mut input = String::new();
        let mut expected = Vec::new();
        for call in calls {
            let arguments = call["args"].as_array().expect("a call has arguments");
            let mut fields = vec![call["call"].as_str().expect("a name").to_owned()];
            let arguments = arguments
                .iter()
                .map(|value| argument(&program, &golden["configs"], value));
            fields.extend(arguments);
            input.push_str(&fields.join("\t"));
            input.push('\n');
            expected.push(call["returns"].as_str().map_or("null", code));
        }
        let said = program.run_with(&input);
        let found: Vec<&str> = said.stdout.lines().collect();
        if found != expected {
            let id = &sequence["id"];
            wrong.push(format!(
                "{id}: {found:?}, not {expected:?}\n{}",
                said.stderr
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
