//! Checks of a call's arguments, and the resulting dtypes and shapes.

use opscope_tensor::DType;

use super::{Composed, OperatorCall, Refusal, Side};
use crate::aclnn::object::ScalarValue;
use crate::aclnn::parameter::{Parameter, TensorArgument};
use crate::aclnn::promotion::{can_cast, is_float, result_type};
use crate::aclnn::shape::broadcast;

impl OperatorCall<'_> {
    /// Checks that an output has the shape of the result.
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

    /// Checks that an output can hold a result of type `dtype`.
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

    /// Checks that an output has the shape of a tensor, and can hold its dtype.
    pub(crate) fn expect_like(&self, out: &TensorArgument, x: &TensorArgument) -> Composed {
        self.expect_shape(out, x.dims())?;
        self.expect_cast(out, x.dtype)
    }

    /// Checks that a tensor's dtype satisfies `is_accepted`; `expected` describes it.
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

    /// Like [`OperatorCall::expect_dtype`], for floats.
    pub(crate) fn expect_float(&self, tensor: &TensorArgument) -> Composed {
        self.expect_dtype(tensor, is_float, "float16, bfloat16, float32 or float64")
    }

    /// The parameter of a tensor argument.
    pub(crate) fn name(&self, tensor: &TensorArgument) -> &'static str {
        let parameter = self.parameters.get(tensor.place.0);
        parameter.map_or("", Parameter::name)
    }

    /// The result dtype of these tensors and scalars, by PyTorch's promotion rules.
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

    /// Like [`OperatorCall::promote`].
    pub(crate) fn promote_sides(&self, sides: &[Side<'_>]) -> Composed<DType> {
        result_type(sides.iter().map(|side| (side.dtype(), side.weight()))).ok_or_else(|| {
            let dtypes: Vec<String> = sides.iter().map(|side| side.dtype().to_string()).collect();
            let dtypes = dtypes.join(" and ");
            Refusal::invalid(format!(
                "the operands are {dtypes}; expected booleans, integers or floats"
            ))
        })
    }

    /// The broadcast shape of all sides, which an output must have.
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
