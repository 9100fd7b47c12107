//! Converting a tensor from one layout to another.
//!
//! A [`LayoutPlan`] is made once from layouts and shapes, with every size checked; running it
//! copies from one slice to another that the caller owns. Device layouts pad axes to whole blocks:
//! the padding is zero on the way there and dropped on the way back, so there and back is the
//! identity.
//!
//! `docs/formats/layouts.md` describes each layout, with its formula and its source, and how the
//! `-f` option of the reference converter differs. A drop-in gets that behaviour by its own choice
//! of `original` and with [`LayoutConversion::is_prefix`].
//!
//! ```
//! use opscope_tensor::convert::layout::{LayoutConversion, LayoutPlan};
//! use opscope_tensor::{Layout, Shape};
//!
//! let device = Shape::new([1, 2, 2, 2, 16]).unwrap();
//! let original = Shape::new([1, 20, 2, 2]).unwrap();
//! let plan = LayoutPlan::new(&LayoutConversion {
//!     original: Some((Layout::Nchw, &original)),
//!     ..LayoutConversion::new(Layout::Nc1hwc0, &device, Layout::Nhwc, 2)
//! })
//! .unwrap();
//! assert_eq!(plan.out_shape().dims(), [1, 2, 2, 20]);
//! let out = plan.run_to_vec(&[0; 2 * 128]).unwrap();
//! assert_eq!(out.len(), 2 * 80);
//! ```

mod conv;
mod cursor;
mod error;
mod kernel;
mod matrix;
mod nest;
mod rnn;
mod turn;

pub use error::LayoutError;

use nest::{CopyRegion, LoopNest};

use crate::{DType, Layout, Shape};

/// A conversion to plan. Fields beyond those of [`LayoutConversion::new`] have defaults that suit
/// most dumps.
#[derive(Clone, Copy, Debug)]
pub struct LayoutConversion<'a> {
    /// Layout of the source.
    pub from: Layout,
    /// Dimensions of the source in memory, including padding.
    pub from_shape: &'a Shape,
    /// Layout of the target.
    pub to: Layout,
    /// Width of one element: 1, 2, 4, 8 or 16.
    pub element_bytes: usize,
    /// The tensor's dimensions without padding, in the order of the plain layout next to them.
    ///
    /// Needed to leave a device layout, unless its padding may stay and its shape is unambiguous. A
    /// plain source describes itself.
    pub original: Option<(Layout, &'a Shape)>,
    /// Groups of a convolution's weight; counts for `FRACTAL_Z` and `FRACTAL_Z_3D` only.
    pub groups: usize,
    /// Elements in a block of a device layout. By default the last axis of a device source, else
    /// 16, for one-byte elements 32; see [`default_c0`].
    pub c0: Option<usize>,
    /// Sizes of a recurrent layer, for `FRACTAL_ZN_RNN` and `ND_RNN_BIAS`.
    pub rnn: Option<RnnSizes>,
    /// Take the leading part of a source that is larger than `original` plus its padding, instead
    /// of refusing it.
    pub is_prefix: bool,
}

/// Sizes of a recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RnnSizes {
    /// Length of one step's input.
    pub input: usize,
    /// Length of the hidden state.
    pub hidden: usize,
}

/// A checked conversion, ready to run any number of times.
#[derive(Clone, Debug)]
pub struct LayoutPlan {
    out_shape: Shape,
    n_src_bytes: usize,
    n_dst_bytes: usize,
    nests: Vec<LoopNest>,
    has_padding: bool,
}

/// Elements in a block of the channel axis, for a tensor that the device made from `dtype`.
///
/// 64 for four-bit types, 32 for one-byte types, 16 for all others. `NC1HWC0_C04` has 4 whatever
/// the dtype, and some chips differ for wider types; the shape of a device tensor always has the
/// actual value.
pub fn default_c0(dtype: DType) -> usize {
    match dtype.bits() {
        Some(4) => 64,
        Some(8) => 32,
        _ => 16,
    }
}

impl<'a> LayoutConversion<'a> {
    /// A conversion without groups, with the block size of the source or the usual one.
    pub fn new(from: Layout, from_shape: &'a Shape, to: Layout, element_bytes: usize) -> Self {
        LayoutConversion {
            from,
            from_shape,
            to,
            element_bytes,
            original: None,
            groups: 1,
            c0: None,
            rnn: None,
            is_prefix: false,
        }
    }

    /// The block size if the source does not have one.
    fn usual_c0(&self) -> usize {
        self.c0
            .unwrap_or(if self.element_bytes == 1 { 32 } else { 16 })
    }

    /// Whether the source has the shape that follows from the original.
    fn expect_shape(&self, expected: &Shape) -> Result<(), LayoutError> {
        if expected == self.from_shape {
            return Ok(());
        }
        Err(LayoutError::ShapeMismatch {
            layout: self.from,
            expected: expected.clone(),
            found: self.from_shape.clone(),
        })
    }

    fn unsupported(&self) -> LayoutError {
        LayoutError::Unsupported {
            from: self.from,
            to: self.to,
        }
    }
}

/// The module for the memory order of a layout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LayoutFamily {
    /// Named axes in some order, or `ND`.
    Plain,
    /// Blocks along the channel axis of an image or a weight.
    Conv,
    /// Blocks along the last two axes, whatever they mean.
    Matrix,
    /// Weights and biases of a recurrent layer.
    Rnn,
    /// No public definition.
    Unknown,
}

fn family(layout: Layout) -> LayoutFamily {
    use Layout::*;
    match layout {
        Nd | Nchw | Nhwc | Hwcn | Chwn | Ncdhw | Ndhwc | Dhwcn | Dhwnc => LayoutFamily::Plain,
        Nc1hwc0 | Nc1hwc0C04 | C1hwnc0 | C1hwncoc0 | Ndc1hwc0 | FractalZ | FractalZ3d
        | FractalZ3dTranspose | FractalZC04 => LayoutFamily::Conv,
        FractalNz | FractalZz => LayoutFamily::Matrix,
        FractalZnRnn | FractalZnLstm | NdRnnBias => LayoutFamily::Rnn,
        Nc1c0hwPad
        | Nhwc1c0
        | FsrNchw
        | FractalDeconv
        | FractalDeconvTranspose
        | FractalDeconvSpStrideTrans
        | FractalDeconvSpStride8Trans
        | Nc1khkwhwc0
        | BnWeight
        | FilterHwck
        | HashtableLookupLookups
        | HashtableLookupKeys
        | HashtableLookupValue
        | HashtableLookupOutput
        | HashtableLookupHits
        | Md
        | Cn
        | Nc
        | FractalZG
        | Reserved
        | All
        | Null
        | Yuv
        | YuvA
        | Ncl
        | FractalZWino
        | C1hwc0
        | Max => LayoutFamily::Unknown,
    }
}

impl LayoutPlan {
    /// Checks a conversion and works out what to copy.
    ///
    /// # Errors
    /// [`LayoutError`], which names what does not fit.
    pub fn new(conversion: &LayoutConversion<'_>) -> Result<LayoutPlan, LayoutError> {
        use LayoutFamily::{Conv, Matrix, Plain, Rnn};
        let c = conversion;
        if ![1, 2, 4, 8, 16].contains(&c.element_bytes) {
            let n = c.element_bytes;
            let text = format!("elements of {n} bytes; expected 1, 2, 4, 8 or 16");
            return Err(LayoutError::Unfit(text));
        }
        if c.c0 == Some(0) {
            return Err(LayoutError::empty_block());
        }
        // With an original, even the way from a layout to itself is a conversion, which checks the
        // shape. Of a layout without a public definition nothing can be checked.
        let is_same =
            c.from == c.to && (c.original.is_none() || family(c.from) == LayoutFamily::Unknown);
        let is_unnamed = [c.from, c.to].contains(&Layout::Nd);
        let (out_shape, regions) = match (family(c.from), family(c.to)) {
            (Plain, Plain) if is_unnamed && c.original.is_none() => matrix::keep(c),
            _ if is_same => matrix::keep(c),
            (Plain | Conv, Plain | Conv) => conv::regions(c),
            (Plain | Matrix, Matrix) | (Matrix, Plain) => matrix::regions(c),
            (Plain, Rnn) | (Rnn, Plain) => rnn::regions(c),
            _ => Err(c.unsupported()),
        }?;
        LayoutPlan::from_regions(c, out_shape, &regions)
    }

    fn from_regions(
        conversion: &LayoutConversion<'_>,
        out_shape: Shape,
        regions: &[CopyRegion],
    ) -> Result<LayoutPlan, LayoutError> {
        let width = conversion.element_bytes;
        // A shape's element count times 16 fits, whatever the shape.
        let n_src_bytes = conversion.from_shape.n_elements() * width;
        let n_dst_bytes = out_shape.n_elements() * width;
        let mut nests = Vec::new();
        for region in regions {
            region
                .lower(width, &mut nests)
                .map_err(|_| conversion.unsupported())?;
        }
        // The kernel takes the ends for granted, so they are checked here, once, and not at each
        // run.
        for nest in &nests {
            let (src_end, dst_end) = nest.ends();
            if src_end > n_src_bytes || dst_end > n_dst_bytes {
                return Err(conversion.unsupported());
            }
        }
        let n_copied: usize = nests.iter().map(LoopNest::n_bytes).sum();
        let has_padding = n_copied < n_dst_bytes;
        Ok(LayoutPlan {
            out_shape,
            n_src_bytes,
            n_dst_bytes,
            nests,
            has_padding,
        })
    }

    /// Dimensions of the target.
    pub fn out_shape(&self) -> &Shape {
        &self.out_shape
    }

    /// Bytes that the target takes.
    pub fn out_bytes(&self) -> usize {
        self.n_dst_bytes
    }

    /// Converts `src` into `dst`. Every byte of `dst` is written, padding with zero.
    ///
    /// # Errors
    /// [`LayoutError`] if the size of a slice does not match its shape.
    pub fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), LayoutError> {
        check_bytes("source", self.n_src_bytes, src.len())?;
        check_bytes("target", self.n_dst_bytes, dst.len())?;
        // Only where copying leaves bytes unwritten, because this costs a pass over the target.
        if self.has_padding {
            dst.fill(0);
        }
        for nest in &self.nests {
            kernel::copy(nest, src, dst);
        }
        Ok(())
    }

    /// Converts `src` into new memory.
    ///
    /// # Errors
    /// As for [`LayoutPlan::run`].
    pub fn run_to_vec(&self, src: &[u8]) -> Result<Vec<u8>, LayoutError> {
        check_bytes("source", self.n_src_bytes, src.len())?;
        // Padding needs no pass here: the memory comes zeroed from the allocator.
        let mut dst = vec![0; self.n_dst_bytes];
        for nest in &self.nests {
            kernel::copy(nest, src, &mut dst);
        }
        Ok(dst)
    }
}

fn check_bytes(which: &'static str, expected: usize, found: usize) -> Result<(), LayoutError> {
    if expected == found {
        return Ok(());
    }
    let text = format!("{which} takes {expected} bytes, found {found}");
    Err(LayoutError::Unfit(text))
}

/// The product of `dims` as one dimension of a new shape.
fn extent(dims: &[usize]) -> Result<usize, LayoutError> {
    dims.iter()
        .try_fold(1_usize, |product, &dim| product.checked_mul(dim))
        .ok_or_else(LayoutError::too_large)
}
