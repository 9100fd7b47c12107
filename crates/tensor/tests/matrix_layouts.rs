//! Layouts in blocks along the last two axes, and those of recurrent layers, against one formula
//! each, written out element by element.

use opscope_tensor::convert::layout::{LayoutConversion, LayoutPlan, RnnSizes};
use opscope_tensor::{Layout, Shape};
use proptest::prelude::*;

fn noise(n_bytes: usize) -> Vec<u8> {
    (0..n_bytes as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// `offset` returns the position of element (m, n) of matrix `lead`.
fn expected(
    src: &[u8],
    width: usize,
    [lead, m, n]: [usize; 3],
    n_out: usize,
    offset: impl Fn(usize, usize, usize) -> usize,
) -> Vec<u8> {
    let mut dst = vec![0; n_out * width];
    for at in 0..lead * m * n {
        let to = offset(at / (m * n), at / n % m, at % n) * width;
        dst[to..to + width].copy_from_slice(&src[at * width..(at + 1) * width]);
    }
    dst
}

/// To the device yields `device`, back yields `src`.
fn check(there: &LayoutConversion<'_>, src: &[u8], device_shape: &[usize], device: &[u8]) {
    let plan = LayoutPlan::new(there).unwrap();
    let name = format!("{there:?}");
    assert_eq!(plan.out_shape().dims(), device_shape, "{name}");
    let mut dst = vec![0xaa; plan.out_bytes()];
    plan.run(src, &mut dst).unwrap();
    assert!(dst == device, "{name}");
    let back = LayoutPlan::new(&LayoutConversion {
        from: there.to,
        from_shape: plan.out_shape(),
        to: there.from,
        original: Some((there.from, there.from_shape)),
        ..*there
    })
    .unwrap();
    assert_eq!(back.out_shape(), there.from_shape, "{name}");
    assert!(back.run_to_vec(&dst).unwrap() == src, "{name}, back");
}

fn width() -> impl Strategy<Value = usize> {
    prop::sample::select(&[1_usize, 2, 4, 8, 16][..])
}

fn side() -> impl Strategy<Value = usize> {
    prop_oneof![1_usize..6, 14_usize..50, 60_usize..70]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn fractal_nz(
        lead in prop::collection::vec(1_usize..4, 0..3),
        (m, n) in (side(), side()),
        c0 in prop::sample::select(&[16_usize, 32, 8, 4, 2, 7][..]),
        width in width(),
    ) {
        let mut dims = lead.clone();
        dims.extend([m, n]);
        let (l, m1, n1) = (lead.iter().product(), m.div_ceil(16), n.div_ceil(c0));
        let shape = Shape::new(dims).unwrap();
        let src = noise(shape.n_elements() * width);
        let device = expected(&src, width, [l, m, n], l * n1 * m1 * 16 * c0, |l, m, n| {
            ((l * n1 + n / c0) * m1 * 16 + m) * c0 + n % c0
        });
        let mut device_shape = lead;
        device_shape.extend([n1, m1, 16, c0]);
        let there = LayoutConversion::new(Layout::Nd, &shape, Layout::FractalNz, width);
        check(&LayoutConversion { c0: Some(c0), ..there }, &src, &device_shape, &device);
    }

    #[test]
    fn fractal_zz((l, m, n) in (1_usize..4, side(), side()), width in width()) {
        let (m1, n1) = (m.div_ceil(16), n.div_ceil(16));
        let shape = Shape::new([l, m, n]).unwrap();
        let src = noise(shape.n_elements() * width);
        let device = expected(&src, width, [l, m, n], l * m1 * n1 * 256, |l, m, n| {
            (((l * m1 + m / 16) * n1 + n / 16) * 16 + m % 16) * 16 + n % 16
        });
        let there = LayoutConversion::new(Layout::Nd, &shape, Layout::FractalZz, width);
        check(&LayoutConversion { c0: Some(16), ..there }, &src, &[l, m1, n1, 16, 16], &device);
    }

    /// A matrix as a weight: the last axis is the output channels.
    #[test]
    fn fractal_z_of_a_matrix((k, n) in (side(), side()), width in width()) {
        let (k1, n1) = (k.div_ceil(16), n.div_ceil(16));
        let shape = Shape::new([k, n]).unwrap();
        let src = noise(shape.n_elements() * width);
        let device = expected(&src, width, [1, k, n], k1 * n1 * 256, |_, k, n| {
            (k / 16 * n1 * 16 + n) * 16 + k % 16
        });
        let there = LayoutConversion::new(Layout::Nd, &shape, Layout::FractalZ, width);
        check(&LayoutConversion { c0: Some(16), ..there }, &src, &[k1, n1, 16, 16], &device);
    }

    #[test]
    fn recurrent_weights(
        (input, hidden) in (1_usize..40, 1_usize..40),
        n_gates in 1_usize..6,
        rows in 0_usize..3,
        width in width(),
    ) {
        let m = [input + hidden, input, hidden][rows];
        let (gate, n) = (hidden.div_ceil(16) * 16, n_gates * hidden);
        let first = if rows == 0 { input } else { m };
        let first_blocks = first.div_ceil(16);
        let k1 = first_blocks + (m - first).div_ceil(16);
        let n1 = n_gates * gate / 16;
        let shape = Shape::new([m, n]).unwrap();
        let src = noise(shape.n_elements() * width);
        let device = expected(&src, width, [1, m, n], k1 * n1 * 256, |_, k, n| {
            let k = if k < first { k } else { first_blocks * 16 + k - first };
            let n = n / hidden * gate + n % hidden;
            ((k / 16 * n1 + n / 16) * 16 + n % 16) * 16 + k % 16
        });
        let there = LayoutConversion {
            rnn: Some(RnnSizes { input, hidden }),
            ..LayoutConversion::new(Layout::Nd, &shape, Layout::FractalZnRnn, width)
        };
        check(&there, &src, &[k1, n1, 16, 16], &device);

        // An LSTM's weight is the same thing with four gates and both parts.
        if n_gates == 4 && rows == 0 {
            let there = LayoutConversion { to: Layout::FractalZnLstm, rnn: None, ..there };
            check(&there, &src, &[k1, n1, 16, 16], &device);
            let hwcn = Shape::new([1, 1, m, n]).unwrap();
            let there = LayoutConversion { from: Layout::Hwcn, from_shape: &hwcn, ..there };
            check(&there, &src, &[k1, n1, 16, 16], &device);
        }
    }

    #[test]
    fn recurrent_biases(hidden in 1_usize..40, n_gates in 1_usize..6, lead in 1_usize..4) {
        let gate = hidden.div_ceil(16) * 16;
        let shape = Shape::new([lead, n_gates * hidden]).unwrap();
        let src = noise(shape.n_elements() * 4);
        let sizes = [1, lead, n_gates * hidden];
        let device = expected(&src, 4, sizes, lead * n_gates * gate, |_, l, n| {
            l * n_gates * gate + n / hidden * gate + n % hidden
        });
        let there = LayoutConversion {
            rnn: Some(RnnSizes { input: 1, hidden }),
            ..LayoutConversion::new(Layout::Nd, &shape, Layout::NdRnnBias, 4)
        };
        check(&there, &src, &[lead, n_gates * gate], &device);
    }

    /// Any layouts, shapes and options: a plan that runs, or an error, never a panic.
    #[test]
    fn no_input_panics(
        (from, to, original_layout) in (layout(), layout(), layout()),
        from_shape in shape(),
        original in prop::option::of(shape()),
        (groups, c0) in (0_usize..5, prop::option::of(0_usize..40)),
        rnn in prop::option::of((0_usize..9, 0_usize..9)),
        is_prefix in any::<bool>(),
    ) {
        let conversion = LayoutConversion {
            original: original.as_ref().map(|shape| (original_layout, shape)),
            groups,
            c0,
            rnn: rnn.map(|(input, hidden)| RnnSizes { input, hidden }),
            is_prefix,
            ..LayoutConversion::new(from, &from_shape, to, 2)
        };
        if let Ok(plan) = LayoutPlan::new(&conversion) && plan.out_bytes() < 1 << 20 {
            let src = vec![7; from_shape.n_elements() * 2];
            prop_assert_eq!(plan.run_to_vec(&src).unwrap().len(), plan.out_bytes());
        }
    }
}

fn layout() -> impl Strategy<Value = Layout> {
    prop::sample::select(Layout::ALL)
}

fn shape() -> impl Strategy<Value = Shape> {
    let dim = prop_oneof![8 => 1_usize..5, 2 => Just(16_usize), 1 => Just(0_usize), 1 => Just(usize::MAX)];
    prop::collection::vec(dim, 0..7)
        .prop_filter_map("too large", |dims| Shape::new(dims).ok())
        .prop_filter("too large", |shape| shape.n_elements() < 1 << 20)
}

/// One axis is one row, as the device's own transfer has it.
#[test]
fn fractal_nz_of_one_axis() {
    let (shape, device) = (Shape::new([20]).unwrap(), [2, 1, 16, 16]);
    let src = noise(40);
    let expected = expected(&src, 2, [1, 1, 20], 512, |_, _, n| n / 16 * 256 + n % 16);
    let there = LayoutConversion::new(Layout::Nd, &shape, Layout::FractalNz, 2);
    check(&there, &src, &device, &expected);
}

#[test]
fn padding_may_stay_and_a_part_may_be_taken() {
    let device = Shape::new([3, 2, 2, 16, 16]).unwrap();
    let part = Shape::new([2, 5, 7]).unwrap();
    let base = LayoutConversion::new(Layout::FractalNz, &device, Layout::Nd, 1);
    let whole = LayoutPlan::new(&base).unwrap();
    assert_eq!(whole.out_shape().dims(), [3, 32, 32]);
    let prefix = LayoutConversion {
        original: Some((Layout::Nd, &part)),
        is_prefix: true,
        ..base
    };
    let prefix = LayoutPlan::new(&prefix).unwrap();
    let src = noise(device.n_elements());
    let (whole, prefix) = (
        whole.run_to_vec(&src).unwrap(),
        prefix.run_to_vec(&src).unwrap(),
    );
    for (i, &element) in prefix.iter().enumerate() {
        assert_eq!(element, whole[(i / 35 * 32 + i / 7 % 5) * 32 + i % 7]);
    }
}

#[test]
fn errors_say_what_does_not_fit() {
    let device = Shape::new([2, 2, 16, 16]).unwrap();
    let short = Shape::new([16, 16]).unwrap();
    let original = Shape::new([20, 35]).unwrap();
    let base = LayoutConversion::new(Layout::FractalNz, &device, Layout::Nd, 2);
    let rnn = LayoutConversion::new(Layout::FractalZnRnn, &device, Layout::Nd, 2);
    let (nd, sizes) = (
        Some((Layout::Nd, &original)),
        Some(RnnSizes {
            input: 4,
            hidden: 6,
        }),
    );
    let cases = [
        (
            LayoutConversion {
                original: nd,
                ..base
            },
            "`FRACTAL_NZ` of this original has shape [3,2,16,16], found [2,2,16,16]",
        ),
        (
            LayoutConversion {
                from_shape: &short,
                ..base
            },
            "shape [16,16] has 2 axes, which `FRACTAL_NZ` cannot have",
        ),
        (rnn, "leaving `FRACTAL_ZN_RNN` takes the original shape"),
        (
            LayoutConversion {
                original: nd,
                ..rnn
            },
            "shape [20,35] does not fit a recurrent layer of unknown sizes",
        ),
        (
            LayoutConversion {
                original: nd,
                rnn: sizes,
                ..rnn
            },
            "shape [20,35] does not fit a recurrent layer of input size 4 and hidden size 6",
        ),
    ];
    for (conversion, message) in cases {
        assert_eq!(
            LayoutPlan::new(&conversion).unwrap_err().to_string(),
            message
        );
    }
}
