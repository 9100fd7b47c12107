//! Composing an operator: its arguments, and the graph that computes it.

mod arguments;
mod checks;

use opscope_engine::DeclaredDim;
use opscope_engine::single_operator::{GraphNode, Operand, OperatorAttribute, OperatorGraph};
use opscope_tensor::{DType, Layout, Shape, Tensor};

use super::elements::{Numbers, convert, raw_dtype};
use super::object::{ScalarNumber, ScalarValue};
use super::parameter::{Argument, Parameter, TensorArgument};
use super::promotion::{Weight, compute_type, is_float, is_number};
use crate::status::{ACLNN_INNER, ACLNN_PARAM_INVALID, Status};

/// The operator set of a graph, unless a node needs a later one.
const OPSET: i64 = 17;

/// Why an operator cannot be computed with these arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl Refusal {
    /// An argument is not what is expected.
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

/// The answer of a function that composes an operator.
pub(crate) type Composed<T = ()> = Result<T, Refusal>;

/// A value of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    name: String,
    pub(crate) dtype: DType,
}

/// How elements of an argument enter a graph, or leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementForm {
    /// As numbers of the second type, after they got the first.
    Number(DType, DType),
    /// As integers with the same bits.
    Raw,
}

/// A tensor among the arguments: the parameter, and the place in its list.
pub(crate) type Place = (usize, usize);

/// A value that the graph is given for each run.
#[derive(Clone, Debug)]
pub(crate) enum Feed {
    /// The elements of an argument.
    Argument(Place, ElementForm),
    /// The elements of an argument as int64, after they got this type, none of which may be 0.
    Divisor(Place, DType),
    /// The same ones each time.
    Value(Tensor),
}

/// Where the elements of an output come from.
#[derive(Clone, Debug)]
pub(crate) enum ResultSource {
    /// The graph's result at this position.
    Graph(usize, ElementForm),
    /// The same, which has as many entries along its axes as the values make, the output's at most.
    Part(usize, ElementForm),
    /// This number, for each element.
    Fill(ScalarNumber),
}

/// A graph with what it is given and where its results go.
pub(crate) struct ComposedGraph {
    pub(crate) graph: OperatorGraph,
    pub(crate) feeds: Vec<Feed>,
    pub(crate) results: Vec<(Place, ResultSource)>,
}

/// A tensor or a scalar: operators with a scalar in a tensor's place compute the same.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side<'a> {
    Tensor(&'a TensorArgument),
    Scalar(&'a ScalarValue),
}

impl Side<'_> {
    /// Its extents; a scalar has none.
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

/// A call of an operator while it is composed. Parameters go by the names of the table; `self` and
/// `out` both stand for the tensor that an operator works in.
pub(crate) struct OperatorCall<'a> {
    parameters: &'static [Parameter],
    arguments: &'a [Argument],
    composed: ComposedGraph,
    n_values: usize,
}

impl<'a> OperatorCall<'a> {
    pub(crate) fn new(
        parameters: &'static [Parameter],
        arguments: &'a [Argument],
    ) -> OperatorCall<'a> {
        let graph = OperatorGraph {
            opset: OPSET,
            ..OperatorGraph::default()
        };
        OperatorCall {
            parameters,
            arguments,
            composed: ComposedGraph {
                graph,
                feeds: Vec::new(),
                results: Vec::new(),
            },
            n_values: 0,
        }
    }

    pub(crate) fn finish(self) -> ComposedGraph {
        self.composed
    }

    // ---- Values of the graph

    fn new_name(&mut self) -> String {
        self.n_values += 1;
        format!("v{}", self.n_values)
    }

    /// The elements of an argument as numbers of `dtype`. Conversion is as C does it.
    pub(crate) fn read(&mut self, tensor: &TensorArgument, dtype: DType) -> Composed<Value> {
        self.read_as(tensor, dtype, dtype)
    }

    /// As [`OperatorCall::read`], of elements that get the type `via` before.
    pub(crate) fn read_as(
        &mut self,
        tensor: &TensorArgument,
        via: DType,
        dtype: DType,
    ) -> Composed<Value> {
        // Types that are no numbers would be refused at stage two, when it is too late for a
        // code of the arguments.
        self.expect_dtype(tensor, is_number, "booleans, integers or floats")?;
        // Converted before the engine sees it: engines differ in how they convert, and in what
        // they take.
        let feed = Feed::Argument(tensor.place, ElementForm::Number(via, dtype));
        Ok(self.feed(feed, dtype, tensor.dims()))
    }

    /// As [`OperatorCall::read_as`], of a tensor or a scalar.
    pub(crate) fn read_side(
        &mut self,
        side: Side<'_>,
        via: DType,
        dtype: DType,
    ) -> Composed<Value> {
        match side {
            Side::Tensor(tensor) => self.read_as(tensor, via, dtype),
            Side::Scalar(scalar) => {
                // A scalar goes the same way as a tensor of one element would.
                let rounded = filled(scalar.number, via, Shape::scalar());
                let tensor = rounded.and_then(|one| convert(&one, dtype));
                let tensor = tensor.ok_or_else(|| no_number(dtype))?;
                Ok(self.feed(Feed::Value(tensor), dtype, &[]))
            }
        }
    }

    /// As [`OperatorCall::read_side`], of integers that are divided by. Engines end the process at
    /// a division by zero, so that a run is refused instead.
    pub(crate) fn read_divisor(&mut self, side: Side<'_>, via: DType) -> Composed<Value> {
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
    /// elements: int64 if they have eight bytes, int32 otherwise.
    pub(crate) fn read_raw(&mut self, tensor: &TensorArgument) -> Composed<Value> {
        let dtype = tensor.dtype.bytes().and_then(raw_dtype).ok_or_else(|| {
            let text = format!("a tensor is {tensor}; expected elements of 1, 2, 4 or 8 bytes");
            Refusal::invalid(text)
        })?;
        let feed = Feed::Argument(tensor.place, ElementForm::Raw);
        Ok(self.feed(feed, dtype, tensor.dims()))
    }

    /// A number without axes. It is given for each run, so that another one needs no other graph.
    pub(crate) fn scalar_value(&mut self, scalar: &ScalarValue, dtype: DType) -> Composed<Value> {
        self.number_value(scalar.number, dtype)
    }

    /// As [`OperatorCall::scalar_value`].
    pub(crate) fn number_value(&mut self, number: ScalarNumber, dtype: DType) -> Composed<Value> {
        let tensor = filled(number, dtype, Shape::scalar());
        let tensor = tensor.ok_or_else(|| no_number(dtype))?;
        Ok(self.feed(Feed::Value(tensor), dtype, &[]))
    }

    /// A tensor that is made here and given for each run.
    pub(crate) fn tensor_value(&mut self, tensor: Tensor) -> Value {
        let (dtype, dims) = (tensor.dtype(), tensor.shape().dims().to_vec());
        self.feed(Feed::Value(tensor), dtype, &dims)
    }

    fn feed(&mut self, feed: Feed, dtype: DType, dims: &[usize]) -> Value {
        let name = self.new_name();
        // Extents are part of the graph's bytes, so that each shape has a graph that was
        // prepared for it.
        let dims = dims.iter().map(|&n| DeclaredDim::Fixed(n)).collect();
        self.composed
            .graph
            .inputs
            .push(operand(&name, dtype, Some(dims)));
        self.composed.feeds.push(feed);
        Value { name, dtype }
    }

    /// A number without axes that is part of the graph.
    pub(crate) fn constant(&mut self, number: f64, dtype: DType) -> Composed<Value> {
        let tensor = filled(ScalarNumber::Float(number), dtype, Shape::scalar());
        let tensor = tensor.ok_or_else(|| no_number(dtype))?;
        Ok(self.constant_tensor(tensor))
    }

    /// A list of int64 that is part of the graph, as extents and axes have to be.
    pub(crate) fn constant_ints(&mut self, list: &[i64]) -> Composed<Value> {
        let bytes = list.iter().flat_map(|n| n.to_le_bytes()).collect();
        let shape = Shape::new(vec![list.len()]);
        let tensor = shape
            .ok()
            .and_then(|shape| Tensor::from_vec(DType::I64, shape, bytes).ok());
        let tensor = tensor.ok_or_else(|| no_number(DType::I64))?;
        Ok(self.constant_tensor(tensor))
    }

    /// As [`OperatorCall::constant_ints`], of extents.
    pub(crate) fn constant_dims(&mut self, dims: &[usize]) -> Composed<Value> {
        let list: Vec<i64> = dims.iter().map(|&n| n.cast_signed() as i64).collect();
        self.constant_ints(&list)
    }

    fn constant_tensor(&mut self, tensor: Tensor) -> Value {
        let name = self.new_name();
        let dtype = tensor.dtype();
        self.composed.graph.constants.push((name.clone(), tensor));
        Value { name, dtype }
    }

    /// The result of a node without attributes.
    pub(crate) fn node(&mut self, op: &'static str, inputs: &[&Value], dtype: DType) -> Value {
        self.node_with(op, inputs, Vec::new(), dtype)
    }

    /// The result of a node.
    pub(crate) fn node_with(
        &mut self,
        op: &'static str,
        inputs: &[&Value],
        attributes: Vec<(&'static str, OperatorAttribute)>,
        dtype: DType,
    ) -> Value {
        let inputs: Vec<Option<&Value>> = inputs.iter().map(|&value| Some(value)).collect();
        let mut values = self.node_of_many(op, &inputs, attributes, &[dtype]);
        values.swap_remove(0)
    }

    /// The results of a node, one for each of `dtypes`; inputs may be left out.
    pub(crate) fn node_of_many(
        &mut self,
        op: &'static str,
        inputs: &[Option<&Value>],
        attributes: Vec<(&'static str, OperatorAttribute)>,
        dtypes: &[DType],
    ) -> Vec<Value> {
        let outputs: Vec<String> = dtypes.iter().map(|_| self.new_name()).collect();
        let names = inputs
            .iter()
            .map(|value| value.map(|value| value.name.clone()));
        self.composed.graph.nodes.push(GraphNode {
            op_type: op,
            inputs: names.map(Option::unwrap_or_default).collect(),
            outputs: outputs.clone(),
            attributes,
        });
        let outputs = outputs.into_iter().zip(dtypes);
        outputs
            .map(|(name, &dtype)| Value { name, dtype })
            .collect()
    }

    /// The value in another dtype, converted by the engine: only between types whose values both
    /// hold, or from booleans.
    pub(crate) fn cast(&mut self, value: &Value, dtype: DType) -> Value {
        if value.dtype == dtype {
            return value.clone();
        }
        let to = OperatorAttribute::Int(onnx_number(dtype));
        self.node_with("Cast", &[value], vec![("to", to)], dtype)
    }

    /// Whether numbers are NaN, which is no number's equal. Some engines lack the operator for it.
    pub(crate) fn is_nan(&mut self, value: &Value) -> Value {
        let is_equal = self.node("Equal", &[value, value], DType::Bool);
        self.node("Not", &[&is_equal], DType::Bool)
    }

    /// The value with the same elements in another shape.
    pub(crate) fn reshaped(&mut self, value: &Value, dims: &[usize]) -> Composed<Value> {
        let dims = self.constant_dims(dims)?;
        Ok(self.node("Reshape", &[value, &dims], value.dtype))
    }

    /// Asks for a later operator set, which some nodes need. It changes what others mean.
    pub(crate) fn use_opset(&mut self, opset: i64) {
        let current = &mut self.composed.graph.opset;
        // A graph has one set for all its nodes.
        *current = opset.max(*current);
    }

    // ---- Results

    /// Stores a value as an output. Its numbers are those of an operator whose result has the type
    /// `dtype`: they are rounded, or wrap around, to that type first, then get the output's.
    pub(crate) fn write(&mut self, out: &TensorArgument, value: &Value, dtype: DType) {
        self.write_as(out, value, ElementForm::Number(dtype, out.dtype));
    }

    /// Stores integers with the bits of elements, which [`OperatorCall::read_raw`] gave.
    pub(crate) fn write_raw(&mut self, out: &TensorArgument, value: &Value) {
        self.write_as(out, value, ElementForm::Raw);
    }

    /// As [`OperatorCall::write`], of a value with as many entries as the values of the inputs
    /// make. The output has room for the most there can be, and gets the shape of the value.
    pub(crate) fn write_part(&mut self, out: &TensorArgument, value: &Value, dtype: DType) {
        self.write_part_as(out, value, ElementForm::Number(dtype, out.dtype));
    }

    /// As [`OperatorCall::write_part`], of elements that [`OperatorCall::read_raw`] gave.
    pub(crate) fn write_raw_part(&mut self, out: &TensorArgument, value: &Value) {
        self.write_part_as(out, value, ElementForm::Raw);
    }

    fn write_as(&mut self, out: &TensorArgument, value: &Value, form: ElementForm) {
        // Engines are not asked for results without elements, which some of them refuse.
        let source = if out.is_empty() {
            ResultSource::Fill(ScalarNumber::Int(0))
        } else {
            ResultSource::Graph(self.graph_output(value), form)
        };
        self.composed.results.push((out.place, source));
    }

    fn write_part_as(&mut self, out: &TensorArgument, value: &Value, form: ElementForm) {
        let source = if out.is_empty() {
            ResultSource::Fill(ScalarNumber::Int(0))
        } else {
            ResultSource::Part(self.graph_output(value), form)
        };
        self.composed.results.push((out.place, source));
    }

    /// The position of a value among the graph's results.
    fn graph_output(&mut self, value: &Value) -> usize {
        let position = self.composed.graph.outputs.len();
        // A node of its own: a graph may not give an input on as it is, nor a value twice.
        let result = self.node("Identity", &[value], value.dtype);
        let operand = operand(&result.name, result.dtype, None);
        self.composed.graph.outputs.push(operand);
        position
    }

    /// Stores one number in every element of an output.
    pub(crate) fn fill(&mut self, out: &TensorArgument, number: ScalarNumber) {
        let source = ResultSource::Fill(number);
        self.composed.results.push((out.place, source));
    }
}

/// How much the type of a tensor counts.
fn weight(tensor: &TensorArgument) -> Weight {
    if tensor.n_axes() == 0 {
        Weight::NoAxes
    } else {
        Weight::Axes
    }
}

/// The type of an operator that gives floats of anything: integers count as single precision.
pub(crate) fn as_float(dtype: DType) -> DType {
    if is_float(dtype) { dtype } else { DType::F32 }
}

/// As [`compute_type`], with booleans as integers.
pub(crate) fn arithmetic_type(dtype: DType) -> DType {
    match compute_type(dtype) {
        DType::Bool => DType::I64,
        other => other,
    }
}

/// A tensor of one number; `None` for types that are no numbers.
pub(crate) fn filled(number: ScalarNumber, dtype: DType, shape: Shape) -> Option<Tensor> {
    // Through the same conversion as elements, so that both are rounded alike.
    let one = match number {
        ScalarNumber::Int(n) => Numbers::Ints(vec![n]),
        ScalarNumber::Float(n) => Numbers::Doubles(vec![n]),
    };
    let bytes = one.to_bytes(dtype)?;
    let n = shape.n_elements();
    // The size is that of an output, whose memory is there already.
    let bytes = if n == 1 { bytes } else { bytes.repeat(n) };
    Tensor::from_vec(dtype, shape, bytes).ok()
}

fn operand(name: &str, dtype: DType, dims: Option<Vec<DeclaredDim>>) -> Operand {
    Operand {
        name: name.to_owned(),
        dtype,
        dims,
        constant: None,
        layout: Layout::Nd,
        origin_layout: None,
    }
}

/// The numbers of ONNX for the types that graphs compute in.
fn onnx_number(dtype: DType) -> i64 {
    opscope_engine::onnx_number(dtype).map_or(0, u64::cast_signed)
}

fn no_number(dtype: DType) -> Refusal {
    Refusal::inner(format!("no number can be made of type {dtype}"))
}
