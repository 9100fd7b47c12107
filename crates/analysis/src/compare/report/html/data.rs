//! The data of the page, small enough for 100,000 slots: a list for each column, texts that repeat
//! once, numbers with six digits, and of slots that agree only the main numbers.

use std::collections::{BTreeMap, HashMap, HashSet};

use opscope_store::SharedText;
use serde::{Serialize, Serializer};

use crate::compare::report::{ShownPlaces, chain, columns, words};
use crate::compare::result::{
    Comparison, MetricId, NonFiniteRole, OperatorResult, Skip, SlotResult, VerdictLevel,
};

/// Operators of the chain of NaN that are shown.
const N_CHAIN_MAX: usize = 50;

/// All that the page shows.
#[derive(Serialize)]
pub(super) struct PageContent<'a> {
    version: u32,
    level: &'static str,
    verdict: String,
    facts: Vec<(&'a str, String)>,
    operators: OperatorColumns,
    slots: SlotColumns,
    /// Names of further numbers, in the order in which details have them.
    more_metrics: Vec<MetricId>,
    /// By number of the slot, of those that do not simply agree.
    details: BTreeMap<usize, SlotDetail<'a>>,
    /// Texts, to which some columns have numbers; the first is empty.
    texts: Vec<String>,
    skips: Vec<SkipRow<'a>>,
    ranking: &'a [usize],
    chain: Vec<usize>,
    first: Option<(usize, String)>,
}

/// Columns of operators. Names ending with `_text` are numbers of texts.
#[derive(Default, Serialize)]
struct OperatorColumns {
    level: Vec<&'static str>,
    type_text: Vec<usize>,
    name: Vec<String>,
    golden: Vec<String>,
    place_text: Vec<usize>,
    how_text: Vec<usize>,
    likeness: Vec<Option<PageNumber>>,
    inputs: Vec<Option<PageNumber>>,
    outputs: Vec<Option<PageNumber>>,
    added: Vec<Option<PageNumber>>,
    role: Vec<Option<&'static str>>,
    /// The operator that bad values came from.
    from: Vec<Option<usize>>,
    cause: Vec<&'static str>,
    /// By number of the operator, of those whose cause is unknown.
    suspects: BTreeMap<usize, Vec<String>>,
    /// The first of its slots; they stand together.
    slot: Vec<usize>,
}

/// Columns of slots.
#[derive(Default, Serialize)]
struct SlotColumns {
    operator: Vec<usize>,
    slot_text: Vec<usize>,
    golden_text: Vec<usize>,
    level: Vec<&'static str>,
    evidence_text: Vec<usize>,
    dtype_text: Vec<usize>,
    shape_text: Vec<usize>,
    /// Metrics with their columns.
    numbers: Vec<(MetricId, Vec<Option<PageNumber>>)>,
}

/// Further details of a slot.
#[derive(Serialize)]
struct SlotDetail<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worst: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differing: Vec<String>,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    histogram: &'a [u64],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<Option<PageNumber>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    yardstick: Vec<(MetricId, PageNumber)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<&'a str>,
}

#[derive(Serialize)]
struct SkipRow<'a> {
    side: &'a str,
    op_type: &'a str,
    name: &'a str,
    place: String,
    slot: String,
    reason: &'a str,
    message: &'a str,
    is_allowed: bool,
    path: &'a str,
}

/// A number with six significant digits; those that JSON lacks are texts.
#[derive(Clone, Copy)]
struct PageNumber(f64);

impl Serialize for PageNumber {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let value = self.0;
        if !value.is_finite() {
            return to.serialize_str(&words::number(value));
        }
        // Six digits would turn a count, or the position of an element, into another.
        if value == value.trunc() && value.abs() < 1e15 {
            return to.serialize_i64(value as i64);
        }
        let rounded = format!("{value:.5e}").parse();
        to.serialize_f64(rounded.unwrap_or(value))
    }
}

/// Texts by number.
#[derive(Default)]
struct TextTable {
    all: Vec<String>,
    of: HashMap<String, usize>,
}

impl TextTable {
    fn put(&mut self, text: impl Into<String>) -> usize {
        let text = text.into();
        if let Some(&number) = self.of.get(&text) {
            return number;
        }
        self.all.push(text.clone());
        self.of.insert(text, self.all.len() - 1);
        self.all.len() - 1
    }
}

pub(super) fn page_content(comparison: &Comparison) -> PageContent<'_> {
    let mut texts = TextTable::default();
    // The script takes number 0 for no text.
    texts.put("");
    let mut operators = OperatorColumns::default();
    let mut slots = SlotColumns {
        numbers: MetricId::on_page()
            .map(|metric| (metric, Vec::new()))
            .collect(),
        ..SlotColumns::default()
    };
    let mut details = BTreeMap::new();
    let more_metrics = more_metrics(comparison);
    let places = ShownPlaces::for_comparison(comparison);
    for operator in &comparison.operators {
        operators.push(operator, slots.level.len(), &mut texts);
        if !operator.suspects.is_empty() {
            let suspects = operator.suspects.iter();
            let suspects = suspects.map(|suspect| words::suspect(suspect, places));
            let index = operators.level.len() - 1;
            operators.suspects.insert(index, suspects.collect());
        }
        for slot in &operator.slots {
            if let Some(detail) = SlotDetail::for_slot(slot, &more_metrics) {
                details.insert(slots.level.len(), detail);
            }
            slots.push(operators.level.len() - 1, slot, &mut texts);
        }
    }
    slots
        .numbers
        .retain(|(_, column)| column.iter().any(Option::is_some));
    let summary = &comparison.summary;
    let first = summary.headline();
    PageContent {
        version: comparison.version,
        level: words::level(summary.level),
        verdict: words::verdict(comparison),
        facts: facts(comparison),
        operators,
        slots,
        more_metrics,
        details,
        texts: texts.all,
        skips: comparison.skips.iter().map(SkipRow::for_skip).collect(),
        ranking: &summary.ranking,
        chain: chain::of_first(comparison, N_CHAIN_MAX),
        first: first.map(|first| (first.operator, first.slot.to_string())),
    }
}

impl OperatorColumns {
    fn push(&mut self, operator: &OperatorResult, first_slot: usize, texts: &mut TextTable) {
        let name = words::name_of(operator);
        let target = columns::joined(&operator.target);
        let golden = columns::joined(&operator.golden);
        let error = operator.error;
        self.level.push(words::level(operator.level));
        self.place_text.push(texts.put(words::place(&name)));
        self.type_text.push(texts.put(name.op_type));
        // Most often both sides have the same name.
        self.golden.push(if golden == target {
            String::new()
        } else {
            golden
        });
        self.name.push(target);
        self.how_text.push(texts.put(operator.how.name()));
        self.likeness.push(operator.likeness.map(PageNumber));
        let inputs = error.filter(|error| error.has_inputs);
        self.inputs
            .push(inputs.map(|error| PageNumber(error.inputs)));
        self.outputs
            .push(error.map(|error| PageNumber(error.outputs)));
        self.added.push(error.map(|error| PageNumber(error.added)));
        self.cause
            .push(operator.cause.map_or("", words::cause_name));
        self.role
            .push(operator.non_finite.as_ref().map(words::role));
        self.from.push(match operator.non_finite {
            Some(NonFiniteRole::Propagator { from }) => from,
            _ => None,
        });
        self.slot.push(first_slot);
    }
}

impl SlotColumns {
    fn push(&mut self, operator: usize, slot: &SlotResult, texts: &mut TextTable) {
        let shape = |shape: &[u64]| {
            let dims: Vec<String> = shape.iter().map(ToString::to_string).collect();
            dims.join("x")
        };
        let both = |a: &str, b: &str| {
            if a == b {
                a.to_owned()
            } else {
                format!("{a} / {b}")
            }
        };
        let golden = slot
            .golden_slot
            .map_or_else(String::new, |slot| slot.to_string());
        self.operator.push(operator);
        self.slot_text.push(texts.put(slot.slot.to_string()));
        self.golden_text.push(texts.put(golden));
        self.level.push(words::level(slot.level));
        self.evidence_text.push(texts.put(slot.evidence.name()));
        let dtype = both(&slot.target.dtype, &slot.golden.dtype);
        self.dtype_text.push(texts.put(dtype));
        let shape = both(&shape(&slot.target.shape), &shape(&slot.golden.shape));
        self.shape_text.push(texts.put(shape));
        for (metric, column) in &mut self.numbers {
            column.push(slot.metrics.get(*metric).map(PageNumber));
        }
    }
}

impl<'a> SlotDetail<'a> {
    /// None of a slot that simply agrees.
    fn for_slot(slot: &'a SlotResult, more_metrics: &[MetricId]) -> Option<SlotDetail<'a>> {
        let is_plain = slot.level == VerdictLevel::Pass;
        if is_plain && slot.histogram.is_empty() {
            return None;
        }
        let mut detail = SlotDetail {
            rules: slot.rules.iter().map(words::rule_words).collect(),
            worst: words::worst_element(slot),
            differing: words::differing(slot),
            histogram: &slot.histogram,
            more: Vec::new(),
            yardstick: Vec::new(),
            files: Vec::new(),
        };
        if !is_plain {
            let more = more_metrics.iter();
            detail.more = more
                .map(|metric| slot.metrics.get(*metric).map(PageNumber))
                .collect();
            let natural = MetricId::on_page().filter_map(|metric| {
                let value = slot.yardstick.as_ref()?.get(metric)?;
                Some((metric, PageNumber(value)))
            });
            detail.yardstick = natural.collect();
            let files = [&slot.target.path, &slot.golden.path];
            detail.files = files
                .into_iter()
                .flatten()
                .map(SharedText::as_str)
                .collect();
        }
        Some(detail)
    }
}

/// The metrics beside the main ones.
fn more_metrics(comparison: &Comparison) -> Vec<MetricId> {
    let slots = comparison
        .operators
        .iter()
        .flat_map(|operator| &operator.slots);
    let mut more = Vec::new();
    let mut known: HashSet<MetricId> = MetricId::on_page().collect();
    for metric in slots.flat_map(|slot| slot.metrics.names()) {
        if known.insert(*metric) {
            more.push(*metric);
        }
    }
    more
}

impl SkipRow<'_> {
    fn for_skip(skip: &Skip) -> SkipRow<'_> {
        let operator = skip.operator.as_ref();
        SkipRow {
            side: skip.side.name(),
            op_type: operator.map_or("", |name| &name.op_type),
            name: operator.map_or("", |name| &name.op_name),
            place: operator.map(words::place).unwrap_or_default(),
            slot: skip.slot.map_or_else(String::new, |slot| slot.to_string()),
            reason: skip.reason.name(),
            message: &skip.message,
            is_allowed: skip.is_allowed,
            path: skip.path.as_deref().unwrap_or_default(),
        }
    }
}

/// Lists the facts that stand above the tables.
fn facts(comparison: &Comparison) -> Vec<(&str, String)> {
    let config = &comparison.config;
    let summary = &comparison.summary;
    let counts = |[pass, warn, fail, skip]: [usize; 4]| {
        format!("{pass} pass, {warn} warn, {fail} fail, {skip} skip")
    };
    let coverage = |[n, n_compared]: [usize; 2]| format!("{n_compared} of {n} slots compared");
    let mut facts = vec![
        ("target", config.target.clone()),
        ("golden", config.golden.clone()),
    ];
    facts.extend(config.reference.clone().map(|path| ("reference", path)));
    facts.extend([
        ("operators", counts(summary.operators)),
        ("slots", counts(summary.slots)),
        ("target coverage", coverage(summary.target_coverage)),
        ("golden coverage", coverage(summary.golden_coverage)),
        ("program", config.program.clone()),
    ]);
    let options = config.options.iter();
    facts.extend(options.map(|(name, value)| (name.as_str(), value.clone())));
    facts
}
