//! Values of a graph. Formulas of values add nodes: `x * 0.5` is a node that multiplies.

use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};
use std::rc::Rc;

use opscope_engine::single_operator::{GraphNode, OperatorAttribute};
use opscope_tensor::{DType, Shape, Tensor};

use super::{Composed, ComposedGraph, Refusal, filled, no_number};
use crate::aclnn::object::ScalarNumber;

/// The graph under composition, which the operator call and its values share.
#[derive(Clone, Default)]
pub(super) struct GraphBuilder(Rc<RefCell<GraphState>>);

#[derive(Default)]
struct GraphState {
    composed: ComposedGraph,
    n_values: usize,
    /// The first failure, so that formulas need no error of their own.
    refusal: Option<Refusal>,
}

/// A value of the graph.
#[derive(Clone)]
pub(crate) struct Value {
    graph: GraphBuilder,
    pub(super) name: String,
    pub(crate) dtype: DType,
}

impl GraphBuilder {
    pub(super) fn finish(&self) -> ComposedGraph {
        std::mem::take(&mut self.0.borrow_mut().composed)
    }

    /// Calls `change` with the graph.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut ComposedGraph) -> T) -> T {
        change(&mut self.0.borrow_mut().composed)
    }

    /// The refusal of a constant, if there is one.
    pub(super) fn refusal(&self) -> Composed {
        match &self.0.borrow().refusal {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(()),
        }
    }

    pub(super) fn new_value(&self, dtype: DType) -> Value {
        let state = &mut *self.0.borrow_mut();
        state.n_values += 1;
        Value {
            graph: self.clone(),
            name: format!("v{}", state.n_values),
            dtype,
        }
    }

    /// A constant of the graph; without a tensor the composition is refused.
    pub(super) fn constant(&self, tensor: Option<Tensor>, dtype: DType) -> Value {
        let value = self.new_value(dtype);
        let state = &mut *self.0.borrow_mut();
        match tensor {
            Some(tensor) => {
                let constants = &mut state.composed.graph.constants;
                constants.push((value.name.clone(), tensor));
            }
            None => {
                state.refusal.get_or_insert_with(|| no_number(dtype));
            }
        }
        value
    }

    pub(super) fn number(&self, number: f64, dtype: DType) -> Value {
        let tensor = filled(ScalarNumber::Float(number), dtype, Shape::scalar());
        self.constant(tensor, dtype)
    }

    pub(super) fn ints(&self, list: &[i64]) -> Value {
        let bytes = list.iter().flat_map(|n| n.to_le_bytes()).collect();
        let shape = Shape::new(vec![list.len()]).ok();
        let tensor = shape.and_then(|shape| Tensor::from_vec(DType::I64, shape, bytes).ok());
        self.constant(tensor, DType::I64)
    }

    pub(super) fn dims(&self, dims: &[usize]) -> Value {
        let list: Vec<i64> = dims.iter().map(|&n| n.cast_signed() as i64).collect();
        self.ints(&list)
    }

    /// The results of a node, one for each of `dtypes`; inputs may be omitted.
    pub(super) fn node(
        &self,
        op: &'static str,
        inputs: &[Option<&Value>],
        attributes: Vec<(&'static str, OperatorAttribute)>,
        dtypes: &[DType],
    ) -> Vec<Value> {
        let outputs: Vec<Value> = dtypes.iter().map(|&dtype| self.new_value(dtype)).collect();
        let inputs = inputs
            .iter()
            .map(|value| value.map(|value| value.name.clone()));
        let node = GraphNode {
            op_type: op,
            inputs: inputs.map(Option::unwrap_or_default).collect(),
            outputs: outputs.iter().map(|value| value.name.clone()).collect(),
            attributes,
        };
        self.update(|composed| composed.graph.nodes.push(node));
        outputs
    }
}

/// An operand of a formula: a value, or a number of the other operand's dtype.
pub(crate) trait Operand {
    /// The dtype, unless it is that of the other operand.
    fn dtype(&self) -> Option<DType>;

    /// The operand as a value of the graph of `other`.
    fn into_value(self, other: &Value, dtype: DType) -> Value;
}

impl Operand for &Value {
    fn dtype(&self) -> Option<DType> {
        Some(self.dtype)
    }

    fn into_value(self, _other: &Value, _dtype: DType) -> Value {
        self.clone()
    }
}

impl Operand for Value {
    fn dtype(&self) -> Option<DType> {
        Some(self.dtype)
    }

    fn into_value(self, _other: &Value, _dtype: DType) -> Value {
        self
    }
}

impl Operand for f64 {
    fn dtype(&self) -> Option<DType> {
        None
    }

    fn into_value(self, other: &Value, dtype: DType) -> Value {
        other.graph.number(self, dtype)
    }
}

/// Methods that are nodes of two operands: `name = op, dtype of the result;`
macro_rules! binary_nodes {
    ($($(#[$doc:meta])* $name:ident = $op:literal, $dtype:expr;)+) => {$(
        $(#[$doc])*
        pub(crate) fn $name(&self, other: impl Operand) -> Value {
            let other = other.into_value(self, self.dtype);
            self.node($op, &[&other], $dtype(self.dtype))
        }
    )+};
}

/// Methods that are nodes of one operand.
macro_rules! unary_nodes {
    ($($name:ident = $op:literal;)+) => {$(
        pub(crate) fn $name(&self) -> Value {
            self.node($op, &[], self.dtype)
        }
    )+};
}

impl Value {
    /// The result of a node, given its inputs after the first.
    fn node(&self, op: &'static str, others: &[&Value], dtype: DType) -> Value {
        let others = others.iter().map(|&value| Some(value));
        let inputs: Vec<Option<&Value>> = std::iter::once(Some(self)).chain(others).collect();
        let mut values = self.graph.node(op, &inputs, Vec::new(), &[dtype]);
        values.swap_remove(0)
    }

    unary_nodes! {
        abs = "Abs";
        acos = "Acos";
        acosh = "Acosh";
        asin = "Asin";
        asinh = "Asinh";
        atan = "Atan";
        ceil = "Ceil";
        cos = "Cos";
        cosh = "Cosh";
        exp = "Exp";
        floor = "Floor";
        log = "Log";
        round = "Round";
        sign = "Sign";
        sin = "Sin";
        sinh = "Sinh";
        sqrt = "Sqrt";
        tan = "Tan";
        tanh = "Tanh";
    }

    binary_nodes! {
        equal = "Equal", |_| DType::Bool;
        less = "Less", |_| DType::Bool;
        less_or_equal = "LessOrEqual", |_| DType::Bool;
        greater = "Greater", |_| DType::Bool;
        greater_or_equal = "GreaterOrEqual", |_| DType::Bool;
        pow = "Pow", |dtype| dtype;
        matmul = "MatMul", |dtype| dtype;
    }

    /// A constant of the same dtype.
    pub(crate) fn number(&self, number: f64) -> Value {
        self.graph.number(number, self.dtype)
    }

    /// `a` where the condition holds, `b` elsewhere; one of them is a value.
    pub(crate) fn choose(&self, a: impl Operand, b: impl Operand) -> Value {
        let dtype = a.dtype().or(b.dtype()).unwrap_or(DType::F32);
        let (a, b) = (a.into_value(self, dtype), b.into_value(self, dtype));
        self.node("Where", &[&a, &b], dtype)
    }

    /// The value in another dtype, converted by the engine: only for values that both dtypes
    /// represent, or from booleans.
    pub(crate) fn cast(&self, dtype: DType) -> Value {
        if self.dtype == dtype {
            return self.clone();
        }
        // ONNX's numbers of the dtypes in which graphs compute.
        let number = opscope_engine::onnx_number(dtype).map_or(0, u64::cast_signed);
        let to = vec![("to", OperatorAttribute::Int(number))];
        let mut values = self.graph.node("Cast", &[Some(self)], to, &[dtype]);
        values.swap_remove(0)
    }

    /// Whether numbers are NaN, by comparison with themselves. Some engines lack `IsNaN`.
    pub(crate) fn is_nan(&self) -> Value {
        !self.equal(self)
    }

    /// The value with the same elements in another shape.
    pub(crate) fn reshaped(&self, dims: &[usize]) -> Value {
        self.reshaped_by(&self.graph.dims(dims))
    }

    /// Like [`Value::reshaped`], for a shape in the graph.
    pub(crate) fn reshaped_by(&self, dims: &Value) -> Value {
        self.node("Reshape", &[dims], self.dtype)
    }

    /// The value, broadcast to a shape.
    pub(crate) fn expanded(&self, dims: &[usize]) -> Value {
        self.expanded_by(&self.graph.dims(dims))
    }

    /// Like [`Value::expanded`], for a shape in the graph.
    pub(crate) fn expanded_by(&self, dims: &Value) -> Value {
        self.node("Expand", &[dims], self.dtype)
    }
}

/// Rust's operators of two values, or of a value and a number.
macro_rules! operators {
    ($($trait:ident $method:ident = $op:literal;)+) => {$(
        impl<T: Operand> $trait<T> for &Value {
            type Output = Value;

            fn $method(self, other: T) -> Value {
                let other = other.into_value(self, self.dtype);
                self.node($op, &[&other], self.dtype)
            }
        }

        impl<T: Operand> $trait<T> for Value {
            type Output = Value;

            fn $method(self, other: T) -> Value {
                (&self).$method(other)
            }
        }

        impl $trait<&Value> for f64 {
            type Output = Value;

            fn $method(self, other: &Value) -> Value {
                self.into_value(other, other.dtype).$method(other)
            }
        }

        impl $trait<Value> for f64 {
            type Output = Value;

            fn $method(self, other: Value) -> Value {
                self.$method(&other)
            }
        }
    )+};
}

operators! {
    Add add = "Add";
    BitAnd bitand = "And";
    BitOr bitor = "Or";
    Div div = "Div";
    Mul mul = "Mul";
    Sub sub = "Sub";
}

/// Rust's operators of one value.
macro_rules! prefixes {
    ($($trait:ident $method:ident = $op:literal;)+) => {$(
        impl $trait for &Value {
            type Output = Value;

            fn $method(self) -> Value {
                self.node($op, &[], self.dtype)
            }
        }

        impl $trait for Value {
            type Output = Value;

            fn $method(self) -> Value {
                (&self).$method()
            }
        }
    )+};
}

prefixes! {
    Neg neg = "Neg";
    Not not = "Not";
}
