//! Elements that are NaN or infinite.

use opscope_tensor::{DType, Shape, Tensor, TensorView, has_non_finite};

use super::float_bits::FloatBits;

/// Whether any element is NaN or infinite; `false` for a tensor outside the host's memory.
pub(super) fn holds_non_finite(tensor: &Tensor) -> bool {
    tensor.host_view().is_ok_and(has_non_finite)
}

/// The positions of the non-finite elements. A complex number is one element.
pub(super) fn non_finite_elements(tensor: TensorView<'_>) -> Vec<usize> {
    let (part, n_parts) = tensor.dtype.parts();
    let Some(float) = FloatBits::for_dtype(part) else {
        return (0..tensor.bytes.len())
            .filter(|i| is_non_finite_byte(tensor.dtype, tensor.bytes[*i]))
            .collect();
    };
    let mut elements = float.positions(tensor.bytes, |number| !float.is_finite(number));
    elements.iter_mut().for_each(|i| *i /= n_parts);
    // Both parts of a complex number may be non-finite, and their positions are adjacent.
    elements.dedup();
    elements
}

/// The same for formats that are not sign and magnitude.
fn is_non_finite_byte(dtype: DType, byte: u8) -> bool {
    let shape = Shape::scalar();
    dtype.bytes() == Some(1) && has_non_finite(TensorView::new(dtype, &shape, &[byte]))
}
