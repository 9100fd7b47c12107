//! The difference between two tensors, as one operation: axes exchanged, rolled, scaled, clipped, …

mod tensor_change;

pub use self::tensor_change::{
    AxisPart, ElementFunction, RoundedFormat, RoundingMode, TensorChange,
};
