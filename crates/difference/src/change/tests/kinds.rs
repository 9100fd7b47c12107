//! Each operation is recognised, whatever the shape and dtype.

use super::*;
use crate::change::bounds;

const DTYPES: [DType; 2] = [DType::F32, DType::F16];
const SHAPES: [&[usize]; 8] = [
    &[24],
    &[1000],
    &[12, 20],
    &[16, 16],
    &[4, 6, 8],
    &[8, 4, 3, 3],
    &[16, 8, 1, 1],
    &[2, 4, 3, 6, 5],
];

/// Makes a tensor of each shape and dtype, and expects the operation that `change` returns next to
/// its elements; without one the shape is left out.
fn check(name: &str, change: impl Fn(&[f64], &[usize], DType) -> Option<(Vec<f64>, TensorChange)>) {
    let mut n_checked = 0;
    for (seed, shape) in (1..).zip(SHAPES) {
        for dtype in DTYPES {
            let golden = weights(seed, shape, dtype);
            if let Some((target, expected)) = change(&golden, shape, dtype) {
                let found = found(&target, &golden, shape, dtype);
                assert_eq!(found.as_ref(), Some(&expected), "{name} {shape:?} {dtype}");
                n_checked += 1;
            }
        }
    }
    assert!(n_checked > 0, "{name}");
}

/// [`check`] of a function of each element.
fn check_map(name: &str, map: impl Fn(f64) -> f64, expected: &TensorChange) {
    check(name, |golden, _, dtype| {
        let target = golden.iter().map(|&x| stored(dtype, map(x)));
        Some((target.collect(), expected.clone()))
    });
}

fn affine(factor: f64, offset: f64) -> TensorChange {
    TensorChange::Affine { factor, offset }
}

#[test]
fn constants() {
    for value in [0.0, 1.0] {
        let golden = None;
        check_map(
            "constant",
            |_| value,
            &TensorChange::Constant { value, golden },
        );
    }
    let found = found(&[0.0; 8], &[1.0; 8], &[8], DType::F32);
    let (value, golden) = (0.0, Some(1.0));
    assert_eq!(found, Some(TensorChange::Constant { value, golden }));
}

#[test]
fn factors_and_offsets() {
    for factor in [0.5, -1.0, 1.5, 3.0, -0.125, 1e-3, 1.0 / 3.0] {
        check_map("factor", |x| factor * x, &affine(factor, 0.0));
    }
    for offset in [0.125, -1.0, 5.0] {
        check_map("offset", |x| x + offset, &affine(1.0, offset));
    }
    check_map("both", |x| 2.0 * x + 1.5, &affine(2.0, 1.5));
    check_map("both", |x| 1.0 - x, &affine(-1.0, 1.0));
}

#[test]
fn functions() {
    for (function, map) in [
        (ElementFunction::Absolute, f64::abs as fn(f64) -> f64),
        (ElementFunction::Reciprocal, f64::recip),
        (ElementFunction::Square, |x| x * x),
        (ElementFunction::Exponential, f64::exp),
    ] {
        check_map("function", map, &TensorChange::Function { function });
    }
}

#[test]
fn axes_in_another_order() {
    for dtype in DTYPES {
        for (shape, order, is_same_shape) in [
            (&[16, 16][..], &[1, 0][..], true),
            (&[4, 5, 5], &[0, 2, 1], true),
            (&[8, 4, 3, 3], &[0, 1, 3, 2], true),
            (&[3, 3, 3, 2], &[1, 2, 0, 3], true),
            (&[12, 20], &[1, 0], false),
            (&[2, 4, 3, 6, 5], &[0, 2, 3, 4, 1], false),
        ] {
            let golden = weights(3, shape, dtype);
            let strides = strides(shape);
            let dims: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
            let mut target = Vec::with_capacity(golden.len());
            let mut index = vec![0; dims.len()];
            for _ in 0..golden.len() {
                let place = index.iter().zip(order).map(|(i, &axis)| i * strides[axis]);
                target.push(golden[place.sum::<usize>()]);
                for k in (0..dims.len()).rev() {
                    index[k] += 1;
                    if index[k] < dims[k] {
                        break;
                    }
                    index[k] = 0;
                }
            }
            let expected = |in_memory| {
                let order = order.to_vec();
                Some(TensorChange::Axes { order, in_memory })
            };
            assert_eq!(
                found(&target, &golden, shape, dtype),
                expected(!is_same_shape)
            );
            if !is_same_shape {
                let (target, golden) = (
                    elements(&target, &dims, dtype),
                    elements(&golden, shape, dtype),
                );
                assert_eq!(explain(&target, &golden, 0.0), expected(false), "{shape:?}");
            }
        }
        let golden = weights(4, &[4, 6], dtype);
        let [target, golden] = [&[2, 12][..], &[4, 6]].map(|dims| elements(&golden, dims, dtype));
        assert_eq!(explain(&target, &golden, 0.0), Some(TensorChange::Reshaped));
    }
}

#[test]
fn mirrored_and_rolled() {
    for axis in 0..5 {
        check("mirrored", |golden, shape, _| {
            let dim = *shape.get(axis).filter(|&&dim| dim > 2)?;
            let target = moved(golden, shape, |index| index[axis] = dim - 1 - index[axis]);
            let axes = vec![axis];
            Some((target, TensorChange::Mirrored { axes, block: 0 }))
        });
        for by in [1, -1, 2] {
            check("rolled", |golden, shape, _| {
                // Two of four places are the two of the other direction.
                let dim = *shape.get(axis).filter(|&&dim| dim > 4)? as i64;
                let roll = |i: usize| (i as i64 - by).rem_euclid(dim) as usize;
                let target = moved(golden, shape, |index| index[axis] = roll(index[axis]));
                let axes = vec![(axis, by)];
                Some((target, TensorChange::Rolled { axes }))
            });
        }
    }
    check("rolled along two axes", |golden, shape, _| {
        let &[.., a, b] = shape else { return None };
        if a < 4 || b < 5 {
            return None;
        }
        let n = shape.len();
        let target = moved(golden, shape, |index| {
            index[n - 2] = (index[n - 2] + 1) % a;
            index[n - 1] = (index[n - 1] + b - 2) % b;
        });
        let axes = vec![(n - 2, -1), (n - 1, 2)];
        Some((target, TensorChange::Rolled { axes }))
    });
    for (by, wraps) in [(7_usize, true), (7, false)] {
        check("moved in memory", |golden, shape, dtype| {
            if shape.len() == 1 && (wraps || shape[0] < 100) {
                return None;
            }
            let mut target = golden.to_vec();
            target.rotate_right(by);
            if !wraps {
                let others = weights(99, &[by], dtype);
                target[..by].copy_from_slice(&others);
            }
            Some((
                target,
                TensorChange::Moved {
                    by: by as i64,
                    wraps,
                },
            ))
        });
    }
}

/// [`check`] of an axis of 24 indices of which each shows another one.
fn check_order(
    name: &str,
    source: impl Fn(usize) -> usize,
    expected: impl Fn(usize) -> TensorChange,
) {
    for shape in [&[24, 5][..], &[3, 24], &[2, 24, 3, 2], &[24]] {
        for dtype in DTYPES {
            let axis = shape.iter().position(|&dim| dim == 24).unwrap();
            let golden = weights(5, shape, dtype);
            let target = moved(&golden, shape, |index| index[axis] = source(index[axis]));
            let found = found(&target, &golden, shape, dtype);
            assert_eq!(found, Some(expected(axis)), "{name} {shape:?} {dtype}");
        }
    }
}

#[test]
fn indices_in_another_order() {
    let gates = [0, 2, 3, 1];
    check_order(
        "blocks",
        |i| gates[i / 6] * 6 + i % 6,
        |axis| TensorChange::Blocks {
            axis,
            size: 6,
            order: gates.to_vec(),
        },
    );
    for (n_parts, block) in [(2, 24), (3, 24), (12, 24), (2, 8)] {
        check_order(
            "interleaved",
            |i| i / block * block + i % block % n_parts * (block / n_parts) + i % block / n_parts,
            |axis| TensorChange::Interleaved {
                axis,
                n_parts,
                block,
            },
        );
    }
    check_order(
        "exchanged",
        |i| match i {
            3 => 17,
            17 => 3,
            i => i,
        },
        |axis| TensorChange::Exchanged {
            axis,
            indices: [3, 17],
        },
    );
    check_order(
        "mirrored in blocks",
        |i| i / 6 * 6 + 5 - i % 6,
        |axis| TensorChange::Mirrored {
            axes: vec![axis],
            block: 6,
        },
    );
    check_order(
        "without a rule",
        |i| i * i * i % 23 + i / 23 * 23,
        |axis| TensorChange::Permuted { axis },
    );
}

#[test]
fn rounded_to_formats() {
    let check = |map: fn(f64) -> f64, format, mode| {
        let golden: Vec<f64> = weights(7, &[8, 40], DType::F32);
        let golden: Vec<f64> = golden.iter().map(|x| x * 10.0).collect();
        let target: Vec<f64> = golden.iter().map(|&x| map(x)).collect();
        let rounded = TensorChange::Rounded { format, mode };
        let found = found(&target, &golden, &[8, 40], DType::F32);
        assert_eq!(found, Some(rounded.clone()));
        let change = Box::new(rounded);
        let lost = super::found(&golden, &target, &[8, 40], DType::F32);
        assert_eq!(lost, Some(TensorChange::Missing { change }));
    };
    let bits = |x: f64| (x as f32).to_bits();
    check(
        |x| f16::from_f64(x).to_f64(),
        RoundedFormat::Float16,
        RoundingMode::Nearest,
    );
    check(
        |x| half::bf16::from_f64(x).to_f64(),
        RoundedFormat::Bfloat16,
        RoundingMode::Nearest,
    );
    assert_eq!(bits(1.0), 0x3f80_0000);
    check(
        |x| f64::from(f32::from_bits((x as f32).to_bits() & 0xffff_0000)),
        RoundedFormat::Bfloat16,
        RoundingMode::TowardsZero,
    );
    check(
        f64::round_ties_even,
        RoundedFormat::Integers,
        RoundingMode::Nearest,
    );
    check(f64::floor, RoundedFormat::Integers, RoundingMode::Down);
    check(f64::ceil, RoundedFormat::Integers, RoundingMode::Up);
    check(
        f64::trunc,
        RoundedFormat::Integers,
        RoundingMode::TowardsZero,
    );
}

#[test]
fn rounded_to_steps() {
    check_map(
        "steps",
        |x| (x / 0.0625).round_ties_even().clamp(-8.0, 7.0) * 0.0625,
        &TensorChange::Steps { step: 0.0625 },
    );
    // A zero point that is no multiple.
    check_map(
        "steps",
        |x| ((x - 0.01) / 0.03).round_ties_even() * 0.03 + 0.01,
        &TensorChange::Steps { step: 0.03 },
    );
}

#[test]
fn clipped_and_masked() {
    for (low, high) in [
        (Some(-0.25), Some(0.25)),
        (Some(0.0), None),
        (None, Some(0.125)),
    ] {
        let clip = |x: f64| x.clamp(low.unwrap_or(-1e9), high.unwrap_or(1e9));
        let clipped = TensorChange::Clipped { low, high };
        check_map("clipped", clip, &clipped);
        check("golden clipped", |golden, shape, dtype| {
            let clipped_too: Vec<f64> = golden.iter().map(|&x| clip(x)).collect();
            let change = Box::new(clipped.clone());
            let expected = TensorChange::Missing { change };
            assert_eq!(found(golden, &clipped_too, shape, dtype), Some(expected));
            Some((clipped_too, clipped.clone()))
        });
    }
    for (is_upper, diagonal, value) in [(true, 1, 0.0), (true, 0, -65504.0), (false, -1, 0.0)] {
        check("triangle", |golden, shape, _| {
            let &[.., rows, columns] = shape else {
                return None;
            };
            let target = golden.iter().enumerate().map(|(i, &x)| {
                let distance = (i % columns) as i64 - (i / columns % rows) as i64;
                let inside = if is_upper {
                    distance >= diagonal
                } else {
                    distance <= diagonal
                };
                if inside { value } else { x }
            });
            let expected = TensorChange::Triangle {
                is_upper,
                diagonal,
                value,
            };
            (rows > 3 && columns > 3).then(|| (target.collect(), expected))
        });
    }
    check("cut off", |golden, shape, _| {
        let mut target = golden.to_vec();
        // Within a row.
        let n_equal = golden.len() / 2 + 1;
        target[n_equal..].fill(0.0);
        let is_within = shape.len() == 1 || shape[shape.len() - 1] > 3;
        let value = Some(0.0);
        is_within.then_some((target, TensorChange::CutOff { n_equal, value }))
    });
    check("not finite", |golden, _, _| {
        let mut target = golden.to_vec();
        (target[3], target[20]) = (f64::NAN, f64::INFINITY);
        Some((target, TensorChange::NonFinite { n_nan: 1, n_inf: 1 }))
    });
}

#[test]
fn bytes_in_the_opposite_order() {
    let golden = weights(8, &[300], DType::F32);
    let swap = |&x: &f64| f64::from(f32::from_bits((x as f32).to_bits().swap_bytes()));
    let target: Vec<f64> = golden.iter().map(swap).collect();
    let found = found(&target, &golden, &[300], DType::F32);
    assert_eq!(found, Some(TensorChange::ByteOrder));
}

#[test]
fn numbers_by_channel() {
    for axis in 0..4 {
        for is_factor in [true, false] {
            check("channels", |golden, shape, dtype| {
                let dim = *shape.get(axis).filter(|&&dim| dim > 1)?;
                let stride = strides(shape)[axis];
                let number = |channel: usize| 1.5 + 0.5 * channel as f64;
                let target = golden.iter().enumerate().map(|(i, &x)| {
                    let number = number(i / stride % dim);
                    stored(dtype, if is_factor { x * number } else { x + number })
                });
                let target: Vec<f64> = target.collect();
                // Numbers are the best fit to elements that were rounded.
                let found = found(&target, golden, shape, dtype);
                match (shape.len(), found) {
                    (2.., Some(TensorChange::Channels { min, max, .. })) => {
                        assert!((min - 1.5).abs() < 0.01 && (max - number(dim - 1)).abs() < 0.01);
                        Some((
                            target,
                            TensorChange::Channels {
                                axis,
                                is_factor,
                                min,
                                max,
                            },
                        ))
                    }
                    (1, found) => {
                        assert_eq!(found, None);
                        None
                    }
                    (_, found) => panic!("{shape:?} {axis}: {found:?}"),
                }
            });
        }
    }
}

#[test]
fn parts() {
    let part = |axis, ranges: &[[usize; 2]]| {
        let ranges = ranges.to_vec();
        vec![AxisPart { axis, ranges }]
    };
    for axis in 0..4 {
        for (map, change) in [
            (
                (|x, _| 2.0 * x) as fn(f64, usize) -> f64,
                Some(affine(2.0, 0.0)),
            ),
            (|x, i| x + 1.0 + 0.37 * (i * i % 7) as f64 * x * x, None),
            (
                |_, _| 0.0,
                Some(TensorChange::Constant {
                    value: 0.0,
                    golden: None,
                }),
            ),
        ] {
            check("one index", |golden, shape, dtype| {
                shape.get(axis).filter(|&&dim| dim > 2)?;
                let (stride, dim) = (strides(shape)[axis], shape[axis]);
                let target = golden.iter().enumerate().map(|(i, &x)| {
                    let inside = i / stride % dim == 2;
                    if inside { stored(dtype, map(x, i)) } else { x }
                });
                let axes = part(axis, &[[2, 3]]);
                let change = change.clone().map(Box::new);
                let expected = TensorChange::Part { axes, change };
                (golden.len() / dim > 4).then(|| (target.collect(), expected))
            });
        }
    }
    check("two ranges", |golden, shape, _| {
        let stride = strides(shape)[0];
        let target = golden.iter().enumerate().map(|(i, &x)| {
            let row = i / stride;
            if row == 1 || (3..5).contains(&row) {
                -x
            } else {
                x
            }
        });
        let axes = part(0, &[[1, 2], [3, 5]]);
        let change = Some(Box::new(affine(-1.0, 0.0)));
        (shape[0] > 7).then(|| (target.collect(), TensorChange::Part { axes, change }))
    });
}

#[test]
fn what_a_dtype_cannot_hold() {
    let golden: Vec<f64> = vec![1.0, -65504.0, 70000.0, -677_596.0, 3.5, 65519.0];
    let of = |elements: Vec<f64>, dtype| ComparedElements::copied(elements, &[6], dtype).unwrap();
    let check = |target: Vec<f64>, dtypes: [DType; 2], expected: Option<TensorChange>| {
        let [target, golden] = [of(target, dtypes[0]), of(golden.clone(), dtypes[1])];
        assert_eq!(bounds::overflow(&target, &golden, 0.0), expected);
    };
    let inf = f64::INFINITY;
    let overflowed = vec![1.0, -65504.0, inf, -inf, 3.5, 65504.0];
    let expected = TensorChange::Overflow {
        dtype: "float16".to_owned(),
        largest: 65504.0,
        needed: 677_596.0,
        n: 2,
    };
    check(overflowed.clone(), [DType::F16, DType::F32], Some(expected));
    // Golden's dtype ends there as well, so that it holds no such element.
    check(overflowed.clone(), [DType::F16, DType::F16], None);
    check(overflowed, [DType::BF16, DType::F32], None);
    // An infinity where golden's element has room, another sign, NaN, or another difference.
    for (index, element) in [(0, inf), (2, -inf), (3, f64::NAN), (4, 4.0)] {
        let mut target = vec![1.0, -65504.0, inf, -inf, 3.5, 65504.0];
        target[index] = element;
        check(target, [DType::F16, DType::F32], None);
    }
    check(
        vec![1.0, -65504.0, 65504.0, -65504.0, 3.5, 65504.0],
        [DType::F16, DType::F32],
        None,
    );
}
