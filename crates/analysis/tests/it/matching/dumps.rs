//! Dumps on disk.

use std::fs;
use std::path::Path;

use opscope_analysis::compare::side::ComparedDump;
use opscope_store::file_format::npy::encode_header;
use opscope_tensor::{DType, Shape};

use crate::matching::{lines, matched, slot_lines};

fn array(path: &Path, shape: &[usize]) {
    let shape = Shape::new(shape.to_vec()).unwrap();
    let n_bytes = shape.n_bytes(DType::F32).unwrap();
    let bytes = [encode_header(DType::F32, &shape).unwrap(), vec![0; n_bytes]].concat();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A tree as AscendCL has it against arrays as the vendor's comparison takes them.
#[test]
fn a_tree_against_arrays() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("npu/20240102030405/0/resnet50/1/0");
    array(
        &tree.join("Conv2D.net_conv1.1.1.11.output.0.npy"),
        &[1, 8, 4, 4],
    );
    array(
        &tree.join("Conv2D.net_conv1.1.1.11.input.0.npy"),
        &[1, 3, 8, 8],
    );
    array(
        &tree.join("Relu.net_act.2.1.12.output.0.npy"),
        &[1, 8, 4, 4],
    );
    fs::write(tree.join("Softmax.prob.3.1.13"), "damaged").unwrap();
    let golden = dir.path().join("golden");
    array(
        &golden.join("net_conv1.0.1700000000000001.npy"),
        &[1, 8, 4, 4],
    );
    array(
        &golden.join("net_Relu_1.0.1700000000000002.npy"),
        &[1, 8, 4, 4],
    );
    array(&golden.join("prob.0.1700000000000003.npy"), &[1, 10]);
    let target = ComparedDump::open(&dir.path().join("npu"), 2).unwrap();
    let golden = ComparedDump::open(&golden, 2).unwrap();
    let matching = matched(&target, &golden);
    let expected = [
        "net_conv1 = net_conv1, name",
        "net_act = net_Relu_1, order",
        "prob = prob, name",
    ];
    assert_eq!(lines(&matching, &target, &golden), expected);
    let expected = [
        "net_conv1:output.0 = net_conv1:output.0",
        "net_act:output.0 = net_Relu_1:output.0",
        "prob:output.0 = prob:output.0",
    ];
    assert_eq!(slot_lines(&matching, &target, &golden), expected);
    // The input has no partner.
    assert_eq!(matching.pairs[0].missing.len(), 1);
}

/// Dump files that the runtime wrote: each is the same as itself, and every tensor has its partner.
#[test]
fn dump_files_are_themselves() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for dir in [
        "analysis/tests/golden/cann/dumps",
        "analysis/tests/golden/cann/invalid",
        "msaccucmp/tests/golden/convert_nano/in/d",
        "msaccucmp/tests/golden/ffts_plus/in/l",
        "msaccucmp/tests/golden/format_nc1hwc0/in/d",
    ] {
        let [target, golden] = [0, 1].map(|_| ComparedDump::open(&crates.join(dir), 2).unwrap());
        let matching = matched(&target, &golden);
        assert!(!matching.pairs.is_empty(), "{dir}");
        assert!(matching.unmatched.is_empty(), "{dir}");
        let n_slots: usize = matching.pairs.iter().map(|pair| pair.slots.len()).sum();
        assert_eq!(n_slots, target.n_slots(), "{dir}");
        assert!(
            matching.pairs.iter().all(|pair| pair.target == pair.golden),
            "{dir}"
        );
    }
}

const CONV: &[usize] = &[1, 8, 4, 4];
const FC: &[usize] = &[1, 10];

/// The directory of a dump, and its files with their extents.
type Tree = (&'static str, &'static [(&'static str, &'static [usize])]);

/// The same network as each dialect has it: a convolution, an activation, a product.
const MINDSPORE: Tree = (
    "ms/rank_0/Net/0/7",
    &[
        ("Conv2D.Conv2D-op1.0.0.100.output.0.DefaultFormat.npy", CONV),
        ("ReLU.ReLU-op2.1.0.101.output.0.DefaultFormat.npy", CONV),
        ("MatMul.MatMul-op3.2.0.102.output.0.DefaultFormat.npy", FC),
    ],
);
const ASCEND: Tree = (
    "npu/20240102030405/3/resnet/1/0",
    &[
        ("TransData.trans_0.0.1.10.output.0.npy", CONV),
        ("Conv2D.net_conv1.1.1.11.output.0.npy", CONV),
        ("Relu.net_relu1.2.1.12.output.0.npy", CONV),
        ("MatMulV2.net_fc.3.1.13.output.0.npy", FC),
    ],
);
const TORCH: Tree = (
    "torch/20240102030405/0/graph_1/1/0",
    &[
        (
            "aten_convolution_default.convolution.0.0.10.output.0.npy",
            CONV,
        ),
        ("aten_relu_default.relu.1.0.11.output.0.npy", CONV),
        ("aten_detach_default.detach.2.0.12.output.0.npy", CONV),
        ("aten_addmm_default.addmm.3.0.13.output.0.npy", FC),
    ],
);
const ARRAYS: Tree = (
    "arrays",
    &[
        ("Conv_0.0.1700000000000001.npy", CONV),
        ("Relu_1.0.1700000000000002.npy", CONV),
        ("Gemm_2.0.1700000000000003.npy", FC),
    ],
);

fn opened(root: &Path, (tree, files): Tree) -> ComparedDump {
    for (file, shape) in files {
        array(&root.join(tree).join(file), shape);
    }
    let top = tree.split('/').next().unwrap_or_default();
    ComparedDump::open(&root.join(top), 2).unwrap()
}

#[test]
fn every_dialect_against_every_other() {
    let dir = tempfile::tempdir().unwrap();
    let sides = [MINDSPORE, ASCEND, TORCH, ARRAYS].map(|tree| opened(dir.path(), tree));
    for target in &sides {
        for golden in &sides {
            let matching = matched(target, golden);
            let computes = |side: &ComparedDump, run: usize| {
                let name = &side.runs[run].op_name;
                !["trans_0", "detach"].contains(&name.as_str())
            };
            let pairs: Vec<_> = matching
                .pairs
                .iter()
                .filter(|pair| computes(target, pair.target[0]))
                .collect();
            let found = lines(&matching, target, golden);
            assert_eq!(pairs.len(), 3, "{found:?}");
            for pair in pairs {
                let kind = |side: &ComparedDump, run: usize| {
                    let name = side.runs[run].op_name.to_lowercase();
                    ["conv", "relu"].iter().position(|part| name.contains(part))
                };
                assert!(computes(golden, pair.golden[0]), "{found:?}");
                assert_eq!(
                    kind(target, pair.target[0]),
                    kind(golden, pair.golden[0]),
                    "{found:?}"
                );
            }
        }
    }
}
