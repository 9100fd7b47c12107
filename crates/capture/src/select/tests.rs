use super::*;
use crate::{Exclusion, NameRange, OperatorRule};

fn operator(task_id: u32, op_type: &str, op_name: &str, inputs: &[&str]) -> Arc<Operator> {
    Arc::new(Operator {
        task_id,
        op_type: op_type.into(),
        op_name: op_name.into(),
        inputs: inputs.iter().map(|name| (*name).to_owned()).collect(),
        outputs: vec![format!("{op_name}_out")],
        ..Operator::default()
    })
}

fn model() -> ModelId {
    ModelId::first_load("file", "graph")
}

fn named(names: &[&str]) -> OperatorSelection {
    OperatorSelection::named(names.iter().copied())
}

fn range(begin: &str, end: &str) -> NameRange {
    NameRange {
        begin: begin.into(),
        end: end.into(),
    }
}

/// Selects from operators `a` `b` `a` and compares which tasks are kept.
fn check(models: ModelSelection, tasks: &[u32], unmatched: &[&str], is_model_matched: bool) {
    let plan = Plan {
        models,
        ..Plan::everything()
    };
    let operators = ["a", "b", "a"].iter().zip(0..);
    let operators: Vec<_> = operators
        .map(|(name, i)| operator(i, "T", name, &[]))
        .collect();
    let selected = select(&plan, &model(), &operators, &[]);
    assert_eq!(sorted(&selected), tasks, "{plan:?}");
    assert_eq!(selected.unmatched, unmatched, "{plan:?}");
    assert_eq!(selected.is_model_matched, is_model_matched);
}

fn sorted(selected: &SelectedOperators) -> Vec<u32> {
    let mut tasks: Vec<u32> = selected.kept.keys().copied().collect();
    tasks.sort_unstable();
    tasks
}

#[test]
fn rules_and_names() {
    let every = ModelSelection::Every;
    let rule = |model: &str, names: &[&str]| (model.to_owned(), named(names));
    let models = |rules: Vec<_>| ModelSelection::Named(rules);
    check(ModelSelection::None, &[], &[], false);
    check(every(OperatorSelection::every()), &[0, 1, 2], &[], true);
    check(
        every(named(&["a", "z", "A", "z"])),
        &[0, 2],
        &["z", "A"],
        true,
    );
    check(every(named(&[])), &[], &[], true);
    check(
        models(vec![rule("graph", &["a"]), rule("file", &["b"])]),
        &[1],
        &[],
        true,
    );
    check(
        models(vec![rule("graph", &["b"]), rule("graph", &["a"])]),
        &[0, 2],
        &[],
        true,
    );
    check(models(vec![rule("other", &["a"])]), &[], &[], false);
}

#[test]
fn names_and_ranges_add_up() {
    let rule = |names: Option<&[&str]>, ranges: &[NameRange]| OperatorSelection {
        names: names.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        ranges: ranges.to_vec(),
        ..OperatorSelection::default()
    };
    let every = |rule| ModelSelection::Every(rule);
    check(every(rule(None, &[range("b", "a")])), &[], &[], true);
    check(every(rule(None, &[range("a", "b")])), &[0, 1], &[], true);
    check(
        every(rule(Some(&["a"]), &[range("b", "b")])),
        &[0, 1, 2],
        &[],
        true,
    );
    check(
        every(rule(None, &[range("b", "x"), range("y", "x")])),
        &[1, 2],
        &["x", "y"],
        true,
    );
}

#[test]
fn one_of_the_fused_names_is_enough() {
    let mut fused = (*operator(0, "Conv", "conv_relu", &[])).clone();
    fused.original_names = vec!["conv".into(), "relu".into()];
    let operators = [Arc::new(fused), operator(1, "Add", "add", &[])];
    let plan = Plan {
        models: ModelSelection::Every(named(&["relu"])),
        ..Plan::everything()
    };
    let selected = select(&plan, &model(), &operators, &[]);
    assert_eq!(sorted(&selected), [0]);
    assert!(selected.unmatched.is_empty());
}

fn exclude(
    model: Option<&str>,
    operators: OperatorRule,
    slots: Option<&[(SlotSide, usize)]>,
) -> Exclusion {
    Exclusion {
        model: model.map(str::to_owned),
        operators,
        slots: slots.map(<[_]>::to_vec),
    }
}

fn by_name(name: &str) -> OperatorRule {
    OperatorRule::Name(name.to_owned())
}

fn by_type(op_type: &str) -> OperatorRule {
    OperatorRule::Type(op_type.to_owned())
}

/// Slots kept of operators `add` and `mul` when nothing is excluded.
const NOTHING_EXCLUDED: [&str; 2] = ["0: [0, 2] [0]", "1: [0, 1] [0]"];

fn check_exclusions(
    excluded: Vec<Exclusion>,
    purpose: Purpose,
    expected: &[&str],
    unmatched: &[&str],
) {
    let operators = [
        operator(0, "Add", "add", &["x", "", "y"]),
        operator(1, "Mul", "mul", &["add_out", "y"]),
    ];
    let plan = Plan {
        excluded,
        purpose,
        ..Plan::everything()
    };
    let selected = select(&plan, &model(), &operators, &[]);
    let shown: Vec<String> = sorted(&selected)
        .iter()
        .map(|task| {
            let kept = &selected.kept[task];
            format!("{task}: {:?} {:?}", kept.inputs, kept.outputs)
        })
        .collect();
    assert_eq!(shown, expected, "{plan:?}");
    assert_eq!(selected.unmatched, unmatched, "{plan:?}");
}

#[test]
fn whole_operators_are_excluded_by_name_or_type_under_either_name_of_the_model() {
    let all = NOTHING_EXCLUDED;
    let without_add = &all[1..];
    let check = |model, operators, expected: &[&str], unmatched: &[&str]| {
        let excluded = vec![exclude(model, operators, None)];
        check_exclusions(excluded, Purpose::Values, expected, unmatched);
    };
    check(None, by_name("add"), without_add, &[]);
    check(None, by_type("Add"), without_add, &[]);
    check(Some("file"), by_type("Add"), without_add, &[]);
    check(Some("graph"), by_name("add"), without_add, &[]);
    // Another model's exclusions neither act nor are missed; names are exact.
    check(Some("other"), by_name("add"), &all, &[]);
    check(Some("other"), by_name("gone"), &all, &[]);
    check(None, by_name("Add"), &all, &["Add"]);
}

#[test]
fn single_tensors_are_excluded_where_the_purpose_can_do_without() {
    let slots = vec![
        exclude(
            None,
            by_name("add"),
            Some(&[(SlotSide::Input, 0), (SlotSide::Input, 1)]),
        ),
        exclude(None, by_type("Mul"), Some(&[(SlotSide::Output, 0)])),
        exclude(
            None,
            by_name("mul"),
            Some(&[(SlotSide::Input, 1), (SlotSide::Input, 9)]),
        ),
    ];
    let left = ["0: [2] [0]", "1: [0] []"];
    check_exclusions(slots.clone(), Purpose::Values, &left, &[]);
    check_exclusions(slots, Purpose::Overflow, &NOTHING_EXCLUDED, &[]);
    // An operator of which nothing is left is not kept.
    let nothing = [
        (SlotSide::Input, 0),
        (SlotSide::Input, 2),
        (SlotSide::Output, 0),
    ];
    let excluded = vec![exclude(None, by_name("add"), Some(&nothing))];
    check_exclusions(excluded, Purpose::Values, &NOTHING_EXCLUDED[1..], &[]);
}

#[test]
fn graph_inputs_come_under_each_reader_once() {
    let operators = [
        operator(3, "Add", "add", &["x", "x"]),
        operator(4, "Mul", "mul", &["y", "x"]),
        operator(5, "Neg", "neg", &["mul_out"]),
    ];
    let inputs = ["x".to_owned(), "y".to_owned(), "unused".to_owned()];
    let check = |plan: Plan, expected: &[&str]| {
        let selected = select(&plan, &model(), &operators, &inputs);
        let mut shown = Vec::new();
        for task in sorted(&selected) {
            for input in &selected.kept[&task].graph_inputs {
                let GraphInput { position, operator } = input;
                let Operator {
                    task_id,
                    op_type,
                    op_name,
                    ..
                } = &**operator;
                shown.push(format!("{task_id} {op_type}.{op_name} at {position}"));
            }
        }
        assert_eq!(shown, expected);
        assert!(selected.unmatched.is_empty());
    };
    let plan = Plan {
        has_graph_inputs: true,
        sides: SlotSides::Outputs,
        ..Plan::everything()
    };
    check(
        plan.clone(),
        &["3 Data.x at 0", "4 Data.y at 0", "4 Data.x at 1"],
    );
    for sides in [SlotSides::Inputs, SlotSides::Both] {
        let n = if sides.outputs() { 3 } else { 0 };
        let all = ["3 Data.x at 0", "4 Data.y at 0", "4 Data.x at 1"];
        check(
            Plan {
                sides,
                ..plan.clone()
            },
            &all[..n],
        );
    }
    let excluded = vec![Exclusion {
        model: None,
        operators: OperatorRule::Name("x".into()),
        slots: None,
    }];
    check(
        Plan {
            excluded,
            ..plan.clone()
        },
        &["4 Data.y at 0"],
    );
    check(
        Plan {
            has_graph_inputs: false,
            ..plan.clone()
        },
        &[],
    );
    check(
        Plan {
            purpose: Purpose::Overflow,
            ..plan
        },
        &[],
    );
}

#[test]
fn roles_of_watching() {
    let operators = [
        operator(0, "T", "a", &[]),
        operator(1, "T", "b", &["a_out"]),
        operator(2, "HcomAllReduce", "c", &[]),
        operator(3, "T", "d", &[]),
    ];
    let rule = OperatorSelection {
        watched: vec!["a".into(), "b".into(), "gone".into()],
        ..named(&["b", "c", "d"])
    };
    let plan = Plan {
        purpose: Purpose::Watch,
        models: ModelSelection::Every(rule),
        ..Plan::everything()
    };
    let selected = select(&plan, &model(), &operators, &[]);
    let roles: Vec<WatchRole> = (0..4).map(|task| selected.kept[&task].role).collect();
    let suspect = |is_collective| WatchRole::Suspect { is_collective };
    assert_eq!(
        roles,
        [
            WatchRole::Watched,
            WatchRole::Watched,
            suspect(true),
            suspect(false)
        ]
    );
    assert_eq!(selected.unmatched, ["gone"]);
    let slots = |task: u32| {
        let kept = &selected.kept[&task];
        (kept.inputs.len(), kept.outputs.len())
    };
    assert_eq!((slots(1), slots(3)), ((0, 1), (0, 0)));
}

#[test]
fn operators_without_outputs_are_kept_only_if_they_fail() {
    let sender = Operator {
        inputs: vec!["x".into()],
        outputs: vec![String::new()],
        ..Operator::default()
    };
    let operators = [Arc::new(sender)];
    let n_kept = |purpose| {
        let plan = Plan {
            purpose,
            ..Plan::everything()
        };
        select(&plan, &model(), &operators, &[]).kept.len()
    };
    assert_eq!(n_kept(Purpose::Values), 0);
    assert_eq!(n_kept(Purpose::Overflow), 0);
    assert_eq!(n_kept(Purpose::Failures(crate::FailureDetail::Brief)), 1);
}

#[test]
fn an_operator_may_keep_both_sides_whichever_the_plan_asks_for() {
    let operators = [
        operator(0, "Quantize", "quantise", &["x"]),
        operator(1, "Relu", "relu", &["quantise_out"]),
    ];
    for (sides, expected) in [
        (SlotSides::Inputs, (vec![0], Vec::new())),
        (SlotSides::Outputs, (Vec::new(), vec![0])),
        (SlotSides::Both, (vec![0], vec![0])),
    ] {
        let plan = Plan {
            sides,
            ..Plan::everything()
        };
        let graph = GraphView {
            operators: &operators,
            both_sides: &[0],
            ..GraphView::default()
        };
        let selected = select_marked(&plan, &model(), graph, &[]);
        let kept = |task_id: u32| {
            let kept = &selected.kept[&task_id];
            (kept.inputs.clone(), kept.outputs.clone())
        };
        assert_eq!(kept(0), (vec![0], vec![0]), "{sides:?}");
        assert_eq!(kept(1), expected, "{sides:?}");
    }
}

#[test]
fn types_are_excluded_unless_the_plan_names_an_operator() {
    let operators: Vec<_> = ["a", "concat", "b", "other"]
        .iter()
        .zip(0..)
        .map(|(name, i)| operator(i, if i % 2 == 1 { "Concat" } else { "T" }, name, &[]))
        .collect();
    let in_range = |begin, end| OperatorSelection {
        ranges: vec![range(begin, end)],
        ..OperatorSelection::every()
    };
    for (rule, expected) in [
        (OperatorSelection::every(), &[0, 2][..]),
        (named(&["a", "concat"]), &[0, 1]),
        (in_range("a", "b"), &[0, 2]),
        (in_range("concat", "b"), &[1, 2]),
        (in_range("other", "other"), &[3]),
    ] {
        let plan = Plan {
            models: ModelSelection::Every(rule),
            excluded: vec![Exclusion {
                model: None,
                operators: OperatorRule::UnnamedOfType("Concat".into()),
                slots: None,
            }],
            ..Plan::everything()
        };
        let selected = select(&plan, &model(), &operators, &[]);
        assert_eq!(sorted(&selected), expected, "{:?}", plan.models);
        assert_eq!(selected.unmatched, [""; 0]);
    }
}
