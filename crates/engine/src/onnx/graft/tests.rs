//! Pairs of small models, one of which has a fault, and the model that comes of healing it.

use opscope_tensor::{DType, Shape, Tensor};
use prost::Message;
use prost::bytes::Bytes;

use super::{DifferentPart, ModelPair, SameValue, ValueForm};
use crate::onnx::Tract;
use crate::onnx::schema::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OnnxDataType,
    OperatorSetIdProto, TensorProto, TensorTypeProto, TypeProto, TypeValue, ValueInfoProto,
};
use crate::{Engine, LoadOptions, ModelSource};

/// The file beside which data outside of a model would lie.
const NOWHERE: &str = "/nowhere/model.onnx";

fn value(name: &str) -> ValueInfoProto {
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto {
            value: Some(TypeValue::TensorType(TensorTypeProto {
                elem_type: Some(OnnxDataType::Float as i32),
                shape: None,
            })),
            denotation: None,
        }),
        ..ValueInfoProto::default()
    }
}

/// An operator whose name is that of its output.
fn node(op_type: &str, input: &[&str], output: &str) -> NodeProto {
    NodeProto {
        name: output.to_owned(),
        op_type: op_type.to_owned(),
        input: input.iter().map(|name| (*name).to_owned()).collect(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    }
}

fn with_float(mut node: NodeProto, name: &str, f: f32) -> NodeProto {
    node.attribute.push(AttributeProto {
        name: name.to_owned(),
        f: Some(f),
        r#type: Some(1),
        ..AttributeProto::default()
    });
    node
}

fn weight(name: &str, elements: &[f32]) -> TensorProto {
    let bytes = elements.iter().flat_map(|element| element.to_le_bytes());
    TensorProto {
        name: name.to_owned(),
        dims: vec![elements.len() as i64],
        data_type: Some(OnnxDataType::Float as i32),
        raw_data: Some(Bytes::from(bytes.collect::<Vec<u8>>())),
        ..TensorProto::default()
    }
}

fn model(nodes: Vec<NodeProto>, weights: Vec<TensorProto>, output: &str) -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto {
            domain: None,
            version: Some(17),
        }],
        graph: Some(GraphProto {
            name: "graph".to_owned(),
            node: nodes,
            initializer: weights,
            input: vec![ValueInfoProto {
                r#type: Some(TypeProto {
                    value: Some(TypeValue::TensorType(TensorTypeProto {
                        elem_type: Some(OnnxDataType::Float as i32),
                        shape: Some(Default::default()),
                    })),
                    denotation: None,
                }),
                ..value("x")
            }],
            output: vec![value(output)],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}

/// `y = relu(x + a) * b`, with steps named by their values.
fn sound() -> ModelProto {
    let nodes = vec![
        node("Add", &["x", "a"], "sum"),
        node("Relu", &["sum"], "positive"),
        node("Mul", &["positive", "b"], "y"),
    ];
    model(
        nodes,
        vec![weight("a", &[1.0, -2.0]), weight("b", &[3.0, 4.0])],
        "y",
    )
}

fn graph(model: &mut ModelProto) -> &mut GraphProto {
    model.graph.as_mut().unwrap()
}

fn same(names: &[[&str; 2]]) -> Vec<SameValue> {
    let values = names.iter().map(|[target, golden]| SameValue {
        target: (*target).to_owned(),
        target_output: 0,
        golden: (*golden).to_owned(),
        golden_output: 0,
        forms: None,
    });
    values.collect()
}

fn pair(target: &ModelProto, golden: &ModelProto, names: &[[&str; 2]]) -> ModelPair {
    let bytes = [target, golden].map(Message::encode_to_vec);
    let [target, golden] = bytes.each_ref().map(|bytes| ModelSource::Part {
        bytes,
        path: NOWHERE.as_ref(),
    });
    let inputs = [["x", "x"].map(str::to_owned)];
    ModelPair::read(target, golden, &same(names), &inputs).unwrap()
}

/// Runs a model on a scalar, which is broadcast to the weights.
fn run(source: ModelSource<'_>) -> Vec<f32> {
    let mut model = Tract.load(source, &LoadOptions::with_threads(1)).unwrap();
    let shape = Shape::new([]).unwrap();
    let input = Tensor::from_vec(DType::F32, shape, 0.5_f32.to_le_bytes().to_vec()).unwrap();
    let outputs = model.run(&[input], None).unwrap();
    let bytes = outputs[0].host_view().unwrap().bytes.chunks_exact(4);
    bytes
        .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
        .collect()
}

/// Heals all differences, which are `n`, and runs the result.
fn check(target: &ModelProto, golden: &ModelProto, names: &[[&str; 2]], n: usize) -> ModelPair {
    let pair = pair(target, golden, names);
    let all: Vec<usize> = (0..pair.differences().len()).collect();
    assert_eq!(all.len(), n, "{:?}", pair.differences());
    let [own, expected] =
        [target, golden].map(|model| run(ModelSource::Memory(&model.encode_to_vec())));
    assert_ne!(own, expected);
    assert_eq!(run(pair.healed(&[]).unwrap().source()), own);
    assert_eq!(run(pair.healed(&all).unwrap().source()), expected);
    pair
}

const ALL: [[&str; 2]; 3] = [["sum", "sum"], ["positive", "positive"], ["y", "y"]];

#[test]
fn models_that_are_the_same_have_no_differences() {
    let pair = pair(&sound(), &sound(), &ALL);
    assert_eq!(pair.differences(), []);
    assert!(pair.changes(&[]).unwrap().removed.is_empty());
}

#[test]
fn weights() {
    let mut faulty = sound();
    graph(&mut faulty).initializer[1] = weight("b", &[2.0, 4.0]);
    check(&faulty, &sound(), &ALL, 1);
    // One of another shape belongs to its operator.
    graph(&mut faulty).initializer[1] = weight("b", &[5.0]);
    check(&faulty, &sound(), &ALL, 1);
}

#[test]
fn attributes_and_their_defaults() {
    let of = |alpha: Option<f32>| {
        let mut model = sound();
        let elu = node("Elu", &["sum"], "positive");
        graph(&mut model).node[1] = match alpha {
            Some(alpha) => with_float(elu, "alpha", alpha),
            None => elu,
        };
        model
    };
    let pair = check(&of(Some(0.5)), &of(None), &ALL, 1);
    let expected = DifferentPart::Attribute {
        name: "alpha".to_owned(),
        target: Some("0.5".to_owned()),
        golden: Some("1 (default of opset 17)".to_owned()),
    };
    assert_eq!(pair.differences()[0].parts, [expected]);
    let same = self::pair(&of(Some(1.0)), &of(None), &ALL);
    assert_eq!(same.differences(), []);
}

#[test]
fn another_type() {
    let mut faulty = sound();
    graph(&mut faulty).node[1].op_type = "Abs".to_owned();
    check(&faulty, &sound(), &ALL, 1);
}

#[test]
fn wiring() {
    // The activation is there, and nothing reads it.
    let mut faulty = sound();
    graph(&mut faulty).node[2].input[0] = "sum".to_owned();
    let pair = check(&faulty, &sound(), &ALL, 1);
    assert!(matches!(
        pair.differences()[0].parts[..],
        [DifferentPart::Wiring { .. }]
    ));
    assert_eq!(pair.differences()[0].readers.len(), 1);
}

#[test]
fn operators_of_one_side() {
    // Seen from the other model, an operator that is lost is one that was inserted.
    let mut lost = sound();
    graph(&mut lost).node.remove(1);
    graph(&mut lost).node[1].input[0] = "sum".to_owned();
    let names = [["sum", "sum"], ["y", "y"]];
    let pair = check(&lost, &sound(), &names, 1);
    let healed = pair.changes(&[0]).unwrap();
    assert_eq!(healed.added[0].op_name, "positive");
    let pair = check(&sound(), &lost, &names, 1);
    let healed = pair.changes(&[0]).unwrap();
    assert_eq!(healed.removed[0].op_name, "positive");
}

#[test]
fn results() {
    // The last operator is lost, and its value goes by the name of what is left.
    let mut lost = sound();
    graph(&mut lost).node.pop();
    graph(&mut lost).node[1].output[0] = "y".to_owned();
    let names = [["sum", "sum"], ["positive", "positive"]];
    let pair = check(&lost, &sound(), &names, 1);
    assert!(matches!(
        pair.differences()[0].parts[..],
        [DifferentPart::Result { .. }]
    ));
    // Another value is returned.
    let mut other = sound();
    graph(&mut other).output[0] = value("positive");
    check(&other, &sound(), &ALL, 1);
}

#[test]
fn operator_sets() {
    let of = |version| {
        let mut model = sound();
        model.opset_import[0].version = Some(version);
        model
    };
    let pair = pair(&of(13), &of(17), &ALL);
    let healed = pair.healed(&[0]).unwrap();
    let model = ModelProto::decode(&healed.bytes[..]).unwrap();
    assert_eq!(model.opset_import, of(17).opset_import);
}

#[test]
fn operators_take_the_form_of_another_set() {
    let ints = |name: &str, ints: &[i64]| AttributeProto {
        name: name.to_owned(),
        ints: ints.to_vec(),
        r#type: Some(7),
        ..AttributeProto::default()
    };
    let mut old = sound();
    let mut mean = node("ReduceMean", &["y"], "mean");
    mean.attribute.push(ints("axes", &[0]));
    graph(&mut old).node.push(mean);
    graph(&mut old).output[0] = value("mean");
    let mut new = sound();
    new.opset_import[0].version = Some(18);
    let mut mean = node("ReduceMean", &["y", "axes"], "mean");
    mean.attribute.push(AttributeProto {
        name: "noop_with_empty_axes".to_owned(),
        i: Some(0),
        r#type: Some(2),
        ..AttributeProto::default()
    });
    graph(&mut new).node.push(mean);
    graph(&mut new).output[0] = value("mean");
    let axes = TensorProto {
        data_type: Some(OnnxDataType::Int64 as i32),
        raw_data: Some(Bytes::from_static(&[0; 8])),
        ..weight("axes", &[0.0])
    };
    graph(&mut new).initializer.push(axes);
    // The operator in the form of golden's set, and of the target's own.
    let mean_of = |target: &ModelProto, golden: &ModelProto, part: fn(&DifferentPart) -> bool| {
        let pair = pair(target, golden, &[["mean", "mean"]]);
        let mut all = pair.differences().iter();
        let index = all.position(|found| found.parts.iter().any(part)).unwrap();
        let healed = pair.healed(&[index]).unwrap();
        let model = ModelProto::decode(&healed.bytes[..]).unwrap();
        let nodes = model.graph.unwrap().node;
        let mean = nodes.into_iter().find(|node| node.op_type == "ReduceMean");
        let mean = mean.unwrap();
        let names = mean.attribute.iter().map(|own| own.name.clone());
        (mean.input.len(), names.collect::<Vec<_>>())
    };
    let is_set = |part: &DifferentPart| matches!(part, DifferentPart::OperatorSet { .. });
    assert_eq!(mean_of(&old, &new, is_set), (2, Vec::new()));
    assert_eq!(mean_of(&new, &old, is_set), (1, vec!["axes".to_owned()]));
}

#[test]
fn functions() {
    let of = |op_type: &str| {
        let mut model = sound();
        model.functions.push(FunctionProto {
            name: Some("Own".to_owned()),
            domain: Some("own".to_owned()),
            input: vec!["a".to_owned()],
            output: vec!["b".to_owned()],
            node: vec![node(op_type, &["a"], "b")],
            ..FunctionProto::default()
        });
        model
    };
    let pair = pair(&of("Relu"), &of("Abs"), &ALL);
    let parts = &pair.differences()[0].parts;
    assert_eq!(
        parts[..],
        [DifferentPart::Functions(vec!["Own".to_owned()])]
    );
    let decode = |healed: &[u8]| ModelProto::decode(healed).unwrap().functions;
    assert_eq!(
        decode(&pair.healed(&[0]).unwrap().bytes),
        of("Abs").functions
    );
    assert_eq!(
        decode(&pair.healed(&[]).unwrap().bytes),
        of("Relu").functions
    );
    // One that the target lacks comes with the operators that need it.
    let pair = self::pair(&sound(), &of("Abs"), &ALL);
    assert_eq!(pair.differences(), []);
}

#[test]
fn a_view_on_another_way_is_not_lost() {
    let golden = |source: &str| {
        let mut model = sound();
        graph(&mut model)
            .node
            .insert(1, node("Identity", &[source], "view"));
        graph(&mut model).node[2].input[0] = "view".to_owned();
        model
    };
    for (source, is_lost) in [("sum", true), ("x", false)] {
        let pair = pair(&sound(), &golden(source), &ALL);
        assert_eq!(pair.changes(&[0]).unwrap().added[0].op_name, "view");
        assert_eq!(pair.is_made_from(&pair.differences()[0]), is_lost);
    }
}

#[test]
fn values_of_another_form() {
    // Golden's operator reads and gives vectors, the target's a matrix of one row.
    let mut faulty = sound();
    graph(&mut faulty).initializer[0].dims = vec![1, 2];
    graph(&mut faulty).node[1].op_type = "Abs".to_owned();
    let bytes = [&faulty, &sound()].map(Message::encode_to_vec);
    let form = |shape: &[u64]| ValueForm {
        dtype: DType::F32,
        shape: shape.to_vec(),
    };
    let mut values = same(&ALL);
    for value in &mut values {
        value.forms = Some([form(&[1, 2]), form(&[2])]);
    }
    let sources = bytes.each_ref().map(|bytes| ModelSource::Memory(bytes));
    let inputs = [["x", "x"].map(str::to_owned)];
    let pair = ModelPair::read(sources[0], sources[1], &values, &inputs).unwrap();
    let all: Vec<usize> = (0..pair.differences().len()).collect();
    assert_eq!(run(pair.healed(&all).unwrap().source()), run(sources[1]));
}

#[test]
fn what_cannot_be_healed_has_a_reason() {
    let mut golden = sound();
    graph(&mut golden).node[2].input[0] = "z".to_owned();
    graph(&mut golden).input.push(value("z"));
    let pair = pair(&sound(), &golden, &ALL);
    let error = pair.healed(&[0]).err().unwrap();
    assert_eq!(error, "the target has no input that is golden's `z`");
}

/// A branch whose bodies add a weight of their own to a value from outside.
fn branch(captured: &str) -> NodeProto {
    let body = GraphProto {
        name: "body".to_owned(),
        node: vec![node("Add", &[captured, "c"], "of_body")],
        initializer: vec![weight("c", &[1.0, 1.0])],
        output: vec![value("of_body")],
        ..GraphProto::default()
    };
    let mut branch = node("If", &["is_so"], "chosen");
    for name in ["then_branch", "else_branch"] {
        branch.attribute.push(AttributeProto {
            name: name.to_owned(),
            g: Some(body.clone()),
            r#type: Some(5),
            ..AttributeProto::default()
        });
    }
    branch
}

#[test]
fn bodies_read_values_by_their_new_names() {
    let mut branch = branch("inner");
    let read = super::captured::read_by(&branch);
    assert_eq!(read, ["is_so", "inner", "inner"]);
    // A weight of the body hides the name outside.
    let names = [("inner", "other"), ("c", "unused")];
    let names = names.map(|(from, to)| (from.to_owned(), to.to_owned()));
    super::captured::rename(&mut branch, &names.into_iter().collect());
    assert_eq!(branch, self::branch("other"));
}

#[test]
fn a_weight_that_bodies_read() {
    let of = |elements: &[f32]| {
        let mut model = sound();
        let graph = graph(&mut model);
        graph.node.push(branch("inner"));
        graph.initializer.push(weight("inner", elements));
        // Nothing of it runs here.
        graph.initializer.push(weight("is_so", &[1.0]));
        graph.output.push(value("chosen"));
        model
    };
    let names = [["sum", "sum"], ["y", "y"], ["chosen", "chosen"]];
    let pair = pair(&of(&[1.0, 2.0]), &of(&[1.0, 3.0]), &names);
    let parts: Vec<_> = pair
        .differences()
        .iter()
        .flat_map(|one| &one.parts)
        .collect();
    assert!(
        parts.contains(&&DifferentPart::Captured("inner".to_owned())),
        "{parts:?}"
    );
    let all: Vec<usize> = (0..pair.differences().len()).collect();
    let healed = pair.healed(&all).unwrap();
    let healed = ModelProto::decode(&healed.bytes[..])
        .unwrap()
        .graph
        .unwrap();
    let chosen = healed
        .node
        .iter()
        .find(|node| node.name == "chosen")
        .unwrap();
    assert_eq!(chosen, &branch("inner/golden"));
    let weights: Vec<_> = healed
        .initializer
        .iter()
        .map(|weight| &weight.name[..])
        .collect();
    // The old one is gone with its last reader.
    assert_eq!(weights, ["a", "b", "is_so", "inner/golden"]);
}

fn parts(pair: &ModelPair) -> Vec<&DifferentPart> {
    let differences = pair.differences().iter();
    differences.flat_map(|one| &one.parts).collect()
}

#[test]
fn an_output_without_a_match_keeps_its_place() {
    let of = |axis: f32| {
        let mut split = with_float(node("Split", &["x"], "p"), "axis", axis);
        split.output.push("q".to_owned());
        model(vec![split, node("Add", &["p", "q"], "y")], Vec::new(), "y")
    };
    let pair = pair(&of(0.0), &of(1.0), &[["p", "p"], ["y", "y"]]);
    let healed = pair.healed(&[0]).unwrap();
    let healed = ModelProto::decode(&healed.bytes[..]).unwrap();
    assert_eq!(healed.graph.unwrap().node, of(1.0).graph.unwrap().node);
}

#[test]
fn operators_match_by_what_reads_them() {
    let of = |more: &[NodeProto], read: &str, made: &str| {
        let mut nodes = more.to_vec();
        nodes.push(node("Neg", &[read], made));
        nodes.push(node("Exp", &[made], "y"));
        model(nodes, Vec::new(), "y")
    };
    let target = of(&[node("Abs", &["x"], "a")], "a", "n");
    let pair = pair(&target, &of(&[], "x", "m"), &[]);
    assert!(
        matches!(parts(&pair)[..], [DifferentPart::Wiring { input: 0, .. }]),
        "{:?}",
        parts(&pair)
    );
}

#[test]
fn outputs_of_one_operator_are_wrong_together() {
    let readers = |read: [&str; 2]| {
        [
            node("Relu", &read[..1], "r"),
            node("Exp", &read[1..], "e"),
            node("Add", &["r", "e"], "y"),
        ]
    };
    let mut split = node("Split", &["x"], "a");
    split.output.push("b".to_owned());
    let target = [vec![split], readers(["a", "b"]).to_vec()].concat();
    let alone = [node("Sin", &["x"], "s"), node("Cos", &["x"], "c")];
    let golden = [alone.to_vec(), readers(["s", "c"]).to_vec()].concat();
    let names = [["r", "r"], ["e", "e"], ["y", "y"]];
    let [target, golden] = [target, golden].map(|nodes| model(nodes, Vec::new(), "y"));
    let pair = pair(&target, &golden, &names);
    let found = pair.exchanged_outputs(&[0, 1]);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&found[0].operator.op_name[..], &found[0].outputs[..]),
        ("a", &["a".to_owned(), "b".to_owned()][..])
    );
    // One alone may be read by mistake.
    assert!(pair.exchanged_outputs(&[0]).is_empty());
}

#[test]
fn of_two_in_a_row_the_one_that_reads_the_same_matches() {
    let of = |nodes: &[NodeProto]| {
        let last = nodes.last().unwrap().output[0].clone();
        let nodes = [nodes, &[node("Relu", &[&last], "y")]].concat();
        model(
            nodes,
            vec![weight("a", &[1.0, 2.0]), weight("c", &[3.0, 4.0])],
            "y",
        )
    };
    let two = of(&[
        node("Mul", &["x", "c"], "first"),
        node("Mul", &["first", "a"], "second"),
    ]);
    let one = of(&[node("Mul", &["x", "a"], "only")]);
    for (target, golden, names) in [
        (&two, &one, [["first", "only"], ["y", "y"]]),
        (&one, &two, [["only", "first"], ["y", "y"]]),
    ] {
        let pair = pair(target, golden, &names);
        assert!(
            matches!(parts(&pair)[..], [DifferentPart::Wiring { input: 0, .. }]),
            "{:?}",
            parts(&pair)
        );
    }
}
