//! The gears of a model: the values of its open dimensions, from a file next to it.

use opscope_engine::{DeclaredDim, ModelSignature, ValueInfo};
use opscope_store::file_format::gears_json::{GearKind, Gears};
use opscope_tensor::{DType, Shape};

use super::aipp::ModelAipp;
use super::shapes::extents;
use crate::Status;
use crate::data::GearChoice;
use crate::status::{GE_DYNAMIC_BATCH_SIZE_INVALID, GE_DYNAMIC_INPUT_LENGTH_INVALID};

/// The gears of a model, checked against it. Inputs are in the model's order.
pub(crate) struct ModelGears {
    file: Gears,
    /// The shape of every input, for each gear.
    inputs: Vec<Vec<Shape>>,
    outputs: Vec<GearedOutput>,
    aipp: ModelAipp,
}

/// An output before the model runs.
struct GearedOutput {
    dtype: DType,
    /// The shape in the gear with the largest output; -1 where unknown.
    dims: Vec<i64>,
    /// Bytes there; 0 if unknown.
    n_bytes: usize,
}

impl ModelGears {
    pub(crate) fn new(mut file: Gears, signature: &ModelSignature) -> Result<ModelGears, String> {
        if file.inputs.len() != signature.inputs.len() {
            let (n, names) = (file.inputs.len(), joined_names(&signature.inputs));
            return Err(format!("it has {n} inputs, the model has {names}"));
        }
        // A gear lists the shapes of all inputs in order, so equal names are not sufficient.
        let is_in_order =
            (file.inputs.iter().zip(&signature.inputs)).all(|(a, b)| a.name == b.name);
        if !is_in_order {
            let names = joined_names(&signature.inputs);
            return Err(format!(
                "its inputs are not those of the model, in order: {names}"
            ));
        }
        let is_same = (file.outputs.iter().zip(&signature.outputs)).all(|(a, b)| a.name == b.name);
        if !is_same || file.outputs.len() != signature.outputs.len() {
            let names = joined_names(&signature.outputs);
            return Err(format!(
                "its outputs are not those of the model, in order: {names}"
            ));
        }
        for (input, value) in file.inputs.iter().zip(&signature.inputs) {
            check_input(&input.dims, value)?;
        }
        // It stays as long as the model is loaded.
        file.gears.shrink_to_fit();
        let mut inputs = Vec::new();
        for gear in &file.gears {
            let mut shapes = Vec::new();
            for (dims, value) in file.input_dims(gear).into_iter().zip(&signature.inputs) {
                let dims: Option<Vec<usize>> =
                    dims.into_iter().map(|n| usize::try_from(n).ok()).collect();
                let shape = dims.and_then(|dims| Shape::new(dims).ok());
                // Refused here, so that later size queries cannot fail.
                let shape = shape.filter(|shape| shape.n_bytes(value.dtype).is_ok());
                let values = &gear.values;
                shapes.push(shape.ok_or_else(|| {
                    format!(
                        "gear {values:?} makes input `{}` larger than memory",
                        value.name
                    )
                })?);
            }
            inputs.push(shapes);
        }
        let outputs = (0..file.outputs.len())
            .map(|i| largest_output(&file, i))
            .collect();
        let aipp = ModelAipp::new(&file, &inputs, signature)?;
        Ok(ModelGears {
            file,
            inputs,
            outputs,
            aipp,
        })
    }

    /// The AIPP of the inputs.
    pub(crate) fn aipp(&self) -> &ModelAipp {
        &self.aipp
    }

    /// Number of values of a gear.
    pub(crate) fn n_values(&self) -> usize {
        self.file.n_values()
    }

    /// The shape of an input in the model: -1 for dimensions set by gears.
    pub(crate) fn input_dims(&self, input: usize) -> &[i64] {
        self.file.inputs.get(input).map_or(&[], |input| &input.dims)
    }

    /// Bytes of an input, the maximum over all gears.
    pub(crate) fn input_bytes(&self, input: usize, dtype: DType) -> usize {
        let sizes =
            (self.inputs.iter()).filter_map(|shapes| shapes.get(input)?.n_bytes(dtype).ok());
        sizes.max().unwrap_or(0)
    }

    /// The smallest and the largest size of each axis of an input.
    pub(crate) fn input_range(&self, input: usize) -> Vec<(i64, i64)> {
        let n_axes = self.input_dims(input).len();
        let mut ranges = Vec::with_capacity(n_axes);
        for axis in 0..n_axes {
            let extents = (self.inputs.iter())
                .filter_map(|shapes| shapes.get(input)?.dims().get(axis))
                .map(|&n| i64::try_from(n).unwrap_or(i64::MAX));
            // From 1 to unlimited, without gears.
            let least = extents.clone().min().unwrap_or(1);
            ranges.push((least, extents.max().unwrap_or(-1)));
        }
        ranges
    }

    /// Dtype, shape and bytes of an output in the gear with the largest output.
    pub(crate) fn output(&self, output: usize) -> Option<(DType, &[i64], usize)> {
        let known = self.outputs.get(output)?;
        Some((known.dtype, &known.dims, known.n_bytes))
    }

    /// Shapes of the outputs in a gear.
    pub(crate) fn output_dims(&self, gear: usize) -> Vec<Vec<i64>> {
        self.file
            .gears
            .get(gear)
            .map_or(Vec::new(), |gear| gear.outputs.clone())
    }

    /// The supported batch sizes; empty if the gears are of another kind.
    pub(crate) fn batches(&self) -> Vec<u64> {
        match self.file.kind {
            GearKind::Batch => self
                .file
                .gears
                .iter()
                .flat_map(|gear| gear.values.clone())
                .collect(),
            GearKind::Size | GearKind::Dims | GearKind::Fixed => Vec::new(),
        }
    }

    /// Heights and widths, likewise.
    pub(crate) fn sizes(&self) -> Vec<[u64; 2]> {
        match self.file.kind {
            GearKind::Size => self
                .file
                .gears
                .iter()
                .filter_map(|gear| gear.values.as_slice().try_into().ok())
                .collect(),
            GearKind::Batch | GearKind::Dims | GearKind::Fixed => Vec::new(),
        }
    }

    /// Shapes of all inputs, concatenated, likewise.
    pub(crate) fn dims(&self) -> Vec<Vec<i64>> {
        match self.file.kind {
            GearKind::Dims => self.inputs.iter().map(|shapes| joined(shapes)).collect(),
            GearKind::Batch | GearKind::Size | GearKind::Fixed => Vec::new(),
        }
    }

    /// The index of the gear that a program has set.
    ///
    /// # Errors
    /// A status and the reason, if there is no such gear.
    pub(crate) fn find(&self, gear: &GearChoice) -> Result<usize, (Status, String)> {
        let (found, set) = match (gear, self.file.kind) {
            (GearChoice::Batch(n), GearKind::Batch) => (self.position(&[*n]), format!("batch {n}")),
            (GearChoice::Size { height, width }, GearKind::Size) => (
                self.position(&[*height, *width]),
                format!("size {height}x{width}"),
            ),
            (GearChoice::Dims(dims), GearKind::Dims) => {
                let n_axes: usize = self.file.inputs.iter().map(|input| input.dims.len()).sum();
                if dims.len() != n_axes {
                    let found = dims.len();
                    let text = format!("the inputs have {n_axes} axes together, {found} were set");
                    return Err((GE_DYNAMIC_INPUT_LENGTH_INVALID, text));
                }
                // A program passes the fixed dimensions too, which the file's gears omit.
                let mut gears = self.inputs.iter();
                let found = gears.position(|shapes| joined(shapes) == *dims);
                (found, format!("the dimensions {dims:?}"))
            }
            (GearChoice::Batch(_), _) => (None, "a batch".to_owned()),
            (GearChoice::Size { .. }, _) => (None, "a size".to_owned()),
            (GearChoice::Dims(_), _) => (None, "the dimensions".to_owned()),
        };
        found.ok_or_else(|| {
            let text = format!("{set} is not a gear of the model: {}", self.list());
            (GE_DYNAMIC_BATCH_SIZE_INVALID, text)
        })
    }

    fn position(&self, values: &[u64]) -> Option<usize> {
        self.file
            .gears
            .iter()
            .position(|gear| gear.values == values)
    }

    /// The gears as text.
    fn list(&self) -> String {
        let kind = match self.file.kind {
            GearKind::Batch => "batch",
            GearKind::Size => "size",
            GearKind::Dims => "open dimensions",
            GearKind::Fixed => return "none".to_owned(),
        };
        let mut gears = Vec::with_capacity(self.file.gears.len());
        for gear in &self.file.gears {
            let values: Vec<String> = gear.values.iter().map(u64::to_string).collect();
            gears.push(values.join("x"));
        }
        format!("{kind} {}", gears.join(", "))
    }

    /// The shapes of an execution's inputs: those of the gear that was set, else those of the
    /// tensor descriptions, which must be a gear's, else those of the gear with the largest inputs.
    ///
    /// # Errors
    /// Why there are none.
    pub(crate) fn shapes(
        &self,
        set: Option<&GearChoice>,
        described: &[Option<Vec<i64>>],
    ) -> Result<Vec<Shape>, String> {
        if let Some(set) = set {
            let found = self.find(set).map_err(|(_, reason)| reason)?;
            return Ok(self.inputs[found].clone());
        }
        let fitting = self.inputs.iter().filter(|shapes| fit(shapes, described));
        let largest = fitting.max_by_key(|shapes| n_elements(shapes)).cloned();
        largest.ok_or_else(|| {
            let list = self.list();
            format!("the descriptions of the inputs match no gear of the model: {list}")
        })
    }
}

fn joined_names(infos: &[ValueInfo]) -> String {
    let names: Vec<&str> = infos.iter().map(|info| info.name.as_str()).collect();
    names.join(", ")
}

/// Whether shapes match the tensor descriptions, if any.
fn fit(shapes: &[Shape], described: &[Option<Vec<i64>>]) -> bool {
    let mut pairs = shapes.iter().zip(described);
    pairs.all(|(shape, dims)| dims.as_ref().is_none_or(|dims| extents(shape) == *dims))
}

fn n_elements(shapes: &[Shape]) -> u128 {
    // A single input may have `usize::MAX` elements, so their sum needs more bits.
    shapes.iter().map(|shape| shape.n_elements() as u128).sum()
}

fn joined(shapes: &[Shape]) -> Vec<i64> {
    shapes.iter().flat_map(extents).collect()
}

fn check_input(dims: &[i64], value: &ValueInfo) -> Result<(), String> {
    let Some(declared) = &value.dims else {
        return Ok(());
    };
    let does_fit = declared.len() == dims.len()
        && declared
            .iter()
            .zip(dims)
            .all(|(declared, &n)| match declared {
                DeclaredDim::Fixed(fixed) => i64::try_from(*fixed) == Ok(n),
                DeclaredDim::Named(_) | DeclaredDim::Unknown => true,
            });
    if does_fit {
        return Ok(());
    }
    let (name, shape) = (&value.name, value.shape_text());
    Err(format!(
        "input `{name}` of the model takes shape {shape}, it has {dims:?}"
    ))
}

fn largest_output(file: &Gears, output: usize) -> GearedOutput {
    let dtype = file.outputs[output]
        .dtype
        .parse()
        .unwrap_or(DType::Undefined);
    let gears = file.gears.iter();
    let all = gears.filter_map(|gear| gear.outputs.get(output));
    // An output with an unknown size in some gear has no largest size.
    let sizes: Option<Vec<usize>> = all.clone().map(|dims| n_bytes(dims, dtype)).collect();
    let largest = all.max_by_key(|dims| n_bytes(dims, dtype));
    GearedOutput {
        dtype,
        dims: largest.cloned().unwrap_or_default(),
        n_bytes: sizes.and_then(|sizes| sizes.into_iter().max()).unwrap_or(0),
    }
}

/// Bytes of a tensor; `None` if a dimension is unknown or they do not fit into memory.
fn n_bytes(dims: &[i64], dtype: DType) -> Option<usize> {
    let dims: Option<Vec<usize>> = dims.iter().map(|&n| usize::try_from(n).ok()).collect();
    Shape::new(dims?).ok()?.n_bytes(dtype).ok()
}
