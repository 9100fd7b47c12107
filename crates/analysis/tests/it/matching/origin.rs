//! Operators of one type that one module or line of the program called.

use std::fs;
use std::path::Path;

use opscope_analysis::compare::side::ComparedDump;

use crate::matching::{lines, matched, slot_lines};

/// A call that msProbe recorded: its key, the module that made it, the line, and how many elements
/// it reads and makes.
type Call = (&'static str, &'static str, u32, &'static [u64]);

/// Writes a dump of calls under `folder`, without elements, and opens it.
fn recorded(folder: &Path, calls: &[Call]) -> ComparedDump {
    let tensor = |n: &u64| {
        format!(
            r#"{{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [{n}],
            "Max": {n}, "Min": 0, "Mean": 1, "Norm": 2}}"#
        )
    };
    let data = calls.iter().map(|(key, _, _, lengths)| {
        let [inputs @ .., output] = lengths else {
            panic!("`{key}` makes nothing");
        };
        let inputs: Vec<String> = inputs.iter().map(tensor).collect();
        format!(
            r#""{key}": {{"input_args": [{}], "output": [{}]}}"#,
            inputs.join(", "),
            tensor(output)
        )
    });
    let data: Vec<String> = data.collect();
    let dump = format!(
        r#"{{"task": "statistics", "level": "mix", "data": {{{}}}}}"#,
        data.join(", ")
    );
    let modules = calls
        .iter()
        .map(|(key, module, ..)| format!(r#""{key}": "{module}""#));
    let stacks = calls.iter().map(|(key, _, line, _)| {
        format!(
            r#""{key}": ["File {}/net.py, line {line}, in forward, \n x"]"#,
            folder.display()
        )
    });
    for (name, content) in [
        ("dump.json", dump),
        ("construct.json", object(modules)),
        ("stack.json", object(stacks)),
    ] {
        fs::write(folder.join(name), content).unwrap();
    }
    ComparedDump::open(folder, 1).unwrap()
}

fn object(members: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

#[track_caller]
fn check(target: &[Call], golden: &[Call], expected: &[&str], slots: &[&str]) {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let target = recorded(folders[0].path(), target);
    let golden = recorded(folders[1].path(), golden);
    let matching = matched(&target, &golden);
    assert_eq!(lines(&matching, &target, &golden), expected);
    if !slots.is_empty() {
        assert_eq!(slot_lines(&matching, &target, &golden), slots);
    }
}

const FIRST: &str = "Module.first.Block.forward.0";
const SECOND: &str = "Module.second.Block.forward.0";

#[test]
fn the_module_says_which_of_two_it_is() {
    check(
        &[
            ("Torch.relu.0.forward", FIRST, 3, &[4, 4]),
            ("Torch.relu.1.forward", SECOND, 3, &[4, 4]),
        ],
        &[("Functional.relu.0.forward", SECOND, 9, &[4, 4])],
        &[
            "Torch.relu.1.forward = Functional.relu.0.forward, origin",
            "target: Torch.relu.0.forward, missing",
        ],
        &[],
    );
}

#[test]
fn as_many_of_a_type_in_a_module_are_taken_in_order() {
    let target: &[Call] = &[
        ("Torch.relu.0.forward", FIRST, 3, &[4, 4]),
        ("Torch.relu.1.forward", FIRST, 4, &[4, 4]),
    ];
    let golden: &[Call] = &[
        ("Functional.relu.0.forward", FIRST, 3, &[4, 4]),
        ("Functional.relu.1.forward", FIRST, 4, &[4, 4]),
    ];
    let expected = [
        "Torch.relu.0.forward = Functional.relu.0.forward, origin",
        "Torch.relu.1.forward = Functional.relu.1.forward, origin",
    ];
    check(target, golden, &expected, &[]);
    // Others are identified only by their order.
    let expected = [
        "Torch.relu.0.forward = Functional.relu.0.forward, order",
        "golden: Functional.relu.1.forward, missing",
    ];
    check(&target[..1], golden, &expected, &[]);
}

#[test]
fn branches_may_run_in_another_order() {
    check(
        &[
            ("Torch.tanh.0.forward", FIRST, 3, &[4, 4]),
            ("Functional.gelu.0.forward", "", 5, &[4, 4]),
            ("Torch.relu.0.forward", SECOND, 3, &[4, 4]),
        ],
        &[
            ("Functional.relu.0.forward", SECOND, 9, &[4, 4]),
            ("Functional.gelu.0.forward", "", 8, &[4, 4]),
            ("Functional.tanh.0.forward", FIRST, 9, &[4, 4]),
        ],
        &[
            "Torch.tanh.0.forward = Functional.tanh.0.forward, origin",
            "Functional.gelu.0.forward = Functional.gelu.0.forward, name",
            "Torch.relu.0.forward = Functional.relu.0.forward, origin",
        ],
        &[],
    );
}

#[test]
fn outputs_of_other_sizes_are_of_other_operators() {
    check(
        &[("Torch.relu.0.forward", FIRST, 3, &[4, 4])],
        &[("Functional.relu.0.forward", FIRST, 3, &[4, 6])],
        &[
            "target: Torch.relu.0.forward, missing",
            "golden: Functional.relu.0.forward, missing",
        ],
        &[],
    );
}

#[test]
fn lines_count_where_a_pair_bears_them_out() {
    let target: &[Call] = &[
        ("Functional.gelu.0.forward", "", 3, &[4, 4]),
        ("Torch.relu.0.forward", "", 5, &[4, 4]),
        ("Torch.relu.1.forward", "", 7, &[4, 4]),
    ];
    let golden: &[Call] = &[
        ("Functional.gelu.0.forward", "", 3, &[4, 4]),
        ("Functional.relu.0.forward", "", 7, &[4, 4]),
    ];
    let expected = [
        "Functional.gelu.0.forward = Functional.gelu.0.forward, name",
        "Torch.relu.1.forward = Functional.relu.0.forward, origin",
        "target: Torch.relu.0.forward, missing",
    ];
    check(target, golden, &expected, &[]);
    // Without one, the program may be another version of itself.
    let expected = [
        "Torch.relu.0.forward = Functional.relu.0.forward, order",
        "target: Torch.relu.1.forward, missing",
    ];
    check(&target[1..], &golden[1..], &expected, &[]);
}

#[test]
fn inputs_of_two_frameworks_belong_together_by_their_extents() {
    // A bias stands first on one side and last on the other, and what has no like belongs to
    // nothing.
    check(
        &[("Torch.addmm.0.forward", FIRST, 3, &[5, 12, 20, 15])],
        &[("Functional.linear.0.forward", FIRST, 3, &[12, 7, 5, 15])],
        &["Torch.addmm.0.forward = Functional.linear.0.forward, origin"],
        &[
            "Torch.addmm.0.forward:input.0 = Functional.linear.0.forward:input.2",
            "Torch.addmm.0.forward:input.1 = Functional.linear.0.forward:input.0",
            "Torch.addmm.0.forward:output.0 = Functional.linear.0.forward:output.0",
        ],
    );
}
