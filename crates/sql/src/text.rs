//! Cells as text and as JSON.

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::NullableEncoder;
use datafusion::arrow::json::{Encoder, EncoderFactory, EncoderOptions};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

/// The cells of each row; a missing value is none.
pub(crate) fn text_rows(batch: &RecordBatch) -> Result<Vec<Vec<Option<String>>>, ArrowError> {
    let options = FormatOptions::default();
    let columns = batch.columns().iter();
    let formatters = columns
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
        .collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let mut cells = Vec::with_capacity(formatters.len());
        for (formatter, column) in formatters.iter().zip(batch.columns()) {
            let is_missing = column.is_null(row);
            let text = (!is_missing).then(|| formatter.value(row).try_to_string());
            cells.push(text.transpose()?);
        }
        rows.push(cells);
    }
    Ok(rows)
}

/// A cell of CSV. A missing value is nothing at all, an empty text two quotes.
pub(crate) fn csv_cell(text: Option<&str>) -> String {
    let Some(text) = text else {
        return String::new();
    };
    let is_plain = !text.is_empty() && !text.contains(['"', ',', '\n', '\r']);
    if is_plain {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Lets numbers that JSON lacks be texts. The library would write `null`, as of a missing value.
#[derive(Debug)]
pub(crate) struct TextNumbers;

/// Numbers of one column.
struct NumberEncoder<'a> {
    numbers: Box<dyn Fn(usize) -> f64 + 'a>,
    /// Whether they have the digits of a `float32`.
    is_single: bool,
}

impl EncoderFactory for TextNumbers {
    fn make_default_encoder<'a>(
        &self,
        _field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let (numbers, is_single): (Box<dyn Fn(usize) -> f64 + 'a>, bool) = match array.data_type() {
            DataType::Float64 => {
                let numbers = array.as_primitive::<Float64Type>();
                (Box::new(|i| numbers.value(i)), false)
            }
            DataType::Float32 => {
                let numbers = array.as_primitive::<Float32Type>();
                (Box::new(|i| numbers.value(i).into()), true)
            }
            _ => return Ok(None),
        };
        let encoder = NumberEncoder { numbers, is_single };
        let nulls = array.nulls().cloned();
        Ok(Some(NullableEncoder::new(Box::new(encoder), nulls)))
    }
}

impl Encoder for NumberEncoder<'_> {
    fn encode(&mut self, idx: usize, out: &mut Vec<u8>) {
        let number = (self.numbers)(idx);
        let text = if number.is_nan() {
            "\"nan\"".to_owned()
        } else if number.is_infinite() {
            let sign = if number < 0.0 { "-" } else { "" };
            format!("\"{sign}inf\"")
        } else if self.is_single {
            #[expect(clippy::cast_possible_truncation, reason = "it was a `float32` before")]
            let number = number as f32;
            format!("{number:?}")
        } else {
            // With a point or an exponent, so that it is read as a number of the same kind.
            format!("{number:?}")
        };
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::csv_cell;

    #[test]
    fn cells_of_csv_tell_missing_and_empty_apart() {
        assert_eq!(csv_cell(None), "");
        assert_eq!(csv_cell(Some("")), "\"\"");
        assert_eq!(csv_cell(Some("a b")), "a b");
        assert_eq!(csv_cell(Some("1, \"2\"")), "\"1, \"\"2\"\"\"");
        assert_eq!(csv_cell(Some("a\r\nb")), "\"a\r\nb\"");
    }
}
