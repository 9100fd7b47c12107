use std::collections::BTreeMap;

use opscope_engine::DeclaredDim;
use opscope_tensor::Shape;

use super::*;

fn value(name: &str, dtype: DType, dims: &[DeclaredDim]) -> ValueInfo {
    ValueInfo {
        name: name.into(),
        dtype,
        dims: Some(dims.to_vec()),
    }
}

fn signature(values: &[(&str, DType)]) -> ModelSignature {
    let dims = [DeclaredDim::Fixed(2)];
    ModelSignature {
        inputs: values
            .iter()
            .map(|(name, dtype)| value(name, *dtype, &dims))
            .collect(),
        ..ModelSignature::default()
    }
}

#[test]
fn inputs_are_paired_by_name_then_by_order() {
    use DType::{BF16, F16, F32, I64};
    let check = |target: &[(&str, DType)], golden: &[(&str, DType)], expected: &str| {
        let paired = pair_inputs(&signature(target), &signature(golden));
        let found = match paired {
            Ok((base, pairing)) => {
                format!("{base:?} {:?} {}", pairing.places, pairing.is_by_name)
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    };
    check(
        &[("a", F32), ("b", I64)],
        &[("b", I64), ("a", F32)],
        "Target [1, 0] true",
    );
    check(
        &[("a", F32), ("b", I64)],
        &[("x", F32), ("y", I64)],
        "Target [0, 1] false",
    );
    // The golden model lacks an input.
    check(&[("a", F32), ("b", I64)], &[("b", I64)], "Target [1] true");
    check(&[("a", F16)], &[("a", F32)], "Target [0] true");
    check(&[("a", F32)], &[("a", BF16)], "Golden [0] true");
    check(
        &[("a", F16), ("b", F32)],
        &[("a", F32), ("b", F16)],
        "the models take different inputs: `b` is float32 in the target, and `b` is float16 on the \
         golden side",
    );
    check(
        &[("a", F32), ("b", I64)],
        &[("x", F32)],
        "the models take different inputs: the target `a` (float32 [2]), `b` (int64 [2]), the golden \
         side `x` (float32 [2])",
    );
}

#[test]
fn wider_inputs_have_the_same_values() {
    let shape = Shape::new([2]).unwrap();
    let halves = [half::f16::from_f32(1.5), half::f16::INFINITY].map(half::f16::to_le_bytes);
    let base = Tensor::from_vec(DType::F16, shape, halves.concat()).unwrap();
    let golden = signature(&[("a", DType::F32)]);
    let (_, pairing) = pair_inputs(&signature(&[("a", DType::F16)]), &golden).unwrap();
    let [wide] = &pairing.apply(&[base]).unwrap()[..] else {
        panic!("one input");
    };
    let expected = [1.5_f32, f32::INFINITY].map(f32::to_le_bytes).concat();
    assert_eq!(wide.host_bytes().unwrap(), expected);
    let short = Tensor::from_vec(DType::F16, Shape::new([1]).unwrap(), vec![0; 2]).unwrap();
    assert!(matches!(
        pairing.apply(&[short]),
        Err(InputError::Shape { .. })
    ));
}

#[test]
fn open_extents_get_sizes_that_models_expect() {
    let named = |name: &str| DeclaredDim::Named(name.into());
    let fixed = DeclaredDim::Fixed;
    let check = |dims: &[DeclaredDim], expected: Option<&[usize]>| {
        let signature = ModelSignature {
            inputs: vec![value("x", DType::F32, dims)],
            ..ModelSignature::default()
        };
        let found = default_shapes(&signature, &BTreeMap::new());
        assert_eq!(
            found.get("x").map(|shape| shape.to_vec()).as_deref(),
            expected
        );
    };
    check(&[fixed(1), fixed(3)], None);
    check(
        &[named("N"), fixed(3), named("H"), named("W")],
        Some(&[1, 3, 224, 224]),
    );
    check(&[named("batch"), named("sequence")], Some(&[1, 16]));
    check(&[named("sequence"), named("batch")], Some(&[1, 1]));
    check(&[fixed(2), named("n"), named("n")], Some(&[2, 16, 16]));
    check(&[named("height"), DeclaredDim::Unknown], Some(&[224, 16]));
}

#[test]
fn sizes_of_known_inputs_hold_for_the_others() {
    let named = |name: &str| DeclaredDim::Named(name.into());
    let signature = ModelSignature {
        inputs: vec![
            value("ids", DType::I64, &[named("batch"), named("time")]),
            value(
                "mask",
                DType::Bool,
                &[named("batch"), named("time"), named("heads")],
            ),
        ],
        ..ModelSignature::default()
    };
    let known = BTreeMap::from([("ids".to_owned(), Shape::new([3, 7]).unwrap())]);
    assert_eq!(*default_shapes(&signature, &known)["mask"], [3, 7, 16]);
}
