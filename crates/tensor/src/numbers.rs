//! Elements of any numeric dtype that numpy has, read as `f64`.

use std::ops::Range;

use half::f16;

use crate::DType;

/// Elements side by side, little-endian, that are numbers.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    dtype: DType,
    n_element_bytes: usize,
    bytes: &'a [u8],
}

/// Calls `$work` with the elements of `$range` as a slice of byte arrays and with how to read one.
macro_rules! with_elements {
    ($numbers:expr, $range:expr, $work:ident) => {{
        let (numbers, range): (Numbers<'_>, Range<usize>) = ($numbers, $range);
        match numbers.dtype {
            DType::F64 => $work!(numbers, range, 8, f64::from_le_bytes),
            DType::F32 => $work!(numbers, range, 4, |b| f64::from(f32::from_le_bytes(b))),
            DType::F16 => $work!(numbers, range, 2, |b| f16::from_le_bytes(b).to_f64()),
            DType::I64 => $work!(numbers, range, 8, |b| i64::from_le_bytes(b) as f64),
            DType::I32 => $work!(numbers, range, 4, |b| f64::from(i32::from_le_bytes(b))),
            DType::I16 => $work!(numbers, range, 2, |b| f64::from(i16::from_le_bytes(b))),
            DType::I8 => $work!(numbers, range, 1, |b| f64::from(i8::from_le_bytes(b))),
            DType::U64 => $work!(numbers, range, 8, |b| u64::from_le_bytes(b) as f64),
            DType::U32 => $work!(numbers, range, 4, |b| f64::from(u32::from_le_bytes(b))),
            DType::U16 => $work!(numbers, range, 2, |b| f64::from(u16::from_le_bytes(b))),
            // A truth value is any byte but 0.
            DType::Bool => $work!(numbers, range, 1, |b: [u8; 1]| f64::from(u8::from(
                b[0] != 0
            ))),
            _ => $work!(numbers, range, 1, |b: [u8; 1]| f64::from(b[0])),
        }
    }};
}

impl<'a> Numbers<'a> {
    /// The elements of a decoded tensor; `None` unless numpy has the dtype and its elements are
    /// real numbers. Integers beyond 2^53 are rounded when they are read.
    pub fn new(dtype: DType, bytes: &'a [u8]) -> Option<Numbers<'a>> {
        let is_number = matches!(
            dtype,
            DType::F64
                | DType::F32
                | DType::F16
                | DType::I64
                | DType::I32
                | DType::I16
                | DType::I8
                | DType::U64
                | DType::U32
                | DType::U16
                | DType::U8
                | DType::Bool
        );
        Some(Numbers {
            dtype,
            n_element_bytes: dtype.bytes().filter(|_| is_number)?,
            bytes,
        })
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.n_element_bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at a position in memory order; `None` after the last.
    #[inline]
    pub fn get(&self, index: usize) -> Option<f64> {
        macro_rules! one {
            ($numbers:expr, $range:expr, $n:literal, $read:expr) => {
                $numbers
                    .bytes
                    .as_chunks::<$n>()
                    .0
                    .get($range.start)
                    .copied()
                    .map($read)
            };
        }
        with_elements!(*self, index..index, one)
    }

    /// The elements as the bits of `f32`; `None` of another dtype.
    pub(crate) fn f32_bits(&self) -> Option<impl Iterator<Item = u32>> {
        let elements = self.bytes.as_chunks::<4>().0.iter();
        (self.dtype == DType::F32).then(|| elements.map(|bytes| u32::from_le_bytes(*bytes)))
    }

    /// Calls `take` with each element of a range in memory order; bytes after the last element are
    /// ignored.
    pub fn for_each(&self, range: Range<usize>, mut take: impl FnMut(f64)) {
        let range = range.start.min(self.len())..range.end.min(self.len());
        macro_rules! all {
            ($numbers:expr, $range:expr, $n:literal, $read:expr) => {{
                let read = $read;
                let elements = $numbers.bytes.as_chunks::<$n>().0;
                for &element in elements.get($range).unwrap_or_default() {
                    take(read(element));
                }
            }};
        }
        with_elements!(*self, range, all);
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;
    use crate::DType;

    #[test]
    fn elements_are_read_by_their_dtype() {
        let check = |dtype, bytes: &[u8], expected: &[f64]| {
            let numbers = Numbers::new(dtype, bytes).unwrap();
            let mut all = Vec::new();
            numbers.for_each(0..usize::MAX, |x| all.push(x));
            assert_eq!(all, expected, "{dtype}");
            let each: Vec<_> = (0..numbers.len()).filter_map(|i| numbers.get(i)).collect();
            assert_eq!(each, expected, "{dtype}");
            assert_eq!(numbers.get(numbers.len()), None);
        };
        check(DType::F32, &[0, 0, 128, 191, 0, 0, 0, 64], &[-1.0, 2.0]);
        check(DType::F16, &[0, 60], &[1.0]);
        check(DType::I8, &[255, 127], &[-1.0, 127.0]);
        check(DType::U8, &[255], &[255.0]);
        check(DType::Bool, &[0, 1, 7], &[0.0, 1.0, 1.0]);
        check(
            DType::I64,
            &[254, 255, 255, 255, 255, 255, 255, 255],
            &[-2.0],
        );
        check(DType::F64, &[], &[]);
        // The rest of a partial element is not an element.
        check(DType::U16, &[1, 0, 9], &[1.0]);
        assert!(Numbers::new(DType::C64, &[]).is_none());
    }
}
