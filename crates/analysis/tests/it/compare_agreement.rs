//! Two graphs that come to the same, built differently: who is named, and who must not be.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use opscope_analysis::compare::Selection;
use opscope_analysis::compare::matching::MatchingOptions;
use opscope_analysis::compare::measure::SlotProgress;
use opscope_analysis::compare::result::{Cause, Comparison, SlotAgreement, VerdictLevel};
use opscope_analysis::compare::run::{self, ComparisonRequest, VerdictOptions};
use opscope_analysis::compare::verdict::Thresholds;
use opscope_store::file_format::dump_data::prelude;
use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::difference::DifferenceOptions;
use opscope_tensor::{DType, Shape, Tensor};

/// Extents of a matrix.
const N: usize = 6;

type Value = Vec<f32>;

/// Operators with what they read and make, in the order of execution.
#[derive(Default)]
struct Graph(Vec<(&'static str, String, Vec<Value>, Value)>);

impl Graph {
    fn add(
        &mut self,
        op_type: &'static str,
        op_name: &str,
        inputs: &[&Value],
        output: Value,
    ) -> Value {
        let inputs = inputs.iter().map(|&value| value.clone()).collect();
        self.0
            .push((op_type, op_name.to_owned(), inputs, output.clone()));
        output
    }

    fn write(&self, dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        for (i, (op_type, op_name, inputs, output)) in self.0.iter().enumerate() {
            let inputs = inputs.iter().enumerate();
            let record = Record {
                model: Arc::new(ModelId::default()),
                operator: Arc::new(Operator {
                    op_type: (*op_type).to_owned(),
                    op_name: op_name.clone(),
                    task_id: i as u32,
                    ..Operator::default()
                }),
                step: 0,
                timestamp_us: 1_700_000_000_000_000 + i as u64,
                inputs: inputs.map(|(k, value)| (k, tensor(value))).collect(),
                outputs: vec![(0, tensor(output))],
            };
            let mut bytes = prelude(&record);
            for (_, _, tensor) in record.slots() {
                bytes.extend_from_slice(tensor.host_view().unwrap().bytes);
            }
            let name = format!("{op_type}.{op_name}.{i}.1.{}", record.timestamp_us);
            fs::write(dir.join(name), bytes).unwrap();
        }
    }
}

fn tensor(values: &[f32]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let shape = Shape::new([values.len() / N, N]).unwrap();
    Tensor::new(DType::F32, shape, Arc::new(bytes)).unwrap()
}

fn value(seed: u32, n_rows: usize) -> Value {
    let element =
        |i: u32| ((i.wrapping_mul(2_654_435_761).wrapping_add(seed * 7919) >> 8) % 2001) as f32;
    (0..(n_rows * N) as u32)
        .map(|i| element(i) / 1000.0 - 1.0)
        .collect()
}

fn product(a: &Value, b: &Value) -> Value {
    let at = |row: usize, column: usize| (0..N).map(|k| a[row * N + k] * b[k * N + column]).sum();
    (0..a.len()).map(|i| at(i / N, i % N)).collect()
}

fn sum(a: &Value, b: &Value) -> Value {
    a.iter()
        .enumerate()
        .map(|(i, x)| x + b[i % b.len()])
        .collect()
}

fn each(a: &Value, f: impl Fn(f32) -> f32) -> Value {
    a.iter().map(|&x| f(x)).collect()
}

fn transposed(a: &Value) -> Value {
    (0..a.len()).map(|i| a[i % N * N + i / N]).collect()
}

/// The fault in the exported network.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// A bias of the second layer.
    Bias,
    /// A weight of the second layer.
    Weight,
    /// `Sub` in place of the second layer's `Add`.
    Replaced,
    /// The activation hands its input on.
    Identity,
    /// An operator between the layers that the golden side has not.
    Inserted,
    /// The second layer has no activation.
    Lost,
    /// The residual sum reads the first layer's output.
    Wiring,
}

/// Three layers with an activation each and a residual sum, as a compiler sees them.
fn golden() -> Graph {
    let mut graph = Graph::default();
    let input = value(1, N);
    let mut x = input.clone();
    for layer in 0..3 {
        let (weight, bias) = (value(10 + layer, N), value(20 + layer, 1));
        let turned = graph.add(
            "t",
            &format!("t_{layer}"),
            &[&transposed(&weight)],
            weight.clone(),
        );
        let viewed = graph.add("view", &format!("view_{layer}"), &[&x], x.clone());
        let y = sum(&product(&viewed, &turned), &bias);
        let y = graph.add(
            "addmm",
            &format!("addmm_{layer}"),
            &[&bias, &viewed, &turned],
            y,
        );
        x = graph.add(
            "relu",
            &format!("relu_{layer}"),
            &[&y],
            each(&y, |x| x.max(0.0)),
        );
    }
    graph.add("add", "add", &[&x, &input], sum(&x, &input));
    graph
}

/// The same as an exporter writes it: other names, a product and a sum for a layer, no views, the
/// operands of the last sum exchanged.
fn exported(fault: Fault) -> Graph {
    let mut graph = Graph::default();
    let input = value(1, N);
    let (mut x, mut first) = (input.clone(), input.clone());
    for layer in 0..3 {
        let is_here = layer == 1;
        let (mut weight, mut bias) = (value(10 + layer, N), value(20 + layer, 1));
        if is_here && fault == Fault::Weight {
            weight.iter_mut().step_by(4).for_each(|x| *x = 0.3 - *x);
        }
        if is_here && fault == Fault::Bias {
            bias[3] += 0.5;
        }
        let name = |op: &str| format!("n{layer}_{op}");
        let made = product(&x, &weight);
        let mut y = graph.add("MatMul", &name("MatMul"), &[&x, &weight], made);
        y = if is_here && fault == Fault::Replaced {
            let difference = sum(&y, &each(&bias, |x| -x));
            graph.add("Sub", &name("Sub"), &[&y, &bias], difference)
        } else {
            let made = sum(&y, &bias);
            graph.add("Add", &name("Add"), &[&y, &bias], made)
        };
        if is_here && fault == Fault::Inserted {
            let factor = value(40, 1);
            let made = y
                .iter()
                .enumerate()
                .map(|(i, x)| x * factor[i % N])
                .collect();
            y = graph.add("Mul", &name("Mul"), &[&y, &factor], made);
        }
        let is_identity = is_here && fault == Fault::Identity;
        let made = if is_identity {
            y.clone()
        } else {
            each(&y, |x| x.max(0.0))
        };
        let op_type = if is_identity { "Identity" } else { "Relu" };
        x = if is_here && fault == Fault::Lost {
            y
        } else {
            graph.add(op_type, &name("Relu"), &[&y], made)
        };
        if layer == 0 {
            first = x.clone();
        }
    }
    let other = if fault == Fault::Wiring { first } else { input };
    graph.add("Add", "last", &[&other, &x], sum(&other, &x));
    graph
}

fn compare(target: &Graph, golden: &Graph) -> Comparison {
    let dir = tempfile::tempdir().unwrap();
    let (t, g) = (dir.path().join("t"), dir.path().join("g"));
    target.write(&t);
    golden.write(&g);
    let progress = Arc::new(SlotProgress::default());
    let request = ComparisonRequest {
        target: t,
        golden: g,
        reference: None,
        selection: Selection::default(),
        matching: MatchingOptions::default(),
        is_whole: false,
        has_parameters: false,
        n_threads: 2,
        difference: DifferenceOptions::default(),
        judging: VerdictOptions {
            thresholds: Thresholds::default(),
            n_ranked: 10,
            allowed: Vec::new(),
            is_strict: false,
            limit: None,
        },
        program: String::new(),
        options: Vec::new(),
        progress: Some(progress.clone()),
    };
    let compared = run::run(&request, None).unwrap();
    // A bar ends full, however often pairs are measured again.
    let [n_done, n_all] = progress.position();
    assert!(n_done == n_all && n_all > 0, "{n_done} of {n_all}");
    compared
}

/// Name of the operator that the headline names.
fn named(found: &Comparison) -> Option<(String, Cause)> {
    let first = found.summary.first_failure.as_ref()?;
    let paired = found.operators[first.operator].target.last()?;
    let name = first.name.as_ref().unwrap_or(paired);
    Some((name.op_name.to_string(), first.cause))
}

#[test]
fn an_export_that_is_sound_passes() {
    let found = compare(&exported(Fault::None), &golden());
    assert_eq!(found.summary.level, VerdictLevel::Pass);
    assert_eq!(found.summary.first_divergence, None);
    let compared = found.operators.iter().map(|o| &*o.target[0].op_name);
    let compared: Vec<&str> = compared.collect();
    for name in [
        "n0_Add", "n0_Relu", "n1_Add", "n1_Relu", "n2_Add", "n2_Relu", "last",
    ] {
        assert!(compared.contains(&name), "{name}: {compared:?}");
    }
}

#[test]
fn faults_in_an_export_are_named() {
    for (fault, expected) in [
        (Fault::Bias, "n1_Add"),
        (Fault::Weight, "n1_MatMul"),
        (Fault::Replaced, "n1_Sub"),
        (Fault::Identity, "n1_Relu"),
        (Fault::Inserted, "n1_Mul"),
        (Fault::Lost, "relu_1"),
        (Fault::Wiring, "last"),
    ] {
        let found = compare(&exported(fault), &golden());
        let (name, cause) = named(&found).unwrap_or_else(|| panic!("{fault:?}: nobody"));
        assert_eq!(name, expected, "{fault:?} {cause:?}");
        let causes: &[Cause] = match fault {
            Fault::Bias | Fault::Weight => &[Cause::Outside],
            // A product and a sum are one operator of the golden side: what it reads beside the
            // sum's operands has no partner.
            Fault::Replaced | Fault::Inserted => &[Cause::Own, Cause::Unknown],
            _ => &[Cause::Own],
        };
        assert!(causes.contains(&cause), "{fault:?}: {cause:?}");
    }
}

#[test]
fn an_input_from_elsewhere_is_told() {
    let found = compare(&exported(Fault::Wiring), &golden());
    let last = found
        .operators
        .iter()
        .find(|o| o.target[0].op_name == "last")
        .unwrap();
    let elsewhere = last.slots.iter().filter_map(|slot| match &slot.agreement {
        Some(SlotAgreement::Elsewhere(name)) => Some(name.op_name.as_str()),
        _ => None,
    });
    assert_eq!(elsewhere.collect::<Vec<_>>(), ["relu_0"]);
}

#[test]
fn names_that_stand_for_others_accuse_nobody() {
    // Each side numbers its views for itself, and two have exchanged their names.
    let mut target = golden();
    let exchanged = |name: &str| match name {
        "relu_0" => "relu_1".to_owned(),
        "relu_1" => "relu_0".to_owned(),
        "view_1" => "view_2".to_owned(),
        "view_2" => "view_1".to_owned(),
        name => name.to_owned(),
    };
    target
        .0
        .iter_mut()
        .for_each(|operator| operator.1 = exchanged(&operator.1));
    let found = compare(&target, &golden());
    assert_eq!(found.summary.level, VerdictLevel::Pass);
}

#[test]
fn operands_of_a_difference_are_not_exchanged() {
    let side = |is_exchanged: bool| {
        let mut graph = Graph::default();
        let (a, b) = (value(1, N), value(2, N));
        let a = graph.add("Relu", "a", &[&a], each(&a, |x| x.max(0.0)));
        let b = graph.add("Tanh", "b", &[&b], each(&b, f32::tanh));
        let made = sum(&a, &each(&b, |x| -x));
        if is_exchanged {
            graph.add("Sub", "sub", &[&b, &a], each(&made, |x| -x));
        } else {
            graph.add("Sub", "sub", &[&a, &b], made);
        }
        graph
    };
    let found = compare(&side(true), &side(false));
    assert_eq!(named(&found), Some(("sub".to_owned(), Cause::Own)));
    let read = found.partings[0].rewired.iter();
    let read = read.map(|input| (input.slot.to_string(), input.golden.op_name.to_string()));
    let expected = [("input.0", "b"), ("input.1", "a")];
    let expected = expected.map(|(slot, name)| (slot.to_owned(), name.to_owned()));
    assert_eq!(read.collect::<Vec<_>>(), expected);
}

/// A projection of which three parts are read, as the two sides write it. `parts` are the numbers
/// of the parts that the target reads.
fn in_parts(types: [&'static str; 2], name: &str, parts: [usize; 3]) -> Graph {
    in_parts_of_order(types, name, parts, [0, 1, 2])
}

/// As [`in_parts`], with the places of the parts in the order in which the graph runs them.
fn in_parts_of_order(
    types: [&'static str; 2],
    name: &str,
    parts: [usize; 3],
    order: [usize; 3],
) -> Graph {
    let mut graph = Graph::default();
    let (x, weight) = (value(1, 3 * N), value(2, N));
    let y = graph.add(
        types[0],
        &format!("{name}y"),
        &[&x, &weight],
        product(&x, &weight),
    );
    let mut read = [const { Vec::new() }; 3];
    for place in order {
        let rows = y[parts[place] * N * N..(parts[place] + 1) * N * N].to_vec();
        read[place] = graph.add(types[1], &format!("{name}part_{place}"), &[&y], rows);
    }
    let [q, k, v] = read;
    let scores = graph.add(
        types[0],
        &format!("{name}scores"),
        &[&q, &k],
        product(&q, &k),
    );
    let mixed = product(&scores, &v);
    graph.add(types[0], &format!("{name}mixed"), &[&scores, &v], mixed);
    graph
}

#[test]
fn a_part_with_the_values_of_another_is_named() {
    let golden = in_parts(["mm", "select"], "", [0, 1, 2]);
    let sound = compare(&in_parts(["MatMul", "Gather"], "n_", [0, 1, 2]), &golden);
    assert_eq!(sound.summary.level, VerdictLevel::Pass);
    for (parts, expected) in [
        ([0, 2, 2], "n_part_1"),
        ([1, 1, 2], "n_part_0"),
        ([0, 1, 0], "n_part_2"),
    ] {
        let found = compare(&in_parts(["MatMul", "Gather"], "n_", parts), &golden);
        let expected = Some((expected.to_owned(), Cause::Own));
        assert_eq!(named(&found), expected, "{parts:?}");
    }
}

#[test]
fn a_wrong_part_is_named_where_the_parts_run_in_another_order() {
    let golden = in_parts(["mm", "select"], "", [0, 1, 2]);
    for order in [[0, 2, 1], [1, 0, 2], [2, 1, 0]] {
        let target = |parts| in_parts_of_order(["MatMul", "Gather"], "n_", parts, order);
        let sound = compare(&target([0, 1, 2]), &golden);
        assert_eq!(sound.summary.level, VerdictLevel::Pass, "{order:?}");
        let found = compare(&target([0, 2, 2]), &golden);
        let expected = Some(("n_part_1".to_owned(), Cause::Own));
        assert_eq!(named(&found), expected, "{order:?}");
    }
}

/// Two products and a third value that are added, in either order.
fn added(names: [&str; 2], is_reordered: bool, factor: f32) -> Graph {
    let mut graph = Graph::default();
    let x = value(1, N);
    let [first, second, third] = [2, 3, 4].map(|seed| {
        let weight = value(seed, N);
        let made = product(&x, &weight);
        graph.add("mm", &format!("mm_{seed}"), &[&x, &weight], made)
    });
    let third = graph.add("mul", "scaled", &[&third], each(&third, |x| x * factor));
    let [a, b] = if is_reordered {
        graph.add("view", "view", &[&third], third.clone());
        [&third, &second]
    } else {
        [&second, &third]
    };
    let inner = sum(&first, a);
    let inner = graph.add("add", names[0], &[&first, a], inner);
    let all = sum(&inner, b);
    let all = graph.add("add", names[1], &[&inner, b], all);
    graph.add("relu", "relu", &[&all], each(&all, |x| x.max(0.0)));
    graph
}

#[test]
fn a_sum_in_another_order_is_no_cause() {
    let golden = added(["add", "add_1"], false, 0.5);
    let sound = compare(&added(["add", "add_1"], true, 0.5), &golden);
    assert_eq!(sound.summary.level, VerdictLevel::Pass);
    let found = compare(&added(["add", "add_1"], true, 0.7), &golden);
    assert_eq!(named(&found), Some(("scaled".to_owned(), Cause::Own)));
}

/// Scores with a mask that one program makes of ones, and the other of infinities, and a layer before
/// it. A window leaves out the places before `n_seen` ones.
fn masked(is_added: bool, n_seen: usize, limit: f32) -> Graph {
    let mut graph = Graph::default();
    let (x, weight) = (value(1, N), value(2, N));
    let scores = graph.add("mm", "mm", &[&x, &weight], product(&x, &weight));
    let limited = each(&scores, |x| x.clamp(-limit, limit));
    let scores = graph.add("clamp", "clamp", &[&scores], limited);
    let places: Value = (0..N).map(|i| i as f32).collect();
    let places = graph.add("aten_arange_default", "arange", &[], places);
    let is_seen = |i: usize| i / N >= i % N && i / N - i % N < n_seen;
    let with = |seen: f32, hidden: f32| -> Value {
        let kinds = (0..N * N).map(|i| if is_seen(i) { seen } else { hidden });
        kinds.collect()
    };
    let hidden = scores.iter().zip(with(0.0, f32::NEG_INFINITY));
    let hidden: Value = hidden.map(|(score, mask)| score + mask).collect();
    let made = if is_added {
        let mask = graph.add("triu", "triu", &[&places], with(0.0, f32::NEG_INFINITY));
        graph.add("add", "masked", &[&scores, &mask], hidden)
    } else {
        let mask = graph.add("lt", "lt", &[&places], with(1.0, 0.0));
        graph.add("where", "masked", &[&scores, &mask], hidden)
    };
    graph.add("exp", "exp", &[&made], each(&made, f32::exp));
    graph
}

#[test]
fn a_mask_of_another_form_is_no_cause() {
    let golden = masked(true, N, 0.5);
    assert_eq!(
        compare(&masked(false, N, 0.5), &golden).summary.level,
        VerdictLevel::Pass
    );
    for (n_seen, limit, expected) in [(N, 0.6, "clamp"), (2, 0.5, "lt")] {
        let found = compare(&masked(false, n_seen, limit), &golden);
        let expected = Some((expected.to_owned(), Cause::Own));
        assert_eq!(named(&found), expected, "{n_seen} {limit}");
    }
}

/// Two products, each with a softplus: as one operator, or in parts of which one is zero
/// everywhere.
fn softplus(is_in_parts: bool, factor: Option<f32>) -> Graph {
    let mut graph = Graph::default();
    let mut x = value(1, N);
    for layer in 0..2 {
        let name = |op: &str| format!("{op}{layer}");
        let weight = value(50 + layer, N);
        let h = product(&x, &weight);
        let h = graph.add("MatMul", &name("linear"), &[&x, &weight], h);
        let soft = each(&h, |x| x.exp().ln_1p());
        x = if is_in_parts {
            let is_large = graph.add("Greater", &name("greater"), &[&h], each(&h, |_| 0.0));
            let power = graph.add("Exp", &name("exp"), &[&h], each(&h, f32::exp));
            let log = graph.add("Log1p", &name("log"), &[&power], soft.clone());
            graph.add("Where", &name("where"), &[&is_large, &h, &log], soft)
        } else {
            graph.add("Softplus", &name("softplus"), &[&h], soft)
        };
        if let Some(factor) = factor.filter(|_| layer == 0) {
            let scaled = each(&x, |x| x * factor);
            x = graph.add("Mul", "planted", &[&x], scaled);
        }
    }
    let weight = value(60, N);
    let made = product(&x, &weight);
    graph.add("MatMul", "last", &[&x, &weight], made);
    graph
}

#[test]
fn the_same_zeros_in_two_places_accuse_neither() {
    let found = compare(&softplus(true, None), &softplus(false, None));
    assert_eq!(found.summary.level, VerdictLevel::Pass);
    let found = compare(&softplus(true, Some(1.5)), &softplus(false, None));
    let (name, _) = named(&found).unwrap();
    assert_eq!(name, "planted");
}
