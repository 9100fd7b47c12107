//! Properties that hold of all networks.

use opscope_analysis::compare::matching::{
    MappedNames, Mapping, MappingForm, MatchEvidence, OperatorMapping,
};
use opscope_analysis::compare::result::SkipReason;
use opscope_analysis::compare::side::{ComparedDump, OperatorExecution};
use proptest::prelude::*;

use crate::matching::{matched, same, side};

const TYPES: [&str; 6] = ["Conv", "Relu", "Add", "MatMul", "Softmax", "Transpose"];

/// Operators of a few types and shapes, with distinct names.
fn network() -> impl Strategy<Value = Vec<OperatorExecution>> {
    let op = (0_usize..TYPES.len(), 2_u64..5);
    prop::collection::vec(op, 1..60).prop_map(|ops| {
        let ops = ops.into_iter().enumerate();
        ops.map(|(i, (op_type, extent))| same(TYPES[op_type], &format!("op_{i}"), &[extent, 7]))
            .collect()
    })
}

/// Names that come again, and dumps without types.
fn anything() -> impl Strategy<Value = ComparedDump> {
    let op = (0_usize..=TYPES.len(), 2_u64..4, 0_u32..12);
    prop::collection::vec(op, 0..40).prop_map(|ops| {
        let ops = ops.into_iter().map(|(op_type, extent, name)| {
            let op_type = TYPES.get(op_type).copied().unwrap_or_default();
            same(
                op_type,
                &format!("layer{}_op{name}", name % 3),
                &[extent, 7],
            )
        });
        side(ops.collect())
    })
}

proptest! {
    #[test]
    fn a_side_is_itself(one in anything()) {
        let matching = matched(&one, &one);
        prop_assert!(matching.unmatched.is_empty());
        for (i, pair) in matching.pairs.iter().enumerate() {
            prop_assert_eq!((&pair.target[..], &pair.golden[..]), (&[i][..], &[i][..]));
            prop_assert_eq!(pair.how, MatchEvidence::Name);
            prop_assert!(pair.missing.is_empty());
        }
    }

    /// `matched` checks that everything is there once.
    #[test]
    fn nothing_is_lost_or_used_twice(target in anything(), golden in anything()) {
        let matching = matched(&target, &golden);
        prop_assert_eq!(&matching, &matched(&target, &golden));
    }

    /// Names may look like numbers, dates, tags or comments.
    #[test]
    fn mappings_come_back(
        names in prop::collection::vec("[a-z0-9_:#/*&!%@`'\"{},.~ +\\-\\\\\n\tÄ]{0,8}|null|yes|1e3|0x1f|~|2001-01-01", 0..8),
        likeness in prop::option::of((0_u32..1000).prop_map(|n| f64::from(n) / 1000.0)),
    ) {
        let entry = |names: &[String]| OperatorMapping {
            target: MappedNames::from(names.to_vec()),
            golden: names.first().map_or_else(MappedNames::default, |name| MappedNames::One(name.clone())),
            target_run: Some(names.len()),
            slots: names.iter().map(|name| (name.clone(), name.clone())).collect(),
            likeness,
            ..OperatorMapping::default()
        };
        let mapping = Mapping {
            operators: names.chunks(3).map(entry).collect(),
            ignore: names,
            ..Mapping::default()
        };
        for form in [MappingForm::Json, MappingForm::Yaml] {
            let text = mapping.to_text(form).unwrap();
            prop_assert_eq!(&Mapping::parse(&text, form).unwrap(), &mapping, "{}", text);
        }
    }

    /// Reading ends for any text in a file.
    #[test]
    fn any_text_is_read_or_refused(text in "[\\[\\]{}:,*&!|>'\"\n a-c#-]{0,60}") {
        for form in [MappingForm::Json, MappingForm::Yaml] {
            let _ = Mapping::parse(&text, form);
        }
    }

    #[test]
    fn new_names_of_some_are_found(runs in network(), renamed in prop::collection::vec(0_usize..60, 0..20)) {
        let golden = side(runs.clone());
        let mut target = runs;
        for i in renamed {
            let n = target.len();
            target[i % n].op_name = format!("fresh{i}x").into();
        }
        let target = side(target);
        let matching = matched(&target, &golden);
        prop_assert!(matching.unmatched.is_empty());
        for pair in &matching.pairs {
            prop_assert_eq!(&pair.target, &pair.golden);
        }
    }

    /// Parts of the network, fused: outputs are those of the last of each part, on both sides
    /// alike.
    #[test]
    fn declared_fusions_are_found(runs in network(), lengths in prop::collection::vec(1_usize..5, 60)) {
        let golden = side(runs.clone());
        let mut fused = Vec::new();
        let mut ends = Vec::new();
        let mut rest = &runs[..];
        for (i, length) in lengths.into_iter().enumerate() {
            let (part, after) = rest.split_at(length.min(rest.len()));
            let (Some(first), Some(last)) = (part.first(), part.last()) else {
                break;
            };
            let mut run = first.clone();
            // It keeps the name of its first part, or that of its last, or gets one of its own.
            let own = format!("fused_{i}").into();
            run.op_name = [&first.op_name, &last.op_name, &own][i % 3].clone();
            run.slots[1] = last.slots[1].clone();
            run.original_names = part.iter().map(|run| run.op_name.to_string()).collect();
            fused.push(run);
            ends.push(runs.len() - after.len() - 1);
            rest = after;
        }
        let target = side(fused);
        for is_swapped in [false, true] {
            let matching = if is_swapped { matched(&golden, &target) } else { matched(&target, &golden) };
            let mut outputs: Vec<(usize, usize)> = matching
                .pairs
                .iter()
                .flat_map(|pair| &pair.slots)
                .map(|pair| if is_swapped { (pair.golden, pair.target) } else { (pair.target, pair.golden) })
                .filter(|(fused, _)| fused.slot == 1)
                .map(|(fused, part)| (fused.run, part.run))
                .collect();
            outputs.sort_unstable();
            let expected: Vec<(usize, usize)> = ends.iter().copied().enumerate().collect();
            prop_assert_eq!(outputs, expected);
            let inside = matching.unmatched.iter().all(|one| one.reason.kind() == SkipReason::InsideFusion);
            prop_assert!(inside);
        }
    }

    /// Operators of types that differ, with their names among each other.
    #[test]
    fn exchanged_names_are_found(runs in network(), from in 0_usize..60, to in 0_usize..60) {
        let (from, to) = (from % runs.len(), to % runs.len());
        prop_assume!(runs[from].op_type != runs[to].op_type);
        let golden = side(runs.clone());
        let mut target = runs;
        let name = target[from].op_name.clone();
        target[from].op_name = std::mem::replace(&mut target[to].op_name, name);
        let target = side(target);
        let matching = matched(&target, &golden);
        for pair in &matching.pairs {
            prop_assert_eq!(&pair.target, &pair.golden);
        }
        prop_assert!(matching.unmatched.is_empty());
    }
}

/// A hundred thousand operators: most with their names, some renamed, deleted and inserted; and
/// with no name in common at all.
#[test]
fn large_networks() {
    const N: usize = 100_000;
    let op = |i: usize, name: String| same(TYPES[i * i % 5], &name, &[2 + (i * 7 % 11) as u64, 7]);
    let golden = side((0..N).map(|i| op(i, format!("net/layer_{i}"))).collect());
    let mut target = Vec::with_capacity(N);
    for i in 0..N {
        match i % 100 {
            7 => target.push(op(i, format!("other_{i}"))),
            50 => {}
            70 => target.extend([same("Elu", "extra", &[3]), op(i, format!("net/layer_{i}"))]),
            _ => target.push(op(i, format!("net/layer_{i}"))),
        }
    }
    let target = side(target);
    let matching = matched(&target, &golden);
    assert_eq!(matching.pairs.len(), N - N / 100);
    let n_order = matching
        .pairs
        .iter()
        .filter(|pair| pair.how == MatchEvidence::Order)
        .count();
    assert_eq!(n_order, N / 100);
    let renamed = side((0..N).map(|i| op(i, format!("x{}", N - i))).collect());
    let matching = matched(&renamed, &golden);
    assert!(matching.unmatched.is_empty());
    assert!(matching.pairs.iter().all(|pair| pair.target == pair.golden));
}
