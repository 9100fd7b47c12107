//! Memory that no call has written: its hash is meaningless, and differs from run to run.

use std::collections::HashMap;

use super::{DebugCall, DebugTensor};

/// Part of the names of operators that reserve memory.
const RESERVING: &str = "empty";
/// Operators that write all of their first argument and read nothing of it.
const WRITERS: [&str; 13] = [
    "bernoulli_",
    "cauchy_",
    "copy_",
    "exponential_",
    "fill_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "set_",
    "trunc_normal_",
    "uniform_",
    "zero_",
];
/// Operators whose results are views of their first argument.
const VIEWS: [&str; 25] = [
    "_reshape_alias",
    "_unsafe_view",
    "alias",
    "as_strided",
    "chunk",
    "detach",
    "diagonal",
    "expand",
    "flatten",
    "movedim",
    "narrow",
    "permute",
    "reshape",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unfold",
    "unsqueeze",
    "view",
    "view_as_real",
];

/// The part of an operator's overload that names arguments for results.
const OUT: &str = "out";

/// Memory that was reserved, and how much of it calls have written since.
struct ReservedMemory {
    /// Elements; none if their number is not known.
    n_elements: Option<u64>,
    n_written: u64,
}

impl ReservedMemory {
    fn is_written(&self) -> bool {
        self.n_elements.is_some_and(|n| self.n_written >= n)
    }
}

/// Takes the hashes from tensors in memory that no call has written.
///
/// Tensors are followed by their numbers. In a log without numbers only those are known that an
/// operator writes as a whole.
pub(super) fn forget_unwritten(calls: &mut [DebugCall]) {
    let mut memory = WrittenMemory::default();
    for call in calls {
        memory.follow(call);
    }
}

#[derive(Default)]
struct WrittenMemory {
    reserved: Vec<ReservedMemory>,
    /// The reserved memory of a tensor, by its number.
    by_tensor: HashMap<u64, usize>,
}

impl WrittenMemory {
    fn follow(&mut self, call: &mut DebugCall) {
        let (name, overload) = operator_of(&call.name);
        if name.contains(RESERVING) {
            for output in &mut call.outputs {
                self.reserve(output);
            }
            return;
        }
        let is_writer = WRITERS.contains(&name);
        let is_in_place = name.ends_with('_') && !name.ends_with("__");
        let is_view = VIEWS.contains(&name);
        let n_inputs = call.inputs.len();
        let targets = if is_in_place {
            0..n_inputs.min(1)
        } else if overload.split('_').any(|word| word == OUT) {
            n_inputs.saturating_sub(call.outputs.len())..n_inputs
        } else {
            0..0
        };
        let is_whole = is_writer || (!is_in_place && !targets.is_empty());
        for (i, input) in call.inputs.iter_mut().enumerate() {
            let is_target = targets.contains(&i) && is_whole;
            if (is_target && input.number.is_none()) || self.is_unwritten(input) {
                forget(input);
            }
        }
        if is_view {
            self.add_views(call);
            return;
        }
        for target in call.inputs.get(targets).unwrap_or_default() {
            let Some(memory) = self.memory_of(target) else {
                continue;
            };
            if is_whole {
                let n_elements = n_elements(target).unwrap_or(u64::MAX);
                let memory = &mut self.reserved[memory];
                memory.n_written = memory.n_written.saturating_add(n_elements);
            }
        }
        // An operator that writes a part, or that computes with what is there, leaves the rest.
        if !is_whole {
            for output in &mut call.outputs {
                if self.is_unwritten(output) {
                    forget(output);
                }
            }
        }
    }

    fn reserve(&mut self, tensor: &mut DebugTensor) {
        forget(tensor);
        if let Some(number) = tensor.number {
            self.by_tensor.insert(number, self.reserved.len());
            self.reserved.push(ReservedMemory {
                n_elements: n_elements(tensor),
                n_written: 0,
            });
        }
    }

    /// Results of a view are in the memory of its first argument.
    fn add_views(&mut self, call: &mut DebugCall) {
        let Some(memory) = call.inputs.first().and_then(|input| self.memory_of(input)) else {
            return;
        };
        for output in &mut call.outputs {
            if let Some(number) = output.number {
                self.by_tensor.insert(number, memory);
            }
            if !self.reserved[memory].is_written() {
                forget(output);
            }
        }
    }

    fn memory_of(&self, tensor: &DebugTensor) -> Option<usize> {
        self.by_tensor.get(&tensor.number?).copied()
    }

    fn is_unwritten(&self, tensor: &DebugTensor) -> bool {
        let memory = self.memory_of(tensor);
        memory.is_some_and(|memory| !self.reserved[memory].is_written())
    }
}

fn forget(tensor: &mut DebugTensor) {
    tensor.is_unwritten = true;
    tensor.hashes.clear();
}

/// The operator of a call without its namespace, and its overload.
fn operator_of(name: &str) -> (&str, &str) {
    let name = name.rsplit_once("::").map_or(name, |(_, name)| name);
    name.split_once('.').unwrap_or((name, ""))
}

fn n_elements(tensor: &DebugTensor) -> Option<u64> {
    let dims = tensor.shape.as_ref()?;
    dims.iter().try_fold(1_u64, |n, dim| n.checked_mul(*dim))
}

#[cfg(test)]
mod tests {
    use crate::file_format::debug_mode::parse;

    /// The hashes of all inputs and outputs, `-` for none.
    fn hashes_of(log: &str) -> Vec<String> {
        let log = parse(log.as_bytes()).unwrap();
        let calls = log.calls.iter().map(|call| {
            let tensors = call.inputs.iter().chain(&call.outputs);
            let hashes = tensors.map(|tensor| tensor.hashes.first().map_or("-", |(_, hash)| hash));
            hashes.collect::<Vec<_>>().join(" ")
        });
        calls.collect()
    }

    #[test]
    fn memory_is_a_value_when_it_was_written() {
        let log = "\
    aten::empty.memory_format([2, 2])  ->  t$5: f32[2, 2]
    aten::select.int(t$5: f32[2, 2], 0, 0)  ->  t$7: f32[2]  # {'input_hash': ((0.5, None, None), {}), 'hash': 0.25}
    aten::copy_(t$7: f32[2], t$6: f32[2])  ->  t$7: f32[2]  # {'input_hash': ((0.25, 1.0), {}), 'hash': 1.0}
    aten::select.int(t$5: f32[2, 2], 0, 1)  ->  t$9: f32[2]  # {'input_hash': ((1.25, None, None), {}), 'hash': 0.25}
    aten::copy_(t$9: f32[2], t$8: f32[2])  ->  t$9: f32[2]  # {'input_hash': ((0.25, 5.0), {}), 'hash': 5.0}
    aten::sum(t$5: f32[2, 2])  ->  t$10: f32[]  # {'input_hash': ((6.0,), {}), 'hash': 6.0}
    aten::empty_like(t$8: f32[2])  ->  t$11: f32[2]
    aten::add_.Tensor(t$11: f32[2], t$8: f32[2])  ->  t$11: f32[2]  # {'input_hash': ((0.125, 5.0), {}), 'hash': 5.125}
    aten::add.out(t$8: f32[2], 1, out=t$11: f32[2])  ->  t$11: f32[2]  # {'input_hash': ((5.0, None), {'out': 5.125}), 'hash': 7.0}
    aten::neg(t$11: f32[2])  ->  t$12: f32[2]  # {'input_hash': ((7.0,), {}), 'hash': 7.0}
";
        let expected = [
            "-",
            "- -",
            "- 1.0 1.0",
            "- -",
            "- 5.0 5.0",
            "6.0 6.0",
            "- -",
            "- 5.0 -",
            "5.0 - 7.0",
            "7.0 7.0",
        ];
        assert_eq!(hashes_of(log), expected);
    }

    #[test]
    fn without_numbers_targets_are_no_values() {
        let log = "\
    aten::copy_(t: f32[2], t: f32[2])  ->  t: f32[2]  # {'input_hash': ((0.25, 1.0), {}), 'hash': 1.0}
    aten::neg_(t: f32[2])  ->  t: f32[2]  # {'input_hash': ((1.0,), {}), 'hash': 1.0}
";
        assert_eq!(hashes_of(log), ["- 1.0 1.0", "1.0 1.0"]);
    }
}
