//! The attribute that FFTS+ operators carry: how threads cut their tensors.
//!
//! FFTS+ runs one operator as several threads, each on a part of every tensor, and each thread
//! writes a separate dump file. The header's first attribute is a JSON object that identifies the
//! part; `docs/formats/ffts_plus.md` describes it.

mod slices;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::FormatError;
use crate::record::SlotSide;

pub(crate) use slices::apply_own_slices;
pub use slices::{SliceError, apply_slices, thread_in_name};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "FFTS+ attribute";

/// Content of the attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FftsPlus {
    /// Whether the runtime cut the tensors itself. Otherwise the compiler did, and the slices have
    /// different operator names.
    pub is_auto_threaded: bool,
    /// How many files the operator should have.
    pub slice_instance_num: Option<u64>,
    /// For each output, into how many parts each axis is cut.
    pub output_cuts: Vec<Vec<u64>>,
    /// For each thread, input and axis: which part.
    pub input_slices: Slices,
    /// For each thread, output and axis: which part.
    pub output_slices: Slices,
}

/// Parts by thread, tensor and axis.
pub type Slices = Vec<Vec<Vec<AxisSlice>>>;

/// The part of an axis from `lower` up to, and without, `higher`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct AxisSlice {
    /// First position.
    pub lower: u64,
    /// One past the last position.
    pub higher: u64,
}

impl AxisSlice {
    fn extent(&self) -> Result<u64, FormatError> {
        self.higher.checked_sub(self.lower).ok_or_else(|| {
            let expected = format!("`higher` of at least {}", self.lower);
            FormatError::new(0, expected, self.higher.to_string())
        })
    }
}

impl FftsPlus {
    /// Reads the attribute's text. Lists that are absent are empty; if the compiler cut the tensors
    /// the lists are not needed, and unreadable ones count as absent.
    ///
    /// # Errors
    /// [`FormatError`], counted from the start of the text, if it is not a JSON object with a
    /// `threadMode`, or a list that is needed has another form than expected.
    pub fn parse(text: &str) -> Result<FftsPlus, FormatError> {
        let mut value: Value = serde_json::from_str(text).map_err(|error| {
            // serde_json reports a line and a column, and our errors use an offset.
            let line_start: usize = text
                .split_inclusive('\n')
                .take(error.line().saturating_sub(1))
                .map(str::len)
                .sum();
            let at = line_start + error.column().saturating_sub(1);
            FormatError::new(at as u64, "a JSON object", error.to_string())
        })?;
        let is_auto_threaded = match value.get("threadMode") {
            // The vendor's tool also fails without this key, whatever the others are.
            None => return Err(FormatError::new(0, "a key `threadMode`", "none")),
            // The vendor's tool is written in Python, so what Python takes for true counts as such.
            Some(mode) => is_true(mode),
        };
        Ok(FftsPlus {
            is_auto_threaded,
            slice_instance_num: value.get("slice_instance_num").and_then(Value::as_u64),
            output_cuts: take_list(&mut value, "outputCutList", is_auto_threaded)?,
            input_slices: take_list(&mut value, "input_tensor_slice", is_auto_threaded)?,
            output_slices: take_list(&mut value, "output_tensor_slice", is_auto_threaded)?,
        })
    }

    /// The attribute's text.
    pub fn to_text(&self) -> String {
        let mut value = serde_json::json!({
            "threadMode": u8::from(self.is_auto_threaded),
            "slice_instance_num": self.slice_instance_num,
            "outputCutList": self.output_cuts,
            "input_tensor_slice": self.input_slices,
            "output_tensor_slice": self.output_slices,
        });
        if let (None, Some(map)) = (self.slice_instance_num, value.as_object_mut()) {
            // The plain `remove` would move the last key into the gap.
            map.shift_remove("slice_instance_num");
        }
        value.to_string()
    }

    /// Shapes of the parts that `thread` has of the tensors on one side, or `None` if there is no
    /// such thread.
    ///
    /// # Errors
    /// [`FormatError`] if a part ends before it begins.
    pub fn shapes(
        &self,
        side: SlotSide,
        thread: usize,
    ) -> Result<Option<Vec<Vec<u64>>>, FormatError> {
        let slices = match side {
            SlotSide::Input => &self.input_slices,
            SlotSide::Output => &self.output_slices,
        };
        let Some(tensors) = slices.get(thread) else {
            return Ok(None);
        };
        let shapes = tensors
            .iter()
            .map(|axes| axes.iter().map(AxisSlice::extent).collect());
        shapes.collect::<Result<Vec<_>, _>>().map(Some)
    }
}

/// Everything but zero, `false`, `null` and the empty text, list and object.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

fn take_list<T: for<'a> Deserialize<'a>>(
    value: &mut Value,
    key: &str,
    is_needed: bool,
) -> Result<Vec<T>, FormatError> {
    let Some(list) = value.get_mut(key).map(Value::take) else {
        return Ok(Vec::new());
    };
    match serde_json::from_value(list) {
        Ok(list) => Ok(list),
        // With `threadMode` 0 nothing reads the lists, so their form must not make a file
        // unreadable.
        Err(_) if !is_needed => Ok(Vec::new()),
        Err(error) => {
            let expected = format!("a list of the documented form in `{key}`");
            Err(FormatError::new(0, expected, error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"threadMode": 1, "slice_instance_num": 2, "outputCutList": [[2, 1]],
        "input_tensor_slice": [[[{"lower": 0, "higher": 2}, {"lower": 0, "higher": 6}]],
                               [[{"lower": 2, "higher": 5}, {"lower": 0, "higher": 6}]]],
        "output_tensor_slice": []}"#;

    #[test]
    fn shapes_are_those_of_the_thread() {
        let attribute = FftsPlus::parse(TEXT).unwrap();
        assert!(attribute.is_auto_threaded);
        assert_eq!(attribute.slice_instance_num, Some(2));
        assert_eq!(attribute.output_cuts, [[2, 1]]);
        assert_eq!(
            attribute.shapes(SlotSide::Input, 1).unwrap(),
            Some(vec![vec![3, 6]])
        );
        assert_eq!(attribute.shapes(SlotSide::Input, 2).unwrap(), None);
        assert_eq!(attribute.shapes(SlotSide::Output, 0).unwrap(), None);
        assert_eq!(FftsPlus::parse(&attribute.to_text()).unwrap(), attribute);
    }

    #[test]
    fn without_threads_only_the_mode_is_needed() {
        let attribute = FftsPlus::parse(r#"{"threadMode":0,"input_tensor_slice":7}"#).unwrap();
        assert_eq!(attribute, FftsPlus::default());
        assert_eq!(FftsPlus::parse(&attribute.to_text()).unwrap(), attribute);
    }

    #[test]
    fn other_texts_are_refused() {
        let deep = "[".repeat(1000);
        for text in [
            "",
            "hello",
            "{\"a\": 1}",
            "[]",
            "3",
            &deep,
            r#"{"threadMode":1,"input_tensor_slice":7}"#,
            r#"{"threadMode":1,"input_tensor_slice":[[[{"lower":-1,"higher":2}]]]}"#,
        ] {
            assert!(FftsPlus::parse(text).is_err(), "{text}");
        }
        let text = r#"{"threadMode":1,"input_tensor_slice":[[[{"lower":3,"higher":2}]]]}"#;
        assert!(
            FftsPlus::parse(text)
                .unwrap()
                .shapes(SlotSide::Input, 0)
                .is_err()
        );
    }
}
