use super::*;

/// One element after the other.
fn specification(
    dims: &[usize],
    codes: &[i64],
    (scale_dims, scale): (&[usize], &[f32]),
    zero: &[i64],
    axis: i64,
    block_size: usize,
) -> Vec<f32> {
    let n_axes = dims.len();
    let axis = if axis < 0 { axis + n_axes as i64 } else { axis } as usize;
    let mut out = Vec::new();
    for (flat, code) in codes.iter().enumerate() {
        let mut position = vec![0; n_axes];
        let mut rest = flat;
        for i in (0..n_axes).rev() {
            position[i] = rest % dims[i];
            rest /= dims[i];
        }
        let mut at = 0;
        if scale.len() > 1 && scale_dims.len() == 1 && scale_dims[0] == dims[axis] {
            at = position[axis];
        } else if scale.len() > 1 {
            for i in 0..n_axes {
                let along = match scale_dims[i] {
                    1 => 0,
                    n if n == dims[i] => position[i],
                    _ => position[i] / block_size,
                };
                at = at * scale_dims[i] + along;
            }
        }
        let zero = if zero.len() > 1 { zero[at] } else { zero[0] };
        let scale = if scale.len() > 1 { scale[at] } else { scale[0] };
        out.push((code - zero) as f32 * scale);
    }
    out
}

fn pack(dtype: DType, codes: &[i64]) -> Vec<u8> {
    if dtype == DType::I4 {
        let nibble = |code: &i64| (*code & 15) as u8;
        let pair = |pair: &[i64]| nibble(&pair[0]) | pair.get(1).map_or(0, nibble) << 4;
        return codes.chunks(2).map(pair).collect();
    }
    let width = dtype.bytes().unwrap();
    let bytes = |code: &i64| code.to_le_bytes()[..width].to_vec();
    codes.iter().flat_map(bytes).collect()
}

fn bytes_of(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn view<'a>(dtype: DType, shape: &'a Shape, bytes: &'a [u8]) -> TensorView<'a> {
    let layout = crate::Layout::Nd;
    TensorView {
        dtype,
        shape,
        layout,
        bytes,
    }
}

struct Case<'a> {
    dtype: DType,
    dims: &'a [usize],
    codes: Vec<i64>,
    scale: (&'a [usize], Vec<f32>),
    zero: Option<(&'a [usize], Vec<i64>)>,
    axis: i64,
    block_size: usize,
}

impl Case<'_> {
    fn run(&self) -> Result<Vec<u8>, DequantiseError> {
        let shape = Shape::new(self.dims).unwrap();
        let bytes = pack(self.dtype, &self.codes);
        let scale_shape = Shape::new(self.scale.0).unwrap();
        let scale = bytes_of(&self.scale.1);
        let zero = (self.zero.as_ref())
            .map(|(dims, codes)| (Shape::new(*dims).unwrap(), pack(self.dtype, codes)));
        let quantisation = Quantisation {
            scale: view(DType::F32, &scale_shape, &scale),
            zero_point: (zero.as_ref()).map(|(shape, bytes)| view(self.dtype, shape, bytes)),
            axis: self.axis,
            block_size: self.block_size,
        };
        let checked = check(self.dtype, &shape, &quantisation);
        let result = dequantise(view(self.dtype, &shape, &bytes), &quantisation);
        assert_eq!(checked.err(), result.as_ref().err().cloned());
        result
    }

    fn check(&self) {
        let zero = self.zero.as_ref().map_or(vec![0], |(_, zero)| zero.clone());
        let scale = (self.scale.0, &*self.scale.1);
        let expected = specification(
            self.dims,
            &self.codes,
            scale,
            &zero,
            self.axis,
            self.block_size,
        );
        let found = self.run().unwrap();
        assert_eq!(
            found,
            bytes_of(&expected),
            "{} {:?} scale {:?} axis {} blocks {}",
            self.dtype,
            self.dims,
            self.scale.0,
            self.axis,
            self.block_size
        );
    }
}

/// Codes of the whole range, extremes first.
fn codes(dtype: DType, n: usize) -> Vec<i64> {
    let (low, high) = match dtype {
        DType::I4 => (-8, 7),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U8 => (0, u8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        _ => (i64::from(i32::MIN), i64::from(i32::MAX)),
    };
    let within = |i: i64| low + (i * 40_503 + 7).rem_euclid(high - low + 1);
    let ends = [low, high].into_iter();
    ends.chain((0..).map(within)).take(n).collect()
}

const DTYPES: [DType; 6] = [
    DType::I4,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
];

fn scales(dims: &[usize]) -> Vec<f32> {
    let n: usize = dims.iter().product();
    (0..n).map(|i| 0.013 * (i as f32 + 1.0)).collect()
}

#[test]
fn every_form_agrees_with_the_specification() {
    let forms: &[(&[usize], &[usize], i64, usize)] = &[
        (&[], &[], 1, 0),
        (&[3], &[1], 0, 0),
        (&[3], &[3], 0, 0),
        (&[3], &[3], -1, 0),
        (&[2, 3, 5], &[], 1, 0),
        (&[2, 3, 5], &[1, 1, 1], 1, 0),
        (&[2, 3, 5], &[2], 0, 0),
        (&[2, 3, 5], &[3], 1, 0),
        (&[2, 3, 5], &[3], -2, 0),
        (&[2, 3, 5], &[5], -1, 0),
        (&[2, 3, 5], &[2, 3, 1], 0, 0),
        (&[2, 3, 5], &[2, 1, 5], 0, 0),
        (&[2, 3, 5], &[1, 1, 5], 0, 0),
        (&[2, 3, 5], &[2, 3, 5], 0, 0),
        (&[2, 8, 3], &[2, 4, 3], 1, 2),
        (&[2, 7, 3], &[2, 3, 3], 1, 3),
        (&[2, 3, 7], &[2, 3, 4], -1, 2),
        (&[7, 2], &[3, 2], 0, 3),
        (&[9], &[3], 0, 4),
        (&[4, 1], &[4, 1], 1, 2),
        (&[4, 1, 1, 1], &[4], 0, 0),
        (&[3, 5, 4], &[3, 1, 4], 1, usize::MAX),
    ];
    for dtype in DTYPES {
        for &(dims, scale, axis, block_size) in forms {
            let n = dims.iter().product();
            let n_scales = scale.iter().product();
            let zero = codes(dtype, n_scales);
            for zero in [None, Some((scale, zero)), Some((&[][..], vec![1]))] {
                Case {
                    dtype,
                    dims,
                    codes: codes(dtype, n),
                    scale: (scale, scales(scale)),
                    zero,
                    axis,
                    block_size,
                }
                .check();
            }
        }
    }
}

#[test]
fn one_scale_goes_with_many_zero_points() {
    Case {
        dtype: DType::U8,
        dims: &[2, 3],
        codes: codes(DType::U8, 6),
        scale: (&[3], vec![0.5; 3]),
        zero: Some((&[3], vec![1, 2, 3])),
        axis: 1,
        block_size: 0,
    }
    .check();
    let one = Case {
        dtype: DType::U8,
        dims: &[2, 3],
        codes: vec![10; 6],
        scale: (&[], vec![0.5]),
        zero: Some((&[3], vec![0, 2, 4])),
        axis: 1,
        block_size: 0,
    };
    assert_eq!(
        one.run().unwrap(),
        bytes_of(&[5.0, 4.0, 3.0, 5.0, 4.0, 3.0])
    );
}

#[test]
fn odd_scales_and_extremes() {
    let run = |codes: Vec<i64>, scale: f32, zero: i64| {
        let case = Case {
            dtype: DType::I32,
            dims: &[codes.len()],
            codes,
            scale: (&[], vec![scale]),
            zero: Some((&[], vec![zero])),
            axis: 0,
            block_size: 0,
        };
        let bytes = case.run().unwrap();
        numbers(&bytes, f32::from_le_bytes)
    };
    let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX));
    assert_eq!(
        run(vec![low, high], 1.0, 0),
        [-2_147_483_648.0, 2_147_483_648.0]
    );
    assert_eq!(run(vec![low, high], 1.0, high), [-4_294_967_296.0, 0.0]);
    assert_eq!(run(vec![low, high], 1.0, low), [0.0, 4_294_967_296.0]);
    assert_eq!(run(vec![16_777_217], 1.0, 0), [16_777_216.0]);
    assert!(run(vec![0, 5], f32::NAN, 5).iter().all(|n| n.is_nan()));
    let infinite = run(vec![-1, 0, 1], f32::INFINITY, 0);
    assert_eq!(infinite[0], f32::NEG_INFINITY);
    assert!(infinite[1].is_nan());
    assert_eq!(infinite[2], f32::INFINITY);
    assert_eq!(run(vec![3], 0.0, 0), [0.0]);
    assert_eq!(run(vec![3], 1e-45, 0), [3.0 * 1e-45]);
    assert_eq!(run(vec![2], f32::MAX, 0), [f32::INFINITY]);
}

#[test]
fn nothing_at_all() {
    for (dims, scale, axis) in [
        (&[0][..], &[][..], 0),
        (&[2, 0], &[2], 0),
        (&[2, 0], &[0], 1),
        (&[0, 3], &[3], 1),
        (&[3, 0, 2], &[3, 0, 1], 0),
    ] {
        for dtype in DTYPES {
            let case = Case {
                dtype,
                dims,
                codes: Vec::new(),
                scale: (scale, scales(scale)),
                zero: None,
                axis,
                block_size: 0,
            };
            assert_eq!(case.run(), Ok(Vec::new()), "{dims:?} {scale:?}");
        }
    }
}

#[test]
fn small_floats() {
    let shape = Shape::new([4]).unwrap();
    let one = Shape::scalar();
    let scale = f16::from_f32(0.5).to_le_bytes();
    // 1.0, -448.0, NaN and the least subnormal.
    let bytes = [0x38, 0xFE, 0x7F, 0x01];
    let quantisation = Quantisation {
        scale: view(DType::F16, &one, &scale),
        zero_point: Some(view(DType::F8E4M3FN, &one, &[0])),
        axis: 1,
        block_size: 0,
    };
    let out = dequantise(view(DType::F8E4M3FN, &shape, &bytes), &quantisation).unwrap();
    let out = numbers(&out, f32::from_le_bytes);
    assert_eq!(out[..2], [0.5, -224.0]);
    assert!(out[2].is_nan());
    assert_eq!(out[3], 0.5 / 512.0);
}

#[test]
fn what_does_not_fit_is_refused() {
    use DType::*;

    let text = |dims: &[usize], scale: &[usize], zero: &[usize], axis, block_size| {
        let n: usize = zero.iter().product();
        let case = Case {
            dtype: I8,
            dims,
            codes: codes(I8, dims.iter().product()),
            scale: (scale, scales(scale)),
            zero: Some((zero, vec![0; n])),
            axis,
            block_size,
        };
        case.run().unwrap_err().to_string()
    };
    let misfit = |found: &str, axis: i64, block_size: usize| {
        format!(
            "scale or zero point of shape {found} do not fit elements of shape [2,3] (axis {axis}, \
             blocks of {block_size})"
        )
    };
    assert_eq!(text(&[2, 3], &[2], &[], 1, 0), misfit("[2]", 1, 0));
    assert_eq!(text(&[2, 3], &[3], &[], 2, 0), misfit("[3]", 2, 0));
    assert_eq!(
        text(&[2, 3], &[3], &[], i64::MIN, 0),
        misfit("[3]", i64::MIN, 0)
    );
    assert_eq!(text(&[2, 3], &[3], &[2], 1, 0), misfit("[2]", 1, 0));
    assert_eq!(text(&[2, 3], &[], &[2, 2], 1, 0), misfit("[2,2]", 1, 0));
    assert_eq!(text(&[2, 3], &[2, 2], &[], 1, 0), misfit("[2,2]", 1, 0));
    assert_eq!(text(&[2, 3], &[2, 2], &[], 1, 4), misfit("[2,2]", 1, 4));
    assert_eq!(text(&[2, 3], &[0], &[], 1, 0), misfit("[0]", 1, 0));

    let (shape, one) = (Shape::new([2]).unwrap(), Shape::scalar());
    let with = |elements: DType, scale: DType, zero: DType| {
        let bytes = [0; 32];
        let quantisation = Quantisation {
            scale: view(scale, &one, &bytes[..4]),
            zero_point: Some(view(zero, &one, &bytes[..1])),
            axis: 0,
            block_size: 0,
        };
        let error = dequantise(view(elements, &shape, &bytes[..3]), &quantisation);
        error.unwrap_err().to_string()
    };
    for wrong in [I64, F16, F32, Bool, Undefined, String, C64, BF16] {
        let expected = format!(
            "elements of type `{wrong}` are not quantised ones: expected integers of at most 32 bits or \
             floats of at most 8"
        );
        assert_eq!(with(wrong, F32, wrong), expected);
    }
    assert_eq!(
        with(I8, I32, I8),
        "the scale is of type `int32`, expected a float"
    );
    let wrong_zero = "the zero point is of type `uint8`, expected `int8` as the elements";
    assert_eq!(with(I8, F32, U8), wrong_zero);
    assert_eq!(
        with(I8, F32, I8),
        "int8 tensor of shape [2] takes 2 bytes, found 3"
    );
}
