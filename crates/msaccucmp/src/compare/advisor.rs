//! Advice on a result as a whole.

use super::stop::CompareStop;
use crate::log;

/// The file with the advice.
pub(super) const FILE_NAME: &str = "advisor_summary.txt";
/// Smaller similarities are inaccurate.
const ACCURATE_MIN: f64 = 0.99;
/// The texts that the reference's table reader treats as a missing value.
const MISSING: [&str; 18] = [
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan",
];
const NULL: &str = "null";

const OVERFLOWED: &str =
    "Float16 data overflow occurs. Rectify the fault and perform comparison again.";
const OTHER_INPUT: &str = "The input data of NPUDump is inconsistent with that of GroundTruth. Use \
    the same data or check the data preprocessing process.";
const ACCURATE: &str = "All data in the comparison result meets the accuracy requirements. If data \
    accuracy of the model is still not up to standard in practical application, please check the \
    post-processing process of model outputs.";
const INACCURATE: &str = "The accuracy of some tensors is low, resulting in an unqualified final \
    accuracy. This may be caused by quantization. Calibrate the data or contact Huawei for further \
    diagnosis. ";
const DEVIATING: &str = "The accuracy of some tensors is low, while the final accuracy is \
    qualified. This may be caused by Ascend internal optimization. Ignore or contact Huawei for \
    further diagnosis. ";

/// The advice to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AdvisorText {
    kind: &'static str,
    index: String,
    message: &'static str,
}

impl AdvisorText {
    fn new(kind: &'static str, index: &str, message: &'static str) -> AdvisorText {
        let index = index.to_owned();
        AdvisorText {
            kind,
            index,
            message,
        }
    }

    /// The text of the file.
    pub(super) fn text(&self) -> String {
        let lines = [
            format!("Detection Type: {}", self.kind),
            format!("Operator Index: {}", self.index),
            format!("Expert Advice: {}", self.message),
        ];
        for line in &lines {
            log::info(line);
        }
        lines.join("\n") + "\n"
    }
}

/// Checks a table for overflows, then for different inputs, then for overall similarity.
///
/// # Errors
/// Similarities that are not numbers, which a user's metric of that name may return.
pub(super) fn advise(
    header: &[String],
    rows: &[&Vec<String>],
    input_nodes: &[String],
) -> Result<AdvisorText, CompareStop> {
    let columns = ["OverFlow", "CosineSimilarity", "NPUDump"];
    let [overflow, cosine, name] =
        columns.map(|name| header.iter().position(|title| title == name));
    // An overflow explains every later deviation, so it comes first.
    if let Some(at) = overflow
        && let Some(row) = rows.iter().find(|row| cell(row, at) == "YES")
    {
        return Ok(AdvisorText::new("FP16 Overflow", &cell(row, 0), OVERFLOWED));
    }
    let none = AdvisorText::new("NA", "NA", "NA");
    let (Some(cosine), Some(name)) = (cosine, name) else {
        return Ok(none);
    };
    let mut known = Vec::new();
    for row in rows {
        let text = cell(row, cosine);
        if text == NULL || MISSING.contains(&text.as_str()) {
            continue;
        }
        // Python fails when it compares such a cell with a number.
        let Ok(value) = text.parse::<f64>() else {
            let message = "'<' not supported between instances of 'str' and 'float'";
            return Err(CompareStop::Fatal(message.to_owned()));
        };
        known.push((value, *row));
    }
    let Some((last, _)) = known.last().copied() else {
        return Ok(none);
    };
    let inaccurate: Vec<_> = known
        .iter()
        .filter(|(value, _)| *value < ACCURATE_MIN)
        .collect();
    // Different inputs make every other difference meaningless.
    for node in input_nodes {
        if let Some((_, row)) = inaccurate.iter().find(|(_, row)| cell(row, name) == *node) {
            return Ok(AdvisorText::new(
                "Input Inconsistent",
                &cell(row, 0),
                OTHER_INPUT,
            ));
        }
    }
    let kind = "Global Consistency";
    // The last row represents the model's output: if it is accurate, earlier deviations are
    // tolerable.
    Ok(match inaccurate.first() {
        None => AdvisorText::new(kind, "NA", ACCURATE),
        Some((_, row)) if last < ACCURATE_MIN => AdvisorText::new(kind, &cell(row, 0), INACCURATE),
        Some((_, row)) => AdvisorText::new(kind, &cell(row, 0), DEVIATING),
    })
}

/// The text of a cell, empty if the row is too short.
fn cell(row: &[String], at: usize) -> String {
    row.get(at).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, overflow and similarity of each row; then the advice's kind and index.
    fn check(rows: &[[&str; 3]], inputs: &[&str], expected: Option<(&str, &str)>) {
        let header = ["Index", "NPUDump", "OverFlow", "CosineSimilarity"].map(str::to_owned);
        let rows: Vec<Vec<String>> = rows
            .iter()
            .enumerate()
            .map(|(i, row)| {
                let cells = row.iter().map(|&cell| cell.to_owned());
                std::iter::once(i.to_string()).chain(cells).collect()
            })
            .collect();
        let rows: Vec<&Vec<String>> = rows.iter().collect();
        let inputs: Vec<String> = inputs.iter().map(|&name| name.to_owned()).collect();
        let found = advise(&header, &rows, &inputs).ok();
        let found = found
            .as_ref()
            .map(|advice| (advice.kind, advice.index.as_str()));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_first_that_fits_counts() {
        let good = ["a", "NO", "1.000000"];
        let bad = ["b", "NaN", "0.500000"];
        check(&[], &[], Some(("NA", "NA")));
        check(&[["a", "NO", "nan"]], &[], Some(("NA", "NA")));
        check(
            &[bad, ["c", "YES", "1.0"]],
            &["b"],
            Some(("FP16 Overflow", "1")),
        );
        check(&[good, bad], &["x", "b"], Some(("Input Inconsistent", "1")));
        check(
            &[good, ["c", "NO", "NaN"]],
            &["a"],
            Some(("Global Consistency", "NA")),
        );
        check(
            &[good, bad, good],
            &["a"],
            Some(("Global Consistency", "1")),
        );
        check(&[good, ["c", "NO", "custom"]], &[], None);
        let message = |rows: &[Vec<String>]| {
            let header = ["Index", "NPUDump", "CosineSimilarity"].map(str::to_owned);
            advise(&header, &rows.iter().collect::<Vec<_>>(), &[])
                .unwrap()
                .message
        };
        let row = |cosine: &str| ["0", "a", cosine].map(str::to_owned).to_vec();
        assert_eq!(message(&[row("0.1"), row("1.0")]), DEVIATING);
        assert_eq!(message(&[row("1.0"), row("0.1")]), INACCURATE);
    }
}
