//! The order of axes that a layout names, and changing it.

use opscope_tensor::convert::layout::{LayoutConversion, LayoutPlan};
use opscope_tensor::{DType, Layout, Tensor};

use crate::DeclaredDim;

/// How an operand of the description becomes the one that the engine computes with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OperandChange {
    /// Its axes are put into the order that ONNX lays down.
    Axes {
        /// Their order in the description.
        described: Layout,
        /// Their order in ONNX.
        engine: Layout,
    },
    /// So many axes of size 1 are appended to its own.
    TrailingAxes(usize),
    /// It has one element (or two, starts and ends) for each axis of an image, whose axes are put
    /// into another order: element `i` of the engine's is this one of the description's.
    Elements(Vec<usize>),
    /// It has positions, extents or axes in int32, where ONNX has int64.
    Positions,
}

/// Whether operators can be described with operands of this layout: one that names every axis, or
/// none.
pub(super) fn is_plain(layout: Layout) -> bool {
    matches!(layout, Layout::Nd | Layout::Nc | Layout::Ncl) || layout.n_named_axes().is_some()
}

/// The order in which ONNX has the axes that `layout` names; `None` if it names none.
pub(super) fn order_of_onnx(layout: Layout) -> Option<Layout> {
    match layout.n_named_axes()? {
        4 => Some(Layout::Nchw),
        _ => Some(Layout::Ncdhw),
    }
}

/// Whether the axes are named, and in another order than ONNX's.
pub(super) fn is_reordered(layout: Layout) -> bool {
    order_of_onnx(layout).is_some_and(|order| order != layout)
}

/// For each axis of `to` its position in `from`; both name the same axes.
pub(super) fn positions(from: Layout, to: Layout) -> Vec<usize> {
    to.name()
        .chars()
        .map(|letter| from.name().find(letter).unwrap_or_default())
        .collect()
}

/// Where the channels are among the axes of `layout`.
pub(super) fn channel_axis(layout: Layout) -> Option<usize> {
    layout.n_named_axes()?;
    layout.name().find('C')
}

impl OperandChange {
    /// Dimensions of the engine's operand from those of the description.
    pub(super) fn dims_to_engine(&self, dims: &[DeclaredDim]) -> Vec<DeclaredDim> {
        match self {
            OperandChange::Axes { described, engine } => reorder(dims, *described, *engine),
            OperandChange::TrailingAxes(n) => {
                let ones = std::iter::repeat_n(DeclaredDim::Fixed(1), *n);
                dims.iter().cloned().chain(ones).collect()
            }
            OperandChange::Elements(_) | OperandChange::Positions => dims.to_vec(),
        }
    }

    /// Dimensions of the description's operand from those of the engine.
    pub(super) fn dims_from_engine(&self, dims: &[DeclaredDim]) -> Vec<DeclaredDim> {
        match self {
            OperandChange::Axes { described, engine } => reorder(dims, *engine, *described),
            OperandChange::TrailingAxes(n) => dims[..dims.len().saturating_sub(*n)].to_vec(),
            OperandChange::Elements(_) | OperandChange::Positions => dims.to_vec(),
        }
    }

    /// The engine's tensor from the description's.
    ///
    /// # Errors
    /// A message about the part that does not fit.
    pub(super) fn to_engine(&self, tensor: &Tensor) -> Result<Tensor, String> {
        match self {
            OperandChange::Axes { described, engine } => turned(tensor, *described, *engine),
            OperandChange::TrailingAxes(n) => {
                let mut dims = tensor.shape().dims().to_vec();
                dims.extend(std::iter::repeat_n(1, *n));
                rebuilt(tensor, dims, host_bytes(tensor)?.to_vec())
            }
            OperandChange::Elements(order) => picked(tensor, order),
            OperandChange::Positions => widened(tensor),
        }
    }

    /// The description's tensor from the engine's; outputs change their axes or their dtype alone.
    ///
    /// # Errors
    /// A message about the part that does not fit.
    pub(super) fn to_described(&self, tensor: &Tensor) -> Result<Tensor, String> {
        match self {
            OperandChange::Axes { described, engine } => turned(tensor, *engine, *described),
            OperandChange::Positions => narrowed(tensor),
            OperandChange::TrailingAxes(_) | OperandChange::Elements(_) => Ok(tensor.clone()),
        }
    }
}

/// Dimensions in the order of other axes; unchanged if their number differs.
fn reorder(dims: &[DeclaredDim], from: Layout, to: Layout) -> Vec<DeclaredDim> {
    if from.n_named_axes() != Some(dims.len()) {
        return dims.to_vec();
    }
    let positions = positions(from, to).into_iter();
    positions.map(|position| dims[position].clone()).collect()
}

fn turned(tensor: &Tensor, from: Layout, to: Layout) -> Result<Tensor, String> {
    let shape = tensor.shape();
    let n_bytes = tensor.dtype().bytes();
    let n_bytes = n_bytes.ok_or_else(|| format!("{} has no whole bytes", tensor.dtype()))?;
    let conversion = LayoutConversion::new(from, shape, to, n_bytes);
    let plan = LayoutPlan::new(&conversion).map_err(|error| error.to_string())?;
    let bytes = plan.run_to_vec(host_bytes(tensor)?);
    let bytes = bytes.map_err(|error| error.to_string())?;
    rebuilt(tensor, plan.out_shape().dims().to_vec(), bytes)
}

fn picked(tensor: &Tensor, order: &[usize]) -> Result<Tensor, String> {
    let n = order.len();
    let dims = tensor.shape().dims().to_vec();
    let n_elements = tensor.shape().n_elements();
    // An empty list is one that is not given.
    if n_elements == 0 {
        return Ok(tensor.clone());
    }
    if dims.len() != 1 || (n_elements != n && n_elements != 2 * n) {
        return Err(format!(
            "{dims:?} is no list with an element for each of {n} axes"
        ));
    }
    let width = tensor.dtype().bytes();
    let width = width.ok_or_else(|| format!("{} has no whole bytes", tensor.dtype()))?;
    let elements = host_bytes(tensor)?;
    let mut bytes = Vec::with_capacity(elements.len());
    // Pads and regions have starts and ends for each axis, one list after the other.
    for half in elements.chunks_exact(n * width) {
        for &i in order {
            bytes.extend_from_slice(&half[i * width..(i + 1) * width]);
        }
    }
    rebuilt(tensor, dims, bytes)
}

/// Numbers of int64 in int32.
fn narrowed(tensor: &Tensor) -> Result<Tensor, String> {
    let mut bytes = Vec::new();
    for number in host_bytes(tensor)?.chunks_exact(size_of::<i64>()) {
        let number = number
            .try_into()
            .map(i64::from_le_bytes)
            .unwrap_or_default();
        let narrow = i32::try_from(number);
        let narrow = narrow.map_err(|_| format!("position {number} is beyond int32"))?;
        bytes.extend_from_slice(&narrow.to_le_bytes());
    }
    let shape = tensor.shape().clone();
    Tensor::from_vec(DType::I32, shape, bytes).map_err(|error| error.to_string())
}

/// Numbers of int32 in int64.
fn widened(tensor: &Tensor) -> Result<Tensor, String> {
    let numbers = host_bytes(tensor)?.as_chunks().0.iter();
    let bytes = numbers
        .flat_map(|number| i64::from(i32::from_le_bytes(*number)).to_le_bytes())
        .collect();
    let shape = tensor.shape().clone();
    Tensor::from_vec(DType::I64, shape, bytes).map_err(|error| error.to_string())
}

fn host_bytes(tensor: &Tensor) -> Result<&[u8], String> {
    tensor.host_bytes().map_err(|error| error.to_string())
}

fn rebuilt(tensor: &Tensor, dims: Vec<usize>, bytes: Vec<u8>) -> Result<Tensor, String> {
    let shape = opscope_tensor::Shape::new(dims).map_err(|error| error.to_string())?;
    Tensor::from_vec(tensor.dtype(), shape, bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use opscope_tensor::Shape;

    use super::*;

    fn bytes(dims: &[usize], values: &[u8]) -> Tensor {
        Tensor::from_vec(DType::U8, Shape::new(dims).unwrap(), values.to_vec()).unwrap()
    }

    #[test]
    fn axes_go_there_and_back() {
        let cases: &[(Layout, &[usize], &[usize])] = &[
            (Layout::Nhwc, &[1, 2, 3, 4], &[1, 4, 2, 3]),
            (Layout::Hwcn, &[2, 3, 4, 5], &[5, 4, 2, 3]),
            (Layout::Chwn, &[2, 3, 4, 5], &[5, 2, 3, 4]),
            (Layout::Ndhwc, &[1, 2, 3, 4, 5], &[1, 5, 2, 3, 4]),
            (Layout::Dhwcn, &[2, 3, 4, 5, 6], &[6, 5, 2, 3, 4]),
        ];
        for (described, dims, expected) in cases {
            let engine = order_of_onnx(*described).unwrap();
            let change = OperandChange::Axes {
                described: *described,
                engine,
            };
            let n: usize = dims.iter().product();
            let values: Vec<u8> = (0..n).map(|i| (i % 251) as u8).collect();
            let tensor = bytes(dims, &values);
            let turned = change.to_engine(&tensor).unwrap();
            assert_eq!(turned.shape().dims(), *expected, "{described}");
            let fixed = |dims: &[usize]| {
                dims.iter()
                    .map(|&n| DeclaredDim::Fixed(n))
                    .collect::<Vec<_>>()
            };
            assert_eq!(change.dims_to_engine(&fixed(dims)), fixed(expected));
            assert_eq!(change.dims_from_engine(&fixed(expected)), fixed(dims));
            let back = change.to_described(&turned).unwrap();
            assert_eq!(
                (back.shape().dims(), back.host_bytes().unwrap()),
                (*dims, &values[..])
            );
        }
    }

    #[test]
    fn lists_follow_the_axes_of_an_image() {
        let order = positions(Layout::Nhwc, Layout::Nchw);
        assert_eq!(order, [0, 3, 1, 2]);
        let change = OperandChange::Elements(order);
        let of = |values: &[u8]| change.to_engine(&bytes(&[values.len()], values));
        assert_eq!(
            of(&[1, 2, 3, 4]).unwrap().host_bytes().unwrap(),
            [1, 4, 2, 3]
        );
        let both = of(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        assert_eq!(both.host_bytes().unwrap(), [1, 4, 2, 3, 5, 8, 6, 7]);
        assert!(of(&[]).unwrap().host_bytes().unwrap().is_empty());
        assert!(of(&[1, 2, 3]).is_err());
    }
}
