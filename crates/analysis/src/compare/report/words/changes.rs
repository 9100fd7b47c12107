//! The difference between two tensors, in words.

use super::figures::sole_element;
use super::{number, plain};
use crate::compare::result::{
    AxisPart, Comparison, ElementFunction, ListedParameter, RoundedFormat, RoundingMode,
    SlotResult, TensorChange,
};
use crate::element::thousands;

/// Maximum number of listed blocks.
const N_BLOCKS_MAX: usize = 16;
/// Maximum number of listed weights.
const N_WEIGHTS_MAX: usize = 8;

/// The difference between the target's tensor and golden's, as one operation; nothing if none
/// explains it.
pub fn change(slot: &SlotResult) -> Option<String> {
    let change = slot
        .change
        .as_deref()
        .filter(|change| !is_one_box(change))?;
    Some(format!("the target's tensor: {}", words(change)))
}

/// How a weight differs from golden's, which may have another name.
pub(super) fn weight_difference(slot: Option<&SlotResult>, golden: Option<&str>) -> String {
    if let Some([target, golden]) = slot.and_then(sole_element) {
        return format!("is {target} here, {golden} on the golden side");
    }
    if let Some(golden) = golden {
        return format!("is not golden's `{}`", plain(golden));
    }
    match slot.and_then(|slot| slot.change.as_deref()) {
        Some(change @ TensorChange::Part { .. }) => words(change),
        Some(change) => format!("differs: {}", words(change)),
        None => "differs".to_owned(),
    }
}

/// The difference between both sides of a parameter, as one operation; `None` if none explains it.
pub fn parameter_change(parameter: &ListedParameter) -> Option<String> {
    let words = words(parameter.change.as_ref()?);
    Some(if parameter.is_golden_changed {
        format!(
            "golden's tensor: {}",
            words.replacen("golden's", "the target's", 1)
        )
    } else {
        words
    })
}

/// `it overflows float16: …`, of a slot whose dtype cannot hold golden's elements.
pub fn overflow(slot: &SlotResult) -> Option<String> {
    match slot.change.as_deref()? {
        TensorChange::Overflow {
            dtype,
            largest,
            needed,
            ..
        } => Some(format!(
            "it overflows {dtype} (needs {}, the largest is {})",
            thousands(*needed),
            thousands(*largest)
        )),
        _ => None,
    }
}

/// The same of weights that differ without any effect on the outputs.
pub fn weights(comparison: &Comparison) -> Vec<String> {
    let weights = comparison.contract.weights.iter().take(N_WEIGHTS_MAX);
    let lines = weights.filter_map(|weight| {
        let [operator, slot] = weight.pair?;
        let slot = comparison.operators.get(operator)?.slots.get(slot)?;
        let words = words(slot.change.as_deref()?);
        Some(format!("weight `{}`: {words}", weight.name))
    });
    lines.collect()
}

/// Whether a change says no more than where elements differ, which has a line already.
fn is_one_box(change: &TensorChange) -> bool {
    let TensorChange::Part { axes, change: None } = change else {
        return false;
    };
    axes.iter().all(|part| part.ranges.len() == 1)
}

fn words(change: &TensorChange) -> String {
    match change {
        TensorChange::Constant { value, golden } => {
            let golden = golden.map(|golden| format!("; golden's are {}", number(golden)));
            format!(
                "all elements are {}{}",
                number(*value),
                golden.unwrap_or_default()
            )
        }
        TensorChange::Affine { factor, offset } => affine(*factor, *offset),
        TensorChange::Function { function } => function_words(*function).to_owned(),
        TensorChange::Axes { .. }
        | TensorChange::Reshaped
        | TensorChange::Mirrored { .. }
        | TensorChange::Rolled { .. }
        | TensorChange::Moved { .. } => arrangement(change),
        TensorChange::Exchanged { .. }
        | TensorChange::Blocks { .. }
        | TensorChange::Interleaved { .. }
        | TensorChange::Permuted { .. }
        | TensorChange::Reordered => order(change),
        TensorChange::Rounded { .. }
        | TensorChange::Steps { .. }
        | TensorChange::Clipped { .. }
        | TensorChange::Triangle { .. } => format!("golden's {}", limited(change)),
        TensorChange::CutOff { n_equal, value } => {
            let rest = value.map_or("the others differ".to_owned(), |value| {
                format!("all others are {}", number(value))
            });
            format!("only the first {n_equal} elements are golden's, {rest}")
        }
        TensorChange::Overflow { .. } | TensorChange::NonFinite { .. } => non_finite(change),
        TensorChange::Channels {
            axis,
            is_factor,
            min,
            max,
        } => {
            let what = if *is_factor {
                "times a factor"
            } else {
                "plus an offset"
            };
            let (min, max) = (number(*min), number(*max));
            format!("golden's {what} for each index of axis {axis}, from {min} to {max}")
        }
        TensorChange::ByteOrder => {
            "golden's with the bytes of each element in the opposite order".to_owned()
        }
        TensorChange::Part { axes, change } => {
            let change = change.as_deref().map(|change| match change {
                TensorChange::Constant { .. } | TensorChange::CutOff { .. } => {
                    format!("; there {}", words(change))
                }
                _ => format!("; there it is {}", words(change)),
            });
            format!(
                "differs only at {}{}",
                parts(axes),
                change.unwrap_or_default()
            )
        }
        TensorChange::Missing { change } => {
            format!("not {}, golden's is", limited(change))
        }
        TensorChange::OtherWeight { name } => format!("golden's `{name}`"),
    }
}

/// Elements that are infinite or NaN, in words; nothing for other changes.
fn non_finite(change: &TensorChange) -> String {
    match change {
        TensorChange::Overflow {
            dtype,
            largest,
            needed,
            n,
        } => {
            let verb = if *n == 1 { "is" } else { "are" };
            format!(
                "{n} of golden's elements, up to {}, {verb} beyond the largest {dtype}, {}",
                thousands(*needed),
                thousands(*largest)
            )
        }
        TensorChange::NonFinite { n_nan, n_inf } => {
            let counts = [(n_nan, "NaN"), (n_inf, "infinite")];
            let counts = counts.into_iter().filter(|(n, _)| **n > 0);
            let counts: Vec<String> = counts.map(|(n, what)| format!("{n} {what}")).collect();
            let counts = counts.join(" and ");
            format!("golden's but for elements that are not finite: {counts}")
        }
        _ => String::new(),
    }
}

fn affine(factor: f64, offset: f64) -> String {
    let sign = if offset < 0.0 { "minus" } else { "plus" };
    let offset_words = format!("{sign} {}", short(offset.abs()));
    if factor == -1.0 && offset == 0.0 {
        "golden's with the opposite sign".to_owned()
    } else if offset == 0.0 {
        format!("golden's times {}", short(factor))
    } else if factor == 1.0 {
        format!("golden's {offset_words}")
    } else {
        format!("golden's times {} {offset_words}", short(factor))
    }
}

/// A factor, with enough digits to differ from 1.
fn short(value: f64) -> String {
    let text = number(value);
    if text == "1" || value.abs() > 0.9 && value.abs() < 1.1 {
        let text = format!("{value:.6}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

fn function_words(function: ElementFunction) -> &'static str {
    match function {
        ElementFunction::Absolute => "golden's without signs",
        ElementFunction::Reciprocal => "the reciprocal of golden's",
        ElementFunction::Square => "golden's squared",
        ElementFunction::SquareRoot => "the square root of golden's",
        ElementFunction::ReciprocalSquareRoot => "the reciprocal of golden's square root",
        ElementFunction::Exponential => "the exponential of golden's",
        ElementFunction::Logarithm => "the logarithm of golden's",
    }
}

fn arrangement(change: &TensorChange) -> String {
    match change {
        TensorChange::Axes { order, in_memory } => {
            let moved: Vec<usize> = (0..order.len()).filter(|&k| order[k] != k).collect();
            let axes = match moved[..] {
                [a, b] => format!("axes {a} and {b} exchanged"),
                _ => format!("its axes in the order {}", list(order)),
            };
            if *in_memory {
                format!("golden's with {axes}, stored under golden's shape")
            } else {
                format!("golden's with {axes}")
            }
        }
        TensorChange::Reshaped => "the same elements in memory order, in another shape".to_owned(),
        TensorChange::Mirrored { axes, block: 0 } => {
            format!("golden's mirrored along {}", axis_words(axes))
        }
        TensorChange::Mirrored { axes, block } => {
            format!(
                "golden's mirrored in each block of {block} along {}",
                axis_words(axes)
            )
        }
        TensorChange::Rolled { axes } => {
            let rolls = axes
                .iter()
                .map(|(axis, by)| format!("by {by} along axis {axis}"));
            format!(
                "golden's rolled {}",
                rolls.collect::<Vec<_>>().join(" and ")
            )
        }
        TensorChange::Moved { by, wraps } => {
            let elements = if by.abs() == 1 { "element" } else { "elements" };
            if *wraps {
                format!("golden's rolled by {by} {elements} in memory order")
            } else {
                let end = if *by > 0 { "first" } else { "last" };
                let by_words = format!("golden's moved by {by} {elements} in memory order");
                format!("{by_words}; the {end} {} are others", by.abs())
            }
        }
        _ => String::new(),
    }
}

fn order(change: &TensorChange) -> String {
    match change {
        TensorChange::Exchanged {
            axis,
            indices: [a, b],
        } => {
            format!("golden's with indices {a} and {b} of axis {axis} exchanged")
        }
        TensorChange::Blocks { axis, size, order } => {
            let blocks = if order.len() > N_BLOCKS_MAX {
                "in another order".to_owned()
            } else {
                format!("in the order {}", list(order))
            };
            format!("golden's with blocks of {size} along axis {axis} {blocks}")
        }
        TensorChange::Interleaved {
            axis,
            n_parts,
            block,
        } => {
            // Two indices in each part: the even ones come first, then the odd ones.
            let what = match (*n_parts, block / n_parts.max(&1)) {
                (2, _) => "halves interleaved".to_owned(),
                (_, 2) => "even indices before odd ones".to_owned(),
                (n_parts, _) => format!("{n_parts} parts interleaved"),
            };
            format!("golden's with {what} in each block of {block} along axis {axis}")
        }
        TensorChange::Permuted { axis } => {
            format!("golden's with the indices of axis {axis} in another order")
        }
        _ => "golden's elements in another order".to_owned(),
    }
}

/// The operation on a tensor that lost information: `rounded to bfloat16`.
fn limited(change: &TensorChange) -> String {
    match change {
        TensorChange::Rounded { format, mode } => {
            let mode = match mode {
                RoundingMode::Nearest => "rounded",
                RoundingMode::TowardsZero => "rounded towards zero",
                RoundingMode::Down => "rounded down",
                RoundingMode::Up => "rounded up",
            };
            format!("{mode} to {}", format_name(*format))
        }
        TensorChange::Steps { step } => format!("rounded to steps of {}", number(*step)),
        TensorChange::Clipped { low, high } => match (low, high) {
            (Some(low), None) => format!("clipped to at least {}", number(*low)),
            (None, Some(high)) => format!("clipped to at most {}", number(*high)),
            _ => {
                let [low, high] = [low, high].map(|end| end.map_or("-inf".to_owned(), number));
                format!("clipped to [{low}, {high}]")
            }
        },
        TensorChange::Triangle {
            is_upper,
            diagonal,
            value,
        } => {
            let side = if *is_upper { "upper" } else { "lower" };
            let from = if *diagonal == 0 {
                String::new()
            } else {
                format!(" from diagonal {diagonal} on")
            };
            format!("masked: the {side} triangle{from} is {}", number(*value))
        }
        other => words(other),
    }
}

fn format_name(format: RoundedFormat) -> &'static str {
    match format {
        RoundedFormat::Integers => "integers",
        RoundedFormat::Float16 => "float16",
        RoundedFormat::Bfloat16 => "bfloat16",
        RoundedFormat::Tf32 => "TF32",
        RoundedFormat::Float8E4m3 => "float8_e4m3",
        RoundedFormat::Float8E5m2 => "float8_e5m2",
    }
}

fn parts(axes: &[AxisPart]) -> String {
    let axes = axes.iter().map(|AxisPart { axis, ranges }| {
        let names = ranges
            .iter()
            .map(|&[first, end]| match end.saturating_sub(1) {
                last if last <= first => first.to_string(),
                last => format!("{first} to {last}"),
            });
        let names: Vec<String> = names.collect();
        let noun = if matches!(ranges[..], [[first, end]] if end <= first + 1) {
            "index"
        } else {
            "indices"
        };
        format!("{noun} {} of axis {axis}", names.join(", "))
    });
    axes.collect::<Vec<_>>().join(", ")
}

fn axis_words(axes: &[usize]) -> String {
    let noun = if axes.len() == 1 { "axis" } else { "axes" };
    format!("{noun} {}", list(axes))
}

fn list(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    numbers.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: TensorChange, expected: &str) {
        let mut slot = SlotResult::default();
        slot.change_rare(|rare| rare.change = Some(change.into()));
        let found = super::change(&slot).unwrap();
        assert_eq!(found, format!("the target's tensor: {expected}"));
    }

    #[test]
    fn operations_have_words() {
        let affine = |factor, offset| TensorChange::Affine { factor, offset };
        check(affine(0.5, 0.0), "golden's times 0.5");
        check(affine(1.000_1, 0.0), "golden's times 1.0001");
        check(affine(1.0, -0.1), "golden's minus 0.1");
        check(affine(-1.0, 1.0), "golden's times -1 plus 1");
        check(affine(-1.0, 0.0), "golden's with the opposite sign");
        let axes = |order: &[usize], in_memory| TensorChange::Axes {
            order: order.to_vec(),
            in_memory,
        };
        check(
            axes(&[0, 2, 1], false),
            "golden's with axes 1 and 2 exchanged",
        );
        check(
            axes(&[2, 0, 1], true),
            "golden's with its axes in the order 2, 0, 1, stored under golden's shape",
        );
        let (axis, size, order) = (0, 16, vec![0, 2, 1, 3]);
        check(
            TensorChange::Blocks { axis, size, order },
            "golden's with blocks of 16 along axis 0 in the order 0, 2, 1, 3",
        );
        let (axis, ranges) = (1, vec![[5, 6]]);
        let change = Some(Box::new(affine(2.0, 0.0)));
        let axes = vec![AxisPart { axis, ranges }];
        check(
            TensorChange::Part { axes, change },
            "differs only at index 5 of axis 1; there it is golden's times 2",
        );
        let (low, high) = (Some(0.0), None);
        let change = Box::new(TensorChange::Clipped { low, high });
        check(
            TensorChange::Missing { change },
            "not clipped to at least 0, golden's is",
        );
        let (by, wraps) = (-5, false);
        check(
            TensorChange::Moved { by, wraps },
            "golden's moved by -5 elements in memory order; the last 5 are others",
        );
    }
}
