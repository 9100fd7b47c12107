//! Which of an operator's tensors have axes whose meaning ONNX lays down.

use opscope_tensor::Layout;

/// Operators whose first input and first output are batch, channels and then spatial axes.
const SPATIAL: &[&str] = &[
    "AveragePool",
    "BatchNormalization",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "DepthToSpace",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "GridSample",
    "InstanceNormalization",
    "LRN",
    "LpPool",
    "MaxPool",
    "MaxUnpool",
    "QLinearConv",
    "SpaceToDepth",
];
/// Operators whose second input is a kernel of output channels, input channels and spatial axes.
const KERNEL: &[&str] = &["Conv", "ConvInteger"];

/// The layout of a tensor at `index` of an operator's inputs or outputs: `NCHW` where ONNX defines
/// four such axes, `ND` everywhere else.
pub(crate) fn layout_of(op_type: &str, is_output: bool, index: usize, n_axes: usize) -> Layout {
    let is_data = index == 0 && SPATIAL.contains(&op_type);
    let is_kernel = !is_output && index == 1 && KERNEL.contains(&op_type);
    if n_axes == 4 && (is_data || is_kernel) {
        Layout::Nchw
    } else {
        Layout::Nd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_defined_axes_have_a_meaning() {
        assert_eq!(layout_of("Conv", false, 0, 4), Layout::Nchw);
        assert_eq!(layout_of("Conv", false, 1, 4), Layout::Nchw);
        assert_eq!(layout_of("Conv", false, 2, 1), Layout::Nd);
        assert_eq!(layout_of("Conv", true, 0, 3), Layout::Nd);
        assert_eq!(layout_of("MaxPool", true, 1, 4), Layout::Nd);
        assert_eq!(layout_of("MatMul", false, 0, 4), Layout::Nd);
    }
}
