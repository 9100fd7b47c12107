//! Selects the metrics, including the user's.

mod scripts;

use std::collections::HashMap;

use scripts::{MetricScript, MetricScripts};

use super::metrics::{ComparedElements, Metric, NAN, TensorFacts};
use super::stop::CompareStop;
use super::values::{SideValues, ValuePair};
use crate::failure::ErrorCode;
use crate::log;
use crate::options::AlgorithmChoice;

/// The metrics of the shorter command.
pub(super) const FILE_METRICS: [Metric; 8] = [
    Metric::CosineSimilarity,
    Metric::MaxAbsoluteError,
    Metric::AccumulatedRelativeError,
    Metric::RelativeEuclideanDistance,
    Metric::MeanAbsoluteError,
    Metric::RootMeanSquareError,
    Metric::MaxRelativeError,
    Metric::MeanRelativeError,
];

/// The metrics to compute, in the order of the columns.
pub(super) struct Algorithms {
    chosen: Vec<Algorithm>,
    scripts: MetricScripts,
    options: Options,
}

enum Algorithm {
    BuiltIn(Metric),
    Custom(MetricScript),
}

/// Key-value pairs by the algorithm's name.
type Options = HashMap<String, Vec<(String, String)>>;

/// Texts of results, and their reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MetricTexts {
    pub(super) texts: Vec<String>,
    pub(super) reasons: Vec<String>,
}

impl Algorithms {
    /// The metrics of `file_compare`.
    pub(super) fn of_files() -> Algorithms {
        Algorithms {
            chosen: FILE_METRICS.map(Algorithm::BuiltIn).into(),
            scripts: MetricScripts::default(),
            options: Options::new(),
        }
    }

    /// Selects the metrics for `-alg`, `-c` and `-a`.
    pub(super) fn choose(
        choice: &AlgorithmChoice,
        custom_dir: &str,
        options: &str,
    ) -> Result<Algorithms, CompareStop> {
        let scripts = match custom_dir {
            "" => MetricScripts::default(),
            dir => MetricScripts::open(dir)?,
        };
        let names = chosen_names(choice, &scripts)?;
        let options = parse_options(options)?;
        let mut chosen = Vec::new();
        for name in &names {
            // A user's script precedes a built-in metric with the same name.
            if let Some(script) = scripts.find(name) {
                if scripts.is_usable(script)? {
                    chosen.push(Algorithm::Custom(script.clone()));
                }
            } else if let Some(metric) = built_in(name) {
                chosen.push(Algorithm::BuiltIn(metric));
            }
        }
        if chosen.is_empty() {
            return Err(unknown(&names.join(",")));
        }
        Ok(Algorithms {
            chosen,
            scripts,
            options,
        })
    }

    /// Names of the columns.
    pub(super) fn titles(&self) -> impl Iterator<Item = &str> {
        self.chosen.iter().map(|algorithm| match algorithm {
            Algorithm::BuiltIn(metric) => metric.name(),
            Algorithm::Custom(script) => script.name.as_str(),
        })
    }

    /// Returns the texts for missing results.
    pub(super) fn none(&self) -> Vec<String> {
        vec![NAN.to_owned(); self.chosen.len()]
    }

    /// Compares two tensors, or their first `n_max` elements.
    pub(super) fn compare(
        &self,
        mut mine: SideValues,
        mut golden: SideValues,
        about: &TensorFacts<'_>,
        n_max: Option<usize>,
    ) -> Result<MetricTexts, CompareStop> {
        if mine.len() != golden.len() {
            let message = format!(
                "The my output dump data size ({}) in '{}' does not match the ground truth dump \
                 data size ({}) in '{}'.",
                mine.len(),
                about.my_file,
                golden.len(),
                about.golden_file
            );
            log::warning(&message);
            return Err(CompareStop::coded(ErrorCode::InvalidDumpData, message));
        }
        // Truncated only after the lengths were compared: another size is a mistake even beyond the
        // first elements.
        if let Some(n) = n_max {
            mine.truncate(n);
            golden.truncate(n);
        }
        let sides = ValuePair::new(mine, golden);
        let mut results = MetricTexts::default();
        for algorithm in &self.chosen {
            let (text, reason) = self.run(algorithm, sides.pair(), about);
            results.texts.push(text);
            if !reason.is_empty() {
                log::warning(&reason);
                results.reasons.push(reason);
            }
        }
        Ok(results)
    }

    fn run(
        &self,
        algorithm: &Algorithm,
        pair: ComparedElements<'_>,
        about: &TensorFacts<'_>,
    ) -> (String, String) {
        let (name, takes_bools) = match algorithm {
            Algorithm::BuiltIn(metric) => (metric.name(), metric.takes_bools()),
            Algorithm::Custom(script) => (
                script.name.as_str(),
                // A script supports booleans if the metric that it replaces does.
                built_in(&script.name).is_some_and(Metric::takes_bools),
            ),
        };
        if matches!(pair, ComparedElements::Bools(..)) && !takes_bools {
            let reason = format!("Algorithm {name} does not support Boolean types.");
            return (NAN.to_owned(), reason);
        }
        let outcome = match algorithm {
            Algorithm::BuiltIn(metric) => metric.run(pair, about),
            Algorithm::Custom(script) => {
                let options = self.options.get(&script.name);
                let options = options.map_or(&[][..], Vec::as_slice);
                self.scripts.run(script, pair, about, options)
            }
        };
        // The reference catches all exceptions of a metric; the other metrics continue.
        outcome.unwrap_or_else(|error| {
            let reason = format!("Failed to execute 'compare' in '{name}'. {error}");
            (NAN.to_owned(), reason)
        })
    }
}

fn built_in(name: &str) -> Option<Metric> {
    Metric::ALL.into_iter().find(|metric| metric.name() == name)
}

/// The metric of a single digit.
fn numbered(text: &str) -> Option<Metric> {
    match text.as_bytes() {
        [digit @ b'0'..=b'9'] => Metric::ALL.get(usize::from(digit - b'0')).copied(),
        _ => None,
    }
}

fn unknown(text: &str) -> CompareStop {
    let message = format!("The algorithm in '{text}' does not supported.");
    CompareStop::coded(ErrorCode::Algorithm, message)
}

fn chosen_names(
    choice: &AlgorithmChoice,
    scripts: &MetricScripts,
) -> Result<Vec<String>, CompareStop> {
    let (AlgorithmChoice::Text(text) | AlgorithmChoice::Numbers(text)) = choice;
    if text.is_empty() {
        let message = "There is no algorithm to select. Please select at least one algorithm.";
        return Err(CompareStop::coded(ErrorCode::InvalidParameter, message));
    }
    if text.eq_ignore_ascii_case("all") {
        return Ok(Metric::ALL.map(|metric| metric.name().to_owned()).into());
    }
    let mut names: Vec<String> = Vec::new();
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let name = numbered(part).map_or(part, |metric| metric.name());
        if built_in(name).is_none() && scripts.find(name).is_none() {
            log::warning(&format!(
                "The '{part}' does not supported in builtin or custom. Please check the algorithm \
                 name or algorithm index."
            ));
        // Each metric has one column, even if it is requested twice.
        } else if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        return Err(unknown(text));
    }
    Ok(names)
}

/// Parses `name:key=value,key=value;name:key=value`.
fn parse_options(text: &str) -> Result<Options, CompareStop> {
    let mut options = Options::new();
    for part in text.split(';').filter(|part| !part.is_empty()) {
        let invalid = || {
            let message = format!(
                "The algorithm argument ('{part}') is invalid, just supports \
                 \"algorithm_name:name1=value1,name2=value2;\"."
            );
            CompareStop::coded(ErrorCode::InvalidParameter, message)
        };
        let pair = |text: &str, separator| {
            let mut parts = text.split(separator).map(str::to_owned);
            match (parts.next(), parts.next(), parts.next()) {
                (Some(key), Some(value), None) => Ok((key, value)),
                _ => Err(invalid()),
            }
        };
        let (name, rest) = pair(part, ':')?;
        let name = name.trim();
        if name.is_empty() {
            return Err(invalid());
        }
        let mut found: Vec<(String, String)> = Vec::new();
        for parameter in rest
            .split(',')
            .filter(|parameter| !parameter.trim().is_empty())
        {
            let (key, value) = pair(parameter, '=')?;
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            if key.is_empty() || value.is_empty() {
                return Err(invalid());
            }
            found.push((key, value));
        }
        let name = numbered(name).map_or(name, |metric| metric.name());
        options.entry(name.to_owned()).or_default().extend(found);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options = parse_options("Mine:a=1, b = 2;0:c=3;;Mine:a=4").unwrap();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            options["Mine"],
            [pair("a", "1"), pair("b", "2"), pair("a", "4")]
        );
        assert_eq!(options["CosineSimilarity"], [pair("c", "3")]);
        for text in [
            "A", "A:b", "A:b=", "A:=1", ":a=1", "A:b=1=2", "A:b=1:c", ":",
        ] {
            assert!(parse_options(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_and_numbers_choose() {
        let choose = |text: &str| {
            let choice = AlgorithmChoice::Text(text.to_owned());
            let algorithms = Algorithms::choose(&choice, "", "").ok()?;
            Some(algorithms.titles().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(choose("ALL").unwrap().len(), 10);
        let expected = ["MaxAbsoluteError", "CosineSimilarity"];
        assert_eq!(choose("1,0,MaxAbsoluteError,1,Other").unwrap(), expected);
        assert_eq!(choose("Other"), None);
        assert_eq!(choose(""), None);
        assert_eq!(choose("10"), None);
    }
}
