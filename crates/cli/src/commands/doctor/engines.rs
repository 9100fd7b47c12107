//! The engines that run models.

use anyhow::{Result, anyhow, bail};
use opscope_engine::choice::{
    self, ENGINE_VARIABLE, EngineChoice, EngineKind, EngineRequest, LIBRARY_VARIABLE,
};
use opscope_engine::single_operator::read_json;
use opscope_engine::{LoadOptions, ModelSource};
use opscope_tensor::{DType, Shape, Tensor};
use serde_json::json;

use super::Check;

/// The operator that each engine runs.
const OPERATOR: &str = r#"{"op": "Relu", "inputs": [{"type": "float32", "shape": [3]}]}"#;
/// Its input and output.
const CASE: [[f32; 3]; 2] = [[-1.5, 0.0, 2.5], [0.0, 0.0, 2.5]];
/// Variables that decide which engine runs models.
const VARIABLES: [&str; 3] = [ENGINE_VARIABLE, LIBRARY_VARIABLE, "ORT_DYLIB_PATH"];

/// The checks, the built-in engine's first, and the engine that commands use by default, or why
/// there is none.
pub(super) fn check() -> (Vec<Check>, Result<String, String>) {
    let wanted = EngineRequest::from_environment();
    let library = wanted
        .as_ref()
        .ok()
        .and_then(|wanted| wanted.library.clone());
    let tract = EngineRequest {
        kind: EngineKind::Tract,
        library: None,
    };
    let runtime = EngineRequest {
        kind: EngineKind::OnnxRuntime,
        library,
    };
    let chosen = wanted.and_then(|wanted| choice::choose(&wanted));
    let used = chosen
        .map(|chosen| title(&chosen))
        .map_err(|error| error.to_string());
    let checks = vec![
        of_tract(&tract),
        of_onnx_runtime(&runtime),
        variables(used.as_ref().err()),
    ];
    (checks, used)
}

fn of_tract(request: &EngineRequest) -> Check {
    let found = choice::choose(request).map_err(|error| anyhow!(error));
    let ran = found.and_then(|chosen| run(&chosen).map(|()| chosen));
    match ran {
        Ok(chosen) => {
            let version = chosen.engine.version().unwrap_or_default().to_owned();
            let detail = format!("{version}, built in; ran an operator");
            Check::ok("tract", detail, json!({ "version": version }))
        }
        Err(error) => Check::ok("tract", format!("{error:#}"), json!({}))
            .problem("report this with the output of `opscope doctor --json`"),
    }
}

fn of_onnx_runtime(request: &EngineRequest) -> Check {
    const NAME: &str = "onnxruntime";
    const USE: &str = "for operators that tract lacks, faster runs and other devices";
    let chosen = match choice::choose(request) {
        Ok(chosen) => chosen,
        Err(error) if request.library.is_none() => {
            let advice = format!("pip install onnxruntime ({USE})");
            let reason = error.to_string();
            // The rest of the reason is advice as well.
            let found = reason.split("; install it").next().unwrap_or_default();
            return Check::missing(NAME, found, advice);
        }
        Err(error) => {
            let check = Check::ok(NAME, error.to_string(), json!({}));
            return check.problem(format!("correct {LIBRARY_VARIABLE}, or unset it"));
        }
    };
    let library = chosen
        .engine
        .library()
        .map(|path| path.display().to_string());
    let values = json!({ "version": chosen.engine.version(), "library": library });
    match run(&chosen) {
        Ok(()) => Check::ok(NAME, format!("{}; ran an operator", chosen.reason), values),
        Err(error) => Check::ok(NAME, format!("{}: {error:#}", chosen.reason), values)
            .problem("install another version: pip install --upgrade onnxruntime"),
    }
}

/// `failure` is the reason for which no engine is in use.
fn variables(failure: Option<&String>) -> Check {
    let set = VARIABLES.into_iter().filter_map(|name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some((name.to_owned(), value.display().to_string()))
    });
    let set: Vec<(String, String)> = set.collect();
    let texts: Vec<String> = set
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let detail = match texts.as_slice() {
        [] => format!("none of {} is set", VARIABLES.join(", ")),
        texts => texts.join(", "),
    };
    let set: serde_json::Map<_, _> = set
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    let are_wrong = failure.is_some() && !set.is_empty();
    let check = Check::ok("variables", detail, json!({ "set": set }));
    if are_wrong {
        return check.problem("correct or unset them: no model runs as they are");
    }
    check
}

/// Name and version.
fn title(chosen: &EngineChoice) -> String {
    let name = chosen.engine.name();
    let version = chosen.engine.version().unwrap_or_default();
    format!("{name} {version}").trim_end().to_owned()
}

/// Runs an operator and compares its output.
fn run(chosen: &EngineChoice) -> Result<()> {
    let operators = read_json(OPERATOR)?;
    let operator = operators.first().ok_or_else(|| anyhow!("no operator"))?;
    let operator = operator.for_engine()?;
    let source = ModelSource::Memory(operator.bytes());
    let mut model = chosen.engine.load(source, &LoadOptions::with_threads(1))?;
    let [input, expected] = CASE.map(|values| values.map(f32::to_le_bytes).concat());
    let input = Tensor::from_vec(DType::F32, Shape::new([3])?, input)?;
    let outputs = model.run(&[input], None)?;
    let [output] = outputs.as_slice() else {
        bail!("an operator with one output had {}", outputs.len());
    };
    if output.host_bytes()? != expected {
        bail!("a Relu computed another result than expected");
    }
    Ok(())
}
