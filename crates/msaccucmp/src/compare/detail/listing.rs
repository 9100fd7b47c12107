//! The files of a listing.

use std::path::Path;

use opscope_tensor::DType;

use super::errors::ElementErrors;
use super::names::DetailNames;
use super::tensor_choice::TensorChoice;
use crate::array::{ElementArray, SaveOrder};
use crate::compare::metrics::six_places;
use crate::compare::stop::CompareStop;
use crate::log;
use crate::output::OutputFolder;

/// Minimum number of axes in the position of an element.
const AXES_MIN: usize = 4;

/// Two tensors to list.
pub(super) struct DetailListing<'a> {
    pub(super) mine: ElementArray<'a>,
    pub(super) golden: ElementArray<'a>,
    pub(super) dims: Vec<usize>,
    /// Names of the axes.
    pub(super) axes: String,
    /// Names of operators.
    pub(super) my_ops: String,
    pub(super) golden_ops: String,
    /// Whether the elements are along one axis.
    pub(super) is_flat: bool,
}

impl DetailListing<'_> {
    /// Writes all files.
    pub(super) fn write(
        &self,
        choice: &TensorChoice,
        names: &DetailNames,
        out_dir: &Path,
    ) -> Result<(), CompareStop> {
        let output = OutputFolder::new(out_dir.to_owned());
        let bytes = self.mine.bytes_in_order(SaveOrder::C);
        let flat = ElementArray::flat(self.mine.dtype(), bytes);
        let array = flat.reshape(&self.dims).map_err(CompareStop::Exception)?;
        let name = names.npy()?;
        output.npy(name.trim_end_matches(".npy"), ".npy", &array)?;
        let n_outer = self.dims.first().copied().unwrap_or(0);
        if !self.is_flat && array.n_elements() == 0 && n_outer > 0 {
            // The reference counts along the first axis, and then finds no smallest error.
            let message = "zero-size array to reduction operation fmin which has no identity";
            return Err(CompareStop::Fatal(message.to_owned()));
        }
        let is_bool = [self.mine.dtype(), self.golden.dtype()] == [DType::Bool; 2];
        let elements = ElementErrors::new(&self.mine, &self.golden)?;
        let tops = elements.worst(choice.n_top);
        output.text(&names.summary()?, &self.summary(&elements, is_bool))?;
        if !choice.is_summary_only {
            self.write_lines(choice, names, &output, &elements)?;
        }
        let titles = ["Absolute Error TopN", "Relative Error TopN"];
        for ((kind, rows), title) in ["absolute", "relative"].into_iter().zip(tops).zip(titles) {
            let mut text = self.header();
            for i in rows {
                text.push_str(&elements.top_line(i, &self.place(i)));
            }
            output.text(&names.top(kind)?, &text)?;
            log::info(title);
            show_table(&text);
        }
        log::info(&format!(
            "The details result have been written to {}.",
            log::quoted(out_dir)
        ));
        Ok(())
    }

    fn write_lines(
        &self,
        choice: &TensorChoice,
        names: &DetailNames,
        output: &OutputFolder,
        elements: &ElementErrors,
    ) -> Result<(), CompareStop> {
        let mut start = 0;
        loop {
            let end = (start + choice.n_lines_max).min(elements.len());
            let mut text = self.header();
            for i in start..end {
                text.push_str(&elements.line(i, &self.place(i)));
            }
            output.text(&names.lines(start)?, &text)?;
            start = end;
            if start >= elements.len() {
                return Ok(());
            }
        }
    }

    fn header(&self) -> String {
        let axes = &self.axes;
        format!("Index,{axes},NPUDump,GroundTruth,AbsoluteError,RelativeError\n")
    }

    /// The position of an element along each axis.
    fn place(&self, index: usize) -> String {
        let mut rest = index;
        let mut place: Vec<String> = Vec::new();
        for &dim in self.dims.iter().rev() {
            let dim = dim.max(1);
            place.push((rest % dim).to_string());
            rest /= dim;
        }
        place.reverse();
        while place.len() < AXES_MIN {
            place.push("0".to_owned());
        }
        place.join(" ")
    }

    fn summary(&self, elements: &ElementErrors, is_bool: bool) -> String {
        let [absolute, relative] = elements.extremes();
        let text = format!(
            "TotalCount:{}\nNPUDump:{}\nGroundTruth:{}\nFormat:{}\nMinAbsoluteError:{}\n\
             MaxAbsoluteError:{}\nMinRelativeError:{}\nMaxRelativeError:{}\n",
            elements.len(),
            self.my_ops,
            self.golden_ops,
            self.axes,
            six_places(absolute.0),
            six_places(absolute.1),
            six_places(relative.0),
            six_places(relative.1)
        );
        if is_bool {
            // The reference removes these letters from names, too.
            return text.replace("nan", "-");
        }
        text
    }
}

/// Prints a table with the columns one below the other.
fn show_table(text: &str) {
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split(',').map(str::trim).collect())
        .collect();
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths = (0..n_columns).map(|column| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.len()).max().unwrap_or(0)
    });
    let widths: Vec<usize> = widths.collect();
    let mut shown = String::from("\n\n");
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        shown.push_str(&cells.join("\t"));
        shown.push('\n');
    }
    log::help(&shown);
}
