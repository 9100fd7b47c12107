//! A process with an engine of closures, and helpers for tests.

#![allow(dead_code, reason = "each test uses a part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_acl::{AclProcess, Handle, Status};
use opscope_config::ConfigEnvironment;
use opscope_engine::fake::FakeModel;
use opscope_engine::{
    DeclaredDim, Engine, EngineError, LoadOptions, LoadedModel, ModelSignature, ModelSource,
    ValueInfo,
};
use opscope_tensor::{DType, Shape, Tensor};

/// An engine that knows a few models, by the first word of the file.
pub(crate) struct FakeEngine;

impl Engine for FakeEngine {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn load(
        &self,
        source: ModelSource<'_>,
        _options: &LoadOptions,
    ) -> Result<Box<dyn LoadedModel>, EngineError> {
        let (bytes, path) = match source {
            ModelSource::File(path) => {
                let read = fs::read(path).map_err(|source| EngineError::Read {
                    path: path.to_owned(),
                    source,
                });
                (read?, path.to_owned())
            }
            ModelSource::Memory(bytes) => (bytes.to_vec(), PathBuf::from("memory")),
            ModelSource::Part { bytes, path } => (bytes.to_vec(), path.to_owned()),
        };
        let text = String::from_utf8_lossy(&bytes);
        let model = match text.split_whitespace().next() {
            Some("chain") => chain(&[DeclaredDim::Fixed(2)]),
            Some("open") => chain(&[DeclaredDim::Named("n".into()), DeclaredDim::Fixed(2)]),
            Some("fails") => failing(),
            // A single operator is passed as ONNX.
            _ if text.contains("Add") => adding(),
            _ => {
                let reason = "it is of another kind".into();
                return Err(EngineError::Invalid { path, reason });
            }
        };
        Ok(Box::new(model))
    }
}

fn value(name: &str, dims: &[DeclaredDim]) -> ValueInfo {
    ValueInfo {
        name: name.to_owned(),
        dtype: DType::F32,
        dims: Some(dims.to_vec()),
    }
}

fn signature(inputs: &[&str], output: &str, dims: &[DeclaredDim]) -> ModelSignature {
    ModelSignature {
        graph_name: "graph".into(),
        inputs: inputs.iter().map(|name| value(name, dims)).collect(),
        initialised_inputs: vec![],
        outputs: vec![value(output, dims)],
    }
}

/// `Twice a`, then `Next b`.
fn chain(dims: &[DeclaredDim]) -> FakeModel {
    FakeModel::new(signature(&["x"], "z", dims))
        .with("Twice", "a", &["x"], &["y"], |x| {
            Ok(vec![map(&x[0], |v| v * 2.0)])
        })
        .with("Next", "b", &["y"], &["z"], |y| {
            Ok(vec![map(&y[0], |v| v + 1.0)])
        })
}

fn failing() -> FakeModel {
    FakeModel::new(signature(&["x"], "z", &[DeclaredDim::Fixed(2)]))
        .with("Twice", "a", &["x"], &["y"], |x| {
            Ok(vec![map(&x[0], |v| v * 2.0)])
        })
        .with(
            "Broken",
            "b",
            &["y"],
            &["z"],
            |_| Err("it is broken".into()),
        )
}

fn adding() -> FakeModel {
    FakeModel::new(signature(&["x0", "x1"], "y0", &[DeclaredDim::Fixed(2)])).with(
        "Add",
        "Add",
        &["x0", "x1"],
        &["y0"],
        |x| {
            let (a, b) = (
                floats(x[0].host_bytes().unwrap()),
                floats(x[1].host_bytes().unwrap()),
            );
            let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
            Ok(vec![tensor(x[0].shape().clone(), &sum)])
        },
    )
}

fn map(x: &Tensor, f: impl Fn(f32) -> f32) -> Tensor {
    let values: Vec<f32> = floats(x.host_bytes().unwrap()).into_iter().map(f).collect();
    tensor(x.shape().clone(), &values)
}

fn tensor(shape: Shape, values: &[f32]) -> Tensor {
    Tensor::from_vec(DType::F32, shape, bytes(values)).unwrap()
}

pub(crate) fn bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    let values = bytes.chunks_exact(4);
    values
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

/// A process whose current directory is a temporary one.
pub(crate) struct Fixture {
    pub(crate) process: AclProcess,
    pub(crate) dir: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        Fixture::with(|_| {})
    }

    /// With environment variables.
    pub(crate) fn with(set: impl FnOnce(&mut ConfigEnvironment)) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let mut environment = ConfigEnvironment {
            current_dir: dir.path().to_owned(),
            ..ConfigEnvironment::default()
        };
        set(&mut environment);
        fs::create_dir(dir.path().join("out")).unwrap();
        Fixture {
            process: AclProcess::with_environment(Arc::new(FakeEngine), environment),
            dir,
        }
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// A file with this text; `@DIR@` is replaced by the dump directory.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        let out = self.out();
        fs::write(&path, text.replace("@DIR@", out.to_str().unwrap())).unwrap();
        path
    }

    /// `aclInit`, `aclmdlInitDump` and `aclmdlSetDump` with further members of a `dump` object
    /// besides its path.
    pub(crate) fn begin_dump(&self, members: &str) {
        self.process.init(None).unwrap();
        self.process.init_dump().unwrap();
        self.set_dump(members);
    }

    pub(crate) fn set_dump(&self, members: &str) {
        let text = format!("{{\"dump\": {{\"dump_path\": \"@DIR@\", {members}}}}}");
        let path = self.file("acl.json", &text);
        self.process.set_dump(Some(&path)).unwrap();
    }

    pub(crate) fn load(&self, name: &str, kind: &str) -> u32 {
        self.process.load_from_file(&self.file(name, kind)).unwrap()
    }

    /// A dataset of buffers with these bytes, in memory of the process.
    pub(crate) fn dataset(&self, buffers: &[&[u8]]) -> Handle {
        let process = &self.process;
        let dataset = process.create_dataset();
        for bytes in buffers {
            let address = process.malloc(bytes.len(), 0).unwrap();
            process.write_memory(address, bytes).unwrap();
            let buffer = process.create_data_buffer(address, bytes.len());
            process.add_dataset_buffer(dataset, buffer).unwrap();
        }
        dataset
    }

    pub(crate) fn contents(&self, dataset: Handle, index: usize) -> Vec<u8> {
        let process = &self.process;
        let buffer = process.dataset_buffer(dataset, index).unwrap();
        let (address, size) = (
            process.data_buffer_address(buffer),
            process.data_buffer_size(buffer),
        );
        process.read_memory(address, size).unwrap()
    }

    /// Executes a model with one input and one output of two numbers.
    pub(crate) fn execute(&self, model: u32, input: [f32; 2]) -> Result<Vec<f32>, Status> {
        let inputs = self.dataset(&[&bytes(&input)]);
        let outputs = self.dataset(&[&[0; 8]]);
        self.process.execute(model, inputs, outputs)?;
        Ok(floats(&self.contents(outputs, 0)))
    }

    /// Files below the dump directory: `{time}` is replaced by its ordinal, time stamps are
    /// removed.
    pub(crate) fn dumped(&self) -> Vec<String> {
        let mut times: Vec<String> = Vec::new();
        for entry in fs::read_dir(self.out()).unwrap() {
            times.push(entry.unwrap().file_name().into_string().unwrap());
        }
        times.sort();
        let mut files = Vec::new();
        for (i, time) in times.iter().enumerate() {
            let is_time = time.len() == 14 && time.bytes().all(|b| b.is_ascii_digit());
            let top = if is_time { i.to_string() } else { time.clone() };
            walk(&self.out().join(time), &top, &mut files);
        }
        files.sort();
        files
    }
}

fn walk(dir: &Path, name: &str, files: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let child = entry.file_name().into_string().unwrap();
        // Metadata of the dump is not part of it.
        if child == ".opscope" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), &format!("{name}/{child}"), files);
        } else {
            let suffix = if child.ends_with(".csv") { ".csv" } else { "" };
            let stem = child.trim_end_matches(".csv");
            let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
            files.push(format!("{name}/{stem}{suffix}"));
        }
    }
}
