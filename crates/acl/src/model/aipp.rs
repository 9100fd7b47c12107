//! A model's inputs with AIPP, and their appearance to a program.

use opscope_engine::{ModelSignature, ValueInfo};
use opscope_store::file_format::gears_json::{AippInputFormat, AippMode, AippOp, Gears};
use opscope_tensor::{DType, Shape};

use super::NamedDims;
use super::shapes::extents;
use crate::aipp::{AippParameters, ITEMS_MAX, picture_bytes};
use crate::data_type::{self, FORMAT_NCHW};

/// The name of the first input for parameters; the others have a numeric suffix.
pub(crate) const AIPP_INPUT: &str = "ascend_dynamic_aipp_data";
/// Bytes of the shared parameters, and of those for each picture, in the vendor's structures.
const SHARED_BYTES: usize = 64;
const ITEM_BYTES: usize = 96;

/// `aclmdlInputAippType`: the role of an input in AIPP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AippRole {
    /// None.
    None,
    /// It is preprocessed with parameters of the model.
    Static,
    /// It is preprocessed with parameters that the program sets for the input with this index.
    Dynamic(usize),
    /// It takes such parameters.
    Parameters,
}

impl AippRole {
    pub(crate) fn number(self) -> i32 {
        match self {
            AippRole::None => 0,
            AippRole::Static => 1,
            AippRole::Dynamic(_) => 2,
            AippRole::Parameters => 3,
        }
    }
}

/// `aclAippInfo`. For an input with dynamic AIPP, all but the last five members are zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AippInfo {
    /// `aclAippInputFormat`.
    pub input_format: i32,
    /// Width and height of the unprocessed pictures; 0 for those of the model's input.
    pub src_image_size: [i32; 2],
    /// Whether pictures are cropped.
    pub crop: bool,
    /// The crop's first column and row.
    pub load_start_pos: [i32; 2],
    /// The crop's width and height.
    pub crop_size: [i32; 2],
    /// Whether padding is added.
    pub padding: bool,
    /// Padding: left, right, top, bottom.
    pub padding_sizes: [i32; 4],
    /// Whether colours are converted.
    pub csc: bool,
    /// Whether R and B, or U and V, are swapped.
    pub rbuv_swap: bool,
    /// Whether the first of four channels is dropped.
    pub ax_swap: bool,
    /// The matrix, row by row.
    pub matrix: [i32; 9],
    /// Offsets added after the matrix product.
    pub output_biases: [i32; 3],
    /// Offsets subtracted before the matrix product.
    pub input_biases: [i32; 3],
    /// Means of channels.
    pub means: [i32; 4],
    /// Minima of channels.
    pub minima: [f32; 4],
    /// Factors of channels.
    pub factors: [f32; 4],
    /// `aclFormat` of the model's input.
    pub src_format: i32,
    /// `aclDataType` of the model's input.
    pub src_data_type: i32,
    /// Number of axes of the model's input.
    pub src_n_dims: usize,
    /// One for each gear, or a single one.
    pub shapes: Vec<AippShape>,
}

/// `aclAippDims`: the model's input, which is also AIPP's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AippShape {
    /// Its name and shape.
    pub dims: NamedDims,
    /// Its bytes.
    pub n_bytes: usize,
}

/// An input with AIPP.
pub(crate) struct InputAipp {
    /// The input.
    pub(crate) input: usize,
    pub(crate) op: AippOp,
    name: String,
    /// Dtype of the model's input.
    dtype: DType,
    /// Shape of the model's input, for each gear: batch, channels, height, width.
    shapes: Vec<Shape>,
}

/// The inputs with AIPP, in the order of the file.
pub(crate) struct ModelAipp(Vec<InputAipp>);

impl ModelAipp {
    /// The entries of a file whose gears match the model, with the shapes of all inputs in each.
    pub(super) fn new(
        file: &Gears,
        gears: &[Vec<Shape>],
        signature: &ModelSignature,
    ) -> Result<ModelAipp, String> {
        let mut inputs = Vec::with_capacity(file.aipp.len());
        for op in &file.aipp {
            let found = file
                .aipp_input(op)
                .and_then(|input| Some((input, signature.inputs.get(input)?)));
            let (input, value) = found.ok_or("it has `aipp` for an input that does not exist")?;
            check_dtype(value)?;
            let shapes = gears.iter().filter_map(|shapes| shapes.get(input).cloned());
            let aipp = InputAipp {
                input,
                op: op.clone(),
                name: value.name.clone(),
                dtype: value.dtype,
                shapes: shapes.collect(),
            };
            // Parameters are stored for each picture, and allocated before a picture is read.
            let n = aipp.n_pictures();
            if n > ITEMS_MAX {
                let name = &value.name;
                return Err(format!(
                    "input `{name}` takes {n} pictures, AIPP supports at most {ITEMS_MAX}"
                ));
            }
            inputs.push(aipp);
        }
        Ok(ModelAipp(inputs))
    }

    /// The AIPP of an input, if any.
    pub(crate) fn input(&self, input: usize) -> Option<&InputAipp> {
        self.0.iter().find(|aipp| aipp.input == input)
    }

    pub(crate) fn inputs(&self) -> &[InputAipp] {
        &self.0
    }

    /// The inputs with dynamic AIPP. Their inputs for parameters follow the model's inputs in this
    /// order.
    pub(crate) fn dynamic_inputs(&self) -> impl Iterator<Item = &InputAipp> {
        self.0.iter().filter(|aipp| aipp.is_dynamic())
    }
}

fn check_dtype(value: &ValueInfo) -> Result<(), String> {
    let (name, dtype) = (&value.name, value.dtype);
    match dtype {
        DType::F32 | DType::F16 | DType::U8 => Ok(()),
        _ => Err(format!(
            "input `{name}` is of type {dtype}, but AIPP yields float32, float16 or uint8"
        )),
    }
}

/// Bytes of the parameters for a batch of `n` pictures; `None` on overflow.
pub(crate) fn parameter_bytes(n: usize) -> Option<usize> {
    n.checked_mul(ITEM_BYTES)?.checked_add(SHARED_BYTES)
}

impl InputAipp {
    pub(crate) fn is_dynamic(&self) -> bool {
        self.op.aipp_mode == AippMode::Dynamic
    }

    /// The model's parameters, for the input shape of an execution.
    pub(crate) fn parameters(&self, shape: &Shape) -> AippParameters {
        let own = own_size(shape);
        let n = shape.dims().first().copied().unwrap_or(0);
        AippParameters::from_file(&self.op, n, (own.0 as u64, own.1 as u64))
    }

    /// Maximum number of pictures in a batch.
    pub(crate) fn n_pictures(&self) -> usize {
        let batches = self.shapes.iter().filter_map(|shape| shape.dims().first());
        batches.copied().max().unwrap_or(0)
    }

    /// Checks a program's parameters against the model.
    ///
    /// # Errors
    /// A description of the mismatch.
    pub(crate) fn check(&self, parameters: &AippParameters) -> Result<(), String> {
        let (n, n_found) = (self.n_pictures(), parameters.items.len());
        if n != n_found {
            return Err(format!(
                "the model takes {n} pictures, the parameters are for {n_found}"
            ));
        }
        parameters.check()?;
        // The buffer has no more room.
        let n_bytes = parameters.picture_bytes().saturating_mul(n);
        let n_bytes_max = self.n_bytes();
        if n_bytes > n_bytes_max {
            return Err(format!(
                "the pictures have {n_bytes} bytes, the model's `max_src_image_size` is \
                 {n_bytes_max}"
            ));
        }
        // With gears one match is enough: the gear is not known yet. The last mismatch is reported:
        // with one gear it is the only one.
        let mut result = Ok(());
        for shape in &self.shapes {
            result = self.check_fit(parameters, shape);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Checks that the processed pictures match an execution.
    pub(crate) fn check_fit(
        &self,
        parameters: &AippParameters,
        shape: &Shape,
    ) -> Result<(), String> {
        let channels = shape.dims().get(1).copied().unwrap_or(0);
        parameters.check_fit(channels, own_size(shape))
    }

    /// Bytes of the input's buffer, the maximum over all gears.
    pub(crate) fn n_bytes(&self) -> usize {
        if self.is_dynamic() {
            return usize::try_from(self.op.max_src_image_size).unwrap_or(usize::MAX);
        }
        let sizes = self.shapes.iter().map(|shape| {
            let parameters = self.parameters(shape);
            parameters
                .picture_bytes()
                .saturating_mul(parameters.items.len())
        });
        sizes.max().unwrap_or(0)
    }

    /// The shape for `aclmdlGetInputDims`: batch, height, width and channels of unprocessed
    /// pictures; -1 for dimensions set by gears or the program.
    pub(crate) fn dims(&self) -> Vec<i64> {
        self.common_dims(|[n, h, w, c], _| [n, h, w, c])
    }

    /// The shape for `aclmdlGetInputDimsV2`, whose product is the number of bytes.
    pub(crate) fn dims_in_bytes(&self) -> Vec<i64> {
        if self.is_dynamic() {
            return self.dims();
        }
        self.common_dims(|[n, h, w, c], n_bytes| {
            // Half-size planes count as additional rows, and a pixel is one byte wide then.
            if n_bytes == h * w * c {
                [n, h, w, c]
            } else {
                [n, n_bytes / w.max(1), w, 1]
            }
        })
    }

    /// The smallest and the largest size of each axis, over all gears.
    pub(crate) fn ranges(&self) -> Vec<(i64, i64)> {
        let all: Vec<[i64; 4]> = self
            .source_dims()
            .into_iter()
            .map(|(dims, _)| dims)
            .collect();
        (0..4)
            .map(|axis| {
                let extents = all.iter().map(|dims| dims[axis]);
                let (least, most) = (extents.clone().min(), extents.max());
                match (least, most) {
                    (Some(least), Some(most)) if least >= 0 => (least, most),
                    // From 1 to unlimited.
                    _ => (1, -1),
                }
            })
            .collect()
    }

    fn common_dims(&self, turn: impl Fn([i64; 4], i64) -> [i64; 4]) -> Vec<i64> {
        let mut all = self.source_dims().into_iter();
        let mut common = match all.next() {
            Some((dims, n_bytes)) => turn(dims, n_bytes),
            None => [-1; 4],
        };
        for (dims, n_bytes) in all {
            for (common, extent) in common.iter_mut().zip(turn(dims, n_bytes)) {
                if *common != extent {
                    *common = -1;
                }
            }
        }
        common.to_vec()
    }

    /// Shape and bytes of an unprocessed picture, for each gear.
    fn source_dims(&self) -> Vec<([i64; 4], i64)> {
        let sources = self.shapes.iter().map(|shape| {
            let n = extents(shape).first().copied().unwrap_or(-1);
            // Only the number of pictures is known before the program sets parameters.
            if self.is_dynamic() {
                return ([n, -1, -1, -1], 0);
            }
            let parameters = self.parameters(shape);
            let (width, height) = (parameters.width, parameters.height);
            let n_bytes = picture_bytes(parameters.format, width, height);
            let dims = [n, count(height), count(width), channels(parameters.format)];
            (dims, count(n_bytes))
        });
        sources.collect()
    }

    /// Bytes of the dynamic parameters.
    pub(crate) fn parameter_bytes(&self) -> usize {
        parameter_bytes(self.n_pictures()).unwrap_or(usize::MAX)
    }

    pub(crate) fn info(&self) -> AippInfo {
        let shapes = self.shapes.iter().map(|shape| AippShape {
            dims: NamedDims {
                name: self.name.clone(),
                dims: extents(shape),
            },
            n_bytes: shape.n_bytes(self.dtype).unwrap_or(0),
        });
        // These hold for every input with AIPP, the others only if the file has them.
        let info = AippInfo {
            src_format: FORMAT_NCHW,
            src_data_type: data_type::number(self.dtype),
            src_n_dims: self.shapes.first().map_or(0, Shape::n_axes),
            shapes: shapes.collect(),
            ..AippInfo::default()
        };
        if self.is_dynamic() {
            return info;
        }
        let op = &self.op;
        AippInfo {
            // A size of 0 is reported unchanged: gears may allow several.
            input_format: op.input_format.number(),
            src_image_size: [op.src_image_size_w, op.src_image_size_h],
            crop: op.crop,
            load_start_pos: if_on(op.crop, [op.load_start_pos_w, op.load_start_pos_h]),
            crop_size: if_on(op.crop, [op.crop_size_w, op.crop_size_h]),
            padding: op.padding,
            padding_sizes: if_on(
                op.padding,
                [
                    op.left_padding_size,
                    op.right_padding_size,
                    op.top_padding_size,
                    op.bottom_padding_size,
                ],
            ),
            csc: op.csc_switch,
            rbuv_swap: op.rbuv_swap_switch,
            ax_swap: op.ax_swap_switch,
            matrix: op.matrix(),
            output_biases: op.output_biases(),
            input_biases: op.input_biases(),
            means: op.means(),
            minima: op.minima(),
            factors: op.factors(),
            ..info
        }
    }
}

/// Width and height of the model's input.
fn own_size(shape: &Shape) -> (usize, usize) {
    match *shape.dims() {
        [_, _, height, width] => (width, height),
        _ => (0, 0),
    }
}

/// Channels of a picture in the vendor's shapes: all of a pixel's channels, also for planar
/// pictures.
fn channels(format: AippInputFormat) -> i64 {
    match format {
        AippInputFormat::Undefined => -1,
        AippInputFormat::Yuv400U8 => 1,
        AippInputFormat::Yuv420spU8 | AippInputFormat::Rgb888U8 => 3,
        AippInputFormat::Xrgb8888U8 => 4,
    }
}

/// Disabled values are reported as 0, whatever the file contains.
fn if_on<const N: usize>(is_on: bool, values: [i32; N]) -> [i32; N] {
    if is_on { values } else { [0; N] }
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
