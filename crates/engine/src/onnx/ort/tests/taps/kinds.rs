//! Values that are no tensors, and types of elements.

use opscope_store::record::SlotSide;
use prost::bytes::Bytes;

use super::build::*;
use super::*;
use crate::onnx::proto;
use crate::onnx::schema::{AttributeProto, FunctionProto, ModelProto, TensorProto};

#[test]
fn sequences_are_counted_and_all_else_is_shown() {
    let Some(engine) = engine() else { return };
    let nodes = [
        node("SplitToSequence", &["x", "one"], &["parts"]),
        node("SequenceEmpty", &[], &["empty"]),
        node("SequenceInsert", &["empty", "x"], &["longer"]),
        node("SequenceAt", &["parts", "at"], &["part"]),
        node("SequenceLength", &["parts"], &["length"]),
        node("Optional", &["part"], &["maybe"]),
        node("OptionalHasElement", &["maybe"], &["is_there"]),
        node("OptionalGetElement", &["maybe"], &["y"]),
        node("Identity", &["parts"], &["same_parts"]),
        node("ConcatFromSequence", &["same_parts"], &["z"]).int("axis", 0),
        node("ConcatFromSequence", &["longer"], &["w"]).int("axis", 0),
    ];
    let weights = [ints("one", &[], &[1]), ints("at", &[], &[1])];
    let results = [
        value("y", FLOAT, 1),
        value("z", FLOAT, 1),
        value("is_there", BOOL, 0),
        value("w", FLOAT, 1),
    ];
    let model = model(graph(&[value("x", FLOAT, 1)], &weights, &nodes, &results));
    let mut loaded = load(&engine, &model);
    let captured = capture(&mut *loaded, &[tensor(&[3], &[1.0, 2.0, 3.0])]);
    assert_eq!(f32s(&captured.outputs.unwrap()[0]), [2.0]);
    let records = &captured.records;
    // Those without a tensor among their values have no record.
    let without = ["SequenceEmpty_empty", "Identity_same_parts"];
    let expected = nodes
        .iter()
        .map(|node| node.name.as_str())
        .filter(|name| !without.contains(name));
    assert_eq!(names(records), expected.collect::<Vec<_>>());
    assert_eq!(
        f32s(shown(records, "SequenceAt_part", SlotSide::Output, 0)),
        [2.0]
    );
    assert_eq!(
        i64s(shown(records, "SequenceLength_length", SlotSide::Output, 0)),
        [3]
    );
    assert_eq!(
        f32s(shown(records, "OptionalGetElement_y", SlotSide::Output, 0)),
        [2.0]
    );
    assert_eq!(
        f32s(shown(records, "ConcatFromSequence_z", SlotSide::Output, 0)),
        [1.0, 2.0, 3.0]
    );
    let counters = captured.counters;
    assert_eq!(counters.n_operators_seen, nodes.len() as u64);
    assert_eq!(counters.dropped.n_not_shown, 13);
    assert_eq!(counters.n_selected, counters.n_written + counters.n_dropped);
}

#[test]
fn maps_are_left_out() {
    let Some(engine) = engine() else { return };
    let labels = AttributeProto {
        name: "classlabels_int64s".into(),
        r#type: Some(7),
        ints: vec![4, 5],
        ..AttributeProto::default()
    };
    let nodes = [
        node("Relu", &["x"], &["r"]),
        node("ZipMap", &["r"], &["maps"])
            .in_domain("ai.onnx.ml")
            .with(labels),
    ];
    let mut maps = named("maps");
    maps.r#type = None;
    let model = model(graph(
        &[value("x", FLOAT, 2)],
        &[],
        &nodes,
        &[maps, value("r", FLOAT, 2)],
    ));
    let captured = capture(&mut *load(&engine, &model), &[tensor(&[1, 2], &[1.0, 2.0])]);
    assert_eq!(captured.outputs.unwrap().len(), 1);
    assert_eq!(names(&captured.records), ["Relu_r", "ZipMap_maps"]);
    assert_eq!(captured.counters.dropped.n_not_shown, 1);
}

/// Four elements: a small number that float32 has too, and zeros; or texts.
fn elements(dtype: DType, code: i32, shape: &Shape) -> TensorProto {
    let weight = TensorProto {
        name: "w".into(),
        dims: vec![4],
        data_type: Some(code),
        ..TensorProto::default()
    };
    let first = |i| u8::from(i == 0 && dtype != DType::F64);
    match shape.n_bytes(dtype) {
        Ok(n_bytes) => TensorProto {
            raw_data: Some((0..n_bytes).map(first).collect()),
            ..weight
        },
        Err(_) => TensorProto {
            string_data: ["a", "", "bc", "d"].map(Bytes::from).to_vec(),
            ..weight
        },
    }
}

/// A model in which an operator has a weight of this type, another outputs the same elements as
/// `y`, and a third reads them.
fn model_of(dtype: DType, code: i32, shape: &Shape) -> ModelProto {
    let cast =
        |from: &str, to: &str, code: i32| node("Cast", &[from], &[to]).int("to", code.into());
    let (nodes, result) = match dtype {
        DType::String => {
            let texts = node("StringConcat", &["w", "w"], &["y"]);
            (vec![texts, node("Identity", &["y"], &["z"])], TEXT)
        }
        _ => (
            vec![
                cast("w", "f", FLOAT),
                cast("f", "y", code),
                cast("y", "z", FLOAT),
            ],
            FLOAT,
        ),
    };
    let weights = [elements(dtype, code, shape)];
    let mut model = model(graph(&[], &weights, &nodes, &[value("z", result, 1)]));
    if code > 22 {
        model.ir_version = Some(13);
        model.opset_import[0].version = Some(25);
    }
    model
}

#[test]
fn each_type_of_elements() {
    let Some(engine) = engine() else { return };
    let shape = Shape::new([4]).unwrap();
    let mut shown = Vec::new();
    for code in 1..=28 {
        let Some(dtype) = proto::dtype(code) else {
            continue;
        };
        let model = model_of(dtype, code, &shape);
        let loaded = engine.load(
            ModelSource::Memory(&bytes(&model)),
            &LoadOptions::with_threads(1),
        );
        let Ok(mut loaded) = loaded else {
            // The library lacks the type, or can do nothing with it.
            continue;
        };
        let captured = capture(&mut *loaded, &[]);
        let is_foreign = [DType::I2, DType::U2, DType::F8E8M0].contains(&dtype);
        let n_dropped = captured.counters.n_dropped;
        assert_eq!(n_dropped, if is_foreign { 2 } else { 0 }, "{dtype}");
        let mut records = captured.records.iter();
        let record = records
            .find(|record| record.operator.outputs[0] == "y")
            .unwrap();
        if let Some((_, output)) = record.outputs.first() {
            assert_eq!((output.dtype(), output.shape()), (dtype, &shape));
            shown.push(dtype);
            if dtype != DType::String {
                let weight = &captured.records[0].inputs[0].1;
                assert_eq!(
                    output.host_bytes().unwrap(),
                    weight.host_bytes().unwrap(),
                    "{dtype}"
                );
            }
        }
    }
    // Old libraries know none of these models.
    let is_old = engine.version().unwrap().starts_with("1.20.");
    assert!(
        is_old
            || [DType::BF16, DType::I4, DType::F8E5M2]
                .iter()
                .all(|dtype| shown.contains(dtype))
    );
}

#[test]
fn what_nobody_foresees_is_left_out_when_the_library_refuses_it() {
    let Some(engine) = engine() else { return };
    if engine.version().unwrap().starts_with("1.20.") {
        return;
    }
    // The type is that of an attribute of the call, which is not followed.
    let mut cast = node("Cast", &["a"], &["b"]);
    cast.attribute.push(AttributeProto {
        name: "to".into(),
        r#type: Some(2),
        ref_attr_name: Some("type".into()),
        ..AttributeProto::default()
    });
    let nodes = [
        node("Narrow", &["x"], &["y"])
            .in_domain("local")
            .int("type", 26),
        node("Cast", &["y"], &["z"]).int("to", 1),
    ];
    let mut model = model(graph(
        &[value("x", FLOAT, 1)],
        &[],
        &nodes,
        &[value("z", FLOAT, 1)],
    ));
    model.ir_version = Some(13);
    model.opset_import[0].version = Some(25);
    model.functions.push(FunctionProto {
        name: Some("Narrow".into()),
        domain: Some("local".into()),
        input: vec!["a".into()],
        output: vec!["b".into()],
        attribute: vec!["type".into()],
        node: vec![cast],
        opset_import: model.opset_import.clone(),
        ..FunctionProto::default()
    });
    let captured = capture(&mut *load(&engine, &model), &[tensor(&[2], &[1.0, -1.0])]);
    assert_eq!(f32s(&captured.outputs.unwrap()[0]), [1.0, -1.0]);
    assert_eq!(names(&captured.records), ["Narrow_y", "Cast_z"]);
    assert_eq!(captured.counters.dropped.n_not_shown, 2);
    assert_eq!(captured.counters.n_written, 2);
}
