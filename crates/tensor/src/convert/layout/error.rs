//! Why a layout conversion cannot be done.

use thiserror::Error;

use crate::{Layout, Shape, ShapeError};

/// Why a layout conversion cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// No mapping between the two layouts is defined; going through a plain layout may help.
    #[error("no conversion from `{from}` to `{to}`")]
    Unsupported {
        /// Layout of the source.
        from: Layout,
        /// Layout of the target.
        to: Layout,
    },
    /// A shape has the wrong number of axes for its layout.
    #[error("shape {shape} has {n_axes} axes, which `{layout}` cannot have", n_axes = shape.n_axes())]
    AxisCount {
        /// The layout.
        layout: Layout,
        /// The stated original shape.
        shape: Shape,
    },
    /// The device shape leaves open what the tensor was.
    #[error("leaving `{0}` takes the original shape")]
    MissingOriginal(Layout),
    /// Device shape and original shape contradict each other.
    #[error("`{layout}` of this original has shape {expected}, found {found}")]
    ShapeMismatch {
        /// The layout of the source.
        layout: Layout,
        /// The shape that follows from the original, the block size and the groups.
        expected: Shape,
        /// The shape that was given.
        found: Shape,
    },
    /// The original is larger than what the source holds.
    #[error("`{layout}` of shape {found} holds less than the original shape {original}")]
    TooSmall {
        /// The layout of the source.
        layout: Layout,
        /// The shape that was given.
        found: Shape,
        /// The original shape.
        original: Shape,
    },
    /// The target has no depth axis, but the tensor has depth.
    #[error("`{layout}` has no axis for a depth of {depth}")]
    Depth {
        /// The layout without depth.
        layout: Layout,
        /// The dimension that has no place.
        depth: usize,
    },
    /// More channels than a layout with four of them can hold.
    #[error("`{layout}` holds at most 4 channels, found {found}")]
    Channels {
        /// The layout.
        layout: Layout,
        /// The number of channels.
        found: usize,
    },
    /// The groups do not divide the output channels, or need blocks that no device has.
    #[error("{n} output channels in blocks of {c0} cannot form {groups} groups")]
    Groups {
        /// Number of output channels.
        n: usize,
        /// Elements in a block.
        c0: usize,
        /// Number of groups.
        groups: usize,
    },
    /// The sizes of the recurrent layer are missing or do not divide the shape.
    #[error("shape {shape} does not fit a recurrent layer {}", sizes_text(*sizes))]
    Rnn {
        /// The original shape.
        shape: Shape,
        /// Input and hidden size, if they are known.
        sizes: Option<(usize, usize)>,
    },
    /// A block must have at least one element.
    #[error("blocks of 0 elements")]
    EmptyBlock,
    /// A block size that the layout does not allow.
    #[error("`{layout}` cannot have blocks of {c0} elements")]
    Block {
        /// The layout.
        layout: Layout,
        /// The block size.
        c0: usize,
    },
    /// Elements of a width that no dtype has.
    #[error("elements of {0} bytes; expected 1, 2, 4, 8 or 16")]
    ElementBytes(usize),
    /// The size of a slice does not match its shape.
    #[error("{which} takes {expected} bytes, found {found}")]
    Bytes {
        /// `source` or `target`.
        which: &'static str,
        /// Bytes that the shape asks for.
        expected: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// The target has more elements than memory can hold.
    #[error("the converted tensor has more elements than memory can hold")]
    TooLarge,
    /// A shape that cannot exist.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

fn sizes_text(sizes: Option<(usize, usize)>) -> String {
    match sizes {
        Some((input, hidden)) => format!("of input size {input} and hidden size {hidden}"),
        None => "of unknown sizes".to_owned(),
    }
}
