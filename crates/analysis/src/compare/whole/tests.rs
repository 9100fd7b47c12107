//! Whole tensors against a plain way to cut and join arrays.

use std::ops::Range;
use std::sync::Arc;

use opscope_store::HeldElements;
use opscope_store::reader::{DumpTerm, ElementsPlace, FileKind, IndexedTensor};
use opscope_store::record::SlotSide;
use opscope_store::record::parallel::Placement;
use opscope_tensor::DType;
use proptest::prelude::*;

use super::note::{FoundPart, assemble};
use super::part_axes::TokenMap;
use super::replicas::read_all;
use super::rules::{CheckedRules, SideRules, TensorRule};
use super::tensor::WholeTensor;
use crate::compare::side::{ComparedDump, ExecutionSlot};

/// An array of numbers, row by row.
#[derive(Clone, Debug, PartialEq)]
struct Array {
    shape: Vec<usize>,
    values: Vec<i32>,
}

impl Array {
    /// Each element is its own position.
    fn counted(shape: &[usize]) -> Array {
        let n: usize = shape.iter().product();
        Array {
            shape: shape.to_vec(),
            values: (0..n as i32).collect(),
        }
    }

    /// The indices `wanted` of an axis, one by one.
    fn taken(&self, axis: usize, wanted: &[usize]) -> Array {
        let inner: usize = self.shape[axis + 1..].iter().product();
        let outer: usize = self.shape[..axis].iter().product();
        let mut values = Vec::new();
        for o in 0..outer {
            for &index in wanted {
                let at = (o * self.shape[axis] + index) * inner;
                values.extend_from_slice(&self.values[at..at + inner]);
            }
        }
        let mut shape = self.shape.clone();
        shape[axis] = wanted.len();
        Array { shape, values }
    }

    /// The part of `coordinate` as `torch.chunk` cuts it, empty if there are not so many.
    fn chunk(&self, axis: usize, coordinate: usize, size: usize) -> Array {
        let n = self.shape[axis].div_ceil(size);
        let all: Vec<usize> = (0..self.shape[axis]).collect();
        let chunk = if n == 0 {
            None
        } else {
            all.chunks(n).nth(coordinate)
        };
        self.taken(axis, chunk.unwrap_or_default())
    }

    fn slot(&self, placement: Option<Placement>) -> ExecutionSlot {
        let bytes: Vec<u8> = self.values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let shape: Vec<u64> = self.shape.iter().map(|&dim| dim as u64).collect();
        let record = IndexedTensor {
            slot: Some((SlotSide::Output, 0)),
            dtype: Some(DumpTerm::Word("int32".to_owned(), Some(DType::I32))),
            stored_dtype: Some(DumpTerm::Word("int32".to_owned(), Some(DType::I32))),
            shape: Some(shape),
            n_bytes: Some(bytes.len() as u64),
            placement: placement.map(Arc::new),
            elements: Some(ElementsPlace {
                real_name: "".into(),
                kind: Some(FileKind::Elements),
                tensor: Some((SlotSide::Output, 0)),
                offset: Some(0),
            }),
            held: Some(HeldElements::in_memory(Arc::new(bytes))),
            ..IndexedTensor::default()
        };
        let mut index = opscope_store::reader::DumpIndex::default();
        index.tensors.push(record);
        let dump = ComparedDump::from_index("".as_ref(), index);
        dump.runs[0].slots[0].clone()
    }
}

/// The parts of ranks put together, as numbers.
fn joined(
    slots: &[ExecutionSlot],
    rules: Option<&CheckedRules>,
    tokens: Option<&TokenMap>,
) -> Result<(Array, WholeTensor), String> {
    let parts: Vec<FoundPart<'_>> = slots
        .iter()
        .enumerate()
        .map(|(rank, slot)| FoundPart {
            rank: Some(rank as u32),
            slot,
        })
        .collect();
    let none = CheckedRules::default();
    let rules = rules.unwrap_or(&none);
    let whole = assemble(&parts, rules.tensors.first(), &rules.mesh, tokens)?;
    let bytes = read_all(&whole).map_err(|error| error.to_string())?;
    let values = bytes.as_chunks().0.iter();
    let array = Array {
        shape: whole.shape.iter().map(|&dim| dim as usize).collect(),
        values: values.map(|bytes| i32::from_le_bytes(*bytes)).collect(),
    };
    Ok((array, whole))
}

fn rules(mesh: &[&str], rule: TensorRule) -> CheckedRules {
    let rules = SideRules {
        mesh: mesh.iter().map(|text| (*text).to_owned()).collect(),
        tensors: vec![TensorRule {
            operator: "*".to_owned(),
            ..rule
        }],
        ..SideRules::default()
    };
    rules.check().unwrap()
}

/// Tokens of sequences that have one range of them each.
fn padded_tokens(ranges: &[Range<u64>]) -> TokenMap {
    let kept = ranges
        .iter()
        .cloned()
        .map(|range| std::iter::once(range).collect());
    TokenMap::Padded(kept.collect())
}

fn dims(text: &str) -> TensorRule {
    TensorRule {
        dims: text.to_owned(),
        ..TensorRule::default()
    }
}

/// Coordinates of a rank on a mesh, the last axis first.
fn coordinates(sizes: &[usize], rank: usize) -> Vec<usize> {
    let mut rest = rank;
    let mut found = vec![0; sizes.len()];
    for (at, size) in found.iter_mut().zip(sizes).rev() {
        *at = rest % size;
        rest /= size;
    }
    found
}

proptest! {
    /// Any tensor on any mesh: each axis of the mesh cuts an axis of the tensor, replicates, or adds.
    #[test]
    fn notes_of_a_dump_bring_the_tensor_back(
        shape in proptest::collection::vec(0_usize..7, 0..4),
        mesh in proptest::collection::vec((1_usize..4, 0_usize..6), 1..4),
    ) {
        let whole = Array::counted(&shape);
        let sizes: Vec<usize> = mesh.iter().map(|(size, _)| *size).collect();
        let n_ranks: usize = sizes.iter().product();
        let how: Vec<String> = mesh
            .iter()
            .map(|&(_, how)| match how {
                0 => "R".to_owned(),
                1 => "P(sum)".to_owned(),
                axis if shape.is_empty() => if axis > 3 { "R" } else { "P(sum)" }.to_owned(),
                axis => format!("S({})", axis % shape.len()),
            })
            .collect();
        let mut slots = Vec::new();
        for rank in 0..n_ranks {
            let at = coordinates(&sizes, rank);
            let mut part = whole.clone();
            let mut axes = Vec::new();
            for (m, how) in how.iter().enumerate() {
                axes.push(format!("m{m}={}/{}:{how}", at[m], sizes[m]));
                if let Some(axis) = how.strip_prefix("S(") {
                    let axis = axis.trim_end_matches(')').parse().unwrap();
                    part = part.chunk(axis, at[m], sizes[m]);
                }
                // All but one contribute a constant, which the one takes away.
                if how == "P(sum)" && sizes[m] > 1 {
                    let n = (sizes[m] - 1) as i32;
                    part.values.iter_mut().for_each(|value| {
                        *value = if at[m] == 0 { value.wrapping_mul(n + 1) } else { value.wrapping_neg() };
                    });
                }
            }
            let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
            let text = format!("{} of [{}]", axes.join(","), extents.join(","));
            slots.push(part.slot(Some(text.parse().unwrap())));
        }
        let (found, tensor) = joined(&slots, None, None).unwrap();
        prop_assert_eq!(&found, &whole);
        // Each element is where its parts say, unless it is a sum.
        if !how.contains(&"P(sum)".to_owned()) {
            for position in 0..whole.values.len() {
                for (part, index) in tensor.places_of(position as u64) {
                    let local: Vec<u64> = part.slot.shape.clone().unwrap();
                    let flat = index.iter().zip(&local).fold(0, |n, (i, dim)| n * dim + i);
                    let bytes = part.slot.held().unwrap().bytes().unwrap();
                    let bytes = bytes.as_ref().as_chunks().0[flat as usize];
                    prop_assert_eq!(i32::from_le_bytes(bytes), whole.values[position]);
                }
            }
        }
        // Without a rank that cuts nothing more is compared.
        if n_ranks > 1 && how.iter().any(|how| how != "R") && !whole.values.is_empty() {
            let is_missed = how.iter().zip(&sizes).any(|(how, size)| how != "R" && *size > 1);
            let last = slots.last().unwrap().n_elements().unwrap() > 0;
            let has_replica = how.iter().zip(&sizes).any(|(how, size)| how == "R" && *size > 1);
            if is_missed && last && !has_replica {
                prop_assert!(joined(&slots[..n_ranks - 1], None, None).is_err());
            }
        }
    }

    /// A tensor that later axes of the mesh have cut before: PyTorch's `_StridedShard`.
    #[test]
    fn strided_shards(dp in 1_usize..4, tp in 2_usize..4, n in 1_usize..4, columns in 1_usize..3) {
        let whole = Array::counted(&[n * dp * tp, columns]);
        let slots: Vec<ExecutionSlot> = (0..dp * tp)
            .map(|rank| {
                let (d, t) = (rank / tp, rank % tp);
                let part = whole.chunk(0, t, tp).chunk(0, d, dp);
                let text = format!(
                    "dp={d}/{dp}:S(0,{tp}),tp={t}/{tp}:S(0) of [{},{columns}]",
                    n * dp * tp
                );
                part.slot(Some(text.parse().unwrap()))
            })
            .collect();
        prop_assert_eq!(joined(&slots, None, None).unwrap().0, whole);
    }

    /// Dims of a mapping, with parts of any length.
    #[test]
    fn rules_bring_the_tensor_back(
        lengths in proptest::collection::vec(0_usize..4, 2..5),
        rows in 1_usize..4,
    ) {
        let n: usize = lengths.iter().sum();
        let whole = Array::counted(&[rows, n]);
        let mut first = 0;
        let slots: Vec<ExecutionSlot> = lengths
            .iter()
            .map(|&length| {
                let own: Vec<usize> = (first..first + length).collect();
                first += length;
                whole.taken(1, &own).slot(None)
            })
            .collect();
        let rules = rules(&[&format!("tp={}", lengths.len())], dims("s h[tp]"));
        prop_assert_eq!(joined(&slots, Some(&rules), None).unwrap().0, whole);
    }

    /// Each rank has the chunk of its number from the front and from the back.
    #[test]
    fn zigzag(ranks in 1_usize..5, n in 1_usize..3, b in 1_usize..3) {
        let extent = 2 * ranks * n;
        let whole = Array::counted(&[b, extent]);
        let slots: Vec<ExecutionSlot> = (0..ranks)
            .map(|rank| {
                let front = rank * n..(rank + 1) * n;
                let back = extent - (rank + 1) * n..extent - rank * n;
                let own: Vec<usize> = front.chain(back).collect();
                whole.taken(1, &own).slot(None)
            })
            .collect();
        let rules = rules(&[&format!("cp={ranks}")], dims("b s[cp:zigzag]"));
        prop_assert_eq!(joined(&slots, Some(&rules), None).unwrap().0, whole);
    }

    /// Heads of queries, keys and values, of which a rank has its share one behind the other.
    #[test]
    fn fused_pieces(ranks in 1_usize..5, groups in 1_usize..3, d in 1_usize..3, rows in 1_usize..3) {
        // With fewer heads of keys than ranks each is held by several.
        let (q, k) = (ranks * groups * 2, if groups == 1 { 1 } else { ranks });
        let unit = d;
        let whole = Array::counted(&[rows, (q + 2 * k) * unit]);
        let slots: Vec<ExecutionSlot> = (0..ranks)
            .map(|rank| {
                let share = |first: usize, n: usize| -> Vec<usize> {
                    let (begin, end) = if n >= ranks {
                        (rank * n / ranks, (rank + 1) * n / ranks)
                    } else {
                        (rank * n / ranks, rank * n / ranks + 1)
                    };
                    ((first + begin) * unit..(first + end) * unit).collect()
                };
                let own = [share(0, q), share(q, k), share(q + k, k)].concat();
                whole.taken(1, &own).slot(None)
            })
            .collect();
        let mut rule = dims("s h[tp]");
        rule.fused.insert("h".to_owned(), format!("q*{q} k*{k} v*{k}"));
        let rules = rules(&[&format!("tp={ranks}")], rule);
        prop_assert_eq!(joined(&slots, Some(&rules), None).unwrap().0, whole);
    }
}

#[test]
fn grouped_pieces_come_apart() {
    // Two groups of two queries, a key and a value; the whole has all queries first.
    let grouped = Array::counted(&[1, 8]);
    let slots: Vec<ExecutionSlot> = (0..2)
        .map(|rank| grouped.chunk(1, rank, 2).slot(None))
        .collect();
    let mut rule = dims("s h[tp]");
    rule.fused.insert("h".to_owned(), "(q*2 k v)*2".to_owned());
    let found = joined(&slots, Some(&rules(&["tp=2"], rule)), None)
        .unwrap()
        .0;
    assert_eq!(found.values, [0, 1, 4, 5, 2, 6, 3, 7]);
}

#[test]
fn padding_is_cut_off() {
    let padded = Array::counted(&[8, 3]);
    let slots: Vec<ExecutionSlot> = (0..4)
        .map(|rank| padded.chunk(0, rank, 4).slot(None))
        .collect();
    let mut rule = dims("v[tp] h");
    rule.extents.insert("v".to_owned(), 5);
    let found = joined(&slots, Some(&rules(&["tp=4"], rule)), None)
        .unwrap()
        .0;
    assert_eq!(found, padded.taken(0, &[0, 1, 2, 3, 4]));
}

#[test]
fn axes_turn_and_tokens_are_packed() {
    let padded = Array::counted(&[3, 4, 2]);
    let slots = [padded.slot(None)];
    let turned = TensorRule {
        compared_as: Some("s b h".to_owned()),
        ..dims("b s h")
    };
    let found = joined(&slots, Some(&rules(&["tp=1"], turned)), None)
        .unwrap()
        .0;
    assert_eq!(found.shape, [4, 3, 2]);
    assert_eq!(found.values[..6], [0, 1, 8, 9, 16, 17]);
    // Lengths 2, 0 and 3, padded on the left.
    let tokens = padded_tokens(&[2..4, 0..0, 1..4]);
    let rule = dims("b s h");
    let found = joined(&slots, Some(&rules(&["tp=1"], rule)), Some(&tokens))
        .unwrap()
        .0;
    assert_eq!(found.shape, [5, 2]);
    assert_eq!(found.values, [4, 5, 6, 7, 18, 19, 20, 21, 22, 23]);
    // Batches of two ranks, and the sequence first.
    let turned = padded.taken(0, &[0, 1, 2]);
    let ranks = [turned.taken(0, &[0, 1]), turned.taken(0, &[2])];
    let slots: Vec<ExecutionSlot> = ranks.iter().map(|part| part.slot(None)).collect();
    let tokens = padded_tokens(&[0..2, 0..1, 0..3]);
    let found = joined(
        &slots,
        Some(&rules(&["dp=2"], dims("b[dp] s h"))),
        Some(&tokens),
    );
    let found = found.unwrap().0;
    assert_eq!(found.values, [0, 1, 2, 3, 8, 9, 16, 17, 18, 19, 20, 21]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let part = Array::counted(&[2, 2]);
    let slot = |text: &str| part.slot(Some(text.parse().unwrap()));
    let check = |slots: &[ExecutionSlot], message: &str| {
        let found = joined(slots, None, None).unwrap_err();
        assert!(found.contains(message), "{found}");
    };
    check(&[slot("tp=0/2:S(0) of [4,2]")], "are not in the dump");
    check(
        &[slot("tp=0/2:S(0) of [4,2]"), slot("tp=1/2:S(1) of [2,4]")],
        "ranks say different things",
    );
    check(
        &[slot("tp=0/2:S(0) of [6,2]"), slot("tp=1/2:S(0) of [6,2]")],
        "by its note it should hold 3",
    );
    check(
        &[slot("tp=0/2:S(0) of [4,2]"), part.slot(None)],
        "others do not",
    );
    check(
        &[slot("dp=0/2:S(0,3),tp=0/2:S(0) of [8,2]")],
        "cut into 3 parts before",
    );
    check(&[slot("tp=0/1:P(avg) of [2,2]")], "have no avg");
}
