//! A control file switches the dumps of a program and changes their configuration.

mod support;

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use support::Fixture;

/// A process that checks `control.json` before each execution.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let path = fixture.dir.path().join("control.json");
    Fixture {
        process: fixture.process.with_control(&path, Duration::ZERO),
        dir: fixture.dir,
    }
}

fn control(fixture: &Fixture, content: &Value) {
    let (new, path) = (
        fixture.dir.path().join("new"),
        fixture.dir.path().join("control.json"),
    );
    fs::write(&new, content.to_string()).unwrap();
    fs::rename(new, path).unwrap();
}

fn config(fixture: &Fixture, layer: &str) -> Value {
    let list = json!([{"layer": [layer]}]);
    json!({"dump": {"dump_path": fixture.out(), "dump_mode": "output", "dump_list": list}})
}

#[test]
fn executions_while_the_dump_is_off_are_counted_and_not_dumped() {
    let fixture = fixture();
    control(&fixture, &json!({"enabled": false}));
    fixture.begin_dump("\"dump_list\": [{\"layer\": [\"a\"]}]");
    let model = fixture.load("net.onnx", "chain");
    assert_eq!(fixture.execute(model, [1.0, 2.0]).unwrap(), [3.0, 5.0]);
    assert!(fixture.dumped().is_empty());
    control(&fixture, &json!({"enabled": true}));
    fixture.execute(model, [1.0, 2.0]).unwrap();
    // An invalid or deleted file changes nothing.
    control(&fixture, &json!({"enabled": 0}));
    fixture.execute(model, [1.0, 2.0]).unwrap();
    fs::remove_file(fixture.dir.path().join("control.json")).unwrap();
    fixture.execute(model, [1.0, 2.0]).unwrap();
    let file = |step| format!("0/0/net/1/{step}/Twice.a.0.0");
    assert_eq!(fixture.dumped(), [file(1), file(2), file(3)]);
}

#[test]
fn another_configuration_reaches_models_that_were_loaded_before() {
    let fixture = fixture();
    fixture.process.init(None).unwrap();
    let model = fixture.load("net.onnx", "chain");
    fixture.execute(model, [1.0, 2.0]).unwrap();
    control(&fixture, &json!({"config": config(&fixture, "a")}));
    fixture.execute(model, [1.0, 2.0]).unwrap();
    // The same configuration continues in the same directory.
    control(
        &fixture,
        &json!({"enabled": true, "config": config(&fixture, "a")}),
    );
    fixture.execute(model, [1.0, 2.0]).unwrap();
    let second = config(&fixture, "b").to_string();
    fs::write(fixture.dir.path().join("b.json"), second).unwrap();
    control(&fixture, &json!({"config": "b.json"}));
    fixture.execute(model, [1.0, 2.0]).unwrap();
    control(&fixture, &json!({"enabled": false, "config": {}}));
    fixture.execute(model, [1.0, 2.0]).unwrap();
    let failures = json!({"dump": {"dump_scene": "lite_exception"}});
    control(&fixture, &json!({"enabled": false, "config": failures}));
    fixture.execute(model, [1.0, 2.0]).unwrap();
    assert_eq!(
        fixture.dumped(),
        [
            "0/0/net/1/1/Twice.a.0.0",
            "0/0/net/1/2/Twice.a.0.0",
            "1/0/net/1/3/Next.b.1.0",
            "1/0/net/1/4/Next.b.1.0",
            "1/0/net/1/5/Next.b.1.0",
        ]
    );
}

#[test]
fn a_file_is_not_looked_at_twice_within_the_interval() {
    let fixture = Fixture::new();
    let path = fixture.dir.path().join("control.json");
    let fixture = Fixture {
        process: fixture.process.with_control(&path, Duration::MAX),
        dir: fixture.dir,
    };
    fixture.begin_dump("\"dump_list\": [{\"layer\": [\"a\"]}]");
    let model = fixture.load("net.onnx", "chain");
    for _ in 0..2 {
        fixture.execute(model, [1.0, 2.0]).unwrap();
        control(&fixture, &json!({"enabled": false}));
    }
    assert_eq!(fixture.dumped().len(), 2);
}
