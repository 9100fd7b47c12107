//! Whether the tensor of ranks is that of the other side.

use std::collections::HashMap;

use opscope_tensor::DType;

use super::note::FoundPart;
use super::read::WholeReader;
use super::tensor::WholeTensor;
use crate::compare::side::ExecutionSlot;
use crate::element::{ElementValue, float};
use crate::elements::ElementWindows;

/// How far norms may be from each other, as a share of the other side's.
pub(super) const TOLERANCE: f64 = 1e-3;
/// Elements that are read at once.
const N_AT_ONCE: u64 = 1 << 18;

/// Sums of squares of the elements of both sides and of their differences.
#[derive(Default)]
pub(super) struct SquareSums {
    pub(super) own: f64,
    pub(super) other: f64,
    difference: f64,
}

impl SquareSums {
    pub(super) fn add(&mut self, (own, other): (f64, f64)) {
        self.own += own * own;
        self.other += other * other;
        // Infinities of masks have no difference.
        let difference = if own == other { 0.0 } else { own - other };
        self.difference += difference * difference;
    }

    /// The norm of the differences.
    pub(super) fn distance(&self) -> f64 {
        self.difference.sqrt()
    }

    pub(super) fn agree(&self, dtype: DType) -> bool {
        let tolerance = if is_float(dtype) { TOLERANCE } else { 0.0 };
        self.distance() <= tolerance * self.other.sqrt()
    }
}

/// The elements of the other side, from the first to the last.
enum OtherElements<'a> {
    Stored(Box<ElementWindows>),
    Parts(Box<WholeReader<'a>>),
}

impl<'a> OtherElements<'a> {
    fn open(other: &'a ExecutionSlot) -> Option<OtherElements<'a>> {
        let Some(whole) = other.whole() else {
            return Some(OtherElements::Stored(Box::new(other.windows().ok()?)));
        };
        let reader = WholeReader::new(whole, vec![false; whole.parts.len()]).ok()?;
        Some(OtherElements::Parts(Box::new(reader)))
    }

    /// Replaces the bytes of `out` by those of `n` elements.
    fn read(&mut self, (first, n): (u64, usize), width: usize, out: &mut Vec<u8>) -> Option<()> {
        out.clear();
        match self {
            OtherElements::Parts(reader) => reader.read(first, n, out).ok(),
            OtherElements::Stored(windows) => {
                let begin = usize::try_from(first).ok()?.checked_mul(width)?;
                out.extend_from_slice(windows.bytes(begin..begin + n * width).ok()?);
                Some(())
            }
        }
    }
}

/// None where elements cannot be read, or the other side has others.
pub(super) fn sums(whole: &WholeTensor, other: &ExecutionSlot) -> Option<SquareSums> {
    if other.dtype != Some(whole.dtype) || other.dims() != whole.shape {
        return None;
    }
    let mut others = OtherElements::open(other)?;
    let width = whole.dtype.bytes()?;
    let mut reader = WholeReader::new(whole, vec![false; whole.parts.len()]).ok()?;
    let mut sums = SquareSums::default();
    let [mut own, mut read] = [Vec::new(), Vec::new()];
    let (mut first, end) = (0, whole.n_elements());
    while first < end {
        let n = usize::try_from((end - first).min(N_AT_ONCE)).ok()?;
        // One buffer for all pieces.
        own.clear();
        reader.read(first, n, &mut own).ok()?;
        others.read((first, n), width, &mut read)?;
        let pairs = numbers(whole.dtype, &own).zip(numbers(whole.dtype, &read));
        pairs.for_each(|pair| sums.add(pair));
        first += n as u64;
    }
    Some(sums)
}

/// Whether the elements are those of the other side but for rounding.
pub(super) fn agree(whole: &WholeTensor, other: &ExecutionSlot) -> bool {
    sums(whole, other).is_some_and(|sums| sums.agree(whole.dtype))
}

pub(super) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

pub(super) fn numbers(dtype: DType, bytes: &[u8]) -> Box<dyn Iterator<Item = f64> + '_> {
    if is_float(dtype) {
        let elements = bytes.chunks_exact(dtype.bytes().unwrap_or(1));
        return Box::new(elements.map(move |bytes| float(dtype, bytes)));
    }
    Box::new(ElementValue::all(dtype, bytes).map(number))
}

fn number(value: ElementValue) -> f64 {
    match value {
        ElementValue::Float(value) => value,
        ElementValue::Signed(value) => value as f64,
        ElementValue::Unsigned(value) => value as f64,
        ElementValue::Bool(value) => f64::from(u8::from(value)),
        _ => f64::NAN,
    }
}

/// Whether parts in one place have the same bytes.
pub(super) fn are_replicas(whole: &WholeTensor, places: &[u64]) -> bool {
    let mut firsts: HashMap<u64, Vec<u8>> = HashMap::new();
    whole.parts.iter().zip(places).all(|(part, place)| {
        let Ok(loaded) = part.slot.load(None) else {
            return false;
        };
        let bytes = loaded.view().bytes;
        firsts.entry(*place).or_insert_with(|| bytes.to_vec()) == bytes
    })
}

pub(super) fn found_parts(whole: &WholeTensor) -> impl Iterator<Item = FoundPart<'_>> {
    whole.parts.iter().map(|part| FoundPart {
        rank: part.rank,
        slot: &part.slot,
    })
}
