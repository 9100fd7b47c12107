//! Whether a tensor of a device overflowed.

use half::f16;
use opscope_store::file_format::dump_data::dtype_from_code;
use opscope_tensor::DType;

use super::dump::FileTensor;
use super::metrics::NAN;
use super::stop::CompareStop;
use crate::array::SaveOrder;

/// `YES` if a `float16` element is infinite or the largest number; `NO` with any NaN, as in the
/// reference. Other types get no answer.
pub(super) fn overflow_text(tensor: &FileTensor) -> Result<&'static str, CompareStop> {
    if dtype_from_code(tensor.data_type) != Some(DType::F16) {
        return Ok(NAN);
    }
    let array = tensor.decode()?;
    let bytes = array.bytes_in_order(SaveOrder::C);
    let (elements, _) = bytes.as_chunks::<2>();
    if array.n_elements() == 0 {
        let message = "zero-size array to reduction operation maximum which has no identity";
        return Err(CompareStop::Exception(message.to_owned()));
    }
    let mut has_large = false;
    for &element in elements {
        let element = f16::from_le_bytes(element);
        if element.is_nan() {
            return Ok("NO");
        }
        has_large |= element.to_f32().abs() >= f16::MAX.to_f32();
    }
    Ok(if has_large { "YES" } else { "NO" })
}
