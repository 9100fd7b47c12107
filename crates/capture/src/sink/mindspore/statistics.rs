//! The columns of `statistic.csv` as the host computes them.

use opscope_store::file_format::statistic_csv::{Category, Cell};
use opscope_tensor::TensorView;
use opscope_tensor::digest::hex;
use opscope_tensor::sequential::{
    SequentialStats, sequential_md5, sequential_sha1, sequential_stats,
};

/// A cell for each category; none of a type that has no numbers.
pub(super) fn cells(tensor: TensorView<'_>, categories: &[Category]) -> Vec<Cell> {
    let stats = sequential_stats(tensor).ok();
    let of = |category: &Category| match category {
        Category::Md5 => Cell::Text(hex(&sequential_md5(tensor))),
        Category::Sha1 => Cell::Text(hex(&sequential_sha1(tensor))),
        _ => stats
            .as_ref()
            .map_or(Cell::Null, |stats| cell(stats, *category)),
    };
    categories.iter().map(of).collect()
}

fn cell(stats: &SequentialStats, category: Category) -> Cell {
    match category {
        Category::Max => Cell::Real(stats.max),
        Category::Min => Cell::Real(stats.min),
        Category::Average => Cell::Real(stats.mean),
        Category::Count => Cell::Count(stats.n_elements),
        Category::NegativeZeroCount => Cell::Count(stats.n_negative),
        Category::PositiveZeroCount => Cell::Count(stats.n_positive),
        Category::NanCount => Cell::Count(stats.n_nan),
        Category::NegativeInfCount => Cell::Count(stats.n_neg_inf),
        Category::PositiveInfCount => Cell::Count(stats.n_pos_inf),
        Category::ZeroCount => Cell::Count(stats.n_zero),
        Category::L2Norm => Cell::Real(stats.l2),
        Category::Md5 | Category::Sha1 => Cell::Null,
    }
}
