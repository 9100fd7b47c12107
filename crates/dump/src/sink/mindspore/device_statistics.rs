//! The columns of `statistic.csv` as an Ascend device computes them.
//!
//! The device's reduction kernels support some types only, and their results have different types.
//! Here the numbers come from the host and are rounded to those types.

use half::{bf16, f16};
use opscope_config::dialect::mindspore::DevicePrecision;
use opscope_store::file_format::statistic_csv::{StatisticCategory, StatisticCell};
use opscope_tensor::{DType, TensorObserver};

const FLOATS: [DType; 3] = [DType::BF16, DType::F16, DType::F32];
const NUMBERS: [DType; 9] = [
    DType::BF16,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::I32,
    DType::I64,
];

/// A cell for each category. A type that the kernel does not take has no value.
pub(super) fn cells(
    tensor: TensorObserver<'_>,
    categories: &[StatisticCategory],
    precision: DevicePrecision,
) -> Vec<StatisticCell> {
    let Ok(stats) = tensor.sequential_stats() else {
        return categories.iter().map(|_| StatisticCell::Null).collect();
    };
    let dtype = tensor.dtype();
    let is_high = precision == DevicePrecision::High;
    // With low precision the kernels answer in the type of the tensor, so that a norm beyond 65504
    // of float16 is infinite; with high precision always in float32.
    let wide = if is_high { DType::F32 } else { dtype };
    // With low precision the kernels compute nothing of bool.
    let is_bool = dtype == DType::Bool && is_high;
    let cells = categories.iter().map(|category| match category {
        StatisticCategory::Max | StatisticCategory::Min if dtype == DType::I64 => {
            let is_max = *category == StatisticCategory::Max;
            let view = tensor.view();
            view.map_or(StatisticCell::Null, |view| i64_extreme(view.bytes, is_max))
        }
        StatisticCategory::Max if is_bool || NUMBERS.contains(&dtype) => extreme(stats.max, dtype),
        StatisticCategory::Min if is_bool || NUMBERS.contains(&dtype) => extreme(stats.min, dtype),
        StatisticCategory::Average if NUMBERS.contains(&dtype) => rounded(stats.mean, wide),
        StatisticCategory::L2Norm if FLOATS.contains(&dtype) => rounded(stats.l2, wide),
        _ => StatisticCell::Null,
    });
    cells.collect()
}

/// An element of the tensor, in its own type.
fn extreme(value: f64, dtype: DType) -> StatisticCell {
    match dtype {
        DType::Bool => StatisticCell::Text(if value == 0.0 { "False" } else { "True" }.to_owned()),
        DType::I8 | DType::U8 | DType::I16 | DType::I32 => StatisticCell::Text(format!("{value}")),
        _ => StatisticCell::Real(value),
    }
}

/// Doubles do not hold all of these.
fn i64_extreme(bytes: &[u8], is_max: bool) -> StatisticCell {
    let (elements, _) = bytes.as_chunks::<8>();
    let elements = elements.iter().map(|bytes| i64::from_le_bytes(*bytes));
    let found = if is_max {
        elements.max()
    } else {
        elements.min()
    };
    found.map_or(StatisticCell::Null, |value| {
        StatisticCell::Text(value.to_string())
    })
}

/// A result in the type that the kernel produces.
fn rounded(value: f64, dtype: DType) -> StatisticCell {
    match dtype {
        DType::F16 => StatisticCell::Real(f16::from_f64(value).to_f64()),
        DType::BF16 => StatisticCell::Real(bf16::from_f64(value).to_f64()),
        DType::F32 => StatisticCell::Real(f64::from(value as f32)),
        DType::F64 => StatisticCell::Real(value),
        // For integers the kernel produces an integer.
        _ => StatisticCell::Text(format!("{}", value.trunc())),
    }
}

#[cfg(test)]
mod tests {
    use opscope_store::file_format::statistic_csv;
    use opscope_store::file_format::statistic_csv::StatisticSubject;
    use opscope_tensor::{Shape, Tensor};

    use super::*;

    fn check(dtype: DType, bytes: &[u8], precision: DevicePrecision, expected: &str) {
        let n = bytes.len() / dtype.bytes().unwrap();
        let shape = Shape::new([n]).unwrap();
        let tensor = Tensor::from_vec(dtype, shape, bytes.to_vec()).unwrap();
        let categories = [
            StatisticCategory::Max,
            StatisticCategory::Min,
            StatisticCategory::Average,
            StatisticCategory::L2Norm,
        ];
        let subject = StatisticSubject::of_tensor(dtype, tensor.shape(), 0);
        let row = statistic_csv::row(&subject, &cells(tensor.observed(), &categories, precision));
        let (_, values) = row.split_once("]\",").unwrap();
        assert_eq!(values, format!("{expected},\n"), "{dtype}");
    }

    #[test]
    fn each_type_has_what_its_kernels_give() {
        use DevicePrecision::{High, Low};
        let f32s: Vec<u8> = [3_f32, -4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        check(DType::F32, &f32s, High, "3,-4,-0.5,5");
        let f16s: Vec<u8> = [0x3c00_u16, 0x3c01, 0x3c00]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        check(DType::F16, &f16s, High, "1.00098,1,1.00033,1.73261");
        check(DType::F16, &f16s, Low, "1.00098,1,1,1.73242");
        check(DType::Bool, &[0, 1], High, "True,False,null,null");
        check(DType::Bool, &[0, 1], Low, "null,null,null,null");
        check(DType::I8, &[0x80, 1, 2], High, "2,-128,-41.6667,null");
        let i64s: Vec<u8> = [i64::MAX, 0].iter().flat_map(|v| v.to_le_bytes()).collect();
        check(
            DType::I64,
            &i64s,
            High,
            "9223372036854775807,0,4.61169e+18,null",
        );
        check(DType::U16, &[1, 0], High, "null,null,null,null");
    }
}
