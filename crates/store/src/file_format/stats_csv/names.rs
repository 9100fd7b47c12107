//! Names of dtypes and layouts in statistics files.

use opscope_tensor::{DType, Layout};

use crate::file_format::ascend_codes::{dtype_code, dtype_name, layout_code};

/// For dtypes and layouts without a name. The missing letter is the vendor's.
const UNKNOWN: &str = "UNKNOW";

/// The name in the plain table, which knows only the older types: those up to `DT_DUAL`.
pub(super) fn plain_dtype(dtype: DType) -> &'static str {
    // `None` is less than any number, so dtypes that Ascend lacks need a separate check.
    if dtype_code(dtype) <= dtype_code(DType::Dual) && dtype_code(dtype).is_some() {
        self::dtype(dtype)
    } else {
        "-"
    }
}

/// The name in a table of chosen columns.
pub(super) fn dtype(dtype: DType) -> &'static str {
    dtype_name(dtype).unwrap_or(UNKNOWN)
}

/// Whether the dtype has a distinct name.
pub(super) fn is_distinct(dtype: DType) -> bool {
    dtype_name(dtype).is_some()
}

/// The name in the plain table, which ends at `RESERVED`.
pub(super) fn plain_layout(layout: Layout) -> &'static str {
    if layout_code(layout) <= layout_code(Layout::Reserved) {
        layout.name()
    } else {
        "-"
    }
}

/// The name in a table of chosen columns.
pub(super) fn layout(layout: Layout) -> &'static str {
    if layout == Layout::Max {
        UNKNOWN
    } else {
        layout.name()
    }
}
