//! MindSpore's names of the dtypes: in file names, in graph files, as numbers.

use opscope_tensor::DType;

/// One dtype.
struct Names {
    dtype: DType,
    /// In names of files that the CPU writes, and in `.ir` files.
    camel: &'static str,
    /// In names of files that accelerators write, and in `statistic.csv`.
    lower: &'static str,
    /// In `.ir` values.
    short: &'static str,
    /// In `.pb` files.
    number: Option<u64>,
}

const fn names(
    dtype: DType,
    camel: &'static str,
    lower: &'static str,
    short: &'static str,
    number: Option<u64>,
) -> Names {
    Names {
        dtype,
        camel,
        lower,
        short,
        number,
    }
}

const TABLE: &[Names] = &[
    names(DType::Bool, "Bool", "bool", "Bool", Some(1)),
    names(DType::I8, "Int8", "int8", "I8", Some(2)),
    names(DType::I16, "Int16", "int16", "I16", Some(3)),
    names(DType::I32, "Int32", "int32", "I32", Some(4)),
    names(DType::I64, "Int64", "int64", "I64", Some(5)),
    names(DType::U8, "UInt8", "uint8", "U8", Some(6)),
    names(DType::U16, "UInt16", "uint16", "U16", Some(7)),
    names(DType::U32, "UInt32", "uint32", "U32", Some(8)),
    names(DType::U64, "UInt64", "uint64", "U64", Some(9)),
    names(DType::F16, "Float16", "float16", "F16", Some(10)),
    names(DType::F32, "Float32", "float32", "F32", Some(11)),
    names(DType::F64, "Float64", "float64", "F64", Some(12)),
    names(DType::String, "String", "string", "String", Some(13)),
    names(DType::BF16, "BFloat16", "bfloat16", "BF16", Some(46)),
    names(DType::I4, "Int4", "int4", "I4", Some(48)),
    names(DType::U1, "UInt1", "uint1", "U1", None),
    names(DType::C64, "Complex64", "complex64", "C64", None),
    names(DType::C128, "Complex128", "complex128", "C128", None),
    names(
        DType::F8E4M3FN,
        "Float8E4M3FN",
        "float8_e4m3fn",
        "F8E4M3FN",
        None,
    ),
    names(DType::F8E5M2, "Float8E5M2", "float8_e5m2", "F8E5M2", None),
    names(DType::HiF8, "HiFloat8", "hifloat8", "HiF8", None),
];

/// The name with capitals: `Float32`.
pub fn camel(dtype: DType) -> Option<&'static str> {
    of(dtype).map(|names| names.camel)
}

/// The name without capitals: `float32`.
pub fn lower(dtype: DType) -> Option<&'static str> {
    of(dtype).map(|names| names.lower)
}

/// The short name: `F32`.
pub fn short(dtype: DType) -> Option<&'static str> {
    of(dtype).map(|names| names.short)
}

/// The number in `.pb` files.
pub fn number(dtype: DType) -> Option<u64> {
    of(dtype)?.number
}

/// The dtype of either long name.
pub fn from_name(name: &str) -> Option<DType> {
    find(|names| names.camel == name || names.lower == name)
}

/// The dtype of a short name.
pub fn from_short(name: &str) -> Option<DType> {
    find(|names| names.short == name)
}

/// The dtype of a number in `.pb` files.
pub fn from_number(number: u64) -> Option<DType> {
    find(|names| names.number == Some(number))
}

fn of(dtype: DType) -> Option<&'static Names> {
    TABLE.iter().find(|names| names.dtype == dtype)
}

fn find(is_wanted: impl Fn(&Names) -> bool) -> Option<DType> {
    let names = TABLE.iter().find(|names| is_wanted(names))?;
    Some(names.dtype)
}
