//! Fusion rules: the originals of each device operator.

mod filter;
mod json;
mod merge;

use std::collections::HashMap;

use opscope_store::decimal::is_digits;
use opscope_tensor::digest::uuid_v3_dns;

use super::stop::CompareStop;
use crate::failure::ErrorCode;
use crate::log;

pub(super) use json::{graph_names, load_value};
pub(super) use merge::{merge_close, merge_quant};

/// Operators that only change layout or dtype; their input is looked up instead.
const PASS_THROUGH: [&str; 2] = ["Cast", "TransData"];

/// The rules of a model.
#[derive(Debug, Default)]
pub(super) struct ModelRules {
    pub(super) ops: Vec<DeviceOperator>,
    pub(super) outputs: Vec<OutputRule>,
    /// Operators with the same originals, in the order of their first members.
    pub(super) groups: Vec<(GroupKey, Vec<usize>)>,
    group_index: HashMap<GroupKey, usize>,
    /// The group of each name, in order of appearance.
    names: Vec<(String, GroupKey)>,
    name_index: HashMap<String, usize>,
    /// Operators by `id`.
    pub(super) sequence: Vec<usize>,
    /// Names of the model's inputs.
    pub(super) input_nodes: Vec<String>,
}

/// The key of a group: a name, or a hash of several. A name that looks like a hash is not one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum GroupKey {
    Name(String),
    Hash([u8; 16]),
}

/// One operator of the device.
#[derive(Clone, Debug)]
pub(super) struct DeviceOperator {
    /// Number of its group.
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) inputs: Vec<String>,
    pub(super) op_type: String,
    /// Indices into [`ModelRules::outputs`].
    pub(super) outputs: Vec<usize>,
    pub(super) originals: Vec<String>,
    pub(super) l1_number: String,
    pub(super) is_multi: bool,
    pub(super) sequence: i64,
    /// Whether it is between a quantising and a dequantising operator.
    pub(super) is_filtered: bool,
}

/// The origin of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OutputRule {
    pub(super) origin: String,
    pub(super) origin_index: Option<i64>,
    pub(super) format: String,
    pub(super) shape: Vec<i64>,
    pub(super) dtype: String,
}

/// The original tensor of a device tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OriginTensor {
    pub(super) name: String,
    pub(super) index: i64,
    pub(super) format: String,
    pub(super) shape: Vec<i64>,
}

/// The numbers of operators and originals in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OriginRelation {
    ToOne,
    ToMany,
    L1,
}

impl ModelRules {
    /// Determines the group of a name by the number of an L1 group, else by the originals.
    pub(super) fn name_group(
        &mut self,
        name: &str,
        l1_number: &str,
        originals: &[String],
    ) -> GroupKey {
        let key = match originals {
            _ if !l1_number.is_empty() => GroupKey::Name(l1_number.to_owned()),
            [] => GroupKey::Name(name.to_owned()),
            // An empty name means no original.
            [only] if only.is_empty() => GroupKey::Name(name.to_owned()),
            [only] => GroupKey::Name(only.clone()),
            several => {
                // Two lists whose concatenations are equal share a group, as in the reference,
                // which hashes the text.
                let joined = several.concat();
                GroupKey::Hash(uuid_v3_dns(joined.as_bytes()))
            }
        };
        self.set_group(name, key.clone());
        key
    }

    fn set_group(&mut self, name: &str, key: GroupKey) {
        match self.name_index.get(name) {
            Some(&at) => self.names[at].1 = key,
            None => {
                self.name_index.insert(name.to_owned(), self.names.len());
                self.names.push((name.to_owned(), key));
            }
        }
    }

    /// The group of a name.
    pub(super) fn group_of(&self, name: &str) -> Option<&GroupKey> {
        self.name_index.get(name).map(|&at| &self.names[at].1)
    }

    /// The operators of a group.
    pub(super) fn group(&self, key: &GroupKey) -> Option<&[usize]> {
        self.group_index
            .get(key)
            .map(|&at| self.groups[at].1.as_slice())
    }

    /// The index of a name's group in [`ModelRules::groups`].
    pub(super) fn position_of(&self, name: &str) -> Option<usize> {
        self.group_index.get(self.group_of(name)?).copied()
    }

    /// Adds an operator to a group, creating it if necessary.
    fn join(&mut self, key: &GroupKey, op: usize) {
        match self.group_index.get(key) {
            Some(&at) => self.groups[at].1.push(op),
            None => {
                self.group_index.insert(key.clone(), self.groups.len());
                self.groups.push((key.clone(), vec![op]));
            }
        }
    }

    /// The operator called `name`, which must be the last of its name in its group's table.
    pub(super) fn find(&self, name: &str) -> Result<(&[usize], usize), CompareStop> {
        let group = self
            .group_of(name)
            .map(|key| self.group(key).unwrap_or(&[]));
        let found = group.and_then(|group| {
            let op = group.iter().find(|&&op| self.ops[op].name == name)?;
            Some((group, *op))
        });
        found.ok_or_else(|| {
            let message = format!("There is no \"{name}\" in the fusion rule file.");
            log::warning(&message);
            CompareStop::coded(ErrorCode::InvalidParameter, message)
        })
    }

    /// The producer of an operator's input, and the index of its output.
    fn producer(&self, op: usize, index: usize) -> Result<(usize, usize), CompareStop> {
        let op = &self.ops[op];
        let Some(text) = op.inputs.get(index) else {
            log::error(&format!(
                "The input index ({index}) is out of range ({}) for the operator list.",
                op.inputs.len()
            ));
            return Err(CompareStop::bare(ErrorCode::IndexOutOfBounds));
        };
        let invalid = |what: &str| {
            let message = format!("The input information ({text}) is invalid. {what}");
            log::error(&message);
            CompareStop::coded(ErrorCode::JsonFile, message)
        };
        let parts: Vec<&str> = text.split(':').collect();
        let [name, output] = parts[..] else {
            return Err(invalid("It only supports op_name:index."));
        };
        let (name, output) = (name.trim(), output.trim());
        if name.is_empty() {
            return Err(invalid("The input operator name is empty."));
        }
        if !is_digits(output) {
            return Err(invalid("The input index only supports numbers."));
        }
        let (_, producer) = self.find(name)?;
        Ok((producer, output.parse().unwrap_or(usize::MAX)))
    }

    /// The operator and output whose original a tensor is compared with. Operators that only change
    /// layout or dtype are skipped.
    pub(super) fn compared(
        &self,
        op: usize,
        index: usize,
        is_input: bool,
    ) -> Result<(usize, usize), CompareStop> {
        let (mut op, mut index) = if is_input {
            self.producer(op, index)?
        } else {
            (op, index)
        };
        let mut n_steps = 0;
        while PASS_THROUGH.contains(&self.ops[op].op_type.as_str()) {
            (op, index) = self.producer(op, index)?;
            n_steps += 1;
            if n_steps > self.ops.len() {
                return Err(CompareStop::Fatal(
                    "the operators of the rule run in a circle".to_owned(),
                ));
            }
        }
        Ok((op, index))
    }

    /// The origin of output `index` of an operator.
    pub(super) fn origin(&self, op: usize, index: usize) -> Result<OriginTensor, CompareStop> {
        let op = &self.ops[op];
        let missing = |message: String| {
            log::warning(&message);
            CompareStop::coded(ErrorCode::NoDumpFile, message)
        };
        let first = op.outputs.get(index).or_else(|| op.outputs.first());
        let Some(&output) = first else {
            return Err(missing(format!(
                "The output description of the fusion operator \"{}\" is empty.",
                op.name
            )));
        };
        let output = &self.outputs[output];
        if output.origin.is_empty() {
            return Err(missing(format!(
                "The origin name of the {}:{index} is empty.",
                op.name
            )));
        }
        Ok(OriginTensor {
            name: output.origin.clone(),
            index: output.origin_index.unwrap_or(index as i64),
            format: output.format.clone(),
            shape: output.shape.clone(),
        })
    }

    /// The relation of a group's operators to their originals.
    pub(super) fn relation(&self, group: &[usize]) -> OriginRelation {
        match group {
            [first, _, ..] if !self.ops[*first].l1_number.is_empty() => OriginRelation::L1,
            [_, _, ..] => OriginRelation::ToMany,
            _ => OriginRelation::ToOne,
        }
    }

    /// Comma-separated names of the group's operators, and of its originals.
    pub(super) fn joined_names(&self, group: &[usize]) -> (String, String) {
        let mut by_originals: Vec<(String, Vec<&str>)> = Vec::new();
        for &op in group {
            let op = &self.ops[op];
            let originals = op.originals.join(",");
            match by_originals.iter_mut().find(|(key, _)| *key == originals) {
                Some((_, names)) => names.push(&op.name),
                None => by_originals.push((originals, vec![&op.name])),
            }
        }
        let names: Vec<&str> = by_originals
            .iter()
            .flat_map(|(_, names)| names.clone())
            .collect();
        let originals: Vec<&str> = by_originals.iter().map(|(key, _)| key.as_str()).collect();
        (names.join(","), originals.join(","))
    }

    /// Whether an operator is an inner step of a group, without an original.
    pub(super) fn is_inner(&self, op: usize) -> bool {
        let op = &self.ops[op];
        op.is_multi
            && op
                .outputs
                .iter()
                .all(|&output| self.outputs[output].origin.is_empty())
    }
}

#[cfg(test)]
mod tests;
