//! Declarations of float16 and bfloat16 in a model: types of values, and attributes that hold a
//! dtype.

use std::collections::HashSet;

use opscope_tensor::DType;
use prost::bytes::Bytes;

use super::dtype_attributes::{self, DTypeAttributes, is_bit_cast};
use super::is_widened;
use crate::onnx::proto;
use crate::onnx::schema::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OnnxDataType, TypeProto,
    TypeValue, ValueInfoProto,
};

/// The most that types are nested, such as sequences of optionals.
const N_LEVELS_MAX: usize = 32;
/// Operators that multiply by quantised weights, by what they call the accuracy of the other
/// factor: 2 is float16 and 3 is bfloat16.
const ACCURACY: &str = "accuracy_level";
const FLOAT32_ACCURACY: i64 = 1;
const NARROW_ACCURACIES: [i64; 2] = [2, 3];

/// The declarations of a model.
pub(super) struct Declarations {
    attributes: DTypeAttributes,
    /// Whether anything is float16 or bfloat16.
    pub(super) has_changes: bool,
    narrower: HashSet<DType>,
}

impl Declarations {
    pub(super) fn new(model: &ModelProto) -> Declarations {
        Declarations {
            attributes: DTypeAttributes::new(model),
            has_changes: false,
            narrower: HashSet::new(),
        }
    }

    /// Declares float32 instead.
    ///
    /// # Errors
    /// Text about a type that is nested too deeply.
    pub(super) fn widen(&mut self, model: &mut ModelProto) -> Result<(), String> {
        for function in &mut model.functions {
            self.function(function)?;
        }
        model
            .graph
            .iter_mut()
            .try_for_each(|graph| self.graph(graph))
    }

    /// Takes note of a dtype that a tensor of the model has.
    pub(super) fn note(&mut self, dtype: DType) {
        self.has_changes |= is_widened(dtype);
        if is_narrower_float(dtype) {
            self.narrower.insert(dtype);
        }
    }

    /// Floats that are narrower than float16, in the order of their names.
    pub(super) fn kept_dtypes(self) -> Vec<DType> {
        let mut dtypes: Vec<DType> = self.narrower.into_iter().collect();
        dtypes.sort_unstable_by_key(ToString::to_string);
        dtypes
    }

    /// Checks that no operator reads the bits of widened elements.
    ///
    /// # Errors
    /// Text that names the operator.
    pub(super) fn check_operators(&self, model: &ModelProto) -> Result<(), String> {
        let in_functions = model.functions.iter().flat_map(|function| &function.node);
        let in_graph = model.graph.iter().flat_map(|graph| &graph.node);
        let mut nodes = in_functions
            .chain(in_graph)
            .flat_map(dtype_attributes::with_inner_nodes);
        let found = nodes.find(|node| is_bit_cast(node) && self.may_see_widened(node));
        found.map_or(Ok(()), |found| {
            Err(format!(
                "node `{}` is a `BitCast` of elements of 16 bits, and float16 has other bits in \
                 float32; expected a model that does not look at them",
                proto::node_name(found)
            ))
        })
    }

    /// Whether a `BitCast`, which keeps the width, may read or make elements that are widened.
    fn may_see_widened(&self, node: &NodeProto) -> bool {
        let mut to = node.attribute.iter().filter(|attr| attr.name == "to");
        let dtype = to
            .next()
            .and_then(|to| i32::try_from(to.i?).ok())
            .and_then(proto::dtype);
        match dtype {
            Some(dtype) if is_widened(dtype) => true,
            // Whether it reads integers would take an inference of types.
            Some(dtype) => self.has_changes && dtype.bits() == Some(16),
            // A function may leave it to its callers.
            None => self.has_changes,
        }
    }

    fn graph(&mut self, graph: &mut GraphProto) -> Result<(), String> {
        let values = graph.input.iter_mut().chain(&mut graph.output);
        for value in values.chain(&mut graph.value_info) {
            self.value(value)?;
        }
        graph.node.iter_mut().try_for_each(|node| self.node(node))
    }

    fn function(&mut self, function: &mut FunctionProto) -> Result<(), String> {
        for value in &mut function.value_info {
            self.value(value)?;
        }
        // Taken out for a moment, as the function determines which of them hold a dtype.
        let defaults = std::mem::take(&mut function.attribute_proto);
        for mut default in defaults {
            let is_dtype = self.attributes.is_of_function(function, &default.name);
            self.attribute(&mut default, is_dtype)?;
            function.attribute_proto.push(default);
        }
        function
            .node
            .iter_mut()
            .try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &mut NodeProto) -> Result<(), String> {
        let attributes = std::mem::take(&mut node.attribute);
        for mut attribute in attributes {
            let is_dtype = self.attributes.contains(node, &attribute.name);
            self.attribute(&mut attribute, is_dtype)?;
            // It bounds what the kernel may round its input to, whatever the input's dtype is.
            if attribute.name == ACCURACY && NARROW_ACCURACIES.contains(&attribute.i()) {
                attribute.i = Some(FLOAT32_ACCURACY);
                self.has_changes = true;
            }
            node.attribute.push(attribute);
        }
        Ok(())
    }

    fn attribute(&mut self, attribute: &mut AttributeProto, is_dtype: bool) -> Result<(), String> {
        if is_dtype {
            if let Some(number) = &mut attribute.i
                && let Ok(code) = i32::try_from(*number)
            {
                *number = i64::from(self.code(code));
            }
            // The first operator set had the dtype of a `Cast` as text.
            if matches!(attribute.s(), b"FLOAT16" | b"BFLOAT16") {
                attribute.s = Some(Bytes::from_static(b"FLOAT"));
                self.has_changes = true;
            }
        }
        for r#type in attribute.tp.iter_mut().chain(&mut attribute.type_protos) {
            self.r#type(r#type, 0)?;
        }
        let mut bodies = attribute.g.iter_mut().chain(&mut attribute.graphs);
        bodies.try_for_each(|body| self.graph(body))
    }

    fn value(&mut self, value: &mut ValueInfoProto) -> Result<(), String> {
        let r#type = value.r#type.as_mut();
        r#type
            .map_or(Ok(()), |r#type| self.r#type(r#type, 0))
            .map_err(|reason| format!("the type of `{}` {reason}", value.name))
    }

    fn r#type(&mut self, r#type: &mut TypeProto, depth: usize) -> Result<(), String> {
        if depth > N_LEVELS_MAX {
            return Err(format!("is nested deeper than {N_LEVELS_MAX}"));
        }
        match &mut r#type.value {
            Some(TypeValue::TensorType(tensor) | TypeValue::SparseTensorType(tensor)) => {
                if let Some(code) = &mut tensor.elem_type {
                    *code = self.code(*code);
                }
            }
            Some(TypeValue::SequenceType(element) | TypeValue::OptionalType(element)) => {
                if let Some(inner) = &mut element.elem_type {
                    self.r#type(inner, depth + 1)?;
                }
            }
            Some(TypeValue::MapType(map)) => {
                if let Some(inner) = &mut map.value_type {
                    self.r#type(inner, depth + 1)?;
                }
            }
            Some(TypeValue::OpaqueType(_)) | None => {}
        }
        Ok(())
    }

    /// The number of a dtype, or of the one that it becomes.
    fn code(&mut self, code: i32) -> i32 {
        let Some(dtype) = proto::dtype(code) else {
            return code;
        };
        self.note(dtype);
        if is_widened(dtype) {
            OnnxDataType::Float as i32
        } else {
            code
        }
    }
}

/// Whether these are floats of fewer bits than float16.
fn is_narrower_float(dtype: DType) -> bool {
    use DType::*;
    matches!(
        dtype,
        F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F8E8M0 | F6E2M3 | F6E3M2 | F4E2M1
    )
}
