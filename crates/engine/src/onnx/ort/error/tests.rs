use super::*;
use crate::onnx::schema::NodeProto;

fn graph(nodes: &[(&str, &str, &str)]) -> GraphProto {
    let node = |&(op_type, name, output): &(&str, &str, &str)| NodeProto {
        op_type: op_type.into(),
        name: name.into(),
        output: vec![output.into()],
        ..NodeProto::default()
    };
    GraphProto {
        node: nodes.iter().map(node).collect(),
        ..GraphProto::default()
    }
}

#[test]
fn places_in_the_source_are_left_out() {
    let check = |text: &str, expected: &str| assert_eq!(without_places(text), expected);
    check(
        "nothing to leave out (at all)",
        "nothing to leave out (at all)",
    );
    check(
        "matmul_helper.h:59 Compute MatMul dimension mismatch",
        "MatMul dimension mismatch",
    );
    check(
        "/onnxruntime_src/onnxruntime/core/graph/model.cc:256 onnxruntime::Model::Model(onnx::ModelProto&&, \
         const onnxruntime::ModelOptions&) Unsupported model IR version: 99\n",
        "Unsupported model IR version: 99",
    );
    check(
        "before /a/b.cc:1 virtual Status X<T>::Compute(K*) const [with T = std::vector<int>] after it",
        "before after it",
    );
    check(
        "/a/b.h:46 void f(const std::unordered_map<std::basic_string<char>, int>&, bool)::<lambda(int)> \
         operator()(int) words",
        "words",
    );
    check("/a/b.h:46 unfinished(signature", "unfinished(signature");
    check("see x.py:3 there", "see x.py:3 there");
    check("", "");
}

#[test]
fn the_innermost_operator_of_a_run_is_named() {
    let graph = graph(&[
        ("If", "outer", "y"),
        ("Gather", "", "z"),
        ("Neg", "", "a"),
        ("Neg", "", "b"),
    ]);
    let check = |text: &str, expected: &str| {
        assert_eq!(at_run(text, &graph).to_string(), expected);
    };
    check(
        "Non-zero status code returned while running If node. Name:'outer' Status Message: Non-zero \
         status code returned while running Gather node. Name:'' Status Message: idx=9 is out of bounds",
        "operator `z` of type `Gather` failed: idx=9 is out of bounds",
    );
    check(
        "Non-zero status code returned while running Mul node. Name:'it's' Status Message: no",
        "operator `it's` of type `Mul` failed: no",
    );
    check(
        "Non-zero status code returned while running Neg node. Name:'' Status Message: no",
        "operator `` of type `Neg` failed: no",
    );
    check("Invalid Feed", "ONNX Runtime failed: Invalid Feed");
}

#[test]
fn what_a_model_asks_too_much_is_named() {
    let model = ModelProto {
        graph: Some(graph(&[
            ("Foo", "n1", "y"),
            ("Bar", "", "z"),
            ("Relu", "r", "w"),
        ])),
        ..ModelProto::default()
    };
    let check = |text: &str, expected: &str| {
        let error = at_load(text, Path::new("m.onnx"), &model, "1.31.1");
        let expected = format!("`m.onnx` is not a usable ONNX model: {expected}");
        assert_eq!(error.to_string(), expected);
    };
    check(
        "Load model from /x/m.onnx failed:Unsupported model IR version: 99, max supported IR version: 13",
        "its format is IR version 99; ONNX Runtime 1.31.1 reads up to 13",
    );
    check(
        "ONNX Runtime only *guarantees* support for models stamped with official released onnx opset \
         versions. Opset 28 is under development and support for this is limited. Current official \
         support for domain ai.onnx is till opset 26.",
        "it uses version 28 of the operator set `ai.onnx`; ONNX Runtime 1.31.1 has it up to version 26",
    );
    check(
        "This is an invalid model. In Node, (\"n1\", Foo, \"\", -1) : (\"x\": tensor(float),) -> \
         (\"y\": tensor(float),) , Error No Op registered for Foo with domain_version of 20",
        "operator `n1` of type `Foo`: ONNX Runtime 1.31.1 has no such operator up to version 20 of its set",
    );
    check(
        "This is an invalid model. In Node, (\"\", Bar, \"\", -1) : (\"x\": tensor(float),) -> \
         (\"z\",) , Error Unrecognized attribute: bogus for operator Bar",
        "operator `z` of type `Bar`: Unrecognized attribute: bogus for operator Bar",
    );
    check(
        "Fatal error: my.dom:Bar(-1) is not a registered function/op",
        "operator `z` of type `Bar`: ONNX Runtime 1.31.1 has no such operator in the set `my.dom`",
    );
    check(
        "Could not find an implementation for Relu(14) node with name 'r'",
        "operator `r` of type `Relu`: ONNX Runtime 1.31.1 has no implementation of it (version 14) for the \
         types it is given",
    );
    check(
        "Node (r) Op (Relu) [ShapeInferenceError] Incompatible dimensions",
        "operator `r` of type `Relu`: [ShapeInferenceError] Incompatible dimensions",
    );
    let types = "Type Error: Type parameter (T) of Optype (Bar) bound to different types (tensor(float) and \
                 tensor(int64) in node ().";
    check(types, &format!("operator `z` of type `Bar`: {types}"));
    check("Something else", "Something else");
}
