//! The names that pickles of plain tensors have, and their meanings.

use opscope_tensor::DType;

use super::pickle::PickleName;

/// Modules of functions that rebuild tensors.
pub(super) const MODULES: [&str; 2] = ["torch._utils", "torch._tensor"];
/// Functions that rebuild tensors which lie in storages.
pub(super) const DENSE: [&str; 3] = [
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
];
/// The function of PyTorch for Ascend whose tensor lies in a storage as well, and the class of an
/// argument that says which layout it is to get on a device. In the file it has none.
pub(super) const NPU: [PickleName<'_>; 2] = [
    PickleName("torch_npu.utils.storage", "_rebuild_npu_tensor"),
    PickleName("torch_npu.npu._format", "Format"),
];
/// Functions whose first argument is the tensor itself.
pub(super) const AROUND: [&str; 2] = ["_rebuild_parameter", "_rebuild_parameter_with_state"];
/// The function whose tensor holds codes of quantised numbers.
pub(super) const QUANTISED: &str = "_rebuild_qtensor";
/// The function that calls another one, for a tensor with attributes.
pub(super) const OF_TYPE: &str = "_rebuild_from_type_v2";
/// Functions whose tensors are not read, with the word for them, and the argument that holds their
/// shape.
pub(super) const UNREAD: [(&str, &str, Option<usize>); 3] = [
    ("_rebuild_meta_tensor_no_storage", "meta tensor", Some(1)),
    ("_rebuild_nested_tensor", "nested tensor", None),
    ("_rebuild_sparse_tensor", "sparse tensor", None),
];
/// Classes of tensors that are as plain as `torch.Tensor`.
pub(super) const PLAIN_CLASSES: [PickleName<'_>; 3] = [
    PickleName("torch", "Tensor"),
    PickleName("torch.nn.parameter", "Parameter"),
    PickleName("torch.nn.parameter", "Buffer"),
];
/// Modules of storage classes, and the class whose elements are bytes.
const STORAGE_MODULES: [&str; 3] = ["torch", "torch.storage", "torch.cuda"];
pub(super) const UNTYPED: &str = "UntypedStorage";

/// Storage classes by the dtypes of their elements.
pub(super) const STORAGES: [(&str, DType); 15] = [
    ("HalfStorage", DType::F16),
    ("FloatStorage", DType::F32),
    ("DoubleStorage", DType::F64),
    ("BFloat16Storage", DType::BF16),
    ("ByteStorage", DType::U8),
    ("CharStorage", DType::I8),
    ("ShortStorage", DType::I16),
    ("IntStorage", DType::I32),
    ("LongStorage", DType::I64),
    ("BoolStorage", DType::Bool),
    ("ComplexFloatStorage", DType::C64),
    ("ComplexDoubleStorage", DType::C128),
    ("QInt8Storage", DType::QI8),
    ("QUInt8Storage", DType::QU8),
    ("QInt32Storage", DType::QI32),
];
/// Storage classes with several elements in a byte.
const PACKED_STORAGES: [&str; 2] = ["QUInt4x2Storage", "QUInt2x4Storage"];
/// Dtypes of torch's by their names there.
const DTYPES: [(&str, DType); 25] = [
    ("float16", DType::F16),
    ("float32", DType::F32),
    ("float64", DType::F64),
    ("bfloat16", DType::BF16),
    ("uint8", DType::U8),
    ("uint16", DType::U16),
    ("uint32", DType::U32),
    ("uint64", DType::U64),
    ("int8", DType::I8),
    ("int16", DType::I16),
    ("int32", DType::I32),
    ("int64", DType::I64),
    ("bool", DType::Bool),
    ("complex32", DType::C32),
    ("complex64", DType::C64),
    ("complex128", DType::C128),
    ("float8_e4m3fn", DType::F8E4M3FN),
    ("float8_e4m3fnuz", DType::F8E4M3FNUZ),
    ("float8_e5m2", DType::F8E5M2),
    ("float8_e5m2fnuz", DType::F8E5M2FNUZ),
    ("float8_e8m0fnu", DType::F8E8M0),
    ("qint8", DType::QI8),
    ("quint8", DType::QU8),
    ("qint32", DType::QI32),
    ("half", DType::F16),
];
/// Dtypes that have no counterpart, or whose elements share bytes and have a separate shape.
const OTHER_DTYPES: [&str; 23] = [
    "bcomplex32",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "bits8",
    "bits16",
    "float4_e2m1fn_x2",
    "int1",
    "int2",
    "int3",
    "int4",
    "int5",
    "int6",
    "int7",
    "quint4x2",
    "quint2x4",
    "uint1",
    "uint2",
    "uint3",
    "uint4",
    "uint5",
    "uint6",
    "uint7",
];
/// Ways to quantise, which tensors of quantised numbers name.
const QUANTISERS: [&str; 5] = [
    "per_tensor_affine",
    "per_tensor_symmetric",
    "per_channel_affine",
    "per_channel_symmetric",
    "per_channel_affine_float_qparams",
];

/// Classes and functions that make plain values.
const PLAIN_CALLS: [PickleName<'_>; 13] = [
    PickleName("torch", "Size"),
    PickleName("torch", "device"),
    PickleName("torch.serialization", "_get_layout"),
    PickleName("_codecs", "encode"),
    PickleName("collections", "Counter"),
    PickleName("builtins", "bytearray"),
    PickleName("__builtin__", "bytearray"),
    PickleName("builtins", "complex"),
    PickleName("__builtin__", "complex"),
    PickleName("builtins", "set"),
    PickleName("__builtin__", "set"),
    PickleName("builtins", "frozenset"),
    PickleName("__builtin__", "frozenset"),
];

/// Whether values of this class or function are plain.
pub(super) fn is_plain(name: PickleName<'_>) -> bool {
    PLAIN_CALLS.contains(&name)
}

/// Whether files of plain tensors have this name in their pickle.
pub(super) fn is_known(name: PickleName<'_>) -> bool {
    let PickleName(module, inner) = name;
    let is_rebuilt = MODULES.contains(&module)
        && (DENSE.contains(&inner)
            || AROUND.contains(&inner)
            || [QUANTISED, OF_TYPE].contains(&inner)
            || UNREAD.iter().any(|(function, ..)| *function == inner));
    let is_of_torch = module == "torch"
        && (DTYPES.iter().any(|(dtype, _)| *dtype == inner)
            || OTHER_DTYPES.contains(&inner)
            || QUANTISERS.contains(&inner));
    is_rebuilt
        || is_of_torch
        || is_storage(name)
        || is_plain(name)
        || name == PickleName("collections", "OrderedDict")
        || PLAIN_CLASSES.contains(&name)
        || NPU.contains(&name)
}

pub(super) fn is_storage(PickleName(module, class): PickleName<'_>) -> bool {
    let is_typed = STORAGES.iter().any(|(storage, _)| *storage == class);
    STORAGE_MODULES.contains(&module)
        && (is_typed || class == UNTYPED || PACKED_STORAGES.contains(&class))
}

/// The dtype of a name in `torch`, or the name of one that is not read.
pub(super) fn dtype_of(name: &str) -> Result<DType, String> {
    let known = DTYPES.iter().find(|(dtype, _)| *dtype == name);
    known
        .map(|(_, dtype)| *dtype)
        .ok_or_else(|| name.to_owned())
}
