//! Any bytes as two tensors of any dtypes: metrics keep their documented properties, and the
//! symmetric ones do not depend on the order of the sides.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_tensor::difference::{DifferenceOptions, difference};
use opscope_tensor::{DType, Shape, TensorView};

fuzz_target!(|bytes: &[u8]| {
    let [a, b, rest @ ..] = bytes else { return };
    let dtypes = [a, b].map(|code| DType::ALL[usize::from(*code) % DType::ALL.len()]);
    let halves = rest.split_at(rest.len() / 2);
    // As many elements as both have bytes for.
    let bits = dtypes.map(|dtype| dtype.bits().unwrap_or(8) as usize);
    let n = (halves.0.len() * 8 / bits[0]).min(halves.1.len() * 8 / bits[1]);
    let shape = Shape::new([n]).unwrap();
    let view = |i: usize, bytes: &[u8]| (n * bits[i]).div_ceil(8).min(bytes.len());
    let lengths = [view(0, halves.0), view(1, halves.1)];
    let views = [
        (dtypes[0], &halves.0[..lengths[0]]),
        (dtypes[1], &halves.1[..lengths[1]]),
    ]
    .map(|(dtype, bytes)| TensorView::new(dtype, &shape, bytes));
    let options = DifferenceOptions { has_kl: true };
    let (Ok(found), Ok(turned)) = (
        difference(views[0], views[1], options),
        difference(views[1], views[0], options),
    ) else {
        return;
    };
    assert!(found.n_equal <= found.n && found.n_finite <= found.n);
    assert_eq!(found.histogram.iter().sum::<u64>(), found.n_finite);
    assert!(found.mean_abs <= found.max_abs && found.rmse <= found.max_abs);
    assert!(
        found
            .cosine
            .is_none_or(|cosine| (-1.0..=1.0).contains(&cosine))
    );
    assert!(found.kl.is_none_or(|kl| kl >= 0.0));
    assert_eq!(found.p99_ulp.is_some(), found.max_ulp.is_some());
    assert_eq!(
        (
            found.n_equal,
            found.max_abs,
            found.rmse,
            found.cosine,
            found.max_ulp
        ),
        (
            turned.n_equal,
            turned.max_abs,
            turned.rmse,
            turned.cosine,
            turned.max_ulp
        )
    );
});
