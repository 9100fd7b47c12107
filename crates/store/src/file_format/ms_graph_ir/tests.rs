use opscope_tensor::DType;

use super::*;
use crate::record::graph::{
    GraphDescription, GraphNode, InputOrigin, Literal, TensorType, ValueType,
};

fn node(text: &str) -> Result<GraphDescription, crate::FormatError> {
    decode(&format!("subgraph @kernel_graph7() {{\n{text}\n}}\n"))
}

#[test]
fn arguments_are_told_apart() {
    let text = "  %0(a) = PrimFunc_Concat(Tensor(shape=[1, 2], dtype=Float32, value=\n\
                [[ 1.0e+00  2.0e+00]]), (I64(3), I64(-2)), \"a, (b\", F32(0.5), UMonad[U], %9)\n\
                \x20     : () -> (<Tensor[Float32], (1, 2)>)\n\
                \x20     # Fullname with scope: (Default/Concat-op0)";
    let graph = node(text).unwrap();
    let values: Vec<_> = graph.constants.iter().map(|c| c.value.clone()).collect();
    let tensor = TensorType {
        dtype: DType::F32,
        shape: vec![1, 2],
    };
    let expected = [
        Literal::Tensor(Some(tensor.clone()), "\n[[ 1.0e+00  2.0e+00]]".to_owned()),
        Literal::Tuple(vec![
            Literal::Int(Some(DType::I64), 3),
            Literal::Int(Some(DType::I64), -2),
        ]),
        Literal::Text("a, (b".to_owned()),
        Literal::Float(DType::F32, 0.5),
        Literal::Monad("UMonad".to_owned()),
    ];
    assert_eq!(values, expected);
    let concat = &graph.nodes[0];
    assert_eq!(concat.inputs[5], InputOrigin::Unknown("%9".to_owned()));
    assert_eq!(concat.output, ValueType::Tensor(tensor));
    assert_eq!((graph.id, concat.is_functional), (7, true));
}

#[test]
fn the_dialect_of_older_versions_is_read() {
    let text = "%20(equivoutput) = Conv2D(%17, %19) {instance name: conv2d} primitive_attrs: \
                {kernel_size: (3, 3), mode: 1, pad_mod: same}\n\
                : (<Tensor[Float32], (32, 256)>) -> (<Tensor[Float32], (32, 384)>)\n\
                : (<Float16xNC1HWC0[const vector][32, 16]>) -> (<Float32xNC1HWC0[const vector][32, 24]>)\n\
                : full_name_with_scope: (Default/conv3-Conv2d/Conv2D-op12)\n\
                # In file ./train.py(175)/ x = self.conv3(x)/";
    let graph = node(text).unwrap();
    let conv = &graph.nodes[0];
    assert_eq!(conv.full_name, "Default/conv3-Conv2d/Conv2D-op12");
    assert_eq!(conv.scope(), "Default/conv3-Conv2d");
    assert_eq!(
        conv.source[0].lines,
        ["./train.py(175)/ x = self.conv3(x)/"]
    );
    assert_eq!(conv.kernel.as_ref().unwrap().inputs[0].layout, "NC1HWC0");
    assert_eq!(conv.attributes[2].value, Literal::Name("same".to_owned()));
}

#[test]
fn a_graph_made_by_hand_comes_back() {
    let mut graph = GraphDescription {
        id: 3,
        name: "kernel_graph3".to_owned(),
        instance: 0x10,
        ..GraphDescription::default()
    };
    let axis = graph.constant(Literal::Int(Some(DType::I64), 0));
    assert_eq!(graph.constant(Literal::Int(Some(DType::I64), 0)), axis);
    graph.nodes.push(GraphNode {
        label: "CNode_1".to_owned(),
        op_type: "Softmax".to_owned(),
        full_name: "Default/Softmax-op0".to_owned(),
        inputs: vec![axis],
        output: ValueType::Tuple(vec![ValueType::Scalar(DType::I64); 3]),
        ..GraphNode::default()
    });
    graph.outputs = vec![InputOrigin::Node(0)];
    graph.result.label = "CNode_2".to_owned();
    graph.result.full_name = "Default/Return-op0".to_owned();
    let text = encode(&graph);
    assert!(text.contains("<Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>"));
    assert_eq!(decode(&text).unwrap(), graph);
}

#[test]
fn what_is_no_graph_is_refused() {
    for text in ["", "hello\n", "subgraph @g() {\n  %0(a) = Add(%1\n}\n"] {
        assert!(decode(text).is_err(), "{text}");
    }
    // A type that claims more elements than it has shapes, and nesting without end.
    let huge = "  %0(a) = Add()\n      : () -> (<Tuple[Int64*99999999999], TupleShape(NoShape)>)";
    assert!(matches!(
        node(huge).unwrap().nodes[0].output,
        ValueType::Other(_)
    ));
    let deep = format!(
        "  %0(a) = Add({}{})",
        "(".repeat(10_000),
        ")".repeat(10_000)
    );
    assert!(node(&deep).is_ok());
}

#[test]
fn dtypes_may_have_an_x_of_their_own() {
    let tensor = values::parse_device("<Complex64xNCHW[const vector]{2}>").unwrap();
    assert_eq!((&*tensor.dtype, &*tensor.layout), ("Complex64", "NCHW"));
}
