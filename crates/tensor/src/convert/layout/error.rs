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
    /// A shape, a size, blocks or groups do not fit a layout.
    #[error("{0}")]
    Unfit(String),
    /// A shape that cannot exist.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

impl LayoutError {
    /// A shape has the wrong number of axes for its layout.
    pub(super) fn axis_count(layout: Layout, shape: &Shape) -> LayoutError {
        let n_axes = shape.n_axes();
        LayoutError::Unfit(format!(
            "shape {shape} has {n_axes} axes, which `{layout}` cannot have"
        ))
    }

    /// The device shape leaves open what the tensor was.
    pub(super) fn missing_original(layout: Layout) -> LayoutError {
        LayoutError::Unfit(format!("leaving `{layout}` takes the original shape"))
    }

    /// The original is larger than what the source holds.
    pub(super) fn too_small(layout: Layout, found: &Shape, original: &Shape) -> LayoutError {
        LayoutError::Unfit(format!(
            "`{layout}` of shape {found} holds less than the original shape {original}"
        ))
    }

    /// The target has no depth axis, but the tensor has depth.
    pub(super) fn depth(layout: Layout, depth: usize) -> LayoutError {
        LayoutError::Unfit(format!("`{layout}` has no axis for a depth of {depth}"))
    }

    /// A block must have at least one element.
    pub(super) fn empty_block() -> LayoutError {
        LayoutError::Unfit("blocks of 0 elements".to_owned())
    }

    /// A block size that the layout does not allow.
    pub(super) fn block(layout: Layout, c0: usize) -> LayoutError {
        LayoutError::Unfit(format!("`{layout}` cannot have blocks of {c0} elements"))
    }

    /// The target has more elements than memory can hold.
    pub(super) fn too_large() -> LayoutError {
        let text = "the converted tensor has more elements than memory can hold";
        LayoutError::Unfit(text.to_owned())
    }
}
