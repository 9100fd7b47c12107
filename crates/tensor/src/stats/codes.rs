//! Dtypes of at most eight bits: narrow floats and packed integers.
//!
//! Each pattern is counted, and every statistic follows from the counts. Sums add the value of each
//! pattern times its count, in ascending order of the patterns, so the order of the elements does
//! not matter.

use super::block::StatsBlock;
use crate::convert::dtype::CodeValues;

/// How often each code occurs.
pub(super) type Counts = [u64; 256];

/// The statistics of a chunk.
pub(super) fn block(values: &CodeValues, n_elements: usize, bytes: &[u8]) -> StatsBlock {
    of_counts(values, &count(values, n_elements, bytes))
}

/// How often each code occurs among the first `n_elements`.
pub(super) fn count(values: &CodeValues, n_elements: usize, bytes: &[u8]) -> Counts {
    let mut counts = [0; 256];
    // Codes of six bits cross the borders of bytes, so that counting bytes does not help.
    if values.n_bits == 6 {
        each(values, n_elements, bytes, |code| {
            counts[usize::from(code)] += 1;
        });
        return counts;
    }
    let n_in_byte = 8 / values.n_bits;
    let (whole, rest) = bytes.split_at((n_elements / n_in_byte).min(bytes.len()));
    let byte_counts = count_bytes(whole);
    if n_in_byte == 1 {
        return byte_counts;
    }
    for (byte, n) in (0..=u8::MAX).zip(byte_counts) {
        if n > 0 {
            each(values, n_in_byte, &[byte], |code| {
                counts[usize::from(code)] += n;
            });
        }
    }
    each(values, n_elements % n_in_byte, rest, |code| {
        counts[usize::from(code)] += 1;
    });
    counts
}

fn count_bytes(bytes: &[u8]) -> Counts {
    // Several tables, so that equal neighbours do not wait for each other.
    let mut tables = [[0_u32; 256]; 8];
    let mut total = [0; 256];
    // No counter of 32 bits can overflow within a part.
    for part in bytes.chunks(u32::MAX as usize) {
        let (groups, rest) = part.as_chunks::<8>();
        for group in groups {
            let word = u64::from_le_bytes(*group);
            for (i, table) in tables.iter_mut().enumerate() {
                table[(word >> (8 * i)) as usize & 0xff] += 1;
            }
        }
        for &byte in rest {
            tables[0][usize::from(byte)] += 1;
        }
        for table in &mut tables {
            for (total, n) in total.iter_mut().zip(table) {
                *total += u64::from(std::mem::take(n));
            }
        }
    }
    total
}

/// Visits the codes of the first `n_elements`, in order.
pub(super) fn each(
    values: &CodeValues,
    n_elements: usize,
    bytes: &[u8],
    mut visit: impl FnMut(u8),
) {
    let n_bits = values.n_bits;
    let mask = (1_u32 << n_bits) - 1;
    // Codes of six bits run on from byte to byte; others fill bytes.
    let n_group_bytes = if n_bits == 6 { 3 } else { 1 };
    let n_in_group = 8 * n_group_bytes / n_bits;
    let mut n_left = n_elements;
    for group in bytes.chunks(n_group_bytes) {
        let mut word = [0; 4];
        word[..group.len()].copy_from_slice(group);
        let word = u32::from_le_bytes(word);
        let n_here = n_left.min(n_in_group).min(8 * group.len() / n_bits);
        for i in 0..n_here {
            let at = if values.is_msb_first {
                n_in_group - 1 - i
            } else {
                i
            };
            visit((word >> (n_bits * at) & mask) as u8);
        }
        n_left -= n_here;
    }
}

/// The statistics of elements, from the number of occurrences of each code.
fn of_counts(values: &CodeValues, counts: &Counts) -> StatsBlock {
    let mut block = StatsBlock::EMPTY;
    let codes = (0..=u8::MAX).zip(counts).filter(|(_, n)| **n > 0);
    for (code, &n) in codes.clone() {
        let value = (values.value)(code);
        block.counts.n_elements += n;
        if value.is_nan() {
            block.counts.n_nan += n;
        } else if value == f64::INFINITY {
            block.counts.n_pos_inf += n;
        } else if value == f64::NEG_INFINITY {
            block.counts.n_neg_inf += n;
            block.counts.n_negative += n;
        } else {
            add_finite(&mut block, values, value, n);
        }
    }
    if block.min < block.max {
        let mean = block.sum / block.counts.n_finite() as f64;
        for (code, &n) in codes {
            let value = (values.value)(code);
            if value.is_finite() {
                block.deviation += (value - mean) * (value - mean) * n as f64;
            }
        }
    }
    block
}

fn add_finite(block: &mut StatsBlock, values: &CodeValues, value: f64, n: u64) {
    if value == 0.0 {
        block.counts.n_zero += n;
        block.counts.n_neg_zero += if value.is_sign_negative() { n } else { 0 };
    } else if value.abs() < values.smallest_normal {
        block.counts.n_subnormal += n;
    }
    block.counts.n_negative += if value < 0.0 { n } else { 0 };
    block.counts.n_saturated += if values.is_saturated(value) { n } else { 0 };
    if value.total_cmp(&block.min).is_lt() {
        block.min = value;
    }
    if value.total_cmp(&block.max).is_gt() {
        block.max = value;
    }
    let n = n as f64;
    block.sum += value * n;
    block.sum_of_magnitudes += value.abs() * n;
    block.sum_of_squares += value * value * n;
}
