//! Converts two tensors to the same layout and shape.

use opscope_store::file_format::dump_data::{layout_code, layout_from_code};
use opscope_tensor::Layout;

use super::dump::FileTensor;
use super::stop::CompareStop;
use crate::array::{ElementArray, count};
use crate::custom::{ConverterCall, UserConverters};
use crate::failure::ErrorCode;
use crate::layout::{self, ConversionResult, LayoutRequest};
use crate::slice::{self, SliceCut};
use crate::{formats, log};

/// Converters get the number of groups from this number on.
const GROUPS_MIN: i32 = 2;
/// More padding than this is a mistake.
const PADDING_MAX: i64 = 15;
/// Number of axes of image layouts.
pub(super) const IMAGE_AXES: usize = 4;
/// Minimum number of axes for cutting.
const CUT_AXES_MIN: usize = 4;

/// The golden tensor, with the information of the rules.
pub(super) struct GoldenTensor<'a> {
    pub(super) tensor: &'a FileTensor,
    pub(super) format: String,
    pub(super) shape: Vec<i64>,
}

/// The context of an alignment.
pub(super) struct AlignmentContext<'a> {
    pub(super) op_name: &'a str,
    pub(super) custom: Option<&'a UserConverters>,
    /// Whether both sides are originals, one of them quantised.
    pub(super) is_between_originals: bool,
    /// Whether elements are to be listed, by their position in a plain layout.
    pub(super) is_listing: bool,
}

/// Two tensors with the same number of elements, in the same order.
pub(super) struct AlignedPair<'a> {
    pub(super) mine: ElementArray<'a>,
    pub(super) golden: ElementArray<'a>,
    /// The shape in the result.
    pub(super) dims: Vec<usize>,
}

impl AlignmentContext<'_> {
    /// Aligns a tensor with the golden one.
    pub(super) fn align<'a>(
        &self,
        mine: &'a FileTensor,
        golden: &mut GoldenTensor<'a>,
    ) -> Result<AlignedPair<'a>, CompareStop> {
        let golden_format = if golden.format.is_empty() {
            mine.format
        } else {
            golden.resolve_format()?
        };
        // Originals are not in a device layout, so their shapes must be equal.
        if self.is_between_originals {
            self.check_same(&mine.dims, &golden.tensor.dims)?;
            return Ok(AlignedPair {
                mine: mine.decode()?,
                golden: golden.tensor.decode()?,
                dims: mine.dims.clone(),
            });
        }
        // Only checked here: an unknown layout is an error even if nothing is converted.
        formats::from_code(mine.format)?;
        let (to_mine, to_golden) = self.destinations(mine.format, golden_format);
        let (mut to_mine_array, golden_array) =
            if (is(to_mine, Layout::Nd) && !needs_conversion(mine.format)) || mine.is_scalar() {
                let golden_array = golden.tensor.decode()?;
                (ConversionResult::from(mine.decode()?), golden_array)
            } else {
                let wanted = &golden.shape;
                let converted = self.convert(mine, mine.format, to_mine, wanted, mine.groups)?;
                let own: Vec<i64> = golden.tensor.dims.iter().map(|&d| d as i64).collect();
                let other =
                    self.convert(golden.tensor, golden_format, to_golden, &own, mine.groups)?;
                (
                    converted,
                    other.into_array().map_err(CompareStop::Exception)?,
                )
            };
        let n_mine = count(to_mine_array.dims()).unwrap_or(usize::MAX);
        let is_other_size = !mine.is_scalar() && n_mine != golden_array.n_elements();
        // A blocked layout leaves padding behind, which the golden side does not have.
        if !is(mine.format, Layout::Nd) || is_other_size {
            to_mine_array = self.cut(to_mine_array, golden_array.dims())?;
        }
        let array = to_mine_array.into_array().map_err(CompareStop::Exception)?;
        if array.n_elements() != golden_array.n_elements() {
            let (a, b) = (array.n_elements(), golden_array.n_elements());
            return Err(self.mismatch(&format!("({a})"), &format!("({b})")));
        }
        Ok(AlignedPair {
            dims: array.dims().to_vec(),
            mine: array,
            golden: golden_array,
        })
    }

    /// The target layouts of both sides.
    fn destinations(&self, mine: u32, golden: u32) -> (u32, u32) {
        // For metrics any common order will do, so my side is converted to the golden layout; a
        // listing needs positions in a plain layout on both sides.
        if !self.is_listing {
            return (golden, golden);
        }
        let to = if has_depth(mine) {
            layout_code(Layout::Ncdhw)
        } else if is(mine, Layout::FractalZ) {
            golden
        } else {
            layout_code(Layout::Nchw)
        };
        (to, to)
    }

    fn convert<'a>(
        &self,
        tensor: &'a FileTensor,
        from: u32,
        to: u32,
        wanted: &[i64],
        groups: i32,
    ) -> Result<ConversionResult<'a>, CompareStop> {
        let array = tensor.decode()?;
        let dims = &tensor.dims;
        let is_image = [Layout::Nchw, Layout::Nhwc, Layout::Hwcn]
            .iter()
            .any(|&layout| is(from, layout));
        let is_plain = is(from, Layout::Nd) || (is_image && dims.len() != IMAGE_AXES) || from == to;
        if is_plain {
            return Ok(reshape(array, dims)?.into());
        }
        if is(from, Layout::FractalNz) {
            // The blocks must cover the leading axes exactly; otherwise the reference compares the
            // raw blocks.
            if is(to, Layout::Nd) && wanted.len() > 2 {
                let blocks = dims.last_chunk::<4>().ok_or_else(CompareStop::index)?;
                let lead = wanted[..wanted.len() - 2].iter().map(|&d| i128::from(d));
                let n = lead.product::<i128>() * count(blocks).unwrap_or(0) as i128;
                if n != array.n_elements() as i128 {
                    log::warning(
                        "Cannot convert FRACTAL_NZ to ND, the reason is the length of array is not \
                         equal to the length of dest shape.",
                    );
                    return Ok(reshape(array, dims)?.into());
                }
            }
            check_blocks(dims, wanted)?;
        }
        let (from, _) = formats::from_code(from)?;
        let (to, _) = formats::from_code(to)?;
        let wanted: Vec<usize> = wanted
            .iter()
            .map(|&d| usize::try_from(d).unwrap_or(usize::MAX))
            .collect();
        self.run(from, to, array, dims, &wanted, groups)
    }

    /// Runs the user's converter, or else the reference's.
    pub(super) fn run<'a>(
        &self,
        from: Layout,
        to: Layout,
        array: ElementArray<'a>,
        dims: &[usize],
        wanted: &[usize],
        groups: i32,
    ) -> Result<ConversionResult<'a>, CompareStop> {
        let call = ConverterCall {
            array: &array,
            dims,
            wanted,
            groups: (groups >= GROUPS_MIN).then_some(groups),
        };
        let custom = self
            .custom
            .and_then(|custom| custom.convert(from, to, &call));
        let result = match custom {
            Some(result) => result.map(ConversionResult::from),
            None => {
                let request = LayoutRequest {
                    array,
                    dims,
                    wanted,
                    groups,
                };
                layout::convert(from, to, request).ok_or_else(|| {
                    log::warning(&format!("Not supported from {from} to {to}."));
                    CompareStop::bare(ErrorCode::Format)
                })?
            }
        };
        result.map_err(|reason| {
            log::error(&format!(
                "Failed to execute 'convert' in 'convert_{from}_to_{to}'. {reason}"
            ));
            CompareStop::bare(ErrorCode::Conversion)
        })
    }

    fn cut<'a>(
        &self,
        converted: ConversionResult<'a>,
        wanted: &[usize],
    ) -> Result<ConversionResult<'a>, CompareStop> {
        match slice::plan(converted.dims(), wanted) {
            SliceCut::Keep => Ok(converted),
            SliceCut::To { dims, ends } => {
                converted.cut(&dims, &ends).map_err(CompareStop::Exception)
            }
            SliceCut::Impossible => {
                let (mine, golden) = uncuttable(converted.dims(), wanted);
                Err(self.mismatch(&shape_text(&mine), &shape_text(&golden)))
            }
        }
    }

    fn check_same(&self, mine: &[usize], golden: &[usize]) -> Result<(), CompareStop> {
        if mine == golden {
            return Ok(());
        }
        Err(self.mismatch(&shape_text(mine), &shape_text(golden)))
    }

    fn mismatch(&self, mine: &str, golden: &str) -> CompareStop {
        let message = format!(
            "[{}] Due to the different shapes on the left and right,the left dump data{mine} can \
             not be compared to the right dump data{golden}. Please check the batch of the dump \
             data or the shape may be changed due to optimization.",
            self.op_name
        );
        log::warning(&message);
        CompareStop::coded(ErrorCode::Shape, message)
    }
}

impl GoldenTensor<'_> {
    /// The number of the layout. `NHWC` and `NCHW` are swapped if the shape implies it.
    fn resolve_format(&mut self) -> Result<u32, CompareStop> {
        if formats::from_name(&self.format).is_none() {
            return Err(unknown_format(&self.format));
        }
        let dims: Vec<i64> = self.tensor.dims.iter().map(|&d| d as i64).collect();
        if let ([s0, s1, s2, s3], [o0, o1, o2, o3]) = (&self.shape[..], &dims[..])
            && self.shape != dims
        {
            if self.format == "NHWC" && [s0, s1, s2, s3] == [o0, o2, o3, o1] {
                self.format = "NCHW".to_owned();
            }
            if self.format == "NCHW" && [s0, s1, s2, s3] == [o0, o3, o1, o2] {
                self.format = "NHWC".to_owned();
            }
        }
        let layout =
            formats::from_name(&self.format).ok_or_else(|| unknown_format(&self.format))?;
        Ok(layout_code(layout))
    }
}

/// The error of an unknown layout.
fn unknown_format(format: &str) -> CompareStop {
    let message = format!("The format \" {format} \" is not supported.");
    log::warning(&message);
    CompareStop::coded(ErrorCode::Format, message)
}

/// The array with the dump's shape.
pub(super) fn reshape<'a>(
    array: ElementArray<'a>,
    dims: &[usize],
) -> Result<ElementArray<'a>, CompareStop> {
    if !array.dims().contains(&0) && count(dims) != Some(array.n_elements()) {
        log::error(&format!(
            "The length({}) is not match with the shape {}.",
            array.n_elements(),
            shape_text(dims)
        ));
        return Err(CompareStop::bare(ErrorCode::InvalidDumpData));
    }
    array.reshape(dims).map_err(CompareStop::Exception)
}

/// Whether `FRACTAL_NZ` blocks of shape `dims` can be cut to `wanted`.
fn check_blocks(dims: &[usize], wanted: &[i64]) -> Result<(), CompareStop> {
    let Some(last) = wanted.last() else {
        let message = "The format before transfer is FRACTAL_NZ. Please enter a valid shape.";
        return refuse_shape(message.to_owned());
    };
    let [lead @ .., n1, m1, m0, c0] = dims else {
        return Err(CompareStop::index());
    };
    let (m, n) = (size_of_blocks(*m1, *m0), size_of_blocks(*n1, *c0));
    let lead: Vec<i64> = lead.iter().map(|&d| d as i64).collect();
    let recommended: Vec<i64> = lead.iter().copied().chain([m, n]).collect();
    let texts = (shape_text(wanted), shape_text(&recommended));
    let is_misfit = misfits(*last, n) || {
        let at = wanted.len().checked_sub(2).ok_or_else(CompareStop::index)?;
        misfits(wanted[at], m)
    };
    if wanted.len() != recommended.len() || is_misfit {
        return refuse_shape(format!(
            "The target shape {} is invalid. The recommended shape is {}.",
            texts.0, texts.1
        ));
    }
    if wanted[..lead.len()] != lead {
        return refuse_shape(format!(
            "The target shape {} is invalid, the recommended shape is {}.",
            texts.0, texts.1
        ));
    }
    Ok(())
}

/// Whether a size cannot come from a padded one.
fn misfits(wanted: i64, padded: i64) -> bool {
    wanted > padded || wanted < padded - PADDING_MAX
}

/// The size of an axis from blocks of a size, saturating.
fn size_of_blocks(a: usize, b: usize) -> i64 {
    i64::try_from(a.saturating_mul(b)).unwrap_or(i64::MAX)
}

/// Refuses a target shape.
fn refuse_shape(message: String) -> Result<(), CompareStop> {
    Err(CompareStop::coded(ErrorCode::FractalNz, message))
}

/// The shapes in the message for a tensor that cannot be cut.
fn uncuttable(mine: &[usize], golden: &[usize]) -> (Vec<usize>, Vec<usize>) {
    if mine.len() < golden.len() {
        return (without_ones(mine), without_ones(golden));
    }
    let mine = padded(mine, CUT_AXES_MIN);
    let golden = padded(golden, mine.len());
    (mine, golden)
}

/// The shape with ones added up to `n` axes.
fn padded(dims: &[usize], n: usize) -> Vec<usize> {
    let ones = std::iter::repeat_n(1, n.saturating_sub(dims.len()));
    dims.iter().copied().chain(ones).collect()
}

/// The shape without axes of size 1, but with at least one axis.
fn without_ones(dims: &[usize]) -> Vec<usize> {
    let others: Vec<usize> = dims.iter().copied().filter(|&d| d != 1).collect();
    if others.is_empty() {
        dims.to_vec()
    } else {
        others
    }
}

/// `(2, 3)`.
pub(super) fn shape_text<T: ToString>(dims: &[T]) -> String {
    let dims: Vec<String> = dims.iter().map(T::to_string).collect();
    format!("({})", dims.join(", "))
}

/// Whether a number is that of a layout.
pub(super) fn is(code: u32, layout: Layout) -> bool {
    layout_from_code(code) == Some(layout)
}

fn needs_conversion(code: u32) -> bool {
    is(code, Layout::FractalNz) || is(code, Layout::Ndc1hwc0)
}

/// Layouts with an axis for depth.
pub(super) fn has_depth(code: u32) -> bool {
    [
        Layout::Ndhwc,
        Layout::Ncdhw,
        Layout::Dhwcn,
        Layout::Ndc1hwc0,
    ]
    .iter()
    .any(|&layout| is(code, layout))
}
