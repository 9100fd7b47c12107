//! Elements in fields of a message that are for one type each.

use opscope_tensor::{DType, Shape};

use super::schema::TensorProto;

/// The elements as little-endian bytes, packed where the type is narrower than a byte; `None` if
/// their number is not that of the shape, or the type is in none of the fields.
pub(super) fn bytes(tensor: &TensorProto, dtype: DType, shape: &Shape) -> Option<Vec<u8>> {
    let n_bytes = shape.n_bytes(dtype).ok()?;
    let bits = dtype.bits()?;
    let bytes: Vec<u8> = match dtype {
        DType::F32 | DType::C64 => tensor
            .float_data
            .iter()
            .flat_map(|f| f.to_le_bytes())
            .collect(),
        DType::F64 | DType::C128 => tensor
            .double_data
            .iter()
            .flat_map(|f| f.to_le_bytes())
            .collect(),
        DType::I64 => tensor
            .int64_data
            .iter()
            .flat_map(|i| i.to_le_bytes())
            .collect(),
        DType::U64 => tensor
            .uint64_data
            .iter()
            .flat_map(|u| u.to_le_bytes())
            .collect(),
        DType::U32 => tensor
            .uint64_data
            .iter()
            .flat_map(|u| (*u as u32).to_le_bytes())
            .collect(),
        // One element each, or as many of a narrow type as fill a byte.
        _ => match bits {
            32 => tensor
                .int32_data
                .iter()
                .flat_map(|i| i.to_le_bytes())
                .collect(),
            16 => tensor
                .int32_data
                .iter()
                .flat_map(|i| (*i as u16).to_le_bytes())
                .collect(),
            8 | 4 | 2 => tensor.int32_data.iter().map(|i| *i as u8).collect(),
            _ => return None,
        },
    };
    (bytes.len() == n_bytes).then_some(bytes)
}

/// Empties the fields that [`bytes`] reads.
pub(super) fn clear(tensor: &mut TensorProto) {
    tensor.float_data = Vec::new();
    tensor.double_data = Vec::new();
    tensor.int32_data = Vec::new();
    tensor.int64_data = Vec::new();
    tensor.uint64_data = Vec::new();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_its_field() {
        let tensor = TensorProto {
            float_data: vec![1.0, -2.0],
            double_data: vec![0.5, 4.0],
            int32_data: vec![0x1234_5678, -1],
            int64_data: vec![i64::MIN, 1],
            uint64_data: vec![u64::MAX, 7],
            ..TensorProto::default()
        };
        let check = |dtype, dims: &[usize], expected: Option<&[u8]>| {
            let shape = Shape::new(dims).unwrap();
            assert_eq!(
                bytes(&tensor, dtype, &shape).as_deref(),
                expected,
                "{dtype}"
            );
        };
        let floats = [1.0_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()].concat();
        check(DType::F32, &[2], Some(&floats));
        check(DType::C64, &[1], Some(&floats));
        check(DType::F32, &[3], None);
        let doubles = [0.5_f64.to_le_bytes(), 4.0_f64.to_le_bytes()].concat();
        check(DType::F64, &[2], Some(&doubles));
        check(DType::C128, &[], Some(&doubles));
        check(
            DType::I64,
            &[2],
            Some(&[i64::MIN.to_le_bytes(), 1_i64.to_le_bytes()].concat()),
        );
        check(
            DType::U64,
            &[2],
            Some(&[u64::MAX.to_le_bytes(), 7_u64.to_le_bytes()].concat()),
        );
        check(DType::U32, &[2], Some(&[255, 255, 255, 255, 7, 0, 0, 0]));
        check(
            DType::I32,
            &[2],
            Some(&[0x78, 0x56, 0x34, 0x12, 255, 255, 255, 255]),
        );
        check(DType::BF16, &[2], Some(&[0x78, 0x56, 255, 255]));
        check(DType::U8, &[2], Some(&[0x78, 255]));
        check(DType::I4, &[3], Some(&[0x78, 255]));
        check(DType::I4, &[5], None);
        check(DType::U2, &[8], Some(&[0x78, 255]));
        check(DType::F6E2M3, &[2], None);
    }
}
