//! numpy's natural logarithm of `float32`.
//!
//! numpy's vector code uses a rational approximation that differs from the correctly rounded
//! logarithm in some six of a hundred numbers. Divergences expose the difference, so this is the
//! same algorithm: the number is split into `2^e · (1 + y)`, and `ln(1 + y)` is a quotient of
//! polynomials.

const P: [f32; 6] = [
    0.0,
    1.0,
    2.112_677_6,
    1.480_000_6,
    0.380_883_78,
    0.025_899_792,
];
const Q: [f32; 6] = [
    1.0,
    2.612_677_6,
    2.453_006,
    0.986_494_3,
    0.154_647_63,
    0.005_875_095_3,
];
const EXPONENT_BITS: u32 = 23;
const EXPONENT_BIAS: i32 = 126;
const MANTISSA_MASK: u32 = 0x007f_ffff;
/// Exponent bits of numbers from one half to one.
const HALF_BITS: u32 = 0x3f00_0000;
/// Scales subnormal numbers to the normal range.
const SCALE: f32 = 16_777_216.0;
const SCALE_EXPONENT: i32 = 24;

/// The logarithm.
pub(super) fn ln(x: f32) -> f32 {
    if x.is_nan() || x < 0.0 {
        return f32::NAN;
    }
    if x == 0.0 {
        return f32::NEG_INFINITY;
    }
    if x.is_infinite() {
        return x;
    }
    if x < f32::MIN_POSITIVE {
        return of_normal([x * SCALE], SCALE_EXPONENT)[0];
    }
    of_normal([x], 0)[0]
}

/// Several logarithms at once, which is faster.
pub(super) fn ln_of_all<const N: usize>(x: [f32; N]) -> [f32; N] {
    if x.iter()
        .all(|x| (f32::MIN_POSITIVE..f32::INFINITY).contains(x))
    {
        return of_normal(x, 0);
    }
    x.map(ln)
}

/// Logarithms of positive normal numbers that were multiplied by two to the power of `shift`.
///
/// Each step processes all numbers before the next, so that it can be vectorised.
fn of_normal<const N: usize>(x: [f32; N], shift: i32) -> [f32; N] {
    let mut exponent = [0.0; N];
    let mut y = [0.0; N];
    for i in 0..N {
        let bits = x[i].to_bits();
        let mantissa = f32::from_bits(bits & MANTISSA_MASK | HALF_BITS);
        let is_small = mantissa <= std::f32::consts::FRAC_1_SQRT_2;
        let (addend, step) = if is_small { (mantissa, 1) } else { (0.0, 0) };
        y[i] = mantissa + addend - 1.0;
        exponent[i] = ((bits >> EXPONENT_BITS) as i32 - EXPONENT_BIAS - step - shift) as f32;
    }
    let (p, q) = (polynomial(&P, y), polynomial(&Q, y));
    std::array::from_fn(|i| fused(exponent[i], std::f32::consts::LN_2, p[i] / q[i]))
}

fn polynomial<const N: usize>(coefficients: &[f32; 6], y: [f32; N]) -> [f32; N] {
    let [lower @ .., highest] = coefficients;
    let mut value = [*highest; N];
    for &coefficient in lower.iter().rev() {
        for i in 0..N {
            value[i] = fused(value[i], y[i], coefficient);
        }
    }
    value
}

/// `a · b + c`, rounded once except for numbers within 29 further bits of a tie. Some machines lack
/// the instruction, and its replacement is slow.
fn fused(a: f32, b: f32, c: f32) -> f32 {
    (f64::from(a) * f64::from(b) + f64::from(c)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_numpys() {
        // Computed by numpy 2.4 on a processor with AVX2.
        for (x, expected) in NUMPY {
            assert_eq!(ln(f32::from_bits(x)).to_bits(), expected, "{x:#x}");
        }
        let all = NUMPY.map(|(x, _)| f32::from_bits(x));
        let normal = all.map(|x| x.max(f32::MIN_POSITIVE));
        assert_eq!(ln_of_all(all), all.map(ln));
        assert_eq!(ln_of_all(normal), normal.map(ln));
        assert!(ln(f32::NAN).is_nan());
        assert!(ln(-1.0).is_nan());
        assert_eq!(ln(f32::INFINITY), f32::INFINITY);
        assert_eq!(ln(0.0), f32::NEG_INFINITY);
        assert_eq!(ln(-0.0), f32::NEG_INFINITY);
    }

    const NUMPY: [(u32, u32); 35] = [
        (0x3ad6_71c7, 0xc0cd_4b61),
        (0x37d2_15d0, 0xc129_8499),
        (0x3e0c_6965, 0xbffe_5283),
        (0x41e7_22a6, 0x4057_4499),
        (0x460a_4f10, 0x4111_69f9),
        (0x4019_ef83, 0x3f60_adc0),
        (0x3c44_efc6, 0xc08d_7a4c),
        (0x3af5_fb72, 0xc0c8_e75e),
        (0x43c7_b357, 0x40bf_adce),
        (0x48e9_9bb3, 0x4151_4092),
        (0x410d_d877, 0x400b_a859),
        (0x3859_96d3, 0xc11d_ddb7),
        (0x3f7f_c133, 0xba7b_52d4),
        (0x3f80_346e, 0x3ad1_8d18),
        (0x3f80_06a6, 0x3954_ba79),
        (0x3f7f_8e7c, 0xbae3_3a65),
        (0x3f7f_fa84, 0xb8af_81e2),
        (0x3f7f_b3c4, 0xba98_8eb8),
        (0x3f7f_d6c2, 0xba25_054b),
        (0x3f7f_e005, 0xb9ff_e7fc),
        (0x3f00_0000, 0xbf31_7218),
        (0x3f80_0000, 0x0000_0000),
        (0x4000_0000, 0x3f31_7218),
        (0x3f35_04f3, 0xbeb1_7218),
        (0x3f35_04f4, 0xbeb1_7215),
        (0x0001_16c2, 0xc2b8_34f2),
        (0x0000_0001, 0xc2ce_8ed0),
        (0x7f7f_c99e, 0x42b1_71ab),
        (0x0080_0000, 0xc2ae_ac50),
        (0x3f3c_d41f, 0xbe9b_d227),
        (0x3eab_ea0b, 0xbf8b_b0aa),
        (0x3fa0_4352, 0x3e66_2e3e),
        (0x3ea8_d80b, 0xbf8d_ff2e),
        (0x404e_44c3, 0x3f95_cc44),
        (0x3fa8_0865, 0x3e8b_547b),
    ];
}
