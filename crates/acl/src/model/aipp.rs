//! The inputs of a model that AIPP prepares, and how a program sees them.

use opscope_engine::{ModelSignature, ValueInfo};
use opscope_store::file_format::gears_json::{AippInputFormat, AippMode, AippOp, Gears};
use opscope_tensor::{DType, Shape};

use super::NamedDims;
use super::shapes::extents;
use crate::aipp::{AippParameters, ITEMS_MAX, picture_bytes};
use crate::data_type::{self, FORMAT_NCHW};

/// The name of the first input of parameters; the others have a number behind it.
pub(crate) const AIPP_INPUT: &str = "ascend_dynamic_aipp_data";
/// Bytes of parameters that all pictures share, and of those that each has, in the vendor's
/// structures.
const SHARED_BYTES: usize = 64;
const ITEM_BYTES: usize = 96;

/// `aclmdlInputAippType`: the part that AIPP plays for an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AippRole {
    /// Nothing.
    None,
    /// It is prepared with parameters that the model has.
    Static,
    /// It is prepared with parameters that the program gives the input of this index.
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

/// `aclAippInfo`. Of an input whose parameters the program sets, all but the last five members are
/// zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AippInfo {
    /// `aclAippInputFormat`.
    pub input_format: i32,
    /// Width and height of pictures as they come in; 0 for those that the model takes.
    pub src_image_size: [i32; 2],
    /// Whether a part is cut out.
    pub crop: bool,
    /// The part's first column and row.
    pub load_start_pos: [i32; 2],
    /// The part's width and height.
    pub crop_size: [i32; 2],
    /// Whether rows and columns are added.
    pub padding: bool,
    /// How many: left, right, above, below.
    pub padding_sizes: [i32; 4],
    /// Whether colours are converted.
    pub csc: bool,
    /// Whether R and B, or U and V, change places.
    pub rbuv_swap: bool,
    /// Whether the first of four channels is passed over.
    pub ax_swap: bool,
    /// The matrix, row by row.
    pub matrix: [i32; 9],
    /// Offsets that are added after the matrix.
    pub output_biases: [i32; 3],
    /// Offsets that are subtracted before the matrix.
    pub input_biases: [i32; 3],
    /// Means of channels.
    pub means: [i32; 4],
    /// Minima of channels.
    pub minima: [f32; 4],
    /// Factors of channels.
    pub factors: [f32; 4],
    /// `aclFormat` of the model's own input.
    pub src_format: i32,
    /// `aclDataType` of the model's own input.
    pub src_data_type: i32,
    /// How many axes the model's own input has.
    pub src_n_dims: usize,
    /// For each gear, or once.
    pub shapes: Vec<AippShape>,
}

/// `aclAippDims`: the model's own input, which is also what AIPP gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AippShape {
    /// Its name and extents.
    pub dims: NamedDims,
    /// Its bytes.
    pub n_bytes: usize,
}

/// An input that AIPP prepares.
pub(crate) struct InputAipp {
    /// The input.
    pub(crate) input: usize,
    pub(crate) op: AippOp,
    name: String,
    /// Type of what the model takes.
    dtype: DType,
    /// Extents of what the model takes, for each gear: batch, channels, height, width.
    shapes: Vec<Shape>,
}

/// The inputs that AIPP prepares, in the order of the file.
pub(crate) struct ModelAipp(Vec<InputAipp>);

impl ModelAipp {
    /// The entries of a file whose gears fit the model, with the extents of all inputs in each.
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
            let (input, value) = found.ok_or("it has `aipp` for an input that is not there")?;
            check_dtype(value)?;
            let shapes = gears.iter().filter_map(|shapes| shapes.get(input).cloned());
            let aipp = InputAipp {
                input,
                op: op.clone(),
                name: value.name.clone(),
                dtype: value.dtype,
                shapes: shapes.collect(),
            };
            // There are parameters for each picture, which are made before one is read.
            let n = aipp.n_pictures();
            if n > ITEMS_MAX {
                let name = &value.name;
                return Err(format!(
                    "input `{name}` takes {n} pictures, AIPP prepares at most {ITEMS_MAX}"
                ));
            }
            inputs.push(aipp);
        }
        Ok(ModelAipp(inputs))
    }

    /// How an input is prepared, if it is.
    pub(crate) fn input(&self, input: usize) -> Option<&InputAipp> {
        self.0.iter().find(|aipp| aipp.input == input)
    }

    pub(crate) fn inputs(&self) -> &[InputAipp] {
        &self.0
    }

    /// The inputs that have an input for parameters each, which stand behind the model's own in
    /// this order.
    pub(crate) fn dynamic_inputs(&self) -> impl Iterator<Item = &InputAipp> {
        self.0.iter().filter(|aipp| aipp.is_dynamic())
    }
}

fn check_dtype(value: &ValueInfo) -> Result<(), String> {
    let (name, dtype) = (&value.name, value.dtype);
    match dtype {
        DType::F32 | DType::F16 | DType::U8 => Ok(()),
        _ => Err(format!(
            "input `{name}` is of type {dtype}, and AIPP gives float32, float16 or uint8"
        )),
    }
}

/// Bytes of the parameters for a batch of `n` pictures; `None` for more than can be counted.
pub(crate) fn parameter_bytes(n: usize) -> Option<usize> {
    n.checked_mul(ITEM_BYTES)?.checked_add(SHARED_BYTES)
}

impl InputAipp {
    pub(crate) fn is_dynamic(&self) -> bool {
        self.op.aipp_mode == AippMode::Dynamic
    }

    /// The parameters that the model has, for what it takes in an execution.
    pub(crate) fn parameters(&self, shape: &Shape) -> AippParameters {
        let own = own_size(shape);
        let n = shape.dims().first().copied().unwrap_or(0);
        AippParameters::from_file(&self.op, n, (own.0 as u64, own.1 as u64))
    }

    /// The most pictures of a batch.
    pub(crate) fn n_pictures(&self) -> usize {
        let batches = self.shapes.iter().filter_map(|shape| shape.dims().first());
        batches.copied().max().unwrap_or(0)
    }

    /// Checks parameters that a program has set for the model.
    ///
    /// # Errors
    /// Why they do not fit, in words.
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
        // With gears it is enough if one of them fits: which one it will be is not known.
        // The last difference is told: with one gear it is the only one.
        let mut result = Ok(());
        for shape in &self.shapes {
            result = self.check_fit(parameters, shape);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Checks that an execution takes what comes out.
    pub(crate) fn check_fit(
        &self,
        parameters: &AippParameters,
        shape: &Shape,
    ) -> Result<(), String> {
        let channels = shape.dims().get(1).copied().unwrap_or(0);
        parameters.check_fit(channels, own_size(shape))
    }

    /// Bytes of the input's buffer, in the gear in which they are most.
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

    /// Extents as `aclmdlGetInputDims` gives them: batch, height, width and channels of pictures as
    /// they come in; -1 where gears or the program set them.
    pub(crate) fn dims(&self) -> Vec<i64> {
        self.common_dims(|[n, h, w, c], _| [n, h, w, c])
    }

    /// Extents as `aclmdlGetInputDimsV2` gives them, whose product is the number of bytes.
    pub(crate) fn dims_in_bytes(&self) -> Vec<i64> {
        if self.is_dynamic() {
            return self.dims();
        }
        self.common_dims(|[n, h, w, c], n_bytes| {
            // Planes of half the size stand for rows, and a pixel is one byte wide then.
            if n_bytes == h * w * c {
                [n, h, w, c]
            } else {
                [n, n_bytes / w.max(1), w, 1]
            }
        })
    }

    /// The smallest and the largest extent of each axis, over the gears.
    pub(crate) fn ranges(&self) -> Vec<(i64, i64)> {
        let all: Vec<[i64; 4]> = self
            .source_dims()
            .into_iter()
            .map(|(dims, _)| dims)
            .collect();
        let range = |axis: usize| {
            let extents = all.iter().map(|dims| dims[axis]);
            let (least, most) = (extents.clone().min(), extents.max());
            match (least, most) {
                (Some(least), Some(most)) if least >= 0 => (least, most),
                // From 1 to no limit.
                _ => (1, -1),
            }
        };
        (0..4).map(range).collect()
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

    /// Extents and bytes of a picture as it comes in, for each gear.
    fn source_dims(&self) -> Vec<([i64; 4], i64)> {
        let source = |shape: &Shape| {
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
        };
        self.shapes.iter().map(source).collect()
    }

    /// Bytes of the parameters that the program sets.
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
        // These hold for every input that is prepared, the others only where the file has them.
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
            // A size of 0 is told as it is: gears may make it several.
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

/// Width and height of what the model takes.
fn own_size(shape: &Shape) -> (usize, usize) {
    match *shape.dims() {
        [_, _, height, width] => (width, height),
        _ => (0, 0),
    }
}

/// Channels of a picture as the vendor's extents count them: those that its pixels have together,
/// also where they lie in planes.
fn channels(format: AippInputFormat) -> i64 {
    match format {
        AippInputFormat::Undefined => -1,
        AippInputFormat::Yuv400U8 => 1,
        AippInputFormat::Yuv420spU8 | AippInputFormat::Rgb888U8 => 3,
        AippInputFormat::Xrgb8888U8 => 4,
    }
}

/// Values that are switched off are told as 0, whatever the file has.
fn if_on<const N: usize>(is_on: bool, values: [i32; N]) -> [i32; N] {
    if is_on { values } else { [0; N] }
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
