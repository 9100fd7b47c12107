//! A comparison as text: the verdict first.

use std::fmt::Write as _;
use std::io::{self, Write};

use opscope_analysis::compare::report::words::{promises, proofs};
use opscope_analysis::compare::report::{ShownPlaces, chain, steps, words};
use opscope_analysis::compare::result::{
    Comparison, Evidence, MetricId, NonFiniteRole, OperatorResult, Skip, SkipReason, VerdictLevel,
};

use super::colour::{self, painted};
use super::layout::{self, NameTable};
use super::parameters;
use crate::{console, format};

/// Columns of the operator tables.
const COLUMNS: [&str; 9] = [
    "level",
    "#",
    "operator",
    "inputs",
    "outputs",
    "added",
    "cosine",
    "max abs",
    "worst [index] target / golden",
];

/// Right-aligned columns.
const RIGHT: [&str; 6] = ["#", "inputs", "outputs", "added", "cosine", "max abs"];

/// The column of names, the only one that may be cut.
const NAMES: &str = "operator";

/// Columns that narrow terminals drop, in this order.
const DISPENSABLE: [&str; 5] = [
    "worst [index] target / golden",
    "cosine",
    "added",
    "max abs",
    "inputs",
];

/// Marks the operator that the verdict names.
const MARK: &str = "> ";

/// Prefix of all other operators.
const NO_MARK: &str = "  ";

pub(super) fn print(comparison: &Comparison, top: usize) -> io::Result<()> {
    let is_coloured = colour::is_wanted();
    let own = if is_coloured { colour::SEQUENCES } else { &[] };
    let mut out = console::coloured(own);
    // A pipe has no width, and `terminal_size` would use another stream's.
    let of_terminal = console::is_terminal().then(terminal_size::terminal_size);
    let width = of_terminal
        .flatten()
        .map_or(0, |(width, _)| usize::from(width.0));
    let page = TerminalReport {
        comparison,
        top,
        width: if width == 0 { layout::WIDTH } else { width },
        places: ShownPlaces::for_comparison(comparison),
        is_coloured,
    };
    out.write_all(page.text().as_bytes())?;
    out.flush()
}

/// The verdict and its evidence, without colours and not wrapped.
pub(super) fn verdict_lines(comparison: &Comparison) -> Vec<String> {
    let page = TerminalReport {
        comparison,
        top: 0,
        // Wide enough for every line.
        width: 1 << 16,
        places: ShownPlaces::for_comparison(comparison),
        is_coloured: false,
    };
    let text = page.verdict();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

struct TerminalReport<'a> {
    comparison: &'a Comparison,
    /// Maximum length of lists.
    top: usize,
    /// Terminal width. The verdict is one line of any length, because programs read it.
    width: usize,
    places: ShownPlaces,
    is_coloured: bool,
}

impl TerminalReport<'_> {
    fn text(&self) -> String {
        let mut parts = vec![self.verdict()];
        let differing = self.differing();
        parts.extend(self.table(
            "operators that differ: the verdict's first, then in execution order",
            &differing,
        ));
        parts.extend(self.non_finite());
        let ranking = &self.comparison.summary.ranking;
        parts.extend(self.table("largest added errors", ranking));
        parts.extend(parameters::table(self.comparison));
        parts.extend(self.skips());
        parts.join("\n")
    }

    /// Appends a line to a text, wrapped if necessary.
    fn put(&self, text: &mut String, line: &str) {
        text.push_str(&layout::wrapped(line, self.width, 4));
        text.push('\n');
    }

    fn operator(&self, index: usize) -> Option<&OperatorResult> {
        self.comparison.operators.get(index)
    }

    fn verdict(&self) -> String {
        let summary = &self.comparison.summary;
        let line = words::plain(&words::verdict(self.comparison));
        let mut text = painted(&line, summary.level, self.is_coloured) + "\n";
        for line in proofs::lines(self.comparison) {
            self.put(&mut text, &words::plain(&line));
        }
        self.put_fault(&mut text);
        if summary.headline().is_none() {
            for weight in words::weights(self.comparison) {
                self.put(&mut text, &format!("  {}", words::plain(&weight)));
            }
        }
        if let Some(hint) = words::tolerance_hint(self.comparison) {
            self.put(&mut text, &format!("  {hint}"));
        }
        let is_later = summary.first_failure.as_ref().map(|first| first.operator)
            != summary
                .first_divergence
                .as_ref()
                .map(|first| first.operator);
        // The verdict names the first failure; an earlier warning may be the origin.
        if let (VerdictLevel::Fail, true, Some(first)) =
            (summary.level, is_later, &summary.first_divergence)
            && let Some(operator) = self.operator(first.operator)
        {
            let name = words::plain(&words::of_operator(operator));
            let why = words::cause_words(first.cause);
            let line = format!("first warning at {name} {}: {why}", first.slot);
            self.put(&mut text, &line);
        }
        for note in promises::notes(self.comparison) {
            self.put(&mut text, &format!("  {}", words::plain(&note)));
        }
        for line in steps::lines(self.comparison) {
            self.put(&mut text, &line);
        }
        let [operators, slots] = [summary.operators, summary.slots].map(|counts| {
            let levels = counts.into_iter().zip(["pass", "warn", "fail", "skip"]);
            let levels = levels.filter(|(n, _)| *n > 0);
            let levels: Vec<String> = levels.map(|(n, level)| format!("{n} {level}")).collect();
            if levels.is_empty() {
                "none".to_owned()
            } else {
                levels.join(", ")
            }
        });
        let coverage = [summary.target_coverage, summary.golden_coverage];
        let [target, golden] = coverage.map(|[n, n_compared]| match n {
            0 => "no slots".to_owned(),
            n => format!("{n_compared} of {n} slots ({:.1}%)", percent(n_compared, n)),
        });
        self.put(
            &mut text,
            &format!("operators: {operators}; slots: {slots}"),
        );
        let line = format!(
            "compared: target {target}, golden {golden}, {}",
            format::bytes(summary.n_bytes)
        );
        self.put(&mut text, &line);
        text
    }

    /// Where the verdict's slot differs in its tensor, and which operators may have caused it.
    fn put_fault(&self, text: &mut String) {
        let Some((divergence, operator, slot)) = words::headline(self.comparison) else {
            return;
        };
        let mut partings = self.comparison.partings.iter();
        let parting = partings.find(|parting| parting.operator == divergence.operator);
        let parameter = parting.and_then(|parting| parting.parameter.as_deref());
        if let Some(name) = parameter.or(slot.and_then(|slot| slot.parameter.as_deref())) {
            self.put(text, &format!("  parameter {}", words::plain(name)));
        }
        // An operator without a row has its own place, and no attributes to compare.
        let (module, source, attributes) = match divergence.name {
            Some(_) => (
                divergence.module.as_deref(),
                divergence.source.as_deref(),
                &[][..],
            ),
            None => (
                operator.module.as_deref(),
                operator.source.as_deref(),
                &operator.attributes[..],
            ),
        };
        let origin = [("module ", module), ("", source)];
        let origin = origin
            .into_iter()
            .filter_map(|(what, name)| Some(format!("{what}{}", words::plain(name?))));
        let origin: Vec<String> = origin.collect();
        if !origin.is_empty() {
            self.put(text, &format!("  in {}", origin.join(", ")));
        }
        // No line repeats the headline.
        let verdict = words::verdict(self.comparison);
        let attributes = attributes.iter().map(words::attribute);
        for attribute in attributes.map(|words| words::plain(&words)) {
            if !verdict.contains(&attribute) {
                self.put(text, &format!("  attribute {attribute}"));
            }
        }
        let worst = slot.and_then(words::worst_element);
        let worst = worst.map(|worst| format!("largest difference, target / golden: {worst}"));
        let differing = slot.map(words::differing).unwrap_or_default();
        let ranks = slot.map(words::ranks).unwrap_or_default();
        let change = slot.and_then(words::change).filter(|change| {
            let (_, what) = change.split_once(": ").unwrap_or_default();
            !verdict.contains(what)
        });
        for line in differing
            .into_iter()
            .chain(worst)
            .chain(ranks)
            .chain(change)
        {
            self.put(text, &format!("  {}", words::plain(&line)));
        }
        for suspect in &divergence.suspects {
            let suspect = words::plain(&words::suspect(suspect, self.places));
            self.put(text, &format!("  suspect: {suspect}"));
        }
    }

    /// The operator that produced the first NaN or Inf, and how it propagated.
    fn non_finite(&self) -> Option<String> {
        let first = self.operator(self.comparison.summary.first_non_finite?)?;
        let name = |operator| {
            let name = words::name_of(operator);
            words::plain(&words::with_place(&name, self.places))
        };
        let mut text = String::new();
        let verb = match first.non_finite {
            Some(NonFiniteRole::Producer) => "made",
            _ => "read",
        };
        let overflow = first.slots.iter().find_map(words::overflow);
        let overflow = overflow.map_or_else(String::new, |overflow| format!(": {overflow}"));
        self.put(
            &mut text,
            &format!("NaN or Inf first {verb} by {}{overflow}", name(first)),
        );
        let way = chain::of_first(self.comparison, self.top.saturating_add(1));
        // The path begins with the producer, which has its own line already.
        for operator in way.iter().skip(1).filter_map(|&index| self.operator(index)) {
            self.put(&mut text, &format!("  propagated by {}", name(operator)));
        }
        let [n_producers, n_propagators] = chain::counts(self.comparison);
        let _ = match n_producers as u64 {
            // The value came from outside the compared operators.
            0 => writeln!(
                text,
                "propagated by {} in total",
                format::count(n_propagators as u64, "operator")
            ),
            n => writeln!(
                text,
                "in total produced by {}, propagated by {n_propagators}",
                format::count(n, "operator")
            ),
        };
        Some(text)
    }

    /// The verdict's operator, then failing operators, or those with a warning if none fails.
    fn differing(&self) -> Vec<usize> {
        let fault = self.fault();
        let mut operators = words::fault_first(self.comparison);
        let level = if operators.any(|operator| operator.level == VerdictLevel::Fail) {
            VerdictLevel::Fail
        } else {
            VerdictLevel::Warn
        };
        // The fault may be a differing input of an operator whose outputs agree.
        words::fault_first(self.comparison)
            .filter(|operator| operator.level == level || Some(operator.index) == fault)
            .map(|operator| operator.index)
            .collect()
    }

    /// The operator that the verdict names.
    fn fault(&self) -> Option<usize> {
        let headline = self.comparison.summary.headline();
        headline.map(|headline| headline.operator)
    }

    fn table(&self, title: &str, operators: &[usize]) -> Option<String> {
        let shown = operators.iter().take(self.top);
        let shown: Vec<&OperatorResult> = shown.filter_map(|&index| self.operator(index)).collect();
        if shown.is_empty() {
            return None;
        }
        let table = NameTable {
            titles: COLUMNS.to_vec(),
            rows: shown.iter().map(|operator| self.row(operator)).collect(),
        };
        let width = self.width.saturating_sub(MARK.len());
        let NameTable { titles, rows } = table.fitting(NAMES, width, &DISPENSABLE);
        let table = format::table(&titles, &RIGHT, rows).trim_fmt();
        let marks = shown.iter().map(|operator| {
            if Some(operator.index) == self.fault() {
                MARK
            } else {
                NO_MARK
            }
        });
        let mut text = format!("{title}:\n");
        for (mark, line) in [NO_MARK].into_iter().chain(marks).zip(table.lines()) {
            // Colours follow the layout, which would count their sequences as cell characters.
            let _ = writeln!(text, "{mark}{}", self.with_level(line));
        }
        let (n, n_shown) = (operators.len(), shown.len());
        if n > n_shown {
            let _ = writeln!(text, "showing {n_shown} of {n}; `--top {n}` shows all");
        }
        Some(text)
    }

    /// The line with its leading level in colour.
    fn with_level(&self, line: &str) -> String {
        for level in [
            VerdictLevel::Fail,
            VerdictLevel::Warn,
            VerdictLevel::Pass,
            VerdictLevel::Skip,
        ] {
            if let Some(rest) = line.strip_prefix(words::level(level)) {
                return painted(words::level(level), level, self.is_coloured) + rest;
            }
        }
        line.to_owned()
    }

    fn row(&self, operator: &OperatorResult) -> Vec<String> {
        let slot = words::worst_slot(operator);
        let error = operator.error;
        let place = self.places.words(&words::name_of(operator));
        // Sentences set names apart by backticks; cells need the room.
        let mut name = words::of_operator(operator).replace('`', "");
        if !place.is_empty() {
            let _ = write!(name, " ({place})");
        }
        let inputs = error.filter(|error| error.has_inputs);
        let numbers = [
            inputs.map(|error| error.inputs),
            error.map(|error| error.outputs),
            error.map(|error| error.added),
            slot.and_then(|slot| slot.metrics.get(MetricId::Cosine)),
            slot.and_then(words::largest_difference),
        ];
        let [inputs, outputs, added, cosine, largest] =
            numbers.map(|number| number.map_or_else(|| "-".to_owned(), words::number));
        let worst = slot.and_then(|slot| {
            let element = words::worst_element(slot)?;
            Some(format!("{} {element}", slot.slot))
        });
        vec![
            words::level(operator.level).to_owned(),
            operator.index.to_string(),
            words::plain(&name),
            inputs,
            outputs,
            added,
            cosine,
            largest,
            worst
                .or_else(|| {
                    // Tensors of different shapes have no matching elements, so no worst one.
                    let slot = slot.filter(|slot| slot.evidence == Evidence::Shape)?;
                    let shapes =
                        [&slot.target.shape, &slot.golden.shape].map(|dims| format::shape(dims));
                    Some(format!("{} {} / {}", slot.slot, shapes[0], shapes[1]))
                })
                .unwrap_or_else(|| "-".to_owned()),
        ]
    }

    fn skips(&self) -> Option<String> {
        let skips = &self.comparison.skips;
        if skips.is_empty() {
            return None;
        }
        let mut reasons: Vec<(SkipReason, usize)> = Vec::new();
        for skip in skips {
            match reasons
                .iter_mut()
                .find(|(reason, _)| *reason == skip.reason)
            {
                Some((_, n)) => *n += 1,
                None => reasons.push((skip.reason, 1)),
            }
        }
        let reasons: Vec<String> = reasons
            .iter()
            .map(|(reason, n)| format!("{n} {reason}"))
            .collect();
        let n_allowed = skips.iter().filter(|skip| skip.is_allowed).count();
        let allowed = if n_allowed > 0 {
            format!(", {n_allowed} of them allowed")
        } else {
            String::new()
        };
        let mut text = String::new();
        let line = format!("not compared: {}{allowed}", reasons.join(", "));
        self.put(&mut text, &line);
        let contract = &self.comparison.contract;
        // Where the outputs agree, unmatched operators do not matter: one is an example.
        let is_good = contract.is_known() && contract.conclusion.is_good();
        let n_shown = if is_good { 1 } else { self.top };
        // Unexpected skips come first.
        let shown: Vec<&Skip> = skips
            .iter()
            .filter(|skip| !skip.is_allowed)
            .take(n_shown)
            .collect();
        for skip in &shown {
            let skip = words::plain(&words::skip(skip, self.places));
            let lead = if is_good { "for instance " } else { "" };
            self.put(&mut text, &format!("  {lead}{skip}"));
        }
        let n_open = skips.len() - n_allowed;
        if n_open > shown.len() && !is_good {
            let _ = writeln!(text, "  showing {} of {n_open}", shown.len());
        }
        Some(text)
    }
}

/// A percentage, rounded down so that only a complete share is 100.
fn percent(part: usize, all: usize) -> f64 {
    (part as f64 / all as f64 * 1000.0).floor() / 10.0
}
