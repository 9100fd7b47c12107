use super::*;

fn numbers(n: usize) -> impl Iterator<Item = i64> {
    (0..n as i64).map(|i| i * 7919 % 10007 - 5000)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the callers make them in place"
)]
fn check(dtype: DType, bytes: Vec<u8>, expected: [&str; 3]) {
    assert_eq!(measure(dtype, &bytes).unwrap(), expected, "{dtype}");
}

/// Expected values printed by NumPy 2.4 for the same input.
#[test]
fn results_are_numpys_to_the_last_digit() {
    let doubles = |n| numbers(n).map(|number| number as f64 / 97.0);
    let singles = |n| doubles(n).map(|number| number as f32);
    let halves = |n| doubles(n).map(f16::from_f64);
    let f32s = singles(50001).flat_map(f32::to_le_bytes).collect();
    check(DType::F32, f32s, ["51.608246", "-51.54639", "0.03267996"]);
    let f16s = halves(20000).flat_map(f16::to_le_bytes).collect();
    check(DType::F16, f16s, ["51.6", "-51.53", "0.0314"]);
    let f64s = doubles(30011).flat_map(f64::to_le_bytes).collect();
    check(
        DType::F64,
        f64s,
        [
            "51.608247422680414",
            "-51.54639175257732",
            "0.03272751881011319",
        ],
    );
    let c64s = singles(2006).flat_map(f32::to_le_bytes).collect();
    check(
        DType::C64,
        c64s,
        [
            "(51.608246+30.082474j)",
            "(-51.54639+30.092783j)",
            "(0.14265445+0.011008182j)",
        ],
    );
    let c128s = doubles(2006).flat_map(f64::to_le_bytes).collect();
    check(
        DType::C128,
        c128s,
        [
            "(51.608247422680414+30.082474226804123j)",
            "(-51.54639175257732+30.09278350515464j)",
            "(0.14265451069471985+0.01100821247597416j)",
        ],
    );
    let i32s = numbers(777)
        .flat_map(|number| (number as i32).to_le_bytes())
        .collect();
    check(DType::I32, i32s, ["4997", "-5000", "-4.947232947232947"]);
    let i8s = numbers(777).map(|number| number as u8).collect();
    check(DType::I8, i8s, ["127", "-128", "-0.6640926640926641"]);
    let u64s = numbers(9)
        .flat_map(|number| (number as u64).to_le_bytes())
        .collect();
    check(
        DType::U64,
        u64s,
        ["18446744073709550359", "398", "8.198552921648689e+18"],
    );
}

#[test]
fn booleans_and_special_values() {
    check(
        DType::Bool,
        vec![1, 0, 1],
        ["True", "False", "0.6666666666666666"],
    );
    check(DType::Bool, vec![0], ["False", "False", "0.0"]);
    let nan = [1.0, f32::NAN, 3.0]
        .into_iter()
        .flat_map(f32::to_le_bytes)
        .collect();
    check(DType::F32, nan, ["nan", "nan", "nan"]);
    let infinite = [1.0, f32::INFINITY]
        .into_iter()
        .flat_map(f32::to_le_bytes)
        .collect();
    check(DType::F32, infinite, ["inf", "1.0", "inf"]);
    let zero = (-0.0_f32).to_le_bytes().to_vec();
    check(DType::F32, zero, ["-0.0", "-0.0", "0.0"]);
    assert!(measure(DType::F32, &[]).is_none());
}
