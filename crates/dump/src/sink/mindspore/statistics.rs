//! The columns of `statistic.csv` as the host computes them.

use opscope_store::file_format::statistic_csv::{StatisticCategory, StatisticCell};
use opscope_store::record::Record;
use opscope_tensor::digest::{hex, md5_many};
use opscope_tensor::sequential::{SequentialStats, sequential_md5, sequential_sha1};
use opscope_tensor::{DType, Tensor, TensorObserver};

/// Number of tensors that are hashed side by side.
pub(super) const N_HASHED_AT_ONCE: usize = 32;

/// Digests in a memo; `None` if the elements were dropped before the digest was requested.
struct Md5Memo(Option<[u8; 16]>);
struct Sha1Memo(Option<[u8; 20]>);

/// Whether elements are needed for more than numbers.
pub(super) fn has_digest(categories: &[StatisticCategory]) -> bool {
    categories
        .iter()
        .any(|category| matches!(category, StatisticCategory::Md5 | StatisticCategory::Sha1))
}

/// Hashes the tensors of several records together, which is several times as fast as one by one.
pub(super) fn prepare(records: &[&Record], categories: &[StatisticCategory]) {
    if !categories.contains(&StatisticCategory::Md5) {
        return;
    }
    let (mut tensors, mut inputs) = (Vec::<&Tensor>::new(), Vec::new());
    for (_, _, tensor) in records.iter().flat_map(|record| record.slots()) {
        // Elements of half a byte are hashed in their own way.
        let is_wanted = tensor.dtype() != DType::I4 && !tensor.observed().has_kept::<Md5Memo>();
        // An output and the inputs that it becomes share a memo, and a batch may hold all of them:
        // each is hashed once.
        if let Ok(bytes) = tensor.host_bytes()
            && is_wanted
            && !tensors
                .iter()
                .any(|other| std::sync::Arc::ptr_eq(other.memo(), tensor.memo()))
        {
            tensors.push(tensor);
            inputs.push(bytes);
        }
    }
    for (tensor, digest) in tensors.iter().zip(md5_many(&inputs)) {
        tensor.observed().keep(|_| Md5Memo(Some(digest)));
    }
}

/// A cell for each category; none of a type that has no numbers.
pub(super) fn cells(
    tensor: TensorObserver<'_>,
    categories: &[StatisticCategory],
) -> Vec<StatisticCell> {
    let stats = tensor.sequential_stats().ok();
    let cells = categories.iter().map(|category| match category {
        StatisticCategory::Md5 => {
            let digest = tensor.keep(|tensor| Md5Memo(tensor.view().ok().map(sequential_md5)));
            digest.0.map_or(StatisticCell::Null, |digest| {
                StatisticCell::Text(hex(&digest))
            })
        }
        StatisticCategory::Sha1 => {
            let digest = tensor.keep(|tensor| Sha1Memo(tensor.view().ok().map(sequential_sha1)));
            digest.0.map_or(StatisticCell::Null, |digest| {
                StatisticCell::Text(hex(&digest))
            })
        }
        _ => stats.map_or(StatisticCell::Null, |stats| cell(stats, *category)),
    });
    cells.collect()
}

fn cell(stats: &SequentialStats, category: StatisticCategory) -> StatisticCell {
    match category {
        StatisticCategory::Max => StatisticCell::Real(stats.max),
        StatisticCategory::Min => StatisticCell::Real(stats.min),
        StatisticCategory::Average => StatisticCell::Real(stats.mean),
        StatisticCategory::Count => StatisticCell::Count(stats.n_elements),
        StatisticCategory::NegativeZeroCount => StatisticCell::Count(stats.n_negative),
        StatisticCategory::PositiveZeroCount => StatisticCell::Count(stats.n_positive),
        StatisticCategory::NanCount => StatisticCell::Count(stats.n_nan),
        StatisticCategory::NegativeInfCount => StatisticCell::Count(stats.n_neg_inf),
        StatisticCategory::PositiveInfCount => StatisticCell::Count(stats.n_pos_inf),
        StatisticCategory::ZeroCount => StatisticCell::Count(stats.n_zero),
        StatisticCategory::L2Norm => StatisticCell::Real(stats.l2),
        StatisticCategory::Md5 | StatisticCategory::Sha1 => StatisticCell::Null,
    }
}
