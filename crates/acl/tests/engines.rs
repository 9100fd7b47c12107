//! Executions under a dump that the engine does not support: they succeed, with another engine or
//! without the dump.

mod support;

use std::fs;
use std::sync::Arc;

use opscope_acl::AclProcess;
use opscope_capture::{Purpose, Tap};
use opscope_config::ConfigEnvironment;
use opscope_engine::{
    Engine, EngineError, FallbackEngine, FallbackModel, LoadOptions, LoadedModel, ModelDescription,
    ModelSource, SharedEngine,
};
use opscope_tensor::Tensor;
use support::{FakeEngine, Fixture, bytes};

const WATCH: &str = r#""dump_scene": "watcher", "dump_list": [{"watcher_nodes": ["a"]}]"#;
const VALUES: &str = r#""dump_list": [{}]"#;

/// A model that cannot be watched, and that fails under a tap if it is shy.
struct LimitedModel {
    model: Box<dyn LoadedModel>,
    is_shy: bool,
}

impl LoadedModel for LimitedModel {
    fn description(&self) -> &ModelDescription {
        self.model.description()
    }

    fn refusal(&self, purpose: Purpose) -> Option<EngineError> {
        let (engine, other_engine) = ("limited", "another one");
        (purpose == Purpose::Watch).then_some(EngineError::Watch {
            engine,
            other_engine,
        })
    }

    fn run(&mut self, inputs: &[Tensor], tap: Option<&Tap>) -> Result<Vec<Tensor>, EngineError> {
        if let (true, Some(_)) = (self.is_shy, tap) {
            return Err(EngineError::Engine {
                engine: "limited",
                reason: "it has no taps".to_owned(),
            });
        }
        self.model.run(inputs, tap)
    }
}

/// Represents two engines if it has another one.
struct LimitedEngine {
    is_shy: bool,
    other: Option<SharedEngine>,
}

impl Engine for LimitedEngine {
    fn name(&self) -> &'static str {
        "limited"
    }

    fn load(
        &self,
        source: ModelSource<'_>,
        options: &LoadOptions,
    ) -> Result<Box<dyn LoadedModel>, EngineError> {
        let model = FakeEngine.load(source, options)?;
        let is_shy = self.is_shy;
        Ok(Box::new(LimitedModel { model, is_shy }))
    }

    fn load_for(
        &self,
        source: ModelSource<'_>,
        options: &LoadOptions,
        purpose: Purpose,
    ) -> Result<FallbackModel, EngineError> {
        let model = self.load(source, options)?;
        match (&self.other, model.refusal(purpose)) {
            (Some(engine), Some(refusal)) => {
                let model = engine.load(source, options)?;
                let (engine, reason) = (engine.clone(), refusal.to_string());
                let taken = Some(FallbackEngine { engine, reason });
                Ok(FallbackModel { model, taken })
            }
            _ => Ok(FallbackModel { model, taken: None }),
        }
    }
}

fn fixture(is_shy: bool, other: Option<SharedEngine>) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let environment = ConfigEnvironment {
        current_dir: dir.path().to_owned(),
        ..ConfigEnvironment::default()
    };
    fs::create_dir(dir.path().join("out")).unwrap();
    let engine = Arc::new(LimitedEngine { is_shy, other });
    Fixture {
        process: AclProcess::with_environment(engine, environment),
        dir,
    }
}

const WATCHED: [&str; 2] = ["Next.b_To_a", "Twice.a"];

/// Dumped operators.
fn dumped(fixture: &Fixture) -> Vec<String> {
    let name = |file: String| {
        let name = file.rsplit('/').next().unwrap().to_owned();
        name.split('.').take(2).collect::<Vec<_>>().join(".")
    };
    let mut names: Vec<String> = fixture.dumped().into_iter().map(name).collect();
    names.sort();
    names
}

#[test]
fn the_engine_that_can_is_taken() {
    // Requested when the model is loaded.
    let other = || Some(Arc::new(FakeEngine) as SharedEngine);
    let before = fixture(false, other());
    before.begin_dump(WATCH);
    let model = before.load("net.onnx", "chain");
    assert_eq!(before.execute(model, [1.0, 2.0]), Ok(vec![3.0, 5.0]));
    let watched = dumped(&before);
    assert!(
        watched.iter().any(|name| name.ends_with("b_To_a")),
        "{watched:?}"
    );

    // Requested by a later configuration, for a model from a file or from memory.
    for is_file in [true, false] {
        let later = fixture(false, other());
        later.begin_dump(VALUES);
        let model = if is_file {
            later.load("net.onnx", "chain")
        } else {
            later.process.load_from_mem(b"chain").unwrap()
        };
        later.set_dump(WATCH);
        assert_eq!(later.execute(model, [1.0, 2.0]), Ok(vec![3.0, 5.0]));
        assert_eq!(dumped(&later), watched, "from a file: {is_file}");
        assert_eq!(later.process.recent_error(), None);
    }
    assert_eq!(watched.len(), WATCHED.len());
}

#[test]
fn without_one_the_model_runs_without_the_dump() {
    let fixture = fixture(false, None);
    fixture.begin_dump(WATCH);
    let model = fixture.load("net.onnx", "chain");
    for _ in 0..2 {
        assert_eq!(fixture.execute(model, [1.0, 2.0]), Ok(vec![3.0, 5.0]));
    }
    assert_eq!(dumped(&fixture), [""; 0]);
    let told = fixture.process.recent_error().unwrap();
    assert_eq!(
        told.matches("nothing of model `net` is dumped").count(),
        1,
        "{told}"
    );
    // Another kind of dump is not affected.
    fixture.set_dump(VALUES);
    assert_eq!(fixture.execute(model, [1.0, 2.0]), Ok(vec![3.0, 5.0]));
    assert!(dumped(&fixture).len() >= 2);
}

#[test]
fn a_failure_under_a_dump_alone_fails_nothing() {
    let fixture = fixture(true, None);
    fixture.begin_dump("\"dump_op_switch\": \"on\", \"dump_list\": [{}]");
    let model = fixture.load("net.onnx", "chain");
    for _ in 0..2 {
        assert_eq!(fixture.execute(model, [1.0, 2.0]), Ok(vec![3.0, 5.0]));
    }
    let told = fixture.process.recent_error().unwrap();
    assert_eq!(told.matches("it has no taps").count(), 1, "{told}");
    // A failure unrelated to the dump stays one.
    let broken = fixture.load("broken.onnx", "fails");
    assert!(fixture.execute(broken, [1.0, 2.0]).is_err());
    // Single operators need no tap of the engine.
    let process = &fixture.process;
    let desc = process.create_tensor_desc(0, &[2], 2).unwrap();
    let buffer = |values: [f32; 2]| {
        let dataset = fixture.dataset(&[&bytes(&values)]);
        (desc, process.dataset_buffer(dataset, 0).unwrap())
    };
    let (a, b, sum) = (buffer([1.0, 2.0]), buffer([3.0, 4.0]), buffer([0.0, 0.0]));
    for _ in 0..2 {
        process.execute_op("Add", &[a, b], &[sum], 0, 0).unwrap();
    }
    let all = dumped(&fixture);
    assert!(
        ["Add.Add_0", "Add.Add_1"]
            .iter()
            .all(|name| all.contains(&(*name).to_owned())),
        "{all:?}"
    );
}
