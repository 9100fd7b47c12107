//! Computes missing statistics of tensors.

use std::ops::Range;

use opscope_store::slot_table::StatisticsCells;
use opscope_tensor::Stats;
use opscope_tensor::digest::hex;

use super::rows::PartRows;
use opscope_analysis::elements::LastFile;
use opscope_analysis::error_chain::chain;
use opscope_analysis::job;

/// Tensors per batch: neighbours are often in one file.
const N_ROWS_AT_ONCE: usize = 32;

/// A tensor's row, its statistics, and its digest if the dump has none.
type Computed = (usize, Option<Stats>, Option<[u8; 16]>);

/// Fills in missing statistics and digests of tensors with elements. Returns their number, and the
/// errors.
pub(super) fn compute(part: &mut PartRows<'_>, n_threads: usize) -> (u64, Vec<String>) {
    let n_rows = part.rows.len();
    let chunks: Vec<Range<usize>> = (0..n_rows)
        .step_by(N_ROWS_AT_ONCE)
        .map(|start| start..n_rows.min(start + N_ROWS_AT_ONCE))
        .collect();
    let results = job::map(&chunks, n_threads, |chunk| of_rows(part, chunk.clone()));
    let mut n_computed = 0;
    let mut errors = Vec::new();
    for (computed, failed) in results {
        errors.extend(failed);
        for (row, stats, digest) in computed {
            let row = &mut part.rows[row];
            // Also counts tensors that only have a digest.
            n_computed += 1;
            // The dump's own digest is of the operator's tensor, whatever the file holds, so it
            // stays.
            if let Some(digest) = digest {
                row.digest = Some(hex(&digest).into());
            }
            if let Some(stats) = stats {
                row.statistics = StatisticsCells::from(&stats);
            }
        }
    }
    (n_computed, errors)
}

fn of_rows(part: &PartRows<'_>, chunk: Range<usize>) -> (Vec<Computed>, Vec<String>) {
    let mut file = LastFile::default();
    let (mut computed, mut errors) = (Vec::new(), Vec::new());
    for index in chunk {
        let row = &part.rows[index];
        // All or nothing: counts and sums of different sources must not be mixed.
        if row.stats().is_some() {
            continue;
        }
        let has_digest = row.digest.is_none();
        let result = match part.slots.get(index) {
            // Neither is an error: the dump never had them.
            Some(slot) if !slot.has_elements => continue,
            Some(slot) => slot
                .element_numbers(&mut file, has_digest)
                .map_err(|e| chain(&e)),
            None => match part.native_record(row) {
                Some(record) => file.numbers(&record, has_digest).map_err(|e| chain(&e)),
                None => continue,
            },
        };
        match result {
            // Bytes of an unknown dtype have no statistics, but a digest.
            Ok((digest, stats)) => computed.push((index, stats.ok(), digest)),
            Err(error) => {
                let [name, side] =
                    [&row.op_name, &row.side].map(|text| text.as_deref().unwrap_or("?"));
                let slot = row.slot.unwrap_or(0);
                errors.push(format!("`{name}` {side}.{slot}: {error}"));
            }
        }
    }
    (computed, errors)
}
