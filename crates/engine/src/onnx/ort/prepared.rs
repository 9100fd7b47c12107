//! A model as it is given to ONNX Runtime, and what is known of it without running it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_store::record::Operator;

use super::by_reference::{self, ModelHome};
use super::device::{CudaDevice, DeviceOpener};
use super::kind::OnnxValueKinds;
use super::rewrite::{self, ModelFacts, TappedModel};
use super::site::TapRequests;
use super::weights::ModelWeights;
use crate::LoadOptions;
use crate::onnx::proto::{self, ModelBytes};
use crate::onnx::schema::{GraphProto, ModelProto};

/// How the library begins the names of nodes that are inside a function; the function's name
/// follows.
const FUNCTION_PREFIX: &str = "_inlfunc_";

/// A model without the weights that were taken out, with unique operator names, and with large
/// weights left in its file where possible.
pub(super) struct PreparedModel {
    model: ModelProto,
    /// Where its external data are; `None` if there are none.
    folder: Option<PathBuf>,
    /// The file that it was read from, if the library finds data outside of nothing else.
    file: Option<PathBuf>,
    operators: HashMap<u32, Arc<Operator>>,
    /// Tasks of the operators of the main graph, in file order.
    main_tasks: Vec<u32>,
    graph_inputs: Vec<String>,
    weights: ModelWeights,
    kinds: OnnxValueKinds,
    tasks: HashMap<String, u32>,
    refused: HashSet<String>,
    /// Taken when taps are first wanted.
    device_opener: Option<DeviceOpener>,
    /// The device that taps are on, if they are on one.
    device: Option<Arc<CudaDevice>>,
    /// Why they are not on it although the session is.
    device_refusal: Option<String>,
}

/// Where a model comes from.
pub(super) struct ModelOrigin<'a> {
    /// The file that it was read from, or is part of.
    pub(super) path: &'a Path,
    /// Whether the bytes of the file are those of the model.
    pub(super) is_file: bool,
    /// Whether the library finds data outside of a model in memory.
    pub(super) can_refer: bool,
}

impl PreparedModel {
    /// Prepares a model that has these operators.
    pub(super) fn new(
        model: ModelBytes,
        origin: &ModelOrigin<'_>,
        operators: &[Arc<Operator>],
    ) -> PreparedModel {
        let ModelBytes {
            mut proto, bytes, ..
        } = model;
        let home = ModelHome::for_model(origin.path, &proto);
        let empty = GraphProto::default();
        let graph = proto.graph.as_ref().unwrap_or(&empty);
        let initialised: HashSet<&str> = graph
            .initializer
            .iter()
            .map(|weight| weight.name.as_str())
            .collect();
        let inputs = graph.input.iter().map(|input| input.name.clone());
        let graph_inputs = inputs
            .filter(|name| !initialised.contains(name.as_str()))
            .collect();
        let main_tasks = main_tasks(graph);
        let kinds = OnnxValueKinds::from_model(&proto);
        let weights = ModelWeights::take(&mut proto, &home.folder);
        // Errors identify a node only by its name, so each operator gets a unique one.
        let tasks = rewrite::name_nodes(&mut proto);
        let file = home.file_name.filter(|_| origin.is_file);
        match (origin.can_refer, file) {
            // Libraries before 1.21 have no way to locate external data of a model in memory.
            (false, _) => by_reference::embed(&mut proto, &weights),
            (true, Some(file_name)) => by_reference::refer(&mut proto, &bytes, &file_name),
            (true, None) => {}
        }
        let graph = proto.graph.as_ref().unwrap_or(&empty);
        PreparedModel {
            folder: proto::has_data_outside(graph).then_some(home.folder),
            operators: operators
                .iter()
                .map(|operator| (operator.task_id, operator.clone()))
                .collect(),
            file: (origin.is_file && !origin.can_refer).then(|| origin.path.to_owned()),
            main_tasks,
            graph_inputs,
            weights,
            kinds,
            tasks,
            refused: HashSet::new(),
            device_opener: None,
            device: None,
            device_refusal: None,
            model: proto,
        }
    }

    /// The model without taps.
    pub(super) fn model(&self) -> &ModelProto {
        &self.model
    }

    /// Where data outside of the model are; `None` if there are none.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Tasks of the operators of the main graph, in file order.
    pub(super) fn main_tasks(&self) -> &[u32] {
        &self.main_tasks
    }

    /// The file that the library has to read if the model is too large to be handed over. It knows
    /// nodes by the names that they have there.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The operator whose node has this name in the model that is given to the library, or has a
    /// node of this name inside because it is a function. Of several calls of a function it is not
    /// known which one is meant.
    pub(super) fn operator_of_node(&self, name: &str) -> Option<&Arc<Operator>> {
        if let Some(task_id) = self.tasks.get(name) {
            return self.operators.get(task_id);
        }
        let inside = name.strip_prefix(FUNCTION_PREFIX)?;
        let mut calls = self.operators.values().filter(|operator: &&Arc<Operator>| {
            let rest = inside.strip_prefix(operator.op_type.as_str());
            rest.is_some_and(|rest| rest.starts_with('_'))
        });
        let call = calls.next()?;
        // With several calls it is unknown which of them failed.
        calls.next().is_none().then_some(call)
    }

    /// A text of the library, with the operators' original names.
    pub(super) fn with_own_names(&self, text: &str) -> String {
        rewrite::with_own_names(text, |task_id| {
            self.operators
                .get(&task_id)
                .map(|operator| operator.op_name.as_str())
        })
    }

    /// The model with taps after the operators that are to be shown.
    pub(super) fn tapped(&self, wanted: &TapRequests) -> TappedModel {
        rewrite::tap(&self.known(), wanted)
    }

    /// The model with one tap, in front of an operator, that reads what the operator reads.
    pub(super) fn tapped_before(&self, task_id: u32) -> TappedModel {
        rewrite::tap_before(&self.known(), task_id)
    }

    /// Notes that the library shows no value of this name; whether that is new.
    pub(super) fn refuse(&mut self, name: &str) -> bool {
        self.refused.insert(name.to_owned())
    }

    /// The device that taps are on, if they are on one.
    pub(super) fn device(&self) -> Option<&Arc<CudaDevice>> {
        self.device.as_ref()
    }

    /// With a way to open a device for taps.
    pub(super) fn with_device(mut self, opener: DeviceOpener) -> PreparedModel {
        self.device_opener = Some(opener);
        self
    }

    /// Has taps on the device of sessions with these options from now on, if there is one. It is
    /// opened once.
    pub(super) fn open_device(&mut self, options: &LoadOptions) {
        match self.device_opener.take().and_then(|open| open(options)) {
            Some(Ok(device)) => self.device = Some(Arc::new(device)),
            Some(Err(reason)) => self.device_refusal = Some(reason),
            None => {}
        }
    }

    /// Has taps on the CPU from now on, for this reason; whether they were on a device.
    pub(super) fn leave_device(&mut self, reason: &str) -> bool {
        let has_left = self.device.take().is_some();
        if has_left {
            self.device_refusal = Some(reason.to_owned());
        }
        has_left
    }

    /// Takes the reason why taps are not on the device that the session is on.
    pub(super) fn take_device_refusal(&mut self) -> Option<String> {
        self.device_refusal.take()
    }

    fn known(&self) -> ModelFacts<'_> {
        ModelFacts {
            model: &self.model,
            operators: &self.operators,
            graph_inputs: &self.graph_inputs,
            weights: &self.weights,
            kinds: &self.kinds,
            refused: &self.refused,
            has_device: self.device.is_some(),
        }
    }
}

/// Tasks of the operators of a graph, without those in bodies.
fn main_tasks(graph: &GraphProto) -> Vec<u32> {
    let mut next = 0_u32;
    let mut tasks = Vec::new();
    for node in &graph.node {
        if !proto::is_constant(node) {
            tasks.push(next);
        }
        let n_inside: usize = proto::bodies(node)
            .map(|body| proto::all_nodes(body).len())
            .sum();
        // A node counts with everything inside of it.
        next = next.saturating_add(u32::try_from(n_inside + 1).unwrap_or(u32::MAX));
    }
    tasks
}
