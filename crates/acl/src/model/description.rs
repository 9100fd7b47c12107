//! The properties of a model that a program can query.

use std::sync::{Arc, Mutex};

use opscope_engine::input::resolve_shape;
use opscope_engine::{DeclaredDim, LoadedModel, ModelSignature, ValueInfo};
use opscope_store::record::Operator;
use opscope_tensor::{DType, Shape, Tensor};

use super::aipp::{AIPP_INPUT, AippRole, InputAipp};
use super::gears::ModelGears;
use super::shapes::extents;
use crate::Answer;
use crate::data_type::{self, FORMAT_NCHW, FORMAT_ND, FORMAT_NHWC};
use crate::lock::lock;
use crate::status::{INVALID_PARAM, STORAGE_OVER_LIMIT};

/// The additional input of dynamic models. It is found by name and not counted.
const SHAPE_INPUT: &str = "ascend_mbatch_shape_data";
/// Maximum number of axes of a value.
const N_DIMS_MAX: usize = 128;
/// Names with this many bytes or more are replaced.
const NAME_BYTES_MAX: usize = 128;
/// The shape of a value of unknown rank.
const UNKNOWN_RANK: i64 = -2;

/// Name and shape, as in `aclmdlIODims`; -1 is an unknown dimension, a single -2 an unknown rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedDims {
    /// The name, or a short one that replaces a long name: see
    /// [`Process::real_name`](crate::AclProcess::real_name).
    pub name: String,
    /// The shape.
    pub dims: Vec<i64>,
}

/// Inputs, outputs and operators of a model.
pub(crate) struct ModelDesc {
    pub(crate) inputs: Vec<ModelValue>,
    pub(crate) outputs: Vec<ModelValue>,
    /// Inputs for AIPP parameters, which follow the model's inputs.
    aipp_inputs: Vec<ModelValue>,
    /// The input with dimensions, if any dimension is open.
    shape_input: Option<ModelValue>,
    pub(crate) operators: Vec<Arc<Operator>>,
    /// The supported values of open dimensions, if they are limited.
    pub(crate) gears: Option<ModelGears>,
    /// Shapes of the results of the latest execution, or of the gear set since.
    pub(crate) latest_outputs: Mutex<Option<Vec<Vec<i64>>>>,
}

/// An input or output.
pub(crate) struct ModelValue {
    pub(crate) name: String,
    pub(crate) short_name: String,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<i64>,
    /// A shape whose product is the number of bytes, if it differs from `dims`: for pictures.
    dims_in_bytes: Option<Vec<i64>>,
    format: i32,
    /// Bytes, the maximum over all gears, if there are gears.
    geared_bytes: Option<usize>,
}

/// A side of a model.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelSide {
    Input,
    Output,
}

impl ModelValue {
    fn list(infos: &[ValueInfo], model_id: Option<u32>, side: &str) -> Vec<ModelValue> {
        let infos = infos.iter().enumerate();
        infos
            .map(|(i, info)| ModelValue::new(info, model_id, side, i))
            .collect()
    }

    fn new(info: &ValueInfo, model_id: Option<u32>, side: &str, index: usize) -> ModelValue {
        let dims = info.dims.as_ref();
        let dims: Option<Vec<i64>> = dims.map(|dims| dims.iter().map(extent_of).collect());
        let dims = dims.unwrap_or_else(|| vec![UNKNOWN_RANK]);
        let name = info.name.clone();
        // `aclmdlIODims` has 128 bytes for a name and its NUL.
        let short_name = if name.len() < NAME_BYTES_MAX {
            name.clone()
        } else {
            let id = model_id.unwrap_or(0);
            format!("acl_modelId_{id}_{side}_{index}")
        };
        ModelValue {
            name,
            short_name,
            dtype: info.dtype,
            // ONNX files have no layouts; four axes are assumed to be an image in ONNX's order.
            format: if dims.len() == 4 {
                FORMAT_NCHW
            } else {
                FORMAT_ND
            },
            dims,
            dims_in_bytes: None,
            geared_bytes: None,
        }
    }

    /// An input that the interface adds to a model: a list of `n` elements.
    fn added(name: String, dtype: DType, n: usize) -> ModelValue {
        ModelValue {
            short_name: name.clone(),
            name,
            dtype,
            dims: vec![i64::try_from(n).unwrap_or(i64::MAX)],
            dims_in_bytes: None,
            format: FORMAT_ND,
            geared_bytes: None,
        }
    }

    /// Describes the unprocessed pictures instead of the model's input.
    fn show_pictures(&mut self, aipp: &InputAipp) {
        self.dtype = DType::U8;
        self.format = FORMAT_NHWC;
        self.dims = aipp.dims();
        self.dims_in_bytes = Some(aipp.dims_in_bytes());
        self.geared_bytes = Some(aipp.n_bytes());
    }

    pub(crate) fn is_open(&self) -> bool {
        self.dims.iter().any(|&n| n < 0)
    }

    /// Bytes, the maximum over all gears if any; 0 if unknown.
    pub(crate) fn size(&self) -> usize {
        if let Some(n_bytes) = self.geared_bytes {
            return n_bytes;
        }
        let dims: Option<Vec<usize>> = self.dims.iter().map(|&n| usize::try_from(n).ok()).collect();
        let shape = dims.and_then(|dims| Shape::new(dims).ok());
        shape.map_or(0, |shape| shape.n_bytes(self.dtype).unwrap_or(0))
    }

    /// The `aclDataType`.
    pub(crate) fn data_type(&self) -> i32 {
        data_type::number(self.dtype)
    }

    pub(crate) fn format(&self) -> i32 {
        self.format
    }

    /// The shape for `aclmdlGetInputDimsV2`.
    pub(crate) fn dims_in_bytes(&self) -> &[i64] {
        self.dims_in_bytes.as_ref().unwrap_or(&self.dims)
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.short_name == name
    }
}

impl ModelDesc {
    pub(crate) fn new(
        model_id: Option<u32>,
        signature: &ModelSignature,
        outputs: &[ValueInfo],
        operators: Vec<Arc<Operator>>,
        gears: Option<ModelGears>,
    ) -> ModelDesc {
        let mut inputs = ModelValue::list(&signature.inputs, model_id, "input");
        let mut outputs = ModelValue::list(outputs, model_id, "output");
        if let Some(gears) = &gears {
            for (i, input) in inputs.iter_mut().enumerate() {
                input.dims = gears.input_dims(i).to_vec();
                input.geared_bytes = Some(gears.input_bytes(i, input.dtype));
            }
            for (i, output) in outputs.iter_mut().enumerate() {
                let Some((dtype, dims, n_bytes)) = gears.output(i) else {
                    continue;
                };
                (output.dtype, output.dims) = (dtype, dims.to_vec());
                output.geared_bytes = Some(n_bytes);
            }
        }
        // Gears set only the open dimensions; without them a program sets every dimension.
        let n_axes: usize = match &gears {
            Some(gears) => gears.n_values(),
            None => inputs.iter().map(|value| value.dims.len()).sum(),
        };
        let is_open = inputs.iter().any(ModelValue::is_open);
        let shape_input =
            is_open.then(|| ModelValue::added(SHAPE_INPUT.to_owned(), DType::I64, n_axes));
        let mut aipp_inputs = Vec::new();
        if let Some(gears) = &gears {
            for aipp in gears.aipp().inputs() {
                if let Some(input) = inputs.get_mut(aipp.input) {
                    input.show_pictures(aipp);
                }
            }
            for (i, aipp) in gears.aipp().dynamic_inputs().enumerate() {
                // Programs look up the first one by a fixed name.
                let name = match i {
                    0 => AIPP_INPUT.to_owned(),
                    i => format!("{AIPP_INPUT}_{i}"),
                };
                aipp_inputs.push(ModelValue::added(name, DType::U8, aipp.parameter_bytes()));
            }
        }
        ModelDesc {
            inputs,
            outputs,
            aipp_inputs,
            shape_input,
            operators,
            gears,
            latest_outputs: Mutex::default(),
        }
    }

    /// Whether an input has an open dimension.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.shape_input.is_some()
    }

    /// Number of inputs for data or parameters; the one for dimensions follows them.
    pub(crate) fn n_inputs(&self) -> usize {
        self.inputs.len() + self.aipp_inputs.len()
    }

    /// Number of inputs that a program counts: a model with gears has one more, added by the
    /// vendor's converter.
    pub(crate) fn n_counted_inputs(&self) -> usize {
        self.n_inputs() + usize::from(self.gears.is_some() && self.is_dynamic())
    }

    /// The AIPP of one of the model's inputs, if any.
    pub(crate) fn aipp(&self, input: usize) -> Option<&InputAipp> {
        self.gears.as_ref()?.aipp().input(input)
    }

    /// The picture input of an input for parameters.
    pub(crate) fn aipp_of_parameters(&self, index: usize) -> Option<&InputAipp> {
        let nth = index.checked_sub(self.inputs.len())?;
        self.gears.as_ref()?.aipp().dynamic_inputs().nth(nth)
    }

    /// The role of an input in AIPP.
    pub(crate) fn aipp_role(&self, index: usize) -> AippRole {
        if self.aipp_of_parameters(index).is_some() {
            return AippRole::Parameters;
        }
        match self.aipp(index) {
            None => AippRole::None,
            Some(aipp) if !aipp.is_dynamic() => AippRole::Static,
            Some(_) => {
                let gears = self.gears.as_ref();
                let mut dynamic = gears
                    .into_iter()
                    .flat_map(|gears| gears.aipp().dynamic_inputs());
                let nth = dynamic.position(|aipp| aipp.input == index);
                AippRole::Dynamic(self.inputs.len() + nth.unwrap_or(0))
            }
        }
    }

    /// Stores the shapes of the results in a gear.
    pub(crate) fn note_gear(&self, gear: usize) {
        if let Some(gears) = &self.gears {
            *lock(&self.latest_outputs) = Some(gears.output_dims(gear));
        }
    }

    /// Bytes of an output; 0 if they are known only after the computation.
    pub(crate) fn output_bytes(&self, index: usize) -> usize {
        self.outputs.get(index).map_or(0, ModelValue::size)
    }

    /// Stores the shapes of an execution's results.
    pub(crate) fn note_outputs(&self, outputs: &[Tensor]) {
        let extents = outputs.iter().map(|tensor| extents(tensor.shape()));
        *lock(&self.latest_outputs) = Some(extents.collect());
    }

    pub(crate) fn value(&self, which: ModelSide, index: usize) -> Option<&ModelValue> {
        match which {
            ModelSide::Input if index == self.n_inputs() => self.shape_input.as_ref(),
            ModelSide::Input => {
                let mut inputs = self.inputs.iter().chain(&self.aipp_inputs);
                inputs.nth(index)
            }
            ModelSide::Output => self.outputs.get(index),
        }
    }

    pub(crate) fn index(&self, which: ModelSide, name: &str) -> Option<usize> {
        let (values, added): (_, &[ModelValue]) = match which {
            ModelSide::Input => (&self.inputs, &self.aipp_inputs),
            ModelSide::Output => (&self.outputs, &[]),
        };
        let mut values = values.iter().chain(added);
        let found = values.position(|value| value.is_called(name));
        let is_shape_input = which == ModelSide::Input && name == SHAPE_INPUT && self.is_dynamic();
        // One of the model's inputs with that name takes precedence.
        found.or(is_shape_input.then_some(self.n_inputs()))
    }

    pub(crate) fn dims(&self, which: ModelSide, index: usize) -> Answer<NamedDims> {
        let value = self.value(which, index).ok_or(INVALID_PARAM)?;
        dims_of(value, &value.dims)
    }
}

fn extent_of(dim: &DeclaredDim) -> i64 {
    match dim {
        DeclaredDim::Fixed(n) => i64::try_from(*n).unwrap_or(i64::MAX),
        DeclaredDim::Named(_) | DeclaredDim::Unknown => -1,
    }
}

pub(crate) fn dims_of(value: &ModelValue, dims: &[i64]) -> Answer<NamedDims> {
    if dims.len() > N_DIMS_MAX {
        return Err(STORAGE_OVER_LIMIT);
    }
    Ok(NamedDims {
        name: value.short_name.clone(),
        dims: dims.to_vec(),
    })
}

/// A model's outputs. If the file does not define them and every input has a fixed shape, the model
/// is executed once, with zeros, to find out; if that fails they stay unknown.
pub(crate) fn outputs(model: &mut dyn LoadedModel) -> Vec<ValueInfo> {
    let signature = model.signature();
    let outputs = signature.outputs.clone();
    if outputs.iter().all(is_known) {
        return outputs;
    }
    let inputs: Option<Vec<Tensor>> = signature.inputs.iter().map(zeroes).collect();
    let Some(results) = inputs.and_then(|inputs| model.run(&inputs, None).ok()) else {
        return outputs;
    };
    if results.len() != outputs.len() {
        return outputs;
    }
    let outputs = outputs.into_iter().zip(&results);
    outputs
        .map(|(declared, result)| ValueInfo {
            dtype: result.dtype(),
            dims: Some(
                result
                    .shape()
                    .iter()
                    .map(|&n| DeclaredDim::Fixed(n))
                    .collect(),
            ),
            ..declared
        })
        .collect()
}

/// Whether dtype and shape of a value are known before the model runs.
fn is_known(value: &ValueInfo) -> bool {
    let dims = value.dims.as_ref();
    let has_extents =
        dims.is_some_and(|dims| dims.iter().all(|n| matches!(n, DeclaredDim::Fixed(_))));
    value.dtype != DType::Undefined && has_extents
}

/// A tensor of zeros for an input; `None` if a dimension is open or memory is exhausted.
fn zeroes(value: &ValueInfo) -> Option<Tensor> {
    let shape = resolve_shape(value, None).ok()?;
    let n_bytes = shape.n_bytes(value.dtype).ok()?;
    let mut bytes = Vec::new();
    // A model may declare more memory than the machine has: that must not end the program.
    bytes.try_reserve_exact(n_bytes).ok()?;
    bytes.resize(n_bytes, 0);
    Tensor::from_vec(value.dtype, shape, bytes).ok()
}
