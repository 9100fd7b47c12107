//! The kernels that compute numbers of tensors, as a driver takes them, and how they are launched.
//!
//! They are those of the Python package, whose compiler has made them:
//! `OPSCOPE_WRITE_KERNELS=1 pytest tests/torch/test_device_kernels.py` writes the file, and without
//! the variable checks that it is what the compiler makes today.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::ZlibDecoder;
use opscope_tensor::DType;

/// Text of the kernels: behind a line with each one's name, its code for every device that CUDA 12
/// knows.
static KERNELS: &[u8] = include_bytes!("kernels.ptx.zlib");
const HEADING: &str = "// kernel ";

/// The name of the kernel that joins partial results to a row.
pub(super) const JOIN: &str = "join_parts";
/// The name of the kernels that compute partial results, one for each type.
pub(super) const PARTS: &str = "reduce_parts";
/// Threads of a program.
pub(super) const N_THREADS: u32 = 128;
/// Bytes of memory that the threads of a program share.
pub(super) const SHARED_BYTES: u32 = 32;

/// Bytes that a program processes together; it processes whole ones.
const STRIPE_LINES: usize = 16;
const STRIPE_BYTES: usize = 4 * 512 * STRIPE_LINES;
/// A program counts elements of 8 and 16 bits in as many.
const PART_STRIPES_MAX: usize = 65535 / STRIPE_LINES;
/// Partial results of one tensor that are aimed at: a single program joins them.
const N_PARTS_AIMED_AT: usize = 2048;
/// Partial results of one tensor that there is room for.
pub(super) const N_PARTS_MAX: usize = 1 << 14;
/// Words of a partial result.
pub(super) const PART_WORDS: usize = 22;

/// The kernels' texts by name; those for a type are called as it is.
pub(super) fn texts() -> Result<HashMap<String, String>, String> {
    let mut all = String::new();
    ZlibDecoder::new(KERNELS)
        .read_to_string(&mut all)
        .map_err(|error| format!("the kernels cannot be unpacked: {error}"))?;
    let parts = all.split(HEADING).skip(1);
    let named = parts.filter_map(|part| part.split_once('\n'));
    Ok(named
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect())
}

/// The name of the kernel for a type, if there is one.
pub(super) fn name_for(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::F32 => "float32",
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::F64 => "float64",
        DType::I8 => "int8",
        DType::U8 => "uint8",
        DType::Bool => "bool",
        DType::I16 => "int16",
        DType::U16 => "uint16",
        DType::I32 => "int32",
        DType::U32 => "uint32",
        DType::I64 => "int64",
        DType::U64 => "uint64",
        _ => return None,
    })
}

/// How the partial results of a tensor are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartsPlan {
    /// Programs, each of which stores a partial result.
    pub(super) n_parts: usize,
    /// Lines that each of them processes.
    pub(super) n_part_lines: usize,
}

impl PartsPlan {
    /// For a tensor of this size; `None` if it has more parts than there is room for.
    pub(super) fn new(n_bytes: usize) -> Option<PartsPlan> {
        let n_stripes = n_bytes.div_ceil(STRIPE_BYTES);
        let n_part_stripes = n_stripes
            .div_ceil(N_PARTS_AIMED_AT)
            .clamp(1, PART_STRIPES_MAX);
        let n_parts = n_stripes.div_ceil(n_part_stripes).max(1);
        (n_parts <= N_PARTS_MAX).then_some(PartsPlan {
            n_parts,
            n_part_lines: n_part_stripes * STRIPE_LINES,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_kernel() {
        let texts = texts().unwrap();
        let dtypes = DType::ALL.iter().filter_map(|dtype| name_for(*dtype));
        let names: Vec<&str> = dtypes.chain([JOIN]).collect();
        assert_eq!(names.len(), 14);
        assert_eq!(texts.len(), 14);
        for name in names {
            let entry = if name == JOIN { JOIN } else { PARTS };
            let text = &texts[name];
            assert!(
                text.contains(&format!(".visible .entry {entry}(")),
                "{name}"
            );
            assert!(text.contains(&format!(".reqntid {N_THREADS}\n")), "{name}");
        }
    }

    #[test]
    fn parts_are_those_of_the_python_package() {
        let plan = |n_bytes| {
            let plan = PartsPlan::new(n_bytes);
            plan.map(|plan| (plan.n_parts, plan.n_part_lines))
        };
        assert_eq!(plan(1), Some((1, 16)));
        assert_eq!(plan(STRIPE_BYTES), Some((1, 16)));
        assert_eq!(plan(STRIPE_BYTES + 1), Some((2, 16)));
        assert_eq!(plan(2048 * STRIPE_BYTES), Some((2048, 16)));
        assert_eq!(plan(2049 * STRIPE_BYTES), Some((1025, 32)));
        // 1 TiB is in 8193 parts of 4095 stripes.
        assert_eq!(plan(1 << 40), Some((8195, 4095 * 16)));
        assert_eq!(plan(1 << 42), None);
    }
}
