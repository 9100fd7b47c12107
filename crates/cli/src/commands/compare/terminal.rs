//! A comparison for people: the verdict first.

use std::fmt::Write as _;
use std::io::{self, Write};

use opscope_analysis::compare::report::{chain, words};
use opscope_analysis::compare::result::{
    Comparison, Evidence, MetricId, OperatorResult, Skip, SkipReason, VerdictLevel,
};

use super::colour::{self, painted};
use crate::{console, format};

/// A name is not cut to less than this.
const N_NAME_CHARS_MIN: usize = 16;

/// Columns of the tables of operators.
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

/// Those that are aligned to the right.
const RIGHT: [&str; 6] = ["#", "inputs", "outputs", "added", "cosine", "max abs"];

/// Where [`COLUMNS`] have the name, the only one that can be cut.
const NAME_COLUMN: usize = 2;

pub(super) fn print(comparison: &Comparison, top: usize) -> io::Result<()> {
    let is_coloured = colour::is_wanted();
    let own = if is_coloured { colour::SEQUENCES } else { &[] };
    let mut out = console::coloured(own);
    let width = console::is_terminal()
        // Files and pipes get whole names, since programs look for these.
        .then(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
        .flatten();
    let page = TerminalReport {
        comparison,
        top,
        width,
        is_coloured,
    };
    out.write_all(page.text().as_bytes())?;
    out.flush()
}

struct TerminalReport<'a> {
    comparison: &'a Comparison,
    /// Longest lists.
    top: usize,
    /// Of the terminal, if it is one.
    width: Option<usize>,
    is_coloured: bool,
}

impl TerminalReport<'_> {
    fn text(&self) -> String {
        let mut parts = vec![self.verdict()];
        parts.extend(self.non_finite());
        let ranking = &self.comparison.summary.ranking;
        parts.extend(self.table("operators that add most", ranking, ranking.len()));
        let failing = self.failing();
        parts.extend(self.table(
            "operators that differ, in the order of execution",
            &failing,
            failing.len(),
        ));
        parts.extend(self.skips());
        parts.join("\n")
    }

    fn operator(&self, index: usize) -> Option<&OperatorResult> {
        self.comparison.operators.get(index)
    }

    fn verdict(&self) -> String {
        let summary = &self.comparison.summary;
        let line = words::plain(&words::verdict(self.comparison));
        let mut text = painted(&line, summary.level, self.is_coloured) + "\n";
        let is_later = summary.first_failure.as_ref().map(|first| first.operator)
            != summary
                .first_divergence
                .as_ref()
                .map(|first| first.operator);
        // The verdict names the first failure; a warning before it may be where the trouble begins.
        if let (VerdictLevel::Fail, true, Some(first)) =
            (summary.level, is_later, &summary.first_divergence)
            && let Some(operator) = self.operator(first.operator)
        {
            let name = words::plain(&words::of_operator(operator));
            let why = words::cause_words(first.cause);
            let _ = writeln!(text, "first warning at {name} {}: {why}", first.slot);
        }
        let counts = |[pass, warn, fail, skip]: [usize; 4]| {
            let all = [
                (pass, "pass"),
                (warn, "warn"),
                (fail, "fail"),
                (skip, "skip"),
            ];
            let all = all.into_iter().filter(|(n, _)| *n > 0);
            let all: Vec<String> = all.map(|(n, level)| format!("{n} {level}")).collect();
            if all.is_empty() {
                "none".to_owned()
            } else {
                all.join(", ")
            }
        };
        let coverage = |[n, n_compared]: [usize; 2]| match n {
            0 => "no slots".to_owned(),
            n => format!("{n_compared} of {n} slots ({:.1}%)", percent(n_compared, n)),
        };
        let _ = writeln!(
            text,
            "operators: {}; slots: {}",
            counts(summary.operators),
            counts(summary.slots)
        );
        let _ = writeln!(
            text,
            "compared: target {}, golden {}, {}",
            coverage(summary.target_coverage),
            coverage(summary.golden_coverage),
            format::bytes(summary.n_bytes)
        );
        text
    }

    /// Who made the first NaN or infinity, and which way it went.
    fn non_finite(&self) -> Option<String> {
        let first = self.operator(self.comparison.summary.first_non_finite?)?;
        let name = |operator| words::plain(&words::of_operator(operator));
        let mut text = format!("NaN or Inf first made by {}\n", name(first));
        let way = chain::of_first(self.comparison, self.top.saturating_add(1));
        // The way begins with the producer, which has its line already.
        for operator in way.iter().skip(1).filter_map(|&index| self.operator(index)) {
            let _ = writeln!(text, "  passed on by {}", name(operator));
        }
        let [n_producers, n_propagators] = chain::counts(self.comparison);
        let _ = writeln!(
            text,
            "in all made by {}, passed on by {n_propagators}",
            format::count(n_producers as u64, "operator")
        );
        Some(text)
    }

    /// Operators that fail, or those with a warning if none does.
    fn failing(&self) -> Vec<usize> {
        let of_level = |level: VerdictLevel| -> Vec<usize> {
            let operators = self.comparison.operators.iter();
            operators
                .filter(|operator| operator.level == level)
                .map(|operator| operator.index)
                .collect()
        };
        let failing = of_level(VerdictLevel::Fail);
        if failing.is_empty() {
            of_level(VerdictLevel::Warn)
        } else {
            failing
        }
    }

    fn table(&self, title: &str, operators: &[usize], n: usize) -> Option<String> {
        let shown = operators.iter().take(self.top);
        let rows: Vec<Vec<String>> = shown
            .filter_map(|&index| self.operator(index))
            .map(|operator| self.row(operator))
            .collect();
        if rows.is_empty() {
            return None;
        }
        let n_shown = rows.len();
        let table = format::table(&COLUMNS, &RIGHT, fitting(rows, self.width)).trim_fmt();
        let mut text = format!("{title}:\n");
        for line in table.lines() {
            // Colours come after the layout, which would count their sequences as characters of the
            // cell.
            text += &self.with_level(line);
            text.push('\n');
        }
        if n > n_shown {
            let _ = writeln!(text, "{n_shown} of {n} are shown; `--top {n}` shows all");
        }
        Some(text)
    }

    /// The line with the level at its beginning in colour.
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
        let number = |value: Option<f64>| value.map_or("-".to_owned(), words::number);
        let metric = |metric| number(slot.and_then(|slot| slot.metrics.get(metric)));
        let place = words::place(&words::name_of(operator));
        // In prose backticks set the name apart; in a cell they only take room.
        let mut name = words::of_operator(operator).replace('`', "");
        if !place.is_empty() {
            let _ = write!(name, " ({place})");
        }
        let worst = slot.and_then(|slot| {
            let element = words::worst_element(slot)?;
            Some(format!("{} {element}", slot.slot))
        });
        let shape = || {
            // Where extents differ no element has a partner, so there is no worst one to show.
            let slot = slot.filter(|slot| slot.evidence == Evidence::Shape)?;
            let shapes = [&slot.target.shape, &slot.golden.shape].map(|dims| format::shape(dims));
            Some(format!("{} {} / {}", slot.slot, shapes[0], shapes[1]))
        };
        vec![
            words::level(operator.level).to_owned(),
            operator.index.to_string(),
            words::plain(&name),
            number(
                error
                    .filter(|error| error.has_inputs)
                    .map(|error| error.inputs),
            ),
            number(error.map(|error| error.outputs)),
            number(error.map(|error| error.added)),
            metric(MetricId::Cosine),
            metric(MetricId::MaxAbs),
            worst.or_else(shape).unwrap_or_else(|| "-".to_owned()),
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
        let mut text = format!("not compared: {}{allowed}\n", reasons.join(", "));
        // Those that count come first.
        let is_open = |skip: &&Skip| !skip.is_allowed;
        let shown: Vec<&Skip> = skips.iter().filter(is_open).take(self.top).collect();
        for skip in &shown {
            let _ = writeln!(text, "  {}", words::plain(&words::skip(skip)));
        }
        let n_open = skips.len() - n_allowed;
        if n_open > shown.len() {
            let _ = writeln!(text, "  {} of {n_open} are shown", shown.len());
        }
        Some(text)
    }
}

/// A share in hundredths, rounded down so that only all is 100.
fn percent(part: usize, all: usize) -> f64 {
    (part as f64 / all as f64 * 1000.0).floor() / 10.0
}

/// The rows with names that leave room for the other columns, where the terminal is narrow.
fn fitting(mut rows: Vec<Vec<String>>, width: Option<usize>) -> Vec<Vec<String>> {
    let Some(width) = width else {
        return rows;
    };
    let others = (0..COLUMNS.len()).filter(|&column| column != NAME_COLUMN);
    let taken: usize = others
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max();
            widest.unwrap_or(0).max(COLUMNS[column].len()) + 2
        })
        .sum();
    // Each column has two blanks behind it, that of the names as well.
    let room = width.saturating_sub(taken + 2).max(N_NAME_CHARS_MIN);
    for row in &mut rows {
        row[NAME_COLUMN] = cut(&row[NAME_COLUMN], room);
    }
    rows
}

/// A text of at most `n` characters; of a longer one the middle is left out, as ends tell names apart.
fn cut(text: &str, n: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= n {
        return text.to_owned();
    }
    let n_head = n.saturating_sub(1) / 3;
    let n_tail = n.saturating_sub(1) - n_head;
    let head = chars[..n_head].iter();
    let tail = chars[chars.len() - n_tail..].iter();
    head.chain(&['…']).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, cut, fitting};

    #[test]
    fn long_names_lose_their_middle() {
        for (text, n, expected) in [
            ("abc", 3, "abc"),
            ("abcdefgh", 7, "ab…efgh"),
            ("äöüß", 2, "…ß"),
        ] {
            assert_eq!(cut(text, n), expected);
        }
    }

    #[test]
    fn narrow_terminals_cut_names_only() {
        let row = vec!["x".repeat(100); COLUMNS.len()];
        assert_eq!(fitting(vec![row.clone()], None)[0], row);
        let narrow = &fitting(vec![row.clone()], Some(80))[0];
        let n: Vec<usize> = narrow.iter().map(|cell| cell.chars().count()).collect();
        assert_eq!(n, [100, 100, 16, 100, 100, 100, 100, 100, 100]);
    }
}
