//! Results that are rounded while the model runs.

use opscope_tensor::RoundingFormat;

use super::*;
use crate::{LoadedModel, ResultRounding};

/// A model of one operator, `node`, that reads floats.
fn load_floats(node: NodeProto, n_inputs: usize) -> Box<dyn LoadedModel> {
    let bytes = model(node, &vec![Some(code(DType::F32)); n_inputs]);
    Tract
        .load(ModelSource::Memory(&bytes), &LoadOptions::with_threads(1))
        .unwrap()
}

fn rounding(format: RoundingFormat) -> ResultRounding {
    ResultRounding::new(format, [0])
}

#[test]
fn results_are_rounded_and_inputs_stay() {
    let x = floats(&[3], &[1.01, -2.02, f32::NAN]);
    let expected = [1.007_812_5, -2.015_625];
    let format = RoundingFormat::Bfloat16;
    // The first hands on the very tensor that it is given.
    for op_type in ["Identity", "Flatten"] {
        let mut model = load_floats(node(op_type, Vec::new(), 1), 1);
        let plain = model.run(std::slice::from_ref(&x), None).unwrap();
        assert_eq!(values(&plain[0])[..2], [1.01, -2.02]);
        let outputs = model
            .run_rounded(std::slice::from_ref(&x), &rounding(format))
            .unwrap();
        let found = values(&outputs[0]);
        assert_eq!(
            (&found[..2], found[2].is_nan()),
            (&expected[..], true),
            "{op_type}"
        );
        assert_eq!(values(&x)[..2], [1.01, -2.02]);
        assert_eq!(values(&plain[0])[..2], [1.01, -2.02]);
        let other = ResultRounding::new(format, [1]);
        let outputs = model.run_rounded(std::slice::from_ref(&x), &other).unwrap();
        assert_eq!(values(&outputs[0])[..2], [1.01, -2.02]);
    }
}

#[test]
fn every_float_output_and_no_other() {
    let mut model = load_floats(node("Split", vec![int("num_outputs", 2)], 2), 1);
    let x = [floats(&[2], &[1.01, 127.0])];
    let outputs = model
        .run_rounded(&x, &rounding(RoundingFormat::Int8))
        .unwrap();
    // Each has its own step, of which its only element is 127.
    assert_eq!(values(&outputs[0]), [1.01_f32 / 127.0 * 127.0]);
    assert_eq!(values(&outputs[1]), [127.0]);
    let mut model = load_floats(node("TopK", Vec::new(), 2), 1);
    assert!(model.survey_results(&x).is_err(), "it lacks an input");
    let survey = |node: NodeProto, inputs: &[Tensor]| {
        let mut model = load_floats(node, inputs.len());
        let survey = model.survey_results(inputs).unwrap();
        let known = survey.operators().next().unwrap();
        (known.operator.op_type.clone(), known.dtypes.clone())
    };
    let types = |dtypes: &[DType]| dtypes.iter().copied().enumerate().collect();
    let (op_type, found) = survey(node("Shape", Vec::new(), 1), &x);
    assert_eq!((op_type.as_str(), found), ("Shape", types(&[DType::I64])));
    let (_, found) = survey(node("Less", Vec::new(), 1), &[x[0].clone(), x[0].clone()]);
    assert_eq!(found, types(&[DType::Bool]));
}

#[test]
fn nothing_to_round() {
    for dims in [&[][..], &[0, 3]] {
        let n = dims.iter().product();
        let x = [floats(dims, &vec![1.01; n])];
        let mut model = load_floats(node("Neg", Vec::new(), 1), 1);
        for format in RoundingFormat::ALL {
            let outputs = model.run_rounded(&x, &rounding(format)).unwrap();
            assert_eq!(outputs[0].shape().dims(), dims);
        }
    }
}
