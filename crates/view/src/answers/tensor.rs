//! A tensor next to its match: statistics, distribution, and differing elements.

use opscope_analysis::elements::NumpyArray;
use opscope_tensor::distribution::{distribution, finite_range, percentiles};
use opscope_tensor::{Layout, Numbers, Stats, TensorView, stats};
use serde_json::{Value, json};

use super::elements::{load, numbers};
use super::{AnswerError, AskedSlot, Query};
use crate::json::{known, number, slot};
use crate::viewed::{ShownSide, ViewedRuns};

/// Bins of a histogram.
const N_BINS: usize = 64;
/// The displayed percentiles.
const PERCENTS: [f64; 11] = [
    0.0, 0.1, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9, 100.0,
];
/// Maximum number of listed elements.
const N_WORST: usize = 8;
/// Exponent of the smallest bin of differences, which includes everything below.
const FIRST_POWER: i32 = -12;
const N_POWERS: usize = 25;

/// One side's elements with their statistics.
struct SideNumbers {
    array: NumpyArray,
    stats: Stats,
}

impl SideNumbers {
    fn new(array: NumpyArray) -> Result<SideNumbers, AnswerError> {
        let view = TensorView::new(array.dtype, &array.shape, array.bytes());
        // One pass over the bytes, before anything else reads them.
        let stats = stats(view);
        let stats = stats.map_err(|error| AnswerError::Missing(error.to_string()))?;
        // Tensors with statistics are numeric.
        numbers(&array)?;
        Ok(SideNumbers { array, stats })
    }

    fn numbers(&self) -> Option<Numbers<'_>> {
        Numbers::new(self.array.dtype, self.array.bytes())
    }

    /// Smallest and largest finite element.
    fn range(&self) -> Option<(f64, f64)> {
        let counts = &self.stats.counts;
        let n_bad = counts.n_nan + counts.n_pos_inf + counts.n_neg_inf;
        if n_bad > 0 || counts.n_elements == 0 {
            // The minimum or maximum may be an infinity.
            return finite_range(self.numbers()?);
        }
        Some((self.stats.min, self.stats.max))
    }
}

pub(super) fn answer(runs: &ViewedRuns, query: &Query) -> Result<Value, AnswerError> {
    let asked = AskedSlot::read(runs, query)?;
    let side = |side| load(runs, asked.operator, asked.key, side).and_then(SideNumbers::new);
    let target = side(ShownSide::Target);
    let golden = runs.golden.as_ref().map(|_| side(ShownSide::Golden));
    let reference = runs.reference.as_ref().map(|_| side(ShownSide::Reference));
    let [target_error, golden_error] = [Some(&target), golden.as_ref()].map(|side| {
        side.and_then(|side| side.as_ref().err())
            .map(ToString::to_string)
    });
    let missing = json!({ "target": target_error, "golden": golden_error });
    // If one side is missing, the other is still shown.
    let (target, golden) = (target.ok(), golden.and_then(Result::ok));
    // Its absence is no fault of the pair.
    let reference = reference.and_then(Result::ok);
    let describe = |found: &Option<SideNumbers>, side| {
        found
            .as_ref()
            .map(|found| describe(runs, &asked, side, found))
    };
    let (histogram, ladder) = distributions([target.as_ref(), golden.as_ref()]);
    Ok(json!({
        "op": asked.operator,
        "slot": slot(asked.key),
        "sides": {
            "target": describe(&target, ShownSide::Target),
            "golden": describe(&golden, ShownSide::Golden),
            "reference": describe(&reference, ShownSide::Reference),
        },
        "missing": missing,
        "histogram": histogram,
        "percentiles": ladder,
        "difference": difference(runs, &asked, target.as_ref(), golden.as_ref()),
    }))
}

fn describe(runs: &ViewedRuns, asked: &AskedSlot, side: ShownSide, found: &SideNumbers) -> Value {
    let shown = runs.slot(asked.operator, asked.key, side);
    let counts = &found.stats.counts;
    let path = shown
        .map(|shown| shown.path.display().to_string())
        .unwrap_or_default();
    let layout = shown
        .and_then(|shown| shown.layout)
        .filter(|layout| *layout != Layout::Nd);
    let dims = found.array.shape.dims();
    let axes: Vec<String> = match layout.map(Layout::name) {
        // One letter per axis.
        Some(name) if name.len() == dims.len() => name.chars().map(String::from).collect(),
        _ => (0..dims.len()).map(|axis| axis.to_string()).collect(),
    };
    // Other files contain several arrays, or use another format.
    let is_npy = path.ends_with(".npy");
    let dump = runs.side(side);
    let name = dump.and_then(|dump| {
        let runs = runs.executions(asked.operator, side);
        dump.dump
            .runs
            .get(*runs.last()?)
            .map(|run| run.op_name.to_string())
    });
    let lines = json!({
        "numpy": is_npy.then(|| format!("np.load({})", python_text(&path))),
        "opscope": dump.zip(name).map(|(dump, name)| {
            let root = python_text(&dump.path.display().to_string());
            format!("opscope.open({root})[{}]", python_text(&name))
        }),
    });
    json!({
        "dtype": shown.map(|shown| shown.dtype_name.as_str()),
        "shape": dims,
        "layout": layout.map(Layout::name),
        "axes": axes,
        "file": path,
        "n_bytes": shown.map(|shown| shown.n_bytes),
        "statistics": {
            "min": number(found.stats.min),
            "max": number(found.stats.max),
            "mean": number(found.stats.mean),
            "std": number(found.stats.std),
            "l2": number(found.stats.l2),
            "n_elements": counts.n_elements,
            "n_zero": counts.n_zero,
            "n_nan": counts.n_nan,
            "n_pos_inf": counts.n_pos_inf,
            "n_neg_inf": counts.n_neg_inf,
        },
        "lines": lines,
    })
}

/// A text as a Python literal.
fn python_text(text: &str) -> String {
    let mut literal = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => literal.extend(['\\', letter]),
            // Control characters end below U+00A0, so two digits are enough.
            letter if letter.is_control() => literal += &format!("\\x{:02x}", u32::from(letter)),
            letter => literal.push(letter),
        }
    }
    literal + "\""
}

/// The histogram, with the same bins for both sides, and the percentiles.
fn distributions(sides: [Option<&SideNumbers>; 2]) -> (Value, Vec<Value>) {
    let ranges = sides.into_iter().flatten().filter_map(SideNumbers::range);
    // Both sides share the bins, so that the histograms can be drawn over each other.
    let range = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let found = sides.map(|side| match (side.and_then(SideNumbers::numbers), range) {
        (Some(numbers), Some((low, high))) => {
            let (counts, found) = distribution(numbers, [low, high], N_BINS, &PERCENTS);
            (Some(counts), found)
        }
        // Without finite elements there are neither bins nor percentiles.
        (Some(numbers), None) => (None, percentiles(numbers, &PERCENTS)),
        (None, _) => (None, vec![None; PERCENTS.len()]),
    });
    let [(target, of_target), (golden, of_golden)] = found;
    let histogram = range.map_or(Value::Null, |(low, high)| {
        json!({
            "low": number(low),
            "high": number(high),
            "target": target,
            "golden": golden,
        })
    });
    let steps = PERCENTS.iter().zip(of_target.iter().zip(&of_golden));
    let ladder = steps.map(|(p, (target, golden))| {
        json!({ "p": p, "target": known(*target), "golden": known(*golden) })
    });
    (histogram, ladder.collect())
}

/// A differing element.
struct WorstPlace {
    at: usize,
    /// Infinite for NaN and infinities on one side only.
    distance: f64,
}

fn difference(
    runs: &ViewedRuns,
    asked: &AskedSlot,
    target: Option<&SideNumbers>,
    golden: Option<&SideNumbers>,
) -> Value {
    let (Some(target), Some(golden)) = (target, golden) else {
        return Value::Null;
    };
    let dims = target.array.shape.dims();
    let (Some(ours), Some(theirs)) = (target.numbers(), golden.numbers()) else {
        return Value::Null;
    };
    if dims != golden.array.shape.dims() {
        return Value::Null;
    }
    let mut counts = vec![0_u64; N_POWERS];
    let mut worst: Vec<WorstPlace> = Vec::new();
    let mut ranges: Option<Vec<[usize; 2]>> = None;
    let (mut n_equal, mut max_abs) = (0_u64, 0.0_f64);
    for at in 0..ours.len() {
        let (Some(a), Some(b)) = (ours.get(at), theirs.get(at)) else {
            break;
        };
        if a == b || a.is_nan() && b.is_nan() {
            n_equal += 1;
            continue;
        }
        let distance = (a - b).abs();
        // NaN on one side exceeds any distance.
        let distance = if distance.is_nan() {
            f64::INFINITY
        } else {
            distance
        };
        max_abs = max_abs.max(distance);
        let power = distance.log10().floor() - f64::from(FIRST_POWER);
        // Zero has no exponent, but equal elements never get here.
        counts[(power.max(0.0) as usize).min(N_POWERS - 1)] += 1;
        widen(&mut ranges, dims, at);
        if worst.len() < N_WORST || worst.last().is_some_and(|last| distance > last.distance) {
            // After equal ones, so that the first of several elements is listed first.
            let place = worst.partition_point(|known| known.distance >= distance);
            worst.insert(place, WorstPlace { at, distance });
            worst.truncate(N_WORST);
        }
    }
    let worst = worst.iter().map(|place| {
        let (a, b) = (ours.get(place.at), theirs.get(place.at));
        json!({
            "index": index_of(dims, place.at),
            "target": known(a),
            "golden": known(b),
            "difference": known(a.zip(b).map(|(a, b)| a - b)),
        })
    });
    json!({
        "n_equal": n_equal,
        "n_differing": ours.len() as u64 - n_equal,
        "n_elements": ours.len(),
        "max_abs": number(max_abs),
        "ranges": ranges,
        "powers": { "first": FIRST_POWER, "counts": counts },
        "limit": known(absolute_limit(runs, asked)),
        "worst": worst.collect::<Vec<_>>(),
    })
}

/// The multi-dimensional index of an element.
fn index_of(dims: &[usize], mut at: usize) -> Vec<usize> {
    let mut index: Vec<usize> = Vec::with_capacity(dims.len());
    for &dim in dims.iter().rev() {
        index.push(at.checked_rem(dim).unwrap_or(0));
        at = at.checked_div(dim).unwrap_or(0);
    }
    index.reverse();
    index
}

/// Extends the bounding box to an element; bounds are inclusive.
fn widen(ranges: &mut Option<Vec<[usize; 2]>>, dims: &[usize], mut at: usize) {
    let ranges = ranges.get_or_insert_with(|| vec![[usize::MAX, 0]; dims.len()]);
    for (range, &dim) in ranges.iter_mut().zip(dims).rev() {
        let index = at % dim;
        at /= dim;
        *range = [range[0].min(index), range[1].max(index)];
    }
}

/// The largest difference that passes, if a limit on differences is known: that of
/// `scaled_max_abs` is relative to golden's largest magnitude.
fn absolute_limit(runs: &ViewedRuns, asked: &AskedSlot) -> Option<f64> {
    use opscope_analysis::compare::result::{MetricId, RuleName};
    let operator = runs.comparison()?.operators.get(asked.operator)?;
    let found = operator.slots.iter().find(|slot| slot.slot == asked.key)?;
    let scaled = RuleName::Metric(MetricId::ScaledMaxAbs);
    let rules = found.rules.iter().filter(|rule| rule.metric == scaled);
    let limit = rules.map(|rule| rule.threshold).reduce(f64::max)?;
    let largest =
        [MetricId::GoldenMin, MetricId::GoldenMax].map(|metric| found.metrics.get(metric));
    let largest = largest
        .into_iter()
        .flatten()
        .map(f64::abs)
        .reduce(f64::max)?;
    Some(limit * largest)
}

#[cfg(test)]
mod tests {
    use super::{index_of, python_text, widen};

    #[test]
    fn boxes_hold_all_indices() {
        let mut ranges = None;
        for at in [0, 7, 11] {
            widen(&mut ranges, &[2, 3, 4], at);
        }
        assert_eq!(ranges, Some(vec![[0, 0], [0, 2], [0, 3]]));
        assert_eq!(index_of(&[2, 3, 4], 23), [1, 2, 3]);
        assert_eq!(index_of(&[], 0), [] as [usize; 0]);
    }

    #[test]
    fn texts_are_those_of_python() {
        assert_eq!(python_text("a\"b\\c\n"), "\"a\\\"b\\\\c\\x0a\"");
    }
}
