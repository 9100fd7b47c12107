//! Composing an operator: its arguments, and the graph that computes it.

mod arguments;
mod checks;
mod value;

use std::borrow::Borrow;

use opscope_engine::DeclaredDim;
use opscope_engine::single_operator::{Operand as GraphOperand, OperatorAttribute, OperatorGraph};
use opscope_tensor::{DType, Layout, Shape, Tensor};

use self::value::GraphBuilder;
pub(crate) use self::value::{Operand, Value};
use super::elements::{Numbers, convert, raw_dtype};
use super::object::{ScalarNumber, ScalarValue};
use super::parameter::{Argument, Parameter, TensorArgument};
use super::promotion::{Weight, compute_type, is_float, is_number};
use crate::status::{ACLNN_INNER, ACLNN_PARAM_INVALID, Status};

/// The default operator set of a graph.
const OPSET: i64 = 17;

/// Why an operator is not supported with these arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl Refusal {
    /// The refusal of an invalid argument.
    pub(crate) fn invalid(text: impl Into<String>) -> Refusal {
        Refusal {
            status: ACLNN_PARAM_INVALID,
            text: text.into(),
        }
    }

    fn inner(text: String) -> Refusal {
        Refusal {
            status: ACLNN_INNER,
            text,
        }
    }
}

/// Refuses the arguments if the condition holds; the text is that of `format!`.
macro_rules! refuse_if {
    ($condition:expr, $($text:tt)+) => {
        if $condition {
            let text = format_args!($($text)+).to_string();
            return Err($crate::aclnn::call::Refusal::invalid(text));
        }
    };
}
pub(super) use refuse_if;

/// The result of a function that composes an operator.
pub(crate) type Composed<T = ()> = Result<T, Refusal>;

/// The conversion of an argument's elements to or from a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementForm {
    /// As numbers of the second dtype, after conversion to the first.
    Number(DType, DType),
    /// As integers with the same bits.
    Raw,
}

/// A tensor argument: the index of the parameter, and the index in its list.
pub(crate) type Place = (usize, usize);

/// A value passed to the graph on each run.
#[derive(Clone, Debug)]
pub(crate) enum Feed {
    /// The elements of an argument.
    Argument(Place, ElementForm),
    /// The elements of an argument as int64, after conversion to this dtype; a 0 is refused.
    Divisor(Place, DType),
    /// The same value each time.
    Value(Tensor),
}

/// The source of an output's elements.
#[derive(Clone, Debug)]
pub(crate) enum ResultSource {
    /// The graph's result at this position.
    Graph(usize, ElementForm),
    /// The same, with as many entries along its axes as the values require, up to the output's.
    Part(usize, ElementForm),
    /// This number for each element.
    Fill(ScalarNumber),
}

/// A graph with its inputs and the destinations of its results.
#[derive(Default)]
pub(crate) struct ComposedGraph {
    pub(crate) graph: OperatorGraph,
    pub(crate) feeds: Vec<Feed>,
    pub(crate) results: Vec<(Place, ResultSource)>,
}

/// A tensor or a scalar: operators treat them the same.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side<'a> {
    Tensor(&'a TensorArgument),
    Scalar(&'a ScalarValue),
}

impl Side<'_> {
    /// The shape; a scalar has no axes.
    pub(crate) fn dims(&self) -> &[usize] {
        match self {
            Side::Tensor(tensor) => tensor.dims(),
            Side::Scalar(_) => &[],
        }
    }

    pub(crate) fn dtype(&self) -> DType {
        match self {
            Side::Tensor(tensor) => tensor.dtype,
            Side::Scalar(scalar) => scalar.dtype,
        }
    }

    fn weight(&self) -> Weight {
        match self {
            Side::Tensor(tensor) => weight(tensor),
            Side::Scalar(_) => Weight::Scalar,
        }
    }
}

/// A call of an operator during composition. Parameters have the names in the table; `self` and
/// `out` both name the tensor of an in-place operator.
pub(crate) struct OperatorCall<'a> {
    parameters: &'static [Parameter],
    arguments: &'a [Argument],
    graph: GraphBuilder,
}

impl<'a> OperatorCall<'a> {
    pub(crate) fn new(
        parameters: &'static [Parameter],
        arguments: &'a [Argument],
    ) -> OperatorCall<'a> {
        let graph = GraphBuilder::default();
        graph.update(|composed| composed.graph.opset = OPSET);
        OperatorCall {
            parameters,
            arguments,
            graph,
        }
    }

    pub(crate) fn finish(self) -> ComposedGraph {
        self.graph.finish()
    }

    // ---- Values of the graph

    /// The elements of an argument as numbers of `dtype`, converted like in C.
    pub(crate) fn read(&self, tensor: &TensorArgument, dtype: DType) -> Composed<Value> {
        self.read_as(tensor, dtype, dtype)
    }

    /// Like [`OperatorCall::read`], with a conversion to `via` first.
    pub(crate) fn read_as(
        &self,
        tensor: &TensorArgument,
        via: DType,
        dtype: DType,
    ) -> Composed<Value> {
        // Non-numeric dtypes would otherwise fail at stage two, too late for an argument error.
        self.expect_dtype(tensor, is_number, "booleans, integers or floats")?;
        // Converted before the engine sees it: engines differ in conversions and in supported
        // dtypes.
        let feed = Feed::Argument(tensor.place, ElementForm::Number(via, dtype));
        Ok(self.feed(feed, dtype, tensor.dims()))
    }

    /// Like [`OperatorCall::read_as`], for a tensor or a scalar.
    pub(crate) fn read_side(&self, side: Side<'_>, via: DType, dtype: DType) -> Composed<Value> {
        match side {
            Side::Tensor(tensor) => self.read_as(tensor, via, dtype),
            Side::Scalar(scalar) => {
                // A scalar is converted like a tensor of one element.
                let rounded = filled(scalar.number, via, Shape::scalar());
                let tensor = rounded.and_then(|tensor| convert(&tensor, dtype));
                let tensor = tensor.ok_or_else(|| no_number(dtype))?;
                Ok(self.feed(Feed::Value(tensor), dtype, &[]))
            }
        }
    }

    /// Like [`OperatorCall::read_side`], for an integer divisor. Engines abort the process at a
    /// division by zero, so such a run is refused.
    pub(crate) fn read_divisor(&self, side: Side<'_>, via: DType) -> Composed<Value> {
        match side {
            Side::Tensor(tensor) => {
                let feed = Feed::Divisor(tensor.place, via);
                Ok(self.feed(feed, DType::I64, tensor.dims()))
            }
            Side::Scalar(scalar) => {
                if !scalar.is_true() {
                    return Err(Refusal::invalid("integers are divided by 0"));
                }
                self.read_side(side, via, DType::I64)
            }
        }
    }

    /// The elements of an argument as integers with the same bits, for operators that only move
    /// elements: int64 for elements of eight bytes, int32 otherwise.
    pub(crate) fn read_raw(&self, tensor: &TensorArgument) -> Composed<Value> {
        let dtype = tensor.dtype.bytes().and_then(raw_dtype).ok_or_else(|| {
            let text = format!("a tensor is {tensor}; expected elements of 1, 2, 4 or 8 bytes");
            Refusal::invalid(text)
        })?;
        let feed = Feed::Argument(tensor.place, ElementForm::Raw);
        Ok(self.feed(feed, dtype, tensor.dims()))
    }

    /// A scalar, passed to each run, so that another value needs no other graph.
    pub(crate) fn scalar_value(&self, scalar: &ScalarValue, dtype: DType) -> Composed<Value> {
        self.number_value(scalar.number, dtype)
    }

    /// Like [`OperatorCall::scalar_value`].
    pub(crate) fn number_value(&self, number: ScalarNumber, dtype: DType) -> Composed<Value> {
        let tensor = filled(number, dtype, Shape::scalar());
        let tensor = tensor.ok_or_else(|| no_number(dtype))?;
        Ok(self.feed(Feed::Value(tensor), dtype, &[]))
    }

    /// A tensor created here and passed to each run.
    pub(crate) fn tensor_value(&self, tensor: Tensor) -> Value {
        let (dtype, dims) = (tensor.dtype(), tensor.shape().dims().to_vec());
        self.feed(Feed::Value(tensor), dtype, &dims)
    }

    fn feed(&self, feed: Feed, dtype: DType, dims: &[usize]) -> Value {
        let value = self.graph.new_value(dtype);
        // The shape is part of the graph's bytes, so each shape has a graph prepared for it.
        let dims = dims.iter().map(|&n| DeclaredDim::Fixed(n)).collect();
        let operand = operand(&value.name, dtype, Some(dims));
        self.graph.update(|composed| {
            composed.graph.inputs.push(operand);
            composed.feeds.push(feed);
        });
        value
    }

    /// A scalar constant in the graph.
    pub(crate) fn constant(&self, number: f64, dtype: DType) -> Value {
        self.graph.number(number, dtype)
    }

    /// A constant list of int64 in the graph, as required for shapes and axes.
    pub(crate) fn constant_ints(&self, list: &[i64]) -> Value {
        self.graph.ints(list)
    }

    /// Like [`OperatorCall::constant_ints`], for a shape.
    pub(crate) fn constant_dims(&self, dims: &[usize]) -> Value {
        self.graph.dims(dims)
    }

    /// The result of a node without attributes.
    pub(crate) fn node(&self, op: &'static str, inputs: &[&Value], dtype: DType) -> Value {
        self.node_with(op, inputs, Vec::new(), dtype)
    }

    /// The result of a node.
    pub(crate) fn node_with(
        &self,
        op: &'static str,
        inputs: &[&Value],
        attributes: Vec<(&'static str, OperatorAttribute)>,
        dtype: DType,
    ) -> Value {
        let inputs: Vec<Option<&Value>> = inputs.iter().map(|&value| Some(value)).collect();
        let mut values = self.node_of_many(op, &inputs, attributes, &[dtype]);
        values.swap_remove(0)
    }

    /// The results of a node, one for each of `dtypes`; inputs may be omitted.
    pub(crate) fn node_of_many(
        &self,
        op: &'static str,
        inputs: &[Option<&Value>],
        attributes: Vec<(&'static str, OperatorAttribute)>,
        dtypes: &[DType],
    ) -> Vec<Value> {
        self.graph.node(op, inputs, attributes, dtypes)
    }

    /// Requires a later operator set for some nodes. It changes the meaning of others.
    pub(crate) fn use_opset(&self, opset: i64) {
        self.graph.update(|composed| {
            // A graph has a single operator set.
            composed.graph.opset = opset.max(composed.graph.opset);
        });
    }

    // ---- Results

    /// Stores a value as an output. Its numbers are rounded or wrapped to `dtype`, the operator's
    /// result type, and then converted to the output's dtype.
    pub(crate) fn write(
        &self,
        out: &TensorArgument,
        value: impl Borrow<Value>,
        dtype: DType,
    ) -> Composed {
        let form = ElementForm::Number(dtype, out.dtype);
        self.write_as(out, value.borrow(), form, ResultSource::Graph)
    }

    /// Stores integers from [`OperatorCall::read_raw`] as elements with the same bits.
    pub(crate) fn write_raw(&self, out: &TensorArgument, value: impl Borrow<Value>) -> Composed {
        self.write_as(out, value.borrow(), ElementForm::Raw, ResultSource::Graph)
    }

    /// Like [`OperatorCall::write`], for a value whose shape depends on the inputs' values. The
    /// output has the maximum size, and gets the shape of the value.
    pub(crate) fn write_part(
        &self,
        out: &TensorArgument,
        value: impl Borrow<Value>,
        dtype: DType,
    ) -> Composed {
        let form = ElementForm::Number(dtype, out.dtype);
        self.write_as(out, value.borrow(), form, ResultSource::Part)
    }

    /// Like [`OperatorCall::write_part`], for elements from [`OperatorCall::read_raw`].
    pub(crate) fn write_raw_part(
        &self,
        out: &TensorArgument,
        value: impl Borrow<Value>,
    ) -> Composed {
        self.write_as(out, value.borrow(), ElementForm::Raw, ResultSource::Part)
    }

    fn write_as(
        &self,
        out: &TensorArgument,
        value: &Value,
        form: ElementForm,
        source: fn(usize, ElementForm) -> ResultSource,
    ) -> Composed {
        // Engines are not asked for empty results, which some of them refuse.
        if out.is_empty() {
            self.fill(out, ScalarNumber::Int(0))?;
        } else {
            let source = source(self.graph_output(value), form);
            self.graph
                .update(|composed| composed.results.push((out.place, source)));
        }
        self.graph.refusal()
    }

    /// The index of a value among the graph's results.
    fn graph_output(&self, value: &Value) -> usize {
        // A separate node: a graph may not return an input directly, nor a value twice.
        let result = self.node("Identity", &[value], value.dtype);
        let operand = operand(&result.name, result.dtype, None);
        self.graph.update(|composed| {
            composed.graph.outputs.push(operand);
            composed.graph.outputs.len() - 1
        })
    }

    /// Stores one number in every element of an output.
    pub(crate) fn fill(&self, out: &TensorArgument, number: ScalarNumber) -> Composed {
        let source = ResultSource::Fill(number);
        self.graph
            .update(|composed| composed.results.push((out.place, source)));
        Ok(())
    }
}

/// The weight of a tensor in type promotion.
fn weight(tensor: &TensorArgument) -> Weight {
    if tensor.n_axes() == 0 {
        Weight::NoAxes
    } else {
        Weight::Axes
    }
}

/// The dtype of operators that always return floats: integers become single precision.
pub(crate) fn as_float(dtype: DType) -> DType {
    if is_float(dtype) { dtype } else { DType::F32 }
}

/// Like [`compute_type`], with booleans as integers.
pub(crate) fn arithmetic_type(dtype: DType) -> DType {
    match compute_type(dtype) {
        DType::Bool => DType::I64,
        other => other,
    }
}

/// A tensor filled with one number; `None` for non-numeric dtypes.
pub(crate) fn filled(number: ScalarNumber, dtype: DType, shape: Shape) -> Option<Tensor> {
    // The same conversion as for elements, so that both are rounded alike.
    let one = match number {
        ScalarNumber::Int(n) => Numbers::Ints(vec![n]),
        ScalarNumber::Float(n) => Numbers::Doubles(vec![n]),
    };
    let bytes = one.to_bytes(dtype)?;
    let n = shape.n_elements();
    // The size is that of an output, whose memory already exists.
    let bytes = if n == 1 { bytes } else { bytes.repeat(n) };
    Tensor::from_vec(dtype, shape, bytes).ok()
}

fn operand(name: &str, dtype: DType, dims: Option<Vec<DeclaredDim>>) -> GraphOperand {
    GraphOperand {
        name: name.to_owned(),
        dtype,
        dims,
        constant: None,
        layout: Layout::Nd,
        origin_layout: None,
    }
}

fn no_number(dtype: DType) -> Refusal {
    Refusal::inner(format!("no number can be made of type {dtype}"))
}
