//! Composing an operator: its arguments, and the graph that computes it.

use std::borrow::Cow;

use opscope_engine::DeclaredDim;
use opscope_engine::single_operator::{GraphNode, Operand, OperatorAttribute, OperatorGraph};
use opscope_store::file_format::ascend_codes::dtype_from_graph_engine;
use opscope_tensor::{DType, Layout, Shape, Tensor};

use super::elements::{Numbers, convert, raw_dtype};
use super::object::{ScalarNumber, ScalarValue};
use super::parameter::{Argument, Parameter, ParameterKind, TensorArgument};
use super::promotion::{Weight, can_cast, compute_type, is_float, is_number, result_type};
use super::shape::broadcast;
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

    // ---- Arguments

    /// Whether the operator has a parameter of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    fn position(&self, name: &str) -> Option<usize> {
        // The vendor's headers do not agree on the names of the first operand and of the result.
        let others: &[&str] = match name {
            "self" => &["selfRef", "input", "inputRef"],
            "out" => &["result"],
            _ => &[],
        };
        let mut names = std::iter::once(&name).chain(others);
        let found = names.find_map(|&name| {
            let mut parameters = self.parameters.iter();
            parameters.position(|one| one.name() == name)
        });
        let is_out = name == "out";
        let in_place = |one: &Parameter| one.kind == ParameterKind::Inplace;
        found.or_else(|| is_out.then(|| self.parameters.iter().position(in_place))?)
    }

    fn argument(&self, name: &str) -> Composed<&'a Argument> {
        let at = self.position(name);
        at.and_then(|at| self.arguments.get(at))
            .ok_or_else(|| Refusal::inner(format!("the operator has no parameter `{name}`")))
    }

    /// A tensor that has to be there.
    pub(crate) fn tensor(&self, name: &str) -> Composed<&'a TensorArgument> {
        match self.argument(name)? {
            Argument::Tensor(tensor) => Ok(tensor),
            other => Err(mismatch(name, other)),
        }
    }

    /// A tensor or a scalar, whichever the parameter takes.
    pub(crate) fn side(&self, name: &str) -> Composed<Side<'a>> {
        match self.argument(name)? {
            Argument::Tensor(tensor) => Ok(Side::Tensor(tensor)),
            Argument::Scalar(scalar) => Ok(Side::Scalar(scalar)),
            other => Err(mismatch(name, other)),
        }
    }

    /// As [`OperatorCall::side`], of a parameter that may be absent.
    pub(crate) fn optional_side(&self, name: &str) -> Composed<Option<Side<'a>>> {
        match self.argument(name)? {
            Argument::Absent => Ok(None),
            _ => self.side(name).map(Some),
        }
    }

    /// A tensor that may be absent.
    pub(crate) fn optional_tensor(&self, name: &str) -> Composed<Option<&'a TensorArgument>> {
        match self.argument(name)? {
            Argument::Absent => Ok(None),
            Argument::Tensor(tensor) => Ok(Some(tensor)),
            other => Err(mismatch(name, other)),
        }
    }

    /// The tensors of a list.
    pub(crate) fn tensors(&self, name: &str) -> Composed<&'a [TensorArgument]> {
        match self.argument(name)? {
            Argument::Tensors(tensors) => Ok(tensors),
            other => Err(mismatch(name, other)),
        }
    }

    /// A scalar that has to be there.
    pub(crate) fn scalar(&self, name: &str) -> Composed<&'a ScalarValue> {
        match self.argument(name)? {
            Argument::Scalar(scalar) => Ok(scalar),
            other => Err(mismatch(name, other)),
        }
    }

    /// A scalar that may be absent.
    pub(crate) fn optional_scalar(&self, name: &str) -> Composed<Option<&'a ScalarValue>> {
        match self.argument(name)? {
            Argument::Absent => Ok(None),
            Argument::Scalar(scalar) => Ok(Some(scalar)),
            other => Err(mismatch(name, other)),
        }
    }

    /// A whole number.
    pub(crate) fn int(&self, name: &str) -> Composed<i64> {
        match self.argument(name)? {
            Argument::Int(number) => Ok(*number),
            other => Err(mismatch(name, other)),
        }
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> Composed<f64> {
        match self.argument(name)? {
            Argument::Number(number) => Ok(*number),
            other => Err(mismatch(name, other)),
        }
    }

    /// A boolean.
    pub(crate) fn flag(&self, name: &str) -> Composed<bool> {
        Ok(self.int(name)? != 0)
    }

    /// A list of whole numbers.
    pub(crate) fn ints(&self, name: &str) -> Composed<&'a [i64]> {
        match self.argument(name)? {
            Argument::Ints(list) => Ok(list),
            other => Err(mismatch(name, other)),
        }
    }

    /// A list of whole numbers that may be absent.
    pub(crate) fn optional_ints(&self, name: &str) -> Composed<Option<&'a [i64]>> {
        match self.argument(name)? {
            Argument::Absent => Ok(None),
            Argument::Ints(list) => Ok(Some(list)),
            other => Err(mismatch(name, other)),
        }
    }

    /// The axes that a parameter names, which takes one or a list; none without the parameter, or
    /// for null.
    pub(crate) fn axis_numbers(&self, name: &str) -> Composed<Vec<i64>> {
        if !self.has(name) {
            return Ok(Vec::new());
        }
        match self.argument(name)? {
            Argument::Absent => Ok(Vec::new()),
            Argument::Int(axis) => Ok(vec![*axis]),
            Argument::Ints(axes) => Ok(axes.clone()),
            other => Err(mismatch(name, other)),
        }
    }

    /// A list of booleans.
    pub(crate) fn flags(&self, name: &str) -> Composed<&'a [bool]> {
        match self.argument(name)? {
            Argument::Flags(list) => Ok(list),
            other => Err(mismatch(name, other)),
        }
    }

    /// A type of elements.
    pub(crate) fn dtype(&self, name: &str) -> Composed<DType> {
        let number = self.int(name)?;
        let dtype = i32::try_from(number).ok().and_then(dtype_from_graph_engine);
        dtype.ok_or_else(|| Refusal::invalid(format!("`{name}` is {number}, which is no type")))
    }

    /// A text; the empty one for null.
    pub(crate) fn text(&self, name: &str) -> Composed<Cow<'a, str>> {
        match self.argument(name)? {
            Argument::Absent => Ok(Cow::Borrowed("")),
            Argument::Text(text) => Ok(Cow::Borrowed(text)),
            other => Err(mismatch(name, other)),
        }
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

    // ---- Checks

    /// Whether an output has the shape of the result.
    pub(crate) fn expect_shape(&self, out: &TensorArgument, dims: &[usize]) -> Composed {
        if out.dims() == dims {
            return Ok(());
        }
        let name = self.name(out);
        let found = out.dims();
        Err(Refusal::invalid(format!(
            "`{name}` has the shape {found:?}; expected {dims:?}"
        )))
    }

    /// Whether an output can hold a result of type `dtype`.
    pub(crate) fn expect_cast(&self, out: &TensorArgument, dtype: DType) -> Composed {
        if can_cast(dtype, out.dtype) {
            return Ok(());
        }
        Err(Refusal::invalid(format!(
            "`{}` is {}, which cannot hold results of type {dtype}",
            self.name(out),
            out.dtype
        )))
    }

    /// Whether a tensor's type is among those that `is_accepted` accepts; `expected` says which.
    pub(crate) fn expect_dtype(
        &self,
        tensor: &TensorArgument,
        is_accepted: fn(DType) -> bool,
        expected: &str,
    ) -> Composed {
        if is_accepted(tensor.dtype) {
            return Ok(());
        }
        let (name, dtype) = (self.name(tensor), tensor.dtype);
        Err(Refusal::invalid(format!(
            "`{name}` is {dtype}; expected {expected}"
        )))
    }

    /// As [`OperatorCall::expect_dtype`], for floats.
    pub(crate) fn expect_float(&self, tensor: &TensorArgument) -> Composed {
        self.expect_dtype(tensor, is_float, "float16, bfloat16, float32 or float64")
    }

    /// The name of the parameter that a tensor was passed for.
    pub(crate) fn name(&self, tensor: &TensorArgument) -> &'static str {
        let parameter = self.parameters.get(tensor.place.0);
        parameter.map_or("", Parameter::name)
    }

    /// The type of a result of these tensors and scalars, by PyTorch's rules.
    pub(crate) fn promote(
        &self,
        tensors: &[&TensorArgument],
        scalars: &[&ScalarValue],
    ) -> Composed<DType> {
        let tensors = tensors.iter().map(|&tensor| Side::Tensor(tensor));
        let scalars = scalars.iter().map(|&scalar| Side::Scalar(scalar));
        let sides: Vec<Side<'_>> = tensors.chain(scalars).collect();
        self.promote_sides(&sides)
    }

    /// As [`OperatorCall::promote`].
    pub(crate) fn promote_sides(&self, sides: &[Side<'_>]) -> Composed<DType> {
        result_type(sides.iter().map(|side| (side.dtype(), side.weight()))).ok_or_else(|| {
            let dtypes: Vec<String> = sides.iter().map(|side| side.dtype().to_string()).collect();
            let dtypes = dtypes.join(" and ");
            Refusal::invalid(format!(
                "the operands are {dtypes}; expected booleans, integers or floats"
            ))
        })
    }

    /// The shape to which all sides are broadcast, which an output has to have.
    pub(crate) fn broadcast(&self, sides: &[Side<'_>], out: &TensorArgument) -> Composed {
        let mut dims: Vec<usize> = Vec::new();
        for side in sides {
            dims = broadcast(&dims, side.dims()).ok_or_else(|| {
                let shapes: Vec<String> = sides
                    .iter()
                    .map(|side| format!("{:?}", side.dims()))
                    .collect();
                let shapes = shapes.join(" and ");
                Refusal::invalid(format!("the shapes {shapes} do not broadcast"))
            })?;
        }
        self.expect_shape(out, &dims)
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

fn mismatch(name: &str, found: &Argument) -> Refusal {
    Refusal::inner(format!("parameter `{name}` is another one: {found:?}"))
}
