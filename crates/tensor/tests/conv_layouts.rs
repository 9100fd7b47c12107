//! Layouts of images and weights against one formula each, written out element by element.

use opscope_tensor::convert::layout::{LayoutConversion, LayoutPlan};
use opscope_tensor::{Layout, Shape};
use proptest::prelude::*;

/// Dimensions, or an index along each of them.
#[derive(Clone, Copy, Debug)]
struct Axes {
    n: usize,
    c: usize,
    d: usize,
    h: usize,
    w: usize,
}

/// One element's place and the shape, from dimensions, block size and index.
struct Formula {
    layout: Layout,
    has_depth: bool,
    shape: fn(Axes, usize) -> Vec<usize>,
    offset: fn(Axes, usize, Axes) -> usize,
}

fn up(x: usize, to: usize) -> usize {
    x.div_ceil(to) * to
}

/// The offset of an index in a dense tensor, axis by axis.
fn dense(axes: &[(usize, usize)]) -> usize {
    axes.iter().fold(0, |offset, &(index, extent)| {
        assert!(index < extent);
        offset * extent + index
    })
}

const FORMULAS: &[Formula] = &[
    Formula {
        layout: Layout::Nchw,
        has_depth: false,
        shape: |e, _| vec![e.n, e.c, e.h, e.w],
        offset: |e, _, i| dense(&[(i.n, e.n), (i.c, e.c), (i.h, e.h), (i.w, e.w)]),
    },
    Formula {
        layout: Layout::Nhwc,
        has_depth: false,
        shape: |e, _| vec![e.n, e.h, e.w, e.c],
        offset: |e, _, i| dense(&[(i.n, e.n), (i.h, e.h), (i.w, e.w), (i.c, e.c)]),
    },
    Formula {
        layout: Layout::Hwcn,
        has_depth: false,
        shape: |e, _| vec![e.h, e.w, e.c, e.n],
        offset: |e, _, i| dense(&[(i.h, e.h), (i.w, e.w), (i.c, e.c), (i.n, e.n)]),
    },
    Formula {
        layout: Layout::Chwn,
        has_depth: false,
        shape: |e, _| vec![e.c, e.h, e.w, e.n],
        offset: |e, _, i| dense(&[(i.c, e.c), (i.h, e.h), (i.w, e.w), (i.n, e.n)]),
    },
    Formula {
        layout: Layout::Ncdhw,
        has_depth: true,
        shape: |e, _| vec![e.n, e.c, e.d, e.h, e.w],
        offset: |e, _, i| dense(&[(i.n, e.n), (i.c, e.c), (i.d, e.d), (i.h, e.h), (i.w, e.w)]),
    },
    Formula {
        layout: Layout::Ndhwc,
        has_depth: true,
        shape: |e, _| vec![e.n, e.d, e.h, e.w, e.c],
        offset: |e, _, i| dense(&[(i.n, e.n), (i.d, e.d), (i.h, e.h), (i.w, e.w), (i.c, e.c)]),
    },
    Formula {
        layout: Layout::Dhwcn,
        has_depth: true,
        shape: |e, _| vec![e.d, e.h, e.w, e.c, e.n],
        offset: |e, _, i| dense(&[(i.d, e.d), (i.h, e.h), (i.w, e.w), (i.c, e.c), (i.n, e.n)]),
    },
    Formula {
        layout: Layout::Dhwnc,
        has_depth: true,
        shape: |e, _| vec![e.d, e.h, e.w, e.n, e.c],
        offset: |e, _, i| dense(&[(i.d, e.d), (i.h, e.h), (i.w, e.w), (i.n, e.n), (i.c, e.c)]),
    },
    Formula {
        layout: Layout::Nc1hwc0,
        has_depth: false,
        shape: |e, c0| vec![e.n, e.c.div_ceil(c0), e.h, e.w, c0],
        offset: |e, c0, i| {
            let c1 = (i.c / c0, e.c.div_ceil(c0));
            dense(&[(i.n, e.n), c1, (i.h, e.h), (i.w, e.w), (i.c % c0, c0)])
        },
    },
    Formula {
        layout: Layout::Ndc1hwc0,
        has_depth: true,
        shape: |e, c0| vec![e.n, e.d, e.c.div_ceil(c0), e.h, e.w, c0],
        offset: |e, c0, i| {
            let c1 = (i.c / c0, e.c.div_ceil(c0));
            dense(&[
                (i.n, e.n),
                (i.d, e.d),
                c1,
                (i.h, e.h),
                (i.w, e.w),
                (i.c % c0, c0),
            ])
        },
    },
    Formula {
        layout: Layout::C1hwnc0,
        has_depth: false,
        shape: |e, c0| vec![e.c.div_ceil(c0), e.h, e.w, e.n, c0],
        offset: |e, c0, i| {
            let c1 = (i.c / c0, e.c.div_ceil(c0));
            dense(&[c1, (i.h, e.h), (i.w, e.w), (i.n, e.n), (i.c % c0, c0)])
        },
    },
    Formula {
        layout: Layout::C1hwncoc0,
        has_depth: false,
        shape: |e, c0| vec![e.c.div_ceil(c0), e.h, e.w, e.n, c0, c0],
        offset: |e, c0, i| {
            let (c1, diagonal) = ((i.c / c0, e.c.div_ceil(c0)), (i.c % c0, c0));
            dense(&[c1, (i.h, e.h), (i.w, e.w), (i.n, e.n), diagonal, diagonal])
        },
    },
    Formula {
        layout: Layout::FractalZ,
        has_depth: false,
        shape: |e, c0| vec![e.c.div_ceil(c0) * e.h * e.w, e.n.div_ceil(16), 16, c0],
        offset: |e, c0, i| {
            let c1 = (i.c / c0, e.c.div_ceil(c0));
            let n = [(i.n / 16, e.n.div_ceil(16)), (i.n % 16, 16)];
            dense(&[c1, (i.h, e.h), (i.w, e.w), n[0], n[1], (i.c % c0, c0)])
        },
    },
    Formula {
        layout: Layout::FractalZ3d,
        has_depth: true,
        shape: |e, c0| vec![e.d * e.c.div_ceil(c0) * e.h * e.w, e.n.div_ceil(16), 16, c0],
        offset: |e, c0, i| {
            let c1 = (i.c / c0, e.c.div_ceil(c0));
            let n = (i.n, up(e.n, 16));
            dense(&[(i.d, e.d), c1, (i.h, e.h), (i.w, e.w), n, (i.c % c0, c0)])
        },
    },
    Formula {
        layout: Layout::FractalZ3dTranspose,
        has_depth: true,
        shape: |e, c0| vec![e.d * e.n.div_ceil(c0) * e.h * e.w, e.c.div_ceil(16), 16, c0],
        offset: |e, c0, i| {
            let n1 = (i.n / c0, e.n.div_ceil(c0));
            let c = (i.c, up(e.c, 16));
            dense(&[(i.d, e.d), n1, (i.h, e.h), (i.w, e.w), c, (i.n % c0, c0)])
        },
    },
];

/// Converts element by element, from one formula to another.
fn convert(
    src: &[u8],
    width: usize,
    extents: Axes,
    (from, from_c0): (&Formula, usize),
    (to, to_c0): (&Formula, usize),
) -> Vec<u8> {
    let n_elements: usize = (to.shape)(extents, to_c0).iter().product();
    let mut dst = vec![0; n_elements * width];
    for n in 0..extents.n {
        for c in 0..extents.c {
            for d in 0..extents.d {
                for h in 0..extents.h {
                    for w in 0..extents.w {
                        let index = Axes { n, c, d, h, w };
                        let src_at = (from.offset)(extents, from_c0, index) * width;
                        let dst_at = (to.offset)(extents, to_c0, index) * width;
                        dst[dst_at..dst_at + width].copy_from_slice(&src[src_at..src_at + width]);
                    }
                }
            }
        }
    }
    dst
}

fn noise(n_bytes: usize) -> Vec<u8> {
    (0..n_bytes as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

fn is_plain(formula: &Formula) -> bool {
    !formula.layout.name().contains(['0', '_'])
}

fn extents() -> impl Strategy<Value = Axes> {
    let axis = || prop_oneof![3 => 1_usize..6, 1 => 6_usize..14];
    let channel = || prop_oneof![1_usize..8, 14_usize..36];
    (channel(), channel(), axis(), axis(), axis()).prop_map(|(n, c, d, h, w)| Axes {
        n,
        c,
        d,
        h,
        w,
    })
}

fn check(plain: &Formula, device: &Formula, e: Axes, c0: usize, width: usize) {
    let e = Axes {
        d: if plain.has_depth && device.has_depth {
            e.d
        } else {
            1
        },
        ..e
    };
    let plain_shape = Shape::new((plain.shape)(e, c0)).unwrap();
    let device_shape = Shape::new((device.shape)(e, c0)).unwrap();
    let src = noise(plain_shape.n_elements() * width);
    let expected = convert(&src, width, e, (plain, c0), (device, c0));

    let there = LayoutPlan::new(&LayoutConversion {
        c0: Some(c0),
        ..LayoutConversion::new(plain.layout, &plain_shape, device.layout, width)
    })
    .unwrap();
    let mut dst = vec![0xaa; there.out_bytes()];
    there.run(&src, &mut dst).unwrap();
    let name = format!(
        "{} -> {} {e:?} c0 {c0} width {width}",
        plain.layout, device.layout
    );
    assert_eq!(there.out_shape(), &device_shape, "{name}");
    assert!(dst == expected, "{name}");

    let back = LayoutPlan::new(&LayoutConversion {
        original: Some((plain.layout, &plain_shape)),
        ..LayoutConversion::new(device.layout, &device_shape, plain.layout, width)
    })
    .unwrap();
    assert_eq!(back.out_shape(), &plain_shape, "{name}, back");
    assert!(back.run_to_vec(&dst).unwrap() == src, "{name}, back");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_layout_follows_its_formula_there_and_back(
        plain in 0_usize..8,
        device in 0..FORMULAS.len(),
        e in extents(),
        c0 in prop::sample::select(&[16_usize, 32, 8, 4, 2, 7][..]),
        width in prop::sample::select(&[1_usize, 2, 4, 8, 16][..]),
    ) {
        check(&FORMULAS[plain], &FORMULAS[device], e, c0, width);
    }
}

#[test]
fn every_pair_once() {
    let e = Axes {
        n: 18,
        c: 21,
        d: 2,
        h: 3,
        w: 5,
    };
    for plain in FORMULAS.iter().filter(|f| is_plain(f)) {
        for device in FORMULAS {
            check(plain, device, e, 16, 2);
        }
    }
}

/// Between device layouts, where their blocks agree.
#[test]
fn from_device_to_device() {
    let e = Axes {
        n: 18,
        c: 21,
        d: 1,
        h: 3,
        w: 5,
    };
    let formula = |layout| FORMULAS.iter().find(|f| f.layout == layout).unwrap();
    let (from, to) = (formula(Layout::Nc1hwc0), formula(Layout::FractalZ));
    let original = Shape::new([18, 21, 3, 5]).unwrap();
    let from_shape = Shape::new((from.shape)(e, 16)).unwrap();
    let plan = LayoutPlan::new(&LayoutConversion {
        original: Some((Layout::Nchw, &original)),
        ..LayoutConversion::new(from.layout, &from_shape, to.layout, 4)
    })
    .unwrap();
    let src = noise(from_shape.n_elements() * 4);
    let expected = convert(&src, 4, e, (from, 16), (to, 16));
    assert!(plan.run_to_vec(&src).unwrap() == expected);
}

/// The index formula of a grouped weight, from MindSpore's host transfer.
fn grouped(src: &[u8], e: Axes, groups: usize, c0: usize) -> Vec<u8> {
    fn lcm(a: usize, b: usize) -> usize {
        (1..).map(|k| k * a).find(|m| m.is_multiple_of(b)).unwrap()
    }
    let n = e.n / groups;
    let bundle = lcm(lcm(e.c, c0) / e.c, lcm(n, 16) / n).min(groups);
    let (c1, n_padded) = ((bundle * e.c).div_ceil(c0), up(bundle * n, 16));
    let n_bundles = groups.div_ceil(bundle);
    let mut dst = vec![0; n_bundles * e.d * c1 * e.h * e.w * n_padded * c0];
    for g in 0..groups {
        for (n_in_group, c) in (0..n).flat_map(|n| (0..e.c).map(move |c| (n, c))) {
            for place in 0..e.d * e.h * e.w {
                let (d, hw) = (place / (e.h * e.w), place % (e.h * e.w));
                let (device_c, device_n) = (g % bundle * e.c + c, g % bundle * n + n_in_group);
                let at = dense(&[
                    (g / bundle, n_bundles),
                    (d, e.d),
                    (device_c / c0, c1),
                    (hw, e.h * e.w),
                    (device_n, n_padded),
                    (device_c % c0, c0),
                ]);
                let from = dense(&[
                    (g * n + n_in_group, e.n),
                    (c, e.c),
                    (place, e.d * e.h * e.w),
                ]);
                dst[at] = src[from];
            }
        }
    }
    dst
}

proptest! {
    #[test]
    fn groups_follow_the_formula_there_and_back(
        groups in 1_usize..20,
        n in 1_usize..20,
        c in 1_usize..40,
        (d, h, w) in (1_usize..3, 1_usize..4, 1_usize..4),
        c0 in prop::sample::select(&[16_usize, 32, 8][..]),
    ) {
        let e = Axes { n: n * groups, c, d, h, w };
        let src = noise(e.n * c * d * h * w);
        let plain = Shape::new([e.n, c, d, h, w]).unwrap();
        let to = LayoutConversion {
            groups,
            c0: Some(c0),
            ..LayoutConversion::new(Layout::Ncdhw, &plain, Layout::FractalZ3d, 1)
        };
        let there = LayoutPlan::new(&to).unwrap();
        let dst = there.run_to_vec(&src).unwrap();
        prop_assert!(dst == grouped(&src, e, groups, c0));
        let back = LayoutPlan::new(&LayoutConversion {
            groups,
            original: Some((Layout::Ncdhw, &plain)),
            ..LayoutConversion::new(Layout::FractalZ3d, there.out_shape(), Layout::Ncdhw, 1)
        })
        .unwrap();
        prop_assert!(back.run_to_vec(&dst).unwrap() == src);
    }

    /// Four channels, then places, in blocks along both.
    #[test]
    fn four_channels(
        n in 1_usize..40,
        c in 1_usize..5,
        (h, w) in (1_usize..8, 1_usize..8),
        is_last in any::<bool>(),
    ) {
        let (layout, dims) = if is_last { (Layout::Nhwc, [n, h, w, c]) } else { (Layout::Nchw, [n, c, h, w]) };
        let plain = Shape::new(dims).unwrap();
        let src = noise(plain.n_elements());
        let c0 = 16;
        let mut expected = vec![0; (4 * h * w).div_ceil(c0) * up(n, 16) * c0];
        for (n_at, c_at) in (0..n).flat_map(|n| (0..c).map(move |c| (n, c))) {
            for place in 0..h * w {
                let k = place * 4 + c_at;
                let at = (k / c0 * up(n, 16) + n_at) * c0 + k % c0;
                let from = if is_last { (n_at * h * w + place) * c + c_at } else { (n_at * c + c_at) * h * w + place };
                expected[at] = src[from];
            }
        }
        let there = LayoutPlan::new(&LayoutConversion {
            c0: Some(c0),
            ..LayoutConversion::new(layout, &plain, Layout::FractalZC04, 1)
        })
        .unwrap();
        let dst = there.run_to_vec(&src).unwrap();
        prop_assert!(dst == expected);
        let back = LayoutPlan::new(&LayoutConversion {
            original: Some((layout, &plain)),
            ..LayoutConversion::new(Layout::FractalZC04, there.out_shape(), layout, 1)
        })
        .unwrap();
        prop_assert!(back.run_to_vec(&dst).unwrap() == src);
    }
}

/// Padding may stay, the order of the original may differ from the target, a part may be taken.
#[test]
fn what_the_original_shape_decides() {
    let device = Shape::new([2, 2, 3, 5, 16]).unwrap();
    let original = Shape::new([2, 3, 5, 20]).unwrap();
    let small = Shape::new([1, 5, 3, 4]).unwrap();
    let to_nchw = LayoutConversion::new(Layout::Nc1hwc0, &device, Layout::Nchw, 2);
    let out = |conversion: &LayoutConversion<'_>| {
        LayoutPlan::new(conversion).unwrap().out_shape().to_vec()
    };
    assert_eq!(out(&to_nchw), [2, 32, 3, 5]);
    let known = LayoutConversion {
        original: Some((Layout::Nhwc, &original)),
        ..to_nchw
    };
    assert_eq!(out(&known), [2, 20, 3, 5]);
    assert_eq!(
        out(&LayoutConversion {
            to: Layout::Nd,
            ..known
        }),
        [2, 3, 5, 20]
    );
    let part = LayoutConversion {
        original: Some((Layout::Nchw, &small)),
        is_prefix: true,
        ..to_nchw
    };
    assert_eq!(out(&part), [1, 5, 3, 4]);

    let src = noise(device.n_elements() * 2);
    let whole = LayoutPlan::new(&to_nchw).unwrap().run_to_vec(&src).unwrap();
    let part = LayoutPlan::new(&part).unwrap().run_to_vec(&src).unwrap();
    for (i, element) in part.chunks(2).enumerate() {
        let (c, h, w) = (i / 12, i / 4 % 3, i % 4);
        let at = ((c * 3 + h) * 5 + w) * 2;
        assert_eq!(element, &whole[at..at + 2]);
    }
}

fn shape(dims: &[usize]) -> Shape {
    Shape::new(dims).unwrap()
}

fn check_error(conversion: &LayoutConversion<'_>, message: &str) {
    assert_eq!(
        LayoutPlan::new(conversion).unwrap_err().to_string(),
        message
    );
}

#[test]
fn errors_say_which_shape_does_not_fit() {
    let device = shape(&[2, 2, 3, 5, 16]);
    let (wrong, flat) = (shape(&[2, 40, 3, 5]), shape(&[7]));
    let base = LayoutConversion::new(Layout::Nc1hwc0, &device, Layout::Nchw, 2);
    let with = |original| LayoutConversion {
        original: Some((Layout::Nchw, original)),
        ..base
    };
    check_error(
        &with(&wrong),
        "`NC1HWC0` of this original has shape [2,3,3,5,16], found [2,2,3,5,16]",
    );
    check_error(
        &LayoutConversion {
            is_prefix: true,
            ..with(&wrong)
        },
        "`NC1HWC0` of shape [2,2,3,5,16] holds less than the original shape [2,40,3,5]",
    );
    check_error(
        &with(&flat),
        "shape [7] has 1 axes, which `NCHW` cannot have",
    );
    check_error(
        &LayoutConversion {
            from_shape: &flat,
            ..base
        },
        "shape [7] has 1 axes, which `NC1HWC0` cannot have",
    );
    let plan = LayoutPlan::new(&base).unwrap();
    let error = plan.run(&[0; 1919], &mut [0; 1920]).unwrap_err();
    assert_eq!(error.to_string(), "source takes 1920 bytes, found 1919");
    let error = plan.run(&[0; 1920], &mut [0; 7]).unwrap_err();
    assert_eq!(error.to_string(), "target takes 1920 bytes, found 7");
}

#[test]
fn errors_say_what_a_layout_cannot_hold() {
    let device = shape(&[2, 2, 3, 5, 16]);
    let weight = shape(&[12, 2, 16, 16]);
    let (deep, five) = (shape(&[1, 2, 3, 4, 5]), shape(&[1, 5, 2, 2]));
    let base = LayoutConversion::new(Layout::Nc1hwc0, &device, Layout::Nchw, 2);
    let nchw = |to| LayoutConversion::new(Layout::Nchw, &five, to, 2);
    check_error(
        &LayoutConversion::new(Layout::FractalZ, &weight, Layout::Nchw, 2),
        "leaving `FRACTAL_Z` takes the original shape",
    );
    check_error(
        &LayoutConversion::new(Layout::Ncdhw, &deep, Layout::Nc1hwc0, 2),
        "`NC1HWC0` has no axis for a depth of 3",
    );
    check_error(
        &nchw(Layout::FractalZC04),
        "`FRACTAL_Z_C04` holds at most 4 channels, found 5",
    );
    check_error(
        &LayoutConversion {
            groups: 3,
            ..nchw(Layout::FractalZ)
        },
        "1 output channels in blocks of 16 cannot form 3 groups",
    );
    check_error(
        &LayoutConversion {
            to: Layout::FractalNz,
            ..base
        },
        "no conversion from `NC1HWC0` to `FRACTAL_NZ`",
    );
    check_error(
        &LayoutConversion {
            from: Layout::BnWeight,
            ..base
        },
        "no conversion from `BN_WEIGHT` to `NCHW`",
    );
    check_error(
        &LayoutConversion {
            c0: Some(0),
            ..base
        },
        "blocks of 0 elements",
    );
    check_error(
        &LayoutConversion {
            element_bytes: 3,
            ..base
        },
        "elements of 3 bytes; expected 1, 2, 4, 8 or 16",
    );
}
