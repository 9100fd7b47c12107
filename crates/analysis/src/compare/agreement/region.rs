//! Finds the culprit among several operators that are one operator on the other side.
//!
//! At a divergence, one golden operator may be several on the target, such as a linear layer that
//! is a `MatMul` and an `Add`. Intermediate values have no counterpart. But a network has many such
//! places, and those that agree show how the operators should look. The first operator with another
//! type or other attributes, or with a weight that the golden side lacks, is reported.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::f64::consts::SQRT_2;

use super::ComparedValues;
use super::values::{IDLE_TYPES, ValueIndex, is_one_of};
use crate::compare::matching::{ValueAnchor, is_view};
use crate::compare::side::ComparedDump;

/// The types of one operator, and the types of its components with their constants.
type Decomposition = (&'static [&'static str], &'static [(&'static str, f64)]);

/// Operators that exporters take apart, under their types in ONNX and in PyTorch, and what they
/// make of them, with the constants that these read. Without these nothing would be known at the
/// first place of its kind, nor where all places of a kind share a wrong constant.
const DECOMPOSITIONS: [Decomposition; 8] = [
    (&LINEAR, &[("MatMul", NONE), ("Add", NONE)]),
    // MindSpore's.
    (&LINEAR, &[("MatMul", NONE), ("BiasAdd", NONE)]),
    (
        &["Conv", "aten_convolution_default"],
        &[("Conv2D", NONE), ("BiasAdd", NONE)],
    ),
    (
        &GELU,
        &[
            ("Div", SQRT_2),
            ("Erf", NONE),
            ("Add", 1.0),
            ("Mul", 0.5),
            ("Mul", NONE),
        ],
    ),
    (
        &GELU,
        &[
            ("Div", SQRT_2),
            ("Erf", NONE),
            ("Add", 1.0),
            ("Mul", NONE),
            ("Mul", 0.5),
        ],
    ),
    (
        &GELU,
        &[
            ("Pow", 3.0),
            ("Mul", GELU_CUBIC),
            ("Add", NONE),
            ("Mul", SQRT_2_OVER_PI),
            ("Tanh", NONE),
            ("Add", 1.0),
            ("Mul", 0.5),
            ("Mul", NONE),
        ],
    ),
    (
        &GELU,
        &[
            ("Mul", NONE),
            ("Mul", NONE),
            ("Mul", GELU_CUBIC),
            ("Add", NONE),
            ("Mul", SQRT_2_OVER_PI),
            ("Tanh", NONE),
            ("Add", 1.0),
            ("Mul", NONE),
            ("Mul", 0.5),
        ],
    ),
    (
        &["Silu", "Swish", "aten_silu_default"],
        &[("Sigmoid", NONE), ("Mul", NONE)],
    ),
];
const LINEAR: [&str; 3] = ["Gemm", "aten_addmm_default", "aten_linear_default"];
const GELU: [&str; 2] = ["Gelu", "aten_gelu_default"];
/// No constant is read.
const NONE: f64 = f64::NAN;
/// The factor of the cube in the approximation of GELU by a hyperbolic tangent.
const GELU_CUBIC: f64 = 0.044_715;
/// √(2 / π), the factor before its argument.
const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
/// Maximum distance of constants of two dtypes, relative to their size.
const CONSTANTS_APART_MAX: f64 = 1e-3;

/// Maximum number of operators of a region.
const N_OPERATORS_MAX: usize = 32;
/// Maximum number of alternative operators that are named.
const N_OTHERS_MAX: usize = 8;

/// The properties of an operator by which regions are compared.
#[derive(Clone, Debug, PartialEq)]
struct RegionStep {
    op_type: String,
    /// The only number from outside that it reads, if any.
    constant: Option<f64>,
    /// Its attributes, if a graph has them.
    attributes: Option<BTreeMap<String, String>>,
}

impl RegionStep {
    fn read(values: &ComparedValues, dump: &ComparedDump, run: usize) -> RegionStep {
        let inputs = values.sides[0].inputs_of(run);
        let mut constants = inputs.filter_map(|value| {
            let of = &values.sides[0].values[value.0];
            let is_number = of.is_outside && !of.is_integer && of.stats.counts.n_elements == 1;
            is_number.then_some(of.stats.min)
        });
        RegionStep {
            op_type: dump.runs[run].op_type.to_string(),
            constant: constants.next().filter(|_| constants.next().is_none()),
            attributes: dump.attributes_of(run).map(|known| {
                let given = known.given.into_iter();
                given
                    .map(|(name, text)| (name.to_owned(), text.to_owned()))
                    .collect()
            }),
        }
    }

    fn is_like(&self, other: &RegionStep) -> bool {
        let has_one_constant = match (self.constant, other.constant) {
            (Some(a), Some(b)) => (a - b).abs() <= CONSTANTS_APART_MAX * a.abs().max(b.abs()),
            (a, b) => a.is_none() == b.is_none(),
        };
        let has_one_set = match (&self.attributes, &other.attributes) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        self.op_type == other.op_type && has_one_constant && has_one_set
    }
}

/// The target's operators, in the order of execution, in regions that agree: by the golden side's
/// type.
pub(super) struct LearnedRegions {
    of_type: HashMap<String, Vec<Vec<RegionStep>>>,
    /// Names of the golden side's operators, and of those that they were fused from.
    names: HashSet<String>,
}

/// The reported operator of a region, and others that may be at fault.
pub(super) struct RegionCulprit {
    pub(super) run: usize,
    pub(super) others: Vec<usize>,
}

impl RegionCulprit {
    pub(super) fn alone(run: usize) -> RegionCulprit {
        RegionCulprit {
            run,
            others: Vec::new(),
        }
    }
}

impl LearnedRegions {
    pub(super) fn learn(
        values: &ComparedValues,
        dumps: [&ComparedDump; 2],
        makers: &HashMap<ValueIndex, Vec<usize>>,
        anchors: &[ValueAnchor],
    ) -> LearnedRegions {
        let mut learned: HashMap<String, Vec<Vec<RegionStep>>> = HashMap::new();
        for (wholes, parts) in DECOMPOSITIONS {
            for whole in wholes {
                let steps = parts.iter().map(|&(op_type, constant)| RegionStep {
                    op_type: op_type.to_owned(),
                    constant: (!constant.is_nan()).then_some(constant),
                    attributes: None,
                });
                let of_type = learned.entry((*whole).to_owned()).or_default();
                of_type.push(steps.collect());
            }
        }
        for anchor in anchors {
            let [target, golden] = anchor.runs;
            let region = before(values, makers, target);
            let steps = region
                .iter()
                .map(|&run| RegionStep::read(values, dumps[0], run));
            let steps: Vec<RegionStep> = steps.collect();
            let of_type = learned
                .entry(dumps[1].runs[golden].op_type.to_string())
                .or_default();
            if !of_type.contains(&steps) {
                of_type.push(steps);
            }
        }
        let names = dumps[1].runs.iter().flat_map(|run| {
            let own = std::iter::once(run.op_name.as_str());
            let before = run.original_names.iter().map(String::as_str);
            own.chain(before).map(str::to_owned)
        });
        LearnedRegions {
            of_type: learned,
            names: names.collect(),
        }
    }

    /// The operator of the target to name for a region that begins with `target` and is `golden` on
    /// the other side. None if it is not known how golden's looks in the target.
    pub(super) fn culprit(
        &self,
        values: &ComparedValues,
        dumps: [&ComparedDump; 2],
        [target, golden]: [usize; 2],
    ) -> Option<RegionCulprit> {
        let region = after(values, target);
        let fused = &dumps[1].runs[golden].original_names;
        let is_part = |run: &usize| {
            fused
                .iter()
                .any(|name| dumps[0].runs[*run].op_name == *name)
        };
        if is_part(&target) {
            let parts: Vec<usize> = region.iter().copied().filter(is_part).collect();
            // Among components with original names, one that the golden side lacks is recognizable.
            let last = parts.last().copied().unwrap_or(target);
            let mut within = region.iter().copied().take_while(|run| *run <= last + 1);
            let foreign =
                within.find(|run| !self.names.contains(dumps[0].runs[*run].op_name.as_str()));
            return Some(self.in_parts(values, golden, &parts, foreign));
        }
        if fused.len() > 1 {
            let computed = region
                .iter()
                .copied()
                .filter(|run| *run == target || !is_view(&dumps[0].runs[*run]));
            let parts = computed.take(fused.len());
            return Some(self.in_parts(values, golden, &parts.collect::<Vec<_>>(), None));
        }
        let steps: Vec<RegionStep> = region
            .iter()
            .map(|&run| RegionStep::read(values, dumps[0], run))
            .collect();
        let n_common = |known: &[RegionStep]| {
            let both = known.iter().zip(&steps);
            both.take_while(|(known, found)| known.is_like(found))
                .count()
        };
        let learned = self.of_type.get(dumps[1].runs[golden].op_type.as_str());
        let nearest = learned
            .into_iter()
            .flatten()
            .max_by_key(|known| n_common(known));
        let known = nearest.filter(|known| n_common(known) > 0)?;
        let n = n_common(known);
        let other = region.get(n).copied().filter(|_| n < known.len());
        // A multiplication by 1 has no counterpart in the region: another factor belongs there.
        let other =
            other.map(|other| idle_between(values, dumps[0], [target, other]).unwrap_or(other));
        Some(self.in_parts(values, golden, &region[..n], other))
    }

    /// The one of a region's operators that reads what the golden operator does not, else `other`,
    /// which is not what it should be, else all.
    fn in_parts(
        &self,
        values: &ComparedValues,
        golden: usize,
        parts: &[usize],
        other: Option<usize>,
    ) -> RegionCulprit {
        let changed = parts.iter().copied().find(|run| {
            let inputs = values.sides[0].inputs_of(*run);
            let mut outside = inputs.filter(|value| values.sides[0].values[value.0].is_outside);
            outside.any(|value| values.is_orphan(0, value))
        });
        // The golden side computes from its operator's inputs, the target from others. A value that
        // the target lacks may be one of them in another form.
        let is_told = values.sides[1].inputs_of(golden).all(|value| {
            let of = &values.sides[1].values[value.0];
            let is_known = of.is_outside || values.equals[1][value.0].is_some();
            is_known || !of.is_distinctive()
        });
        let mut told = parts.iter().copied().filter(|_| is_told);
        let rewired = told.find(|run| {
            let inputs = values.sides[0].inputs_of(*run);
            let mut computed = inputs.filter(|value| values.sides[0].values[value.0].is_computed());
            computed.any(|value| {
                let equal = values.equals[0][value.0];
                equal.is_some_and(|equal| !values.sides[1].reads(golden, equal))
            })
        });
        match changed.or(rewired).or(other) {
            Some(run) => RegionCulprit::alone(run),
            None => RegionCulprit {
                run: parts[0],
                others: parts[1..].iter().copied().take(N_OTHERS_MAX).collect(),
            },
        }
    }
}

/// The operators of the target that are one operator of the golden side, in the order of execution,
/// if what golden computes from its outputs has partners: all from which those are computed. `runs`
/// has the partners of golden's. None if `start` is none of them, or if they are too many; the last
/// ones are left out.
pub(super) fn of_fused(
    values: &ComparedValues,
    dump: &ComparedDump,
    [start, golden]: [usize; 2],
    runs: impl Fn(usize) -> Option<usize>,
) -> Vec<usize> {
    let outputs = values.sides[1].outputs.get(&golden).into_iter().flatten();
    let readers = outputs.flat_map(|value| values.sides[1].values[value.0].readers.iter());
    let next = readers
        .filter_map(|reader| runs(*reader))
        .filter(|run| *run > start)
        .min();
    let Some(next) = next else {
        return Vec::new();
    };
    let mut region = before(values, &values.sides[0].makers(), next);
    let is_whole = region.contains(&start) && region.len() < N_OPERATORS_MAX;
    region.retain(|run| is_whole && *run != next && !is_view(&dump.runs[*run]));
    // Operators with single numbers, such as the factor of an attention, come last.
    region.sort_by_key(|run| {
        let mut outputs = values.sides[0].outputs.get(run).into_iter().flatten();
        let has_tensor = outputs.any(|value| {
            let of = &values.sides[0].values[value.0];
            of.is_distinctive() && !of.is_extents
        });
        (!has_tensor, *run)
    });
    region.truncate(N_OTHERS_MAX + 1);
    region
}

/// The first of consecutive operators that has no effect although its type computes something.
fn idle_between(
    values: &ComparedValues,
    dump: &ComparedDump,
    [first, last]: [usize; 2],
) -> Option<usize> {
    let side = &values.sides[0];
    (first..last).find(|run| {
        let outputs = side.outputs.get(run);
        let is_idle = outputs.is_some_and(|outputs| {
            outputs.iter().all(|value| {
                let of = &side.values[value.0];
                side.reads(*run, *value) && !of.is_outside && of.is_distinctive()
            })
        });
        is_idle && !is_view(&dump.runs[*run]) && !is_one_of(&IDLE_TYPES, &dump.runs[*run])
    })
}

/// The operators that computed an output from values that the other side has.
fn before(
    values: &ComparedValues,
    makers: &HashMap<ValueIndex, Vec<usize>>,
    end: usize,
) -> Vec<usize> {
    let mut region = BTreeSet::from([end]);
    let mut open = vec![end];
    while let Some(run) = open.pop() {
        for value in values.sides[0].inputs_of(run) {
            let of = &values.sides[0].values[value.0];
            if of.is_outside || values.equals[0][value.0].is_some() {
                continue;
            }
            let maker = makers.get(&value).and_then(|makers| makers.first());
            if let Some(&maker) = maker.filter(|_| region.len() < N_OPERATORS_MAX)
                && region.insert(maker)
            {
                open.push(maker);
            }
        }
    }
    region.into_iter().collect()
}

/// The operators that compute with an operator's result, in execution order, itself first.
fn after(values: &ComparedValues, start: usize) -> Vec<usize> {
    let side = &values.sides[0];
    let mut region = BTreeSet::from([start]);
    let mut open = vec![start];
    while let Some(run) = open.pop() {
        for value in side.outputs.get(&run).into_iter().flatten() {
            if values.equals[0][value.0].is_some() {
                continue;
            }
            for &reader in &side.values[value.0].readers {
                if region.len() < N_OPERATORS_MAX && reader > run && region.insert(reader) {
                    open.push(reader);
                }
            }
        }
    }
    region.into_iter().collect()
}
