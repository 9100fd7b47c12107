//! Where two states of a tensor differ.

use std::ops::Range;

use opscope_tensor::convert::dtype::decode;
use opscope_tensor::{DType, NumpyType, Shape, TensorView};

/// Maximum number of listed ranges.
const N_RANGES_MAX: usize = 16;
/// Equal stretches are skipped in steps of this many elements.
const BLOCK: usize = 1024;

/// Where two states of a tensor differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteDifference {
    /// The bytes of elements that differ, neighbours joined; the first 16 such ranges.
    pub ranges: Vec<Range<u64>>,
    /// How many such ranges there are.
    pub n_ranges: u64,
    /// Bytes in all of them.
    pub n_bytes: u64,
    /// The first element that differs, counted through the tensor in memory order.
    pub first_element: u64,
    /// Its value before, as text; hexadecimal bytes where the type has no numbers.
    pub before: String,
    /// Its value afterwards.
    pub after: String,
}

impl ByteDifference {
    /// The elements that differ, bytes where elements are packed or have no fixed size. `None` if
    /// nothing differs, or if the sizes do.
    pub fn between(before: TensorView<'_>, after: TensorView<'_>) -> Option<ByteDifference> {
        if before.bytes.len() != after.bytes.len() {
            return None;
        }
        let width = before.dtype.bytes().unwrap_or(1);
        let mut ranges = JoinedRanges::default();
        let blocks = before.bytes.chunks(BLOCK * width);
        for (n, (old, new)) in blocks.zip(after.bytes.chunks(BLOCK * width)).enumerate() {
            // Whole blocks first: most of them are equal, and the comparison of slices is the
            // fastest there is.
            if old == new {
                continue;
            }
            for (i, (old, new)) in old.chunks(width).zip(new.chunks(width)).enumerate() {
                if old != new {
                    ranges.add(((n * BLOCK + i) * width) as u64, old.len() as u64);
                }
            }
        }
        let first = ranges.first?;
        let at = first as usize..(first as usize + width).min(before.bytes.len());
        Some(ByteDifference {
            first_element: match before.dtype.bits() {
                // Packed elements share bytes, so the first of those in the byte is named.
                Some(bits) if bits > 0 => first * 8 / u64::from(bits),
                _ => first,
            },
            before: element_text(before.dtype, &before.bytes[at.clone()]),
            after: element_text(after.dtype, &after.bytes[at]),
            ranges: ranges.listed,
            n_ranges: ranges.n,
            n_bytes: ranges.n_bytes,
        })
    }
}

/// Ranges that are added in ascending order, neighbours joined.
#[derive(Default)]
struct JoinedRanges {
    listed: Vec<Range<u64>>,
    first: Option<u64>,
    last_end: Option<u64>,
    n: u64,
    n_bytes: u64,
}

impl JoinedRanges {
    fn add(&mut self, start: u64, n_bytes: u64) {
        let end = start + n_bytes;
        self.first.get_or_insert(start);
        self.n_bytes += n_bytes;
        if self.last_end == Some(start) {
            // Beyond the listed ranges a neighbour belongs to one that is only counted.
            if self.n as usize == self.listed.len()
                && let Some(last) = self.listed.last_mut()
            {
                last.end = end;
            }
        } else {
            self.n += 1;
            if self.listed.len() < N_RANGES_MAX {
                self.listed.push(start..end);
            }
        }
        self.last_end = Some(end);
    }
}

/// One element as text: a number where the type has one that fits whole bytes, else its bytes.
fn number_text(dtype: DType, bytes: &[u8]) -> Option<String> {
    if dtype.bytes() != Some(bytes.len()) {
        return None;
    }
    let shape = Shape::new([1]).ok()?;
    let decoded = decode(dtype, &shape, bytes).ok()?;
    let b: &[u8] = &decoded.bytes;
    Some(match decoded.dtype.as_numpy()? {
        NumpyType::Bool => (*b.first()? != 0).to_string(),
        NumpyType::I8 => i8::from_le_bytes(b.try_into().ok()?).to_string(),
        NumpyType::U8 => u8::from_le_bytes(b.try_into().ok()?).to_string(),
        NumpyType::I16 => i16::from_le_bytes(b.try_into().ok()?).to_string(),
        NumpyType::U16 => u16::from_le_bytes(b.try_into().ok()?).to_string(),
        NumpyType::I32 => i32::from_le_bytes(b.try_into().ok()?).to_string(),
        NumpyType::U32 => u32::from_le_bytes(b.try_into().ok()?).to_string(),
        NumpyType::I64 => i64::from_le_bytes(b.try_into().ok()?).to_string(),
        NumpyType::U64 => u64::from_le_bytes(b.try_into().ok()?).to_string(),
        NumpyType::F16 => half::f16::from_le_bytes(b.try_into().ok()?).to_string(),
        NumpyType::F32 => f32::from_le_bytes(b.try_into().ok()?).to_string(),
        NumpyType::F64 => f64::from_le_bytes(b.try_into().ok()?).to_string(),
        NumpyType::C64 | NumpyType::C128 => return None,
    })
}

fn element_text(dtype: DType, bytes: &[u8]) -> String {
    number_text(dtype, bytes).unwrap_or_else(|| {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        hex.join(" ")
    })
}

#[cfg(test)]
mod tests {
    use opscope_tensor::Layout;

    use super::*;

    fn between(dtype: DType, before: &[u8], after: &[u8]) -> Option<ByteDifference> {
        let shape = Shape::new([before.len() * 8 / dtype.bits().unwrap() as usize]).unwrap();
        let layout = Layout::Nd;
        let view = |bytes| TensorView {
            dtype,
            shape: &shape,
            layout,
            bytes,
        };
        ByteDifference::between(view(before), view(after))
    }

    #[test]
    fn whole_elements_are_told_and_neighbours_joined() {
        let mut bytes = vec![0_u8; 4 * 5000];
        let before = bytes.clone();
        assert!(between(DType::F32, &before, &bytes).is_none());
        // Elements 3 and 4 in one byte each, then one behind a block's end.
        bytes[15] = 0x40;
        bytes[16] = 1;
        bytes[4 * 1024] = 1;
        let found = between(DType::F32, &before, &bytes).unwrap();
        assert_eq!(found.ranges, [12..20, 4096..4100]);
        assert_eq!((found.n_ranges, found.n_bytes), (2, 12));
        assert_eq!(found.first_element, 3);
        assert_eq!((found.before.as_str(), found.after.as_str()), ("0", "2"));
    }

    #[test]
    fn many_ranges_are_counted_but_not_listed() {
        let before = vec![0_u8; 1000];
        let mut after: Vec<u8> = (0..1000).map(|i| u8::from(i % 2 == 0)).collect();
        let found = between(DType::U8, &before, &after).unwrap();
        assert_eq!((found.n_ranges, found.ranges.len()), (500, N_RANGES_MAX));
        assert_eq!(found.n_bytes, 500);
        // A range that is not listed grows without touching the last one that is.
        after[33] = 1;
        let found = between(DType::U8, &before, &after).unwrap();
        assert_eq!(found.n_ranges, 499);
        assert_eq!(found.ranges.last(), Some(&(30..31)));
    }

    #[test]
    fn packed_and_complex_elements_are_told_by_their_bytes() {
        let found = between(DType::I4, &[0, 0x10], &[0, 0x30]).unwrap();
        assert_eq!((found.first_element, found.ranges[0].clone()), (2, 1..2));
        assert_eq!((found.before.as_str(), found.after.as_str()), ("10", "30"));
        let found = between(DType::C64, &[0; 8], &[0, 0, 0, 0, 0, 0, 0, 1]).unwrap();
        assert_eq!(found.after, "00 00 00 00 00 00 00 01");
        let found = between(DType::BF16, &[0x80, 0x3f], &[0, 0xc0]).unwrap();
        assert_eq!((found.before.as_str(), found.after.as_str()), ("1", "-2"));
    }
}
