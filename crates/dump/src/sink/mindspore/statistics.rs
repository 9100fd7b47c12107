//! The columns of `statistic.csv` as the host computes them.

use opscope_store::file_format::statistic_csv::{Category, StatisticCell};
use opscope_store::record::Record;
use opscope_tensor::digest::{hex, md5_many};
use opscope_tensor::sequential::{SequentialStats, sequential_md5, sequential_sha1};
use opscope_tensor::{DType, Tensor, TensorObserver};

/// How many tensors are hashed side by side.
pub(super) const N_HASHED_AT_ONCE: usize = 32;

/// Digests in a memo; `None` if the elements were dropped before anybody asked for them.
struct Md5(Option<[u8; 16]>);
struct Sha1(Option<[u8; 20]>);

/// Whether elements are needed for more than numbers.
pub(super) fn has_digest(categories: &[Category]) -> bool {
    categories
        .iter()
        .any(|category| matches!(category, Category::Md5 | Category::Sha1))
}

/// Hashes the tensors of several records together, which is several times as fast as one by one.
pub(super) fn prepare(records: &[&Record], categories: &[Category]) {
    if !categories.contains(&Category::Md5) {
        return;
    }
    let (mut tensors, mut inputs) = (Vec::<&Tensor>::new(), Vec::new());
    for (_, _, tensor) in records.iter().flat_map(|record| record.slots()) {
        // Elements of half a byte are hashed in their own way.
        let is_wanted = tensor.dtype() != DType::I4 && !tensor.observed().has_kept::<Md5>();
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
        tensor.observed().keep(|_| Md5(Some(digest)));
    }
}

/// A cell for each category; none of a type that has no numbers.
pub(super) fn cells(tensor: TensorObserver<'_>, categories: &[Category]) -> Vec<StatisticCell> {
    let stats = tensor.sequential_stats().ok();
    let of = |category: &Category| match category {
        Category::Md5 => {
            let digest = tensor.keep(|tensor| Md5(tensor.view().ok().map(sequential_md5)));
            digest.0.map_or(StatisticCell::Null, |digest| {
                StatisticCell::Text(hex(&digest))
            })
        }
        Category::Sha1 => {
            let digest = tensor.keep(|tensor| Sha1(tensor.view().ok().map(sequential_sha1)));
            digest.0.map_or(StatisticCell::Null, |digest| {
                StatisticCell::Text(hex(&digest))
            })
        }
        _ => stats.map_or(StatisticCell::Null, |stats| cell(stats, *category)),
    };
    categories.iter().map(of).collect()
}

fn cell(stats: &SequentialStats, category: Category) -> StatisticCell {
    match category {
        Category::Max => StatisticCell::Real(stats.max),
        Category::Min => StatisticCell::Real(stats.min),
        Category::Average => StatisticCell::Real(stats.mean),
        Category::Count => StatisticCell::Count(stats.n_elements),
        Category::NegativeZeroCount => StatisticCell::Count(stats.n_negative),
        Category::PositiveZeroCount => StatisticCell::Count(stats.n_positive),
        Category::NanCount => StatisticCell::Count(stats.n_nan),
        Category::NegativeInfCount => StatisticCell::Count(stats.n_neg_inf),
        Category::PositiveInfCount => StatisticCell::Count(stats.n_pos_inf),
        Category::ZeroCount => StatisticCell::Count(stats.n_zero),
        Category::L2Norm => StatisticCell::Real(stats.l2),
        Category::Md5 | Category::Sha1 => StatisticCell::Null,
    }
}
