//! A graph by its values.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use opscope_store::record::Operator;
use opscope_tensor::{DType, Shape};
use prost::bytes::Bytes;

use crate::onnx::attribute;
use crate::onnx::external::ExternalFiles;
use crate::onnx::proto::{self, ModelBytes};
use crate::onnx::schema::{AttributeProto, ModelProto, NodeProto, OnnxDataType, TensorProto};
use crate::onnx::widen::tensor_elements;
use crate::{EngineError, ModelSource};

/// A model, and which of its operators makes which value.
pub(super) struct GraphSide {
    pub(super) model: ModelProto,
    /// Its file.
    pub(super) path: PathBuf,
    /// The operator and the number of its output, by the value's name.
    makers: HashMap<String, (usize, usize)>,
    constants: HashMap<String, ConstantPlace>,
    /// Operators by name; none where several have it.
    nodes: HashMap<String, Option<usize>>,
    files: RefCell<ExternalFiles>,
}

/// Where a constant is: a weight of the graph by its number, or a node's value.
enum ConstantPlace {
    Weight(usize),
    Value(Box<TensorProto>),
}

impl GraphSide {
    pub(super) fn read(source: ModelSource<'_>) -> Result<GraphSide, EngineError> {
        let (model, path) = match source {
            ModelSource::File(path) => (proto::read(path)?, path),
            ModelSource::Memory(bytes) => (proto::decode(bytes)?, Path::new(proto::MEMORY)),
            ModelSource::Part { bytes, path } => (proto::decode(bytes)?, path),
        };
        let ModelBytes { proto: model, .. } = model;
        let folder = path.parent().map(Path::to_owned);
        let mut side = GraphSide {
            model,
            path: path.to_owned(),
            makers: HashMap::new(),
            constants: HashMap::new(),
            nodes: HashMap::new(),
            files: RefCell::new(ExternalFiles::new(&folder.unwrap_or_default())),
        };
        side.index();
        Ok(side)
    }

    fn index(&mut self) {
        let Some(graph) = &self.model.graph else {
            return;
        };
        // A caller may give some of them other values, and no comparison does.
        let weights = graph.initializer.iter().enumerate();
        self.constants
            .extend(weights.map(|(at, tensor)| (tensor.name.clone(), ConstantPlace::Weight(at))));
        for (index, node) in graph.node.iter().enumerate() {
            if let Some((name, tensor)) = constant_of(node) {
                let value = ConstantPlace::Value(Box::new(tensor));
                self.constants.insert(name.to_owned(), value);
                continue;
            }
            for (number, name) in node.output.iter().enumerate() {
                self.makers.insert(name.clone(), (index, number));
            }
            let known = self.nodes.entry(proto::node_name(node));
            known.and_modify(|at| *at = None).or_insert(Some(index));
        }
    }

    pub(super) fn nodes(&self) -> &[NodeProto] {
        self.model.graph.as_ref().map_or(&[], |graph| &graph.node)
    }

    /// The output of the operator with a name, if there is one alone.
    pub(super) fn output_of(&self, name: &str, number: usize) -> Option<&str> {
        let node = &self.nodes()[(*self.nodes.get(name)?)?];
        let output = node.output.get(number).map(String::as_str);
        output.filter(|name| !name.is_empty())
    }

    /// The operator that makes a value, and the number of its output. Constants are made by none.
    pub(super) fn maker(&self, value: &str) -> Option<(usize, usize)> {
        self.makers.get(value).copied()
    }

    /// Whether the model returns a value.
    pub(super) fn returns(&self, value: &str) -> bool {
        let mut outputs = self.model.graph.iter().flat_map(|graph| &graph.output);
        outputs.any(|output| output.name == value)
    }

    /// The operator with a name, if there is one alone.
    pub(super) fn node(&self, name: &str) -> Option<&NodeProto> {
        Some(&self.nodes()[(*self.nodes.get(name)?)?])
    }

    /// Attributes that an operator has without naming them, as text.
    pub(super) fn defaults(&self, node: &NodeProto) -> HashMap<String, String> {
        let all = self.default_attributes(node).into_iter();
        all.map(|default| (default.name.clone(), attribute::text(&default)))
            .collect()
    }

    /// The same as attributes.
    pub(super) fn default_attributes(&self, node: &NodeProto) -> Vec<AttributeProto> {
        let all = self.described(node).default_attributes;
        let all = all.iter();
        all.filter_map(|default| attribute::parse(&default.name, &default.text, default.r#type))
            .collect()
    }

    fn described(&self, node: &NodeProto) -> Operator {
        let mut operator = proto::operator(node, 0);
        operator.set_defaults(&proto::opsets(&self.model));
        operator
    }

    /// Where the default of an operator comes from, behind it.
    pub(super) fn by_default(&self, node: &NodeProto) -> String {
        let opsets = proto::opsets(&self.model);
        let mut opsets = opsets.iter();
        match opsets.find(|(domain, _)| proto::is_same_domain(domain, &node.domain)) {
            Some((_, version)) => format!(" (default of opset {version})"),
            None => String::new(),
        }
    }

    pub(super) fn constant(&self, value: &str) -> Option<&TensorProto> {
        match self.constants.get(value)? {
            ConstantPlace::Weight(at) => self.model.graph.as_ref()?.initializer.get(*at),
            ConstantPlace::Value(tensor) => Some(tensor),
        }
    }

    /// The elements of a tensor; none if they are not where the model says.
    pub(super) fn elements(&self, tensor: &TensorProto) -> Option<(DType, Shape, Bytes)> {
        let dtype = proto::dtype(tensor.data_type())?;
        let dims = tensor.dims.iter().map(|&dim| usize::try_from(dim).ok());
        let shape = Shape::new(dims.collect::<Option<Vec<_>>>()?).ok()?;
        let elements = tensor_elements(&mut self.files.borrow_mut(), tensor, dtype, &shape).ok()?;
        Some((dtype, shape, elements))
    }
}

/// The name and the value of a node that holds a constant.
pub(super) fn constant_of(node: &NodeProto) -> Option<(&str, TensorProto)> {
    let is_constant = node.op_type == proto::CONSTANT && proto::is_standard(&node.domain);
    let name = node.output.first().filter(|_| is_constant)?;
    let [value] = &node.attribute[..] else {
        return None;
    };
    Some((name, constant(value)?))
}

/// The tensor that an attribute of `Constant` represents.
fn empty_tensor(dtype: OnnxDataType, dims: &[i64]) -> TensorProto {
    TensorProto {
        dims: dims.to_vec(),
        data_type: Some(dtype as i32),
        ..TensorProto::default()
    }
}

fn constant(value: &AttributeProto) -> Option<TensorProto> {
    // Sparse ones and texts have no elements that could be compared here.
    Some(match value.name.as_str() {
        "value" => value.t.clone()?,
        "value_float" => TensorProto {
            float_data: vec![value.f()],
            ..empty_tensor(OnnxDataType::Float, &[])
        },
        "value_int" => TensorProto {
            int64_data: vec![value.i()],
            ..empty_tensor(OnnxDataType::Int64, &[])
        },
        "value_floats" => TensorProto {
            float_data: value.floats.clone(),
            ..empty_tensor(OnnxDataType::Float, &[value.floats.len() as i64])
        },
        "value_ints" => TensorProto {
            int64_data: value.ints.clone(),
            ..empty_tensor(OnnxDataType::Int64, &[value.ints.len() as i64])
        },
        _ => return None,
    })
}
