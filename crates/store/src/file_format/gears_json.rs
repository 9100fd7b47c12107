//! `{model}.gears.json`: the sizes that a model with dynamic dimensions is prepared for, and the
//! preprocessing of pictures for its inputs (AIPP), in the model's directory.
//!
//! A converted model of the vendor contains these lists. An ONNX model has no place for them, so
//! they are in a separate file: the dynamic axes, the combinations of their values, called gears,
//! and the resulting output shapes. `docs/formats/gears_json.md` lists the members.

mod aipp;

use std::path::{Path, PathBuf};

use opscope_tensor::DType;
use serde::{Deserialize, Serialize};

pub use self::aipp::{AippInputFormat, AippMode, AippOp};
use super::json_object;
use crate::FormatError;

/// Maximum length of a text.
pub const FILE_BYTES_MAX: usize = 16 << 20;
/// Maximum number of gears, which is the size of the interface's lists.
pub const N_GEARS_MAX: usize = 128;
/// Maximum number of inputs or outputs, and of axes of all inputs together.
const N_VALUES_MAX: usize = 1024;
/// Maximum number of axes of all inputs together; a gear's dimensions fill one list of the
/// interface.
const N_AXES_MAX: usize = 128;
/// The version of the form.
const VERSION: u32 = 1;
/// A dimension that the gears set, or an unknown one.
pub const OPEN: i64 = -1;

/// The kind of dimensions that gears set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GearKind {
    /// The first axis of inputs: one number.
    Batch,
    /// Two axes of images, height and width: two numbers.
    Size,
    /// Any axes: a number for each open one, in the order of inputs and axes.
    Dims,
    /// None: a single gear without numbers, in a file that exists for AIPP.
    Fixed,
}

/// An input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GearInput {
    /// Its name.
    pub name: String,
    /// Its dimensions; [`OPEN`] where the gears set them.
    pub dims: Vec<i64>,
}

/// An output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GearOutput {
    /// Its name.
    pub name: String,
    /// Type of its elements, by our name.
    pub dtype: String,
}

/// One combination of values of the dynamic dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtentGear {
    /// The values; how many there are follows from the kind.
    pub values: Vec<u64>,
    /// Dimensions of each output; [`OPEN`] where they depend on values.
    pub outputs: Vec<Vec<i64>>,
}

/// The gears of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gears {
    version: u32,
    /// The kind of dimensions that they set.
    pub kind: GearKind,
    /// The model's inputs.
    pub inputs: Vec<GearInput>,
    /// The model's outputs.
    pub outputs: Vec<GearOutput>,
    /// The gears, in the order of the list that was given.
    pub gears: Vec<ExtentGear>,
    /// How inputs are prepared that are pictures, one entry for each such input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aipp: Vec<AippOp>,
}

/// The path of a model's gears: the model's path with `.gears.json` appended.
pub fn path_of(model: &Path) -> PathBuf {
    let mut name = model.as_os_str().to_owned();
    // `with_extension` would give `m.onnx` and `m.om` the same file.
    name.push(".gears.json");
    PathBuf::from(name)
}

/// Reads a file.
///
/// # Errors
/// [`FormatError`] if it is not such a file, is too large, or contradicts itself.
pub fn parse(bytes: &[u8]) -> Result<Gears, FormatError> {
    let gears: Gears = json_object::decode(bytes, FILE_BYTES_MAX, "the gears of a model")?;
    let checked = gears.check();
    checked.map_err(|(expected, found)| FormatError::new(0, expected, found))?;
    Ok(gears)
}

/// The text of a file.
pub fn encode(gears: &Gears) -> String {
    let mut text = serde_json::to_string_pretty(gears).unwrap_or_default();
    text.push('\n');
    text
}

/// The expected text, and the actual one.
type Mistake = (String, String);

fn mistake(expected: impl Into<String>, found: impl Into<String>) -> Mistake {
    (expected.into(), found.into())
}

impl Gears {
    /// Gears for a model with these inputs and outputs.
    ///
    /// # Errors
    /// The first contradiction among the members, in words.
    pub fn new(
        kind: GearKind,
        inputs: Vec<GearInput>,
        outputs: Vec<GearOutput>,
        gears: Vec<ExtentGear>,
    ) -> Result<Gears, String> {
        let gears = Gears {
            version: VERSION,
            kind,
            inputs,
            outputs,
            gears,
            aipp: Vec::new(),
        };
        gears.checked()
    }

    /// The same gears of a model whose inputs are prepared so.
    ///
    /// # Errors
    /// As for [`Gears::new`].
    pub fn with_aipp(self, aipp: Vec<AippOp>) -> Result<Gears, String> {
        Gears { aipp, ..self }.checked()
    }

    fn checked(self) -> Result<Gears, String> {
        match self.check() {
            Ok(()) => Ok(self),
            Err((expected, found)) => Err(format!("{found}, expected {expected}")),
        }
    }

    /// The position of the input that an entry is about; `None` if the model has no such input.
    pub fn aipp_input(&self, op: &AippOp) -> Option<usize> {
        let name = &op.related_input_name;
        if !name.is_empty() {
            return self.inputs.iter().position(|input| input.name == *name);
        }
        let rank = usize::try_from(op.related_input_rank).ok()?;
        (rank < self.inputs.len()).then_some(rank)
    }

    /// How many numbers a gear has.
    pub fn n_values(&self) -> usize {
        match self.kind {
            GearKind::Batch => 1,
            GearKind::Size => 2,
            GearKind::Dims => self.inputs.iter().map(|input| n_open(&input.dims)).sum(),
            GearKind::Fixed => 0,
        }
    }

    /// The dimensions of every input in a gear.
    pub fn input_dims(&self, gear: &ExtentGear) -> Vec<Vec<u64>> {
        let mut left = gear.values.iter().copied();
        let mut inputs = Vec::new();
        for input in &self.inputs {
            // Batch and size are the same for every input.
            if self.kind != GearKind::Dims {
                left = gear.values.iter().copied();
            }
            let extents = input.dims.iter().map(|&n| match u64::try_from(n) {
                Ok(n) => n,
                // `check` has ensured that each dynamic dimension has a value.
                Err(_) => left.next().unwrap_or(0),
            });
            inputs.push(extents.collect());
        }
        inputs
    }

    fn check(&self) -> Result<(), Mistake> {
        if self.version != VERSION {
            let found = format!("version {}", self.version);
            return Err(mistake(format!("version {VERSION}"), found));
        }
        let n_values = self.inputs.len().max(self.outputs.len());
        if n_values > N_VALUES_MAX {
            let expected = format!("at most {N_VALUES_MAX} inputs and outputs");
            return Err(mistake(expected, n_values.to_string()));
        }
        let n_axes: usize = self.inputs.iter().map(|input| input.dims.len()).sum();
        if n_axes > N_AXES_MAX {
            let expected = format!("at most {N_AXES_MAX} axes of all inputs");
            return Err(mistake(expected, n_axes.to_string()));
        }
        for output in &self.outputs {
            if output.dtype.parse::<DType>().is_err() {
                let expected = format!("the dtype of output `{}`", output.name);
                return Err(mistake(expected, format!("`{}`", output.dtype)));
            }
        }
        self.check_inputs()?;
        self.check_gears()?;
        self.check_aipp()
    }

    fn check_aipp(&self) -> Result<(), Mistake> {
        let mut inputs = Vec::new();
        for (i, op) in self.aipp.iter().enumerate() {
            let at = |(expected, found): Mistake| (format!("{expected}, for `aipp` {i}"), found);
            op.check().map_err(at)?;
            let n_inputs = self.inputs.len();
            let input = self.aipp_input(op);
            let input = input.ok_or_else(|| {
                let expected = format!("one of the model's {n_inputs} inputs, for `aipp` {i}");
                mistake(expected, "another")
            })?;
            // The vendor inserts one operator for each input.
            if inputs.contains(&input) {
                let name = &self.inputs[input].name;
                return Err(mistake(
                    "one `aipp` for each input",
                    format!("two for `{name}`"),
                ));
            }
            inputs.push(input);
            // Pictures have to fit in every gear: the program may choose any.
            for gear in &self.gears {
                let extents = &self.input_dims(gear)[input];
                op.check_fit(extents).map_err(at)?;
            }
        }
        if self
            .aipp
            .iter()
            .any(|op| op.aipp_mode != self.aipp[0].aipp_mode)
        {
            return Err(mistake("`aipp` that is all static or all dynamic", "both"));
        }
        // The vendor's converter takes no such model, so no program expects one.
        if self.kind == GearKind::Dims && !self.aipp.is_empty() {
            return Err(mistake(
                "gears of another kind than `dims` with `aipp`",
                "`dims`",
            ));
        }
        Ok(())
    }

    fn check_inputs(&self) -> Result<(), Mistake> {
        for GearInput { name, dims } in &self.inputs {
            let at = |expected: &str| {
                let expected = format!("{expected}, for input `{name}`");
                mistake(expected, format!("{dims:?}"))
            };
            if dims.iter().any(|&n| n < OPEN) {
                return Err(at("dimensions, and -1 where the gears set them"));
            }
            let n_open = n_open(dims);
            let is_right = match self.kind {
                // A dynamic dimension implies a first axis, so the index is safe.
                GearKind::Batch => n_open == 0 || (n_open == 1 && dims[0] == OPEN),
                GearKind::Size => n_open == 0 || n_open == 2,
                GearKind::Dims => true,
                GearKind::Fixed => n_open == 0,
            };
            if !is_right {
                return Err(at(match self.kind {
                    GearKind::Batch => "-1 for the first axis and no other",
                    GearKind::Fixed => "no -1",
                    _ => "-1 for two axes, height and width",
                }));
            }
        }
        if self.kind == GearKind::Fixed {
            return Ok(());
        }
        let has_open = self.inputs.iter().any(|input| n_open(&input.dims) > 0);
        if !has_open {
            return Err(mistake("an input with a dimension of -1", "none"));
        }
        Ok(())
    }

    fn check_gears(&self) -> Result<(), Mistake> {
        let n = self.gears.len();
        if n == 0 || n > N_GEARS_MAX {
            let expected = format!("1 to {N_GEARS_MAX} gears");
            return Err(mistake(expected, n.to_string()));
        }
        let n_values = self.n_values();
        for (i, gear) in self.gears.iter().enumerate() {
            let values = &gear.values;
            if values.len() != n_values {
                let expected = format!("{n_values} values of gear {i}");
                return Err(mistake(expected, format!("{values:?}")));
            }
            if !values.iter().all(|&n| n > 0 && i64::try_from(n).is_ok()) {
                let expected = format!("values of gear {i} of 1 and more");
                return Err(mistake(expected, format!("{values:?}")));
            }
            // Programs choose a gear by its values, so two gears with the same values would be
            // ambiguous.
            if self.gears[..i].iter().any(|other| other.values == *values) {
                let found = format!("{values:?} twice");
                return Err(mistake("gears that differ", found));
            }
            let n_outputs = gear.outputs.len();
            if n_outputs != self.outputs.len() {
                let expected = format!("{} outputs of gear {i}", self.outputs.len());
                return Err(mistake(expected, n_outputs.to_string()));
            }
            let are_extents =
                |dims: &Vec<i64>| dims.len() <= N_AXES_MAX && dims.iter().all(|&n| n >= OPEN);
            if !gear.outputs.iter().all(are_extents) {
                let expected = format!("dimensions of the outputs of gear {i}, or -1");
                return Err(mistake(expected, format!("{:?}", gear.outputs)));
            }
        }
        Ok(())
    }
}

fn n_open(dims: &[i64]) -> usize {
    dims.iter().filter(|&&n| n == OPEN).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"{"version": 1, "kind": "size",
        "inputs": [{"name": "x", "dims": [1, 3, -1, -1]}, {"name": "k", "dims": [2]}],
        "outputs": [{"name": "y", "dtype": "float32"}],
        "gears": [{"values": [8, 4], "outputs": [[1, 8, 4]]},
                  {"values": [16, 4], "outputs": [[1, -1, 4]]}]}"#;

    #[test]
    fn extents_follow_from_gears() {
        let gears = parse(TWO.as_bytes()).unwrap();
        let dims = |i: usize| gears.input_dims(&gears.gears[i]);
        assert_eq!(dims(0), [vec![1, 3, 8, 4], vec![2]]);
        assert_eq!(dims(1), [vec![1, 3, 16, 4], vec![2]]);
        assert_eq!(parse(encode(&gears).as_bytes()).unwrap(), gears);

        let input = |name: &str, dims: &[i64]| GearInput {
            name: name.into(),
            dims: dims.to_vec(),
        };
        let gear = |values: &[u64]| ExtentGear {
            values: values.to_vec(),
            outputs: vec![],
        };
        let inputs = vec![input("a", &[-1, 3]), input("b", &[2]), input("c", &[4, -1])];
        let of = |kind, values: &[u64]| {
            let gears = Gears::new(kind, inputs.clone(), vec![], vec![gear(values)]);
            gears.map(|gears| gears.input_dims(&gears.gears[0]))
        };
        let expected = [vec![7, 3], vec![2], vec![4, 9]];
        assert_eq!(of(GearKind::Dims, &[7, 9]).unwrap(), expected);
        assert!(of(GearKind::Batch, &[7]).is_err());
        let inputs = vec![input("a", &[-1, 3]), input("c", &[-1])];
        let batch = Gears::new(GearKind::Batch, inputs, vec![], vec![gear(&[5])]).unwrap();
        assert_eq!(batch.input_dims(&batch.gears[0]), [vec![5, 3], vec![5]]);
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [
            ("[]", "an object"),
            ("{", "the gears of a model"),
            (
                &*TWO.replace("\"version\": 1", "\"version\": 2"),
                "version 1",
            ),
            (&*TWO.replace("\"size\"", "\"sizes\""), "unknown variant"),
            (&*TWO.replace("\"kind\"", "\"sort\""), "unknown field"),
            (
                &*TWO.replace("\"size\"", "\"batch\""),
                "-1 for the first axis and no other, for input `x`",
            ),
            (
                &*TWO.replace("-1, -1", "-1, 2"),
                "-1 for two axes, height and width, for input `x`",
            ),
            (&*TWO.replace("-1, -1", "-2, -1"), "dimensions, and -1"),
            (
                &*TWO.replace("-1, -1", "1, 1"),
                "an input with a dimension of -1",
            ),
            (&*TWO.replace("[16, 4]", "[8, 4]"), "gears that differ"),
            (&*TWO.replace("[16, 4]", "[16]"), "2 values of gear 1"),
            (
                &*TWO.replace("[16, 4]", "[0, 4]"),
                "values of gear 1 of 1 and more",
            ),
            (&*TWO.replace("[[1, 8, 4]]", "[]"), "1 outputs of gear 0"),
            (
                &*TWO.replace("[[1, 8, 4]]", "[[-3]]"),
                "dimensions of the outputs of gear 0",
            ),
            (
                &*TWO.replace("float32", "single"),
                "the dtype of output `y`",
            ),
        ];
        for (text, part) in cases {
            let error = parse(text.as_bytes()).unwrap_err();
            let told = format!("{}, found {}", error.expected, error.found);
            assert!(told.contains(part), "{text}: {told}");
        }
    }
}
