//! Merges the rules of two models.

use std::collections::{HashMap, HashSet};

use super::{GroupKey, ModelRules, OutputRule};
use crate::compare::stop::CompareStop;
use crate::log;

/// Replaces the originals of `offline`, which are operators of the quantised model, by the
/// originals of those according to `quant`, and rebuilds the groups.
pub(crate) fn merge_quant(mut offline: ModelRules, quant: &ModelRules) -> ModelRules {
    let quant_start = offline.outputs.len();
    offline.outputs.extend(quant.outputs.iter().cloned());
    let groups = std::mem::take(&mut offline.groups);
    offline.group_index.clear();
    for op in groups.iter().flat_map(|(_, group)| group.iter().copied()) {
        let originals = quant_originals(&offline.ops[op].originals, quant);
        if !originals.is_empty() {
            offline.ops[op].originals = originals;
        }
        let outputs = quant_outputs(&mut offline, op, quant, quant_start);
        if !outputs.is_empty() {
            offline.ops[op].outputs = outputs;
        }
        let (name, originals) = (
            offline.ops[op].name.clone(),
            offline.ops[op].originals.clone(),
        );
        let key = offline.name_group(&name, "", &originals);
        offline.ops[op].index = match offline.group(&key) {
            Some(group) => offline.ops[group[0]].index,
            None => offline.groups.len(),
        };
        offline.join(&key, op);
    }
    offline
}

fn quant_originals(names: &[String], quant: &ModelRules) -> Vec<String> {
    let mut originals: Vec<String> = Vec::new();
    let groups = names
        .iter()
        .filter_map(|name| quant.group(quant.group_of(name)?));
    for op in groups.flatten() {
        for original in &quant.ops[*op].originals {
            if !originals.contains(original) {
                originals.push(original.clone());
            }
        }
    }
    originals
}

/// The outputs of the quantised model behind an operator's outputs. They are shared: the layout
/// from one operator holds for all.
fn quant_outputs(
    offline: &mut ModelRules,
    op: usize,
    quant: &ModelRules,
    quant_start: usize,
) -> Vec<usize> {
    let mut found = Vec::new();
    for output in offline.ops[op].outputs.clone() {
        let output = offline.outputs[output].clone();
        if output.origin.is_empty() {
            continue;
        }
        let Some(key) = quant.group_of(&output.origin) else {
            log::warning(&format!(
                "The name \"{}\" is not in quant fusion rule.",
                output.origin
            ));
            continue;
        };
        for &other in quant.group(key).unwrap_or(&[]) {
            let other = &quant.ops[other];
            let all: Vec<usize> = other.outputs.iter().map(|i| i + quant_start).collect();
            let chosen = match output.origin_index {
                None => all,
                Some(_) if other.name != output.origin => continue,
                Some(index) => match usize::try_from(index).ok().and_then(|i| all.get(i)) {
                    Some(&chosen) => vec![chosen],
                    None => {
                        // An index out of range yields an empty entry rather than an error.
                        offline.outputs.push(OutputRule::default());
                        found.push(offline.outputs.len() - 1);
                        continue;
                    }
                },
            };
            for at in chosen {
                if !output.format.is_empty() {
                    offline.outputs[at].format.clone_from(&output.format);
                    offline.outputs[at].shape.clone_from(&output.shape);
                }
                found.push(at);
            }
        }
    }
    found
}

/// Replaces the originals of `open`, the model with fusion, by the operators of `close`, the model
/// without fusion, with the same originals.
pub(crate) fn merge_close(open: ModelRules, close: &ModelRules) -> Result<ModelRules, CompareStop> {
    let mut carriers: HashMap<&str, &str> = HashMap::new();
    for &op in &close.sequence {
        let op = &close.ops[op];
        for original in &op.originals {
            carriers.insert(original, &op.name);
        }
    }
    let mut merged = ModelRules {
        ops: open.ops,
        outputs: open.outputs,
        ..ModelRules::default()
    };
    let mut seen: HashSet<&GroupKey> = HashSet::new();
    let mut used: HashSet<String> = HashSet::new();
    let mut used_carriers: HashSet<&str> = HashSet::new();
    // From the last name to the first: of operators with the same original the last one wins.
    for (name, key) in open.names.iter().rev() {
        if !seen.insert(key) {
            continue;
        }
        merged.set_group(name, key.clone());
        let group = open.group_index.get(key).map(|&at| &open.groups[at].1);
        for &op in group.into_iter().flatten() {
            let first = merged.ops[op]
                .originals
                .first()
                .ok_or_else(CompareStop::index)?
                .clone();
            let carrier = carriers.get(first.as_str()).copied();
            if !used.insert(first) || carrier.is_some_and(|carrier| !used_carriers.insert(carrier))
            {
                continue;
            }
            replace_originals(&mut merged, op, &carriers);
            replace_outputs(&mut merged, op, &carriers, close);
            merged.join(key, op);
            merged.sequence.insert(0, op);
        }
    }
    Ok(merged)
}

fn replace_originals(rule: &mut ModelRules, op: usize, carriers: &HashMap<&str, &str>) {
    if let [only] = &rule.ops[op].originals[..]
        && only.is_empty()
    {
        return;
    }
    let mut names: Vec<String> = Vec::new();
    for original in &rule.ops[op].originals {
        match carriers.get(original.as_str()) {
            Some(carrier) if names.iter().any(|name| name == carrier) => {}
            Some(carrier) => names.push((*carrier).to_owned()),
            None => log::warning(&format!(
                "There is no original operator associated with the operator \"{original}\" in \
                 original op names."
            )),
        }
    }
    rule.ops[op].originals = names;
}

fn replace_outputs(
    rule: &mut ModelRules,
    op: usize,
    carriers: &HashMap<&str, &str>,
    close: &ModelRules,
) {
    for (i, output) in rule.ops[op].outputs.clone().into_iter().enumerate() {
        let output = &mut rule.outputs[output];
        if output.origin.is_empty() {
            continue;
        }
        let carrier = carriers.get(output.origin.as_str());
        let group = carrier.and_then(|name| close.group(close.group_of(name)?));
        let found = group.into_iter().flatten().find_map(|&other| {
            close.ops[other].outputs.iter().position(|&at| {
                let other = &close.outputs[at];
                (&other.origin, other.origin_index) == (&output.origin, output.origin_index)
            })
        });
        match found {
            Some(index) => output.origin_index = Some(index as i64),
            None => log::warning(&format!(
                "There is no valid output desc associated with \"{}:output:{i}\".",
                rule.ops[op].name
            )),
        }
        if let Some(carrier) = carrier {
            (*carrier).clone_into(&mut output.origin);
        }
    }
}
