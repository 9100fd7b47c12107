//! Numbers of fields and dtypes.

/// Fields of `ModelProto`.
pub(super) mod model {
    pub(crate) const IR_VERSION: u32 = 1;
    pub(crate) const GRAPH: u32 = 4;
}

/// Fields of `GraphProto`.
pub(super) mod graph {
    pub(crate) const NODE: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PARAMETER: u32 = 3;
    pub(crate) const OUTPUT: u32 = 4;
    pub(crate) const CONSTANT: u32 = 5;
    pub(crate) const ROOT_NAME: u32 = 6;
}

/// Fields of `NodeProto`.
pub(super) mod node {
    pub(crate) const INPUT: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const OP_TYPE: u32 = 3;
    pub(crate) const SCOPE: u32 = 4;
    pub(crate) const ATTRIBUTE: u32 = 5;
    pub(crate) const OUTPUT_TYPE: u32 = 6;
    pub(crate) const FULL_NAME: u32 = 8;
    pub(crate) const SOURCE: u32 = 9;
}

/// Fields of the messages that pair a name with something: inputs, attributes, parameters,
/// outputs, constants.
pub(super) mod named {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const CONTENT: u32 = 2;
    pub(crate) const FULL_NAME: u32 = 3;
}

/// Fields of `TypeProto` and of the messages inside it.
pub(super) mod kind {
    pub(crate) const DATA_TYPE: u32 = 1;
    pub(crate) const TENSOR: u32 = 2;
    pub(crate) const SEQUENCE: u32 = 3;
    pub(crate) const ELEMENT: u32 = 1;
    pub(crate) const SHAPE: u32 = 2;
    pub(crate) const DIM: u32 = 1;
    pub(crate) const SIZE: u32 = 1;
}

/// Fields of `ValueProto`.
pub(super) mod value {
    pub(crate) const DATA_TYPE: u32 = 1;
    pub(crate) const BOOL: u32 = 2;
    pub(crate) const INT: u32 = 3;
    pub(crate) const UINT: u32 = 4;
    pub(crate) const FLOAT: u32 = 5;
    pub(crate) const DOUBLE: u32 = 6;
    pub(crate) const TEXT: u32 = 7;
    pub(crate) const TENSOR: u32 = 8;
    pub(crate) const VALUES: u32 = 18;
    pub(crate) const TYPE: u32 = 20;
}

/// Fields of `TensorProto`.
pub(super) mod tensor {
    pub(crate) const DIMS: u32 = 4;
    pub(crate) const DATA_TYPE: u32 = 5;
}

/// Data types without a dtype.
pub(super) const TENSOR: u64 = 14;
pub(super) const TUPLE: u64 = 31;
pub(super) const LIST: u64 = 32;
pub(super) const NONE_TYPE: u64 = 34;
pub(super) const TYPE: u64 = 39;
pub(super) const MONADS: [(u64, &str); 2] = [(43, "UMonad"), (44, "IOMonad")];
/// Types without a width, which cover their whole family.
pub(super) const FAMILIES: [(u64, &str); 3] = [(36, "Int"), (37, "UInt"), (38, "Float")];
