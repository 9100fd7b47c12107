//! MindSpore's names of the dtypes: in file names, in graph files, as numbers.

use opscope_tensor::DType;

/// The names of one dtype.
struct DTypeNames {
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
    camel: &'static str,
    lower: &'static str,
    short: &'static str,
    number: Option<u64>,
) -> DTypeNames {
    DTypeNames {
        camel,
        lower,
        short,
        number,
    }
}

/// One row for each dtype; MindSpore lacks those at the end.
fn names_of(dtype: DType) -> Option<DTypeNames> {
    use DType::*;
    Some(match dtype {
        Bool => names("Bool", "bool", "Bool", Some(1)),
        I8 => names("Int8", "int8", "I8", Some(2)),
        I16 => names("Int16", "int16", "I16", Some(3)),
        I32 => names("Int32", "int32", "I32", Some(4)),
        I64 => names("Int64", "int64", "I64", Some(5)),
        U8 => names("UInt8", "uint8", "U8", Some(6)),
        U16 => names("UInt16", "uint16", "U16", Some(7)),
        U32 => names("UInt32", "uint32", "U32", Some(8)),
        U64 => names("UInt64", "uint64", "U64", Some(9)),
        F16 => names("Float16", "float16", "F16", Some(10)),
        F32 => names("Float32", "float32", "F32", Some(11)),
        F64 => names("Float64", "float64", "F64", Some(12)),
        String => names("String", "string", "String", Some(13)),
        // The numbers in between belong to tensors, lists, tuples and other types that are no
        // dtypes.
        BF16 => names("BFloat16", "bfloat16", "BF16", Some(46)),
        I4 => names("Int4", "int4", "I4", Some(48)),
        U1 => names("UInt1", "uint1", "U1", None),
        // The `.pb` message has no number for complex types: MindSpore fails to compile a graph
        // with complex tensors while it dumps.
        C64 => names("Complex64", "complex64", "C64", None),
        C128 => names("Complex128", "complex128", "C128", None),
        F8E4M3FN => names("Float8E4M3FN", "float8_e4m3fn", "F8E4M3FN", None),
        F8E5M2 => names("Float8E5M2", "float8_e5m2", "F8E5M2", None),
        HiF8 => names("HiFloat8", "hifloat8", "HiF8", None),
        Undefined | DualSubI8 | DualSubU8 | QI8 | QI16 | QI32 | QU8 | QU16 | Resource
        | StringRef | Dual | Variant | I2 | U2 | C32 | F8E8M0 | F6E3M2 | F6E2M3 | F4E2M1
        | F4E1M2 | HiF4 | HiF4Scale | U4 | F8E4M3FNUZ | F8E5M2FNUZ => return None,
    })
}

/// The name with capitals: `Float32`.
pub fn camel(dtype: DType) -> Option<&'static str> {
    names_of(dtype).map(|names| names.camel)
}

/// The name without capitals: `float32`.
pub fn lower(dtype: DType) -> Option<&'static str> {
    names_of(dtype).map(|names| names.lower)
}

/// The short name: `F32`.
pub fn short(dtype: DType) -> Option<&'static str> {
    names_of(dtype).map(|names| names.short)
}

/// The number in `.pb` files.
pub fn number(dtype: DType) -> Option<u64> {
    names_of(dtype)?.number
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

fn find(is_wanted: impl Fn(&DTypeNames) -> bool) -> Option<DType> {
    let mut dtypes = DType::ALL.iter().copied();
    dtypes.find(|&dtype| names_of(dtype).is_some_and(|names| is_wanted(&names)))
}
