//! Values that are no tensors, and types of elements.

use opscope_store::record::Side;
use prost::bytes::Bytes;

use super::super::super::proto;
use super::super::super::schema::{AttributeProto, TensorProto};
use super::build::*;
use super::*;

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
    let results = [value("y", FLOAT, 1), value("z", FLOAT, 1), value("is_there", BOOL, 0), value("w", FLOAT, 1)];
    let model = model(graph(&[value("x", FLOAT, 1)], &weights, &nodes, &results));
    let mut loaded = load(&engine, &model);
    let captured = capture(&mut *loaded, &[tensor(&[3], &[1.0, 2.0, 3.0])]);
    assert_eq!(f32s(&captured.outputs.unwrap()[0]), [2.0]);
    let records = &captured.records;
    // Those without a tensor among their values have no record.
    let without = ["SequenceEmpty_empty", "Identity_same_parts"];
    let expected = nodes.iter().map(|node| node.name.as_str()).filter(|name| !without.contains(name));
    assert_eq!(names(records), expected.collect::<Vec<_>>());
    assert_eq!(f32s(shown(records, "SequenceAt_part", Side::Output, 0)), [2.0]);
    assert_eq!(i64s(shown(records, "SequenceLength_length", Side::Output, 0)), [3]);
    assert_eq!(f32s(shown(records, "OptionalGetElement_y", Side::Output, 0)), [2.0]);
    assert_eq!(f32s(shown(records, "ConcatFromSequence_z", Side::Output, 0)), [1.0, 2.0, 3.0]);
    let counters = captured.counters;
    assert_eq!(counters.n_operators_seen, nodes.len() as u64);
    assert_eq!(counters.dropped.n_not_shown, 12);
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
        node("ZipMap", &["r"], &["maps"]).of("ai.onnx.ml").with(labels),
    ];
    let mut maps = named("maps");
    maps.r#type = None;
    let model = model(graph(&[value("x", FLOAT, 2)], &[], &nodes, &[maps, value("r", FLOAT, 2)]));
    let captured = capture(&mut *load(&engine, &model), &[tensor(&[1, 2], &[1.0, 2.0])]);
    assert_eq!(captured.outputs.unwrap().len(), 1);
    assert_eq!(names(&captured.records), ["Relu_r", "ZipMap_maps"]);
    assert_eq!(captured.counters.dropped.n_not_shown, 1);
}

#[test]
fn each_type_of_elements() {
    let Some(engine) = engine() else { return };
    for code in 1..=28 {
        let Some(dtype) = proto::dtype(code) else { continue };
        let shape = Shape::new([4]).unwrap();
        let weight = match shape.n_bytes(dtype) {
            Ok(n_bytes) => TensorProto {
                name: "w".into(),
                dims: vec![4],
                data_type: Some(code),
                raw_data: Some(Bytes::from(vec![1; n_bytes])),
                ..TensorProto::default()
            },
            Err(_) => TensorProto {
                name: "w".into(),
                dims: vec![4],
                data_type: Some(code),
                string_data: ["a", "", "bc", "d"].iter().map(|text| Bytes::from(*text)).collect(),
                ..TensorProto::default()
            },
        };
        let nodes = [node("Identity", &["w"], &["y"]), node("Identity", &["y"], &["z"])];
        let results = [value("z", code, 1)];
        let mut model = model(graph(&[], &[weight], &nodes, &results));
        model.ir_version = Some(13);
        model.opset_import[0].version = Some(25);
        let loaded = engine.load(ModelSource::Memory(&bytes(&model)), &LoadOptions::with_threads(1));
        let mut loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                println!("{dtype}: {error}");
                continue;
            }
        };
        let captured = capture(&mut *loaded, &[]);
        let dropped = captured.counters.n_dropped;
        println!("{dtype}: {} records, {dropped} dropped, {:?}", captured.records.len(), captured.outputs.as_ref().err());
        let narrow = [DType::I2, DType::U2].contains(&dtype);
        assert_eq!(dropped, if narrow { 3 } else { 0 }, "{dtype}");
        if let Some(record) = captured.records.iter().find(|record| record.operator.outputs[0] == "y") {
            let weight = &record.inputs[0].1;
            assert_eq!((weight.dtype(), weight.shape()), (dtype, &shape));
            if !narrow {
                assert_eq!(record.outputs[0].1.bytes(), weight.bytes(), "{dtype}");
            }
        }
    }
}

#[test]
fn what_nobody_foresees_is_left_out_when_the_library_refuses_it() {
    let Some(engine) = engine() else { return };
    // Nothing says that this gives elements of two bits.
    let weight = TensorProto {
        name: "w".into(),
        dims: vec![4],
        data_type: Some(26),
        raw_data: Some(Bytes::from(vec![0b01_00_11_10])),
        ..TensorProto::default()
    };
    let branch = |name: &str| graph(&[], &[], &[node("Identity", &["w"], &[name])], &[value(name, 26, 1)]);
    let nodes = [
        node("If", &["c"], &["y"]).body("then_branch", branch("a")).body("else_branch", branch("b")),
        node("Where", &["cs", "y", "y"], &["v"]),
        node("Cast", &["y"], &["z"]).int("to", 1),
    ];
    let nodes = [nodes[0].clone(), nodes[2].clone()];
    let mut model = model(graph(&[], &[weight, truth("c", true)], &nodes, &[value("z", FLOAT, 1)]));
    model.ir_version = Some(13);
    model.opset_import[0].version = Some(25);
    let captured = capture(&mut *load(&engine, &model), &[]);
    assert_eq!(f32s(&captured.outputs.unwrap()[0]), [-2.0, -1.0, 0.0, 1.0]);
    println!("{:?} {:?}", names(&captured.records), captured.counters);
}
