//! Which nodes made and read a value: `{node}:{position}`, all of them in one text without anything
//! between.

use std::collections::HashMap;
use std::sync::Arc;

use super::ValueUse;
use crate::record::SlotSide;

/// Maximum length of a text with the nodes of a value.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Maximum number of slots of all values together.
const N_USES_MAX: usize = 1 << 22;
/// Maximum number of bytes of possible names that are looked up in a file. Real ones take a few for
/// each byte of their texts.
const N_LOOKED_UP_MAX: usize = 1 << 30;
/// Digits of a position: more fit no number.
const N_DIGITS_MAX: usize = 10;

/// The nodes that a database knows.
#[derive(Default)]
pub(super) struct TraceNodes {
    nodes: Vec<(Arc<str>, Arc<str>)>,
    positions: HashMap<Arc<str>, usize>,
    n_name_bytes_max: usize,
}

/// The rest of the limits of a file.
pub(super) struct UseBudget {
    n_uses: usize,
    n_looked_up: usize,
}

impl Default for UseBudget {
    fn default() -> UseBudget {
        UseBudget {
            n_uses: N_USES_MAX,
            n_looked_up: N_LOOKED_UP_MAX,
        }
    }
}

/// A node by its position, and which of its inputs or outputs.
type NodeSlot = (usize, u32);

impl TraceNodes {
    /// Appends a node.
    pub(super) fn add(&mut self, name: &str, op_type: &str) {
        let name: Arc<str> = name.into();
        self.n_name_bytes_max = self.n_name_bytes_max.max(name.len());
        self.positions
            .entry(name.clone())
            .or_insert(self.nodes.len());
        self.nodes.push((name, op_type.into()));
    }

    /// The slots of a value. If its producer or all nodes are unknown, it is the output of an
    /// operator of its own name, without a type.
    ///
    /// # Errors
    /// A limit of a file that is exceeded, in words.
    pub(super) fn uses(
        &self,
        value_name: &str,
        producer: &str,
        consumers: &str,
        budget: &mut UseBudget,
    ) -> Result<Vec<ValueUse>, String> {
        let mut uses = Vec::new();
        // Without its producer a value would be only an input, and no operator's output in a
        // comparison.
        let mut is_made_by_node = true;
        for (side, text) in [(SlotSide::Output, producer), (SlotSide::Input, consumers)] {
            let slots = self.split(text, &mut budget.n_looked_up);
            let n_before = uses.len();
            let known = slots.iter().flatten().filter_map(|&(node, position)| {
                let (op_name, op_type) = self.nodes.get(node)?;
                // Nodes without a name share one row, which is that of the first of them.
                (!op_name.is_empty()).then(|| ValueUse {
                    op_name: op_name.clone(),
                    op_type: op_type.clone(),
                    order: node,
                    slot: (side, position),
                })
            });
            uses.extend(known);
            if side == SlotSide::Output {
                is_made_by_node = text.is_empty() || uses.len() > n_before;
            }
        }
        if uses.is_empty() || !is_made_by_node {
            uses.push(ValueUse {
                op_name: value_name.into(),
                op_type: "".into(),
                order: self.nodes.len(),
                slot: (SlotSide::Output, 0),
            });
        }
        budget.n_uses = budget
            .n_uses
            .checked_sub(uses.len())
            .ok_or_else(|| format!("at most {N_USES_MAX} slots up to here"))?;
        Ok(uses)
    }

    /// Takes a text apart into nodes that are known. None if that cannot be done, or in more than
    /// one way: names may hold colons and begin with digits.
    fn split(&self, text: &str, n_looked_up: &mut usize) -> Option<Vec<NodeSlot>> {
        if text.len() > TEXT_BYTES_MAX || (!text.is_empty() && self.nodes.is_empty()) {
            return None;
        }
        let bytes = text.as_bytes();
        let colons: Vec<usize> = (0..bytes.len())
            .filter(|&at| bytes.get(at) == Some(&b':'))
            .collect();
        // For each place in the text: how many ways lead there, up to two, and the last step of the
        // last of them.
        let mut n_ways = vec![0_u8; bytes.len() + 1];
        let mut steps: Vec<(u32, NodeSlot)> = vec![(0, (0, 0)); bytes.len() + 1];
        *n_ways.first_mut()? = 1;
        for start in 0..bytes.len() {
            let n_here = n_ways.get(start).copied().filter(|&n| n > 0);
            let Some(n_here) = n_here else { continue };
            let first = colons.partition_point(|&colon| colon < start);
            for &colon in colons.get(first..).unwrap_or_default() {
                if colon - start > self.n_name_bytes_max {
                    break;
                }
                *n_looked_up = n_looked_up.checked_sub(colon - start + 1)?;
                let node = text
                    .get(start..colon)
                    .and_then(|name| self.positions.get(name));
                let Some(&node) = node else { continue };
                for (position, end) in positions_at(bytes, colon + 1) {
                    let ways = n_ways.get_mut(end)?;
                    *ways = ways.saturating_add(n_here).min(2);
                    *steps.get_mut(end)? = (u32::try_from(start).ok()?, (node, position));
                }
            }
        }
        if n_ways.last() != Some(&1) {
            return None;
        }
        let mut slots = Vec::new();
        let mut at = bytes.len();
        while at > 0 {
            let &(start, slot) = steps.get(at)?;
            slots.push(slot);
            at = start as usize;
        }
        slots.reverse();
        Some(slots)
    }
}

/// Every number that may begin at `start`, and where it ends. None begins with a zero but zero
/// itself.
fn positions_at(bytes: &[u8], start: usize) -> impl Iterator<Item = (u32, usize)> {
    let digits = bytes.get(start..).unwrap_or_default().iter();
    let digits = digits
        .take(N_DIGITS_MAX)
        .take_while(|byte| byte.is_ascii_digit());
    let is_zero = bytes.get(start) == Some(&b'0');
    let numbers = digits.enumerate().scan(0_u64, move |number, (i, digit)| {
        *number = *number * 10 + u64::from(digit - b'0');
        Some((*number, start + i + 1))
    });
    let numbers = numbers.take(if is_zero { 1 } else { N_DIGITS_MAX });
    numbers.filter_map(|(number, end)| Some((u32::try_from(number).ok()?, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_told_apart_where_only_one_way_is_there() {
        let check = |nodes: &[&str], text: &str, expected: Option<&[(&str, u32)]>| {
            let mut known = TraceNodes::default();
            for node in nodes {
                known.add(node, "Type");
            }
            let slots = known.split(text, &mut N_LOOKED_UP_MAX.clone());
            let names = slots.map(|slots| -> Vec<(String, u32)> {
                let name = |node: usize| known.nodes[node].0.to_string();
                slots
                    .into_iter()
                    .map(|(node, position)| (name(node), position))
                    .collect()
            });
            let expected = expected.map(|slots| -> Vec<(String, u32)> {
                slots
                    .iter()
                    .map(|&(name, position)| (name.to_owned(), position))
                    .collect()
            });
            assert_eq!(names, expected, "{nodes:?} {text}");
        };
        check(&["a"], "a:0", Some(&[("a", 0)]));
        check(&["a", "b"], "a:0b:12", Some(&[("a", 0), ("b", 12)]));
        check(&["1"], "1:01:1", Some(&[("1", 0), ("1", 1)]));
        check(&["relu:0"], "relu:0:0", Some(&[("relu:0", 0)]));
        check(&["größe", ""], "größe:0:1", Some(&[("größe", 0), ("", 1)]));
        check(&["a"], "", Some(&[]));
        check(&["a"], "a:4294967295", Some(&[("a", u32::MAX)]));
        // Two ways: `a:1` then `1:0`, or `a:11` then `:0`.
        check(&["a", "1", ""], "a:11:0", None);
        check(&["a", "1"], "a:11:0", Some(&[("a", 1), ("1", 0)]));
        check(&["a"], "a:4294967296", None);
        check(&["a"], "a:00", None);
        check(&["a"], "b:0", None);
        check(&["a"], "a:0b:0", None);
        check(&["a"], "a", None);
        check(&[], "a:0", None);
    }

    #[test]
    fn work_is_bounded_whatever_names_say() {
        let mut nodes = TraceNodes::default();
        nodes.add(&":".repeat(40_000), "Type");
        nodes.add("", "Type");
        let text = ":0".repeat(100_000);
        let mut budget = 1 << 20;
        assert_eq!(nodes.split(&text, &mut budget), None);
        assert_eq!(
            nodes.split(
                &"x".repeat(TEXT_BYTES_MAX + 1),
                &mut N_LOOKED_UP_MAX.clone()
            ),
            None
        );
    }

    #[test]
    fn values_go_by_their_own_name_where_no_node_is_known() {
        let mut nodes = TraceNodes::default();
        nodes.add("fc", "MatMul");
        nodes.add("", "Add");
        let check = |producer: &str, consumers: &str, expected: &str| {
            let uses = nodes
                .uses("v", producer, consumers, &mut UseBudget::default())
                .unwrap();
            let texts: Vec<String> = uses
                .iter()
                .map(|value_use| {
                    let (side, position) = value_use.slot;
                    format!(
                        "{}({}) {}.{position}",
                        value_use.op_name,
                        value_use.op_type,
                        side.name()
                    )
                })
                .collect();
            assert_eq!(texts.join(", "), expected, "{producer} {consumers}");
        };
        check("fc:0", "fc:1", "fc(MatMul) output.0, fc(MatMul) input.1");
        check("", "fc:1", "fc(MatMul) input.1");
        check(":0", "fc:1", "fc(MatMul) input.1, v() output.0");
        check("fc:0", ":1", "fc(MatMul) output.0");
        check("", ":1", "v() output.0");
        check("", "", "v() output.0");
        check("gone:0", "", "v() output.0");
        let mut spent = UseBudget {
            n_uses: 1,
            ..UseBudget::default()
        };
        assert!(nodes.uses("v", "fc:0", "fc:1", &mut spent).is_err());
    }
}
