//! Tensors of the worst operators with a slice of each.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::questions::{as_query, json};
use crate::answers::{Answer, AnswerError, answer};
use crate::viewed::ViewedRuns;

/// Maximum number of tensors in a report.
const N_TENSORS_MAX: usize = 64;
/// Maximum number of faulty operators with all slots in the file.
const N_WHOLE_MAX: usize = 8;
/// Maximum bytes of dumps read for a report, not counting the first tensor.
const N_READ_BYTES_MAX: u64 = 2 << 30;
/// Rows and columns of the first tensor's picture, and of each other's.
const N_PIXELS: [&str; 2] = ["160", "96"];
/// Values around an element in each direction, as many as the page requests.
const N_VALUES: &str = "7";

/// Tensors with their slices: first the slot that the verdict names, then those of faulty
/// operators, then the most informative slot of each other operator.
///
/// `n_bytes` limits their share of the file; the first tensor is always included.
///
/// # Errors
///
/// [`AnswerError`] if a named slot does not exist.
pub(super) fn tensors(
    runs: &ViewedRuns,
    ranked: &[usize],
    contents: &Value,
    n_bytes: usize,
) -> Result<Vec<Value>, AnswerError> {
    // The same reason applies to all of them, and the page shows it.
    if runs.is_saved {
        return Ok(Vec::new());
    }
    let (mut n_left, mut n_read) = (n_bytes, 0_u64);
    let mut tensors: Vec<Value> = Vec::new();
    for (id, slot) in candidates(ranked, contents) {
        if tensors.len() >= N_TENSORS_MAX || n_read > N_READ_BYTES_MAX {
            break;
        }
        let is_first = tensors.is_empty();
        let tensor = tensor(runs, id, &slot, N_PIXELS[usize::from(!is_first)])?;
        let n_more = size_of(&tensor);
        if n_more > n_left && !is_first {
            break;
        }
        n_left = n_left.saturating_sub(n_more);
        let sides = &tensor["tensor"]["sides"];
        let read = ["target", "golden"].map(|side| sides[side]["n_bytes"].as_u64().unwrap_or(0));
        n_read = n_read.saturating_add(read[0]).saturating_add(read[1]);
        tensors.push(tensor);
    }
    Ok(tensors)
}

/// The letters that a tensor adds to a file. Elements hardly compress; the rest shrinks to a third.
fn size_of(tensor: &Value) -> usize {
    let pictures = tensor["pictures"].as_object();
    let letters = pictures.into_iter().flat_map(Map::values);
    let n_letters: usize = letters.filter_map(Value::as_str).map(str::len).sum();
    n_letters + tensor["tensor"].to_string().len() / 3
}

/// Operators and slots whose tensors are wanted, by priority.
fn candidates(ranked: &[usize], contents: &Value) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let verdict = &contents["info"]["verdict"];
    let mut n_whole = 0;
    for &id in ranked {
        let operator = &contents["details"][id.to_string()];
        let slots = operator["slots"].as_array().map_or(&[][..], Vec::as_slice);
        let first = default_slot(id, operator, slots, verdict);
        let is_whole = operator["at_fault"] == true && n_whole < N_WHOLE_MAX;
        n_whole += usize::from(is_whole);
        let others = slots.iter().filter(|_| is_whole);
        let wanted = first
            .into_iter()
            .chain(others)
            .filter(|slot| has_elements(slot));
        for slot in wanted.filter_map(|slot| slot["id"].as_str()) {
            // The most informative slot is also among the others.
            let entry = (id, slot.to_owned());
            if !all.contains(&entry) {
                all.push(entry);
            }
        }
        if all.len() >= N_TENSORS_MAX {
            break;
        }
    }
    let named = (verdict["op"].as_u64(), verdict["slot"].as_str());
    all.sort_by_key(|(id, slot)| (Some(*id as u64), Some(slot.as_str())) != named);
    all
}

/// Whether the page requests a slot's tensor: not if only statistics were dumped.
fn has_elements(slot: &Value) -> bool {
    !matches!(slot["evidence"].as_str(), Some("statistics" | "digest"))
}

/// The slot that the page shows first: the verdict's, or the worst one through which a difference
/// enters, or the worst output.
fn default_slot<'a>(
    id: usize,
    operator: &Value,
    slots: &'a [Value],
    verdict: &Value,
) -> Option<&'a Value> {
    let is_output = |slot: &&Value| slot["id"].as_str().is_some_and(|id| id.starts_with("out"));
    if verdict["op"].as_u64() == Some(id as u64)
        && let Some(named) = slots.iter().find(|slot| slot["id"] == verdict["slot"])
    {
        return Some(named);
    }
    let (outputs, inputs): (Vec<_>, Vec<_>) = slots.iter().partition(is_output);
    let [worst_input, worst_output] = [inputs, outputs].map(|slots| {
        let levels = ["fail", "warn"].into_iter();
        let mut worst =
            levels.filter_map(|level| slots.iter().find(|slot| slot["status"] == level));
        worst.next().copied()
    });
    worst_input
        .filter(|_| operator["cause"] == "outside")
        .or(worst_output)
        .or_else(|| slots.iter().find(is_output))
        .or(slots.first())
}

/// The answers about one tensor.
fn tensor(runs: &ViewedRuns, id: usize, slot: &str, pixels: &str) -> Result<Value, AnswerError> {
    let op = id.to_string();
    let asked = [("op", op.as_str()), ("slot", slot)];
    let tensor = json(runs, "tensor", &asked)?;
    let side = ["target", "golden"].map(|side| &tensor["sides"][side]);
    let shape = side.into_iter().find_map(|side| side["shape"].as_array());
    let shape = shape.into_iter().flatten().filter_map(Value::as_u64);
    let shape: Vec<u64> = shape.collect();
    let mut answers = json!({ "tensor": tensor, "axes": null, "pictures": {}, "values": [] });
    if shape.is_empty() || shape.contains(&0) {
        return Ok(answers);
    }
    let worst = tensor["difference"]["worst"].as_array();
    let mut places: Vec<Vec<u64>> = worst.into_iter().flatten().map(index).collect();
    if places.is_empty() {
        places.push(vec![0; shape.len()]);
    }
    let axes = default_axes(&shape, is_parameter(runs, &op, slot)?, &places[0]);
    let text = axes.join(",");
    answers["axes"] = axes.clone().into();
    let mut shown = vec!["target", "golden"];
    shown.retain(|side| !tensor["sides"][side].is_null());
    shown.extend(Some("difference").filter(|_| !tensor["difference"].is_null()));
    for side in shown {
        let mut query = asked.to_vec();
        query.extend([
            ("side", side),
            ("axes", &text),
            ("rows", pixels),
            ("columns", pixels),
        ]);
        answers["pictures"][side] = match answer(runs, "slice", &as_query(&query)) {
            Ok(Answer::Bytes(bytes)) => STANDARD.encode(bytes).into(),
            Err(error) => json!({ "error": error.to_string() }),
            Ok(Answer::Json(_) | Answer::File(..)) => Value::Null,
        };
    }
    answers["values"] = values(runs, &asked, &text, &axes, &shape, &places)?;
    Ok(answers)
}

/// Values around the elements with the largest differences within the slice.
fn values(
    runs: &ViewedRuns,
    asked: &[(&str, &str)],
    text: &str,
    axes: &[String],
    shape: &[u64],
    places: &[Vec<u64>],
) -> Result<Value, AnswerError> {
    let mut found: Vec<Value> = Vec::new();
    for [row, column] in places
        .iter()
        .filter_map(|place| place_of(axes, shape, place))
    {
        let (at_row, at_column) = (row.to_string(), column.to_string());
        let mut query = asked.to_vec();
        query.extend([
            ("axes", text),
            ("row", &at_row),
            ("column", &at_column),
            ("n", N_VALUES),
        ]);
        let values = json(runs, "values", &query)?;
        found.push(json!({ "row": row, "column": column, "values": values }));
    }
    Ok(found.into())
}

fn index(element: &Value) -> Vec<u64> {
    let index = element["index"].as_array().into_iter().flatten();
    index.filter_map(Value::as_u64).collect()
}

/// Whether a slot is a parameter, which is pictured along its first two axes.
fn is_parameter(runs: &ViewedRuns, op: &str, slot: &str) -> Result<bool, AnswerError> {
    let operator = json(runs, &format!("operator/{op}"), &[])?;
    let mut slots = operator["slots"].as_array().into_iter().flatten();
    let found = slots.find(|found| found["id"] == slot);
    Ok(found.is_some_and(|found| !found["parameter"].is_null()))
}

/// The axes that the page shows first, like `defaultAxes` in `web/src/tensor/axes.ts`.
fn default_axes(shape: &[u64], is_parameter: bool, at: &[u64]) -> Vec<String> {
    let n = shape.len();
    (0..n)
        .map(|axis| match (n, n - axis) {
            (1, _) => "c".to_owned(),
            (2, 2) => "r".to_owned(),
            (2, _) => "c".to_owned(),
            _ if is_parameter && axis == 0 => "r".to_owned(),
            _ if is_parameter && axis == 1 => "c".to_owned(),
            (3, 2) if !is_parameter => "r".to_owned(),
            (3, 1) if !is_parameter => "c".to_owned(),
            // For an N C H W activation, channels are rows, and positions are columns.
            (_, 3) if n > 3 && !is_parameter => "r".to_owned(),
            (_, 1 | 2) if n > 3 && !is_parameter => "c".to_owned(),
            _ => at.get(axis).copied().unwrap_or(0).to_string(),
        })
        .collect()
}

/// The row and column of an element; `None` if the slice has another index.
fn place_of(axes: &[String], shape: &[u64], index: &[u64]) -> Option<[u64; 2]> {
    let mut place = [0_u64; 2];
    for (axis, (&extent, &at)) in axes.iter().zip(shape.iter().zip(index)) {
        match axis.as_str() {
            "r" => place[0] = place[0] * extent + at,
            "c" => place[1] = place[1] * extent + at,
            fixed if fixed.parse() == Ok(at) => {}
            _ => return None,
        }
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_those_that_the_page_asks_for() {
        let check = |shape: &[u64], is_parameter, expected: &str| {
            let at: Vec<u64> = (7..).take(shape.len()).collect();
            assert_eq!(default_axes(shape, is_parameter, &at).join(","), expected);
        };
        check(&[9], true, "c");
        check(&[9, 9], false, "r,c");
        check(&[9, 9, 9], false, "7,r,c");
        check(&[9, 9, 9], true, "r,c,9");
        check(&[9, 9, 9, 9], true, "r,c,9,10");
        check(&[9, 9, 9, 9], false, "7,r,c,c");
        check(&[9, 9, 9, 9, 9], false, "7,8,r,c,c");
    }

    #[test]
    fn places_are_those_in_the_slice() {
        let axes = ["7", "r", "c", "c"].map(String::from);
        assert_eq!(place_of(&axes, &[9, 4, 3, 5], &[7, 2, 1, 3]), Some([2, 8]));
        assert_eq!(place_of(&axes, &[9, 4, 3, 5], &[6, 2, 1, 3]), None);
    }
}
