//! Layouts of the weights and biases of recurrent layers.
//!
//! The columns of a weight are gates of `hidden` columns each, its rows those of the input followed
//! by those of the hidden state. Each gate and each part is padded to whole blocks on its own.

use super::matrix::{MatrixStack, split};
use super::nest::{AxisWalk, AxisWalks, CopyRegion};
use super::{LayoutConversion, LayoutError, LayoutFamily, RnnSizes, extent, family};
use crate::{Layout, Shape};

/// Blocks of weights are square.
const BLOCK: usize = 16;
/// Gates of an LSTM, which `FRACTAL_ZN_LSTM` takes for granted.
const N_LSTM_GATES: usize = 4;

/// The contents of a recurrent layout: rows in one or two parts, columns in gates.
struct RnnLayer {
    parts: Vec<usize>,
    n_gates: usize,
    hidden: usize,
}

/// Plans a conversion between a recurrent layout and a plain one.
pub(super) fn regions(c: &LayoutConversion<'_>) -> Result<(Shape, Vec<CopyRegion>), LayoutError> {
    let is_to_device = family(c.to) == LayoutFamily::Rnn;
    let device = if is_to_device { c.to } else { c.from };
    let plain_shape = match (is_to_device, c.original) {
        (true, _) => c.from_shape,
        (false, Some((_, original))) => original,
        (false, None) => return Err(LayoutError::missing_original(device)),
    };
    let layer = layer(c, device, plain_shape)?;
    let device_shape = layer.shape(c, device, plain_shape)?;
    let (expected, out_shape) = if is_to_device {
        (plain_shape.clone(), device_shape)
    } else {
        (device_shape, plain_shape.clone())
    };
    c.expect_shape(&expected)?;
    if expected.n_elements() == 0 || out_shape.n_elements() == 0 {
        return Ok((out_shape, vec![]));
    }
    let regions = match device {
        Layout::NdRnnBias => vec![layer.bias(c, plain_shape, is_to_device)],
        _ => layer.weight(split(plain_shape)?, is_to_device),
    };
    Ok((out_shape, regions))
}

fn layer(c: &LayoutConversion<'_>, device: Layout, shape: &Shape) -> Result<RnnLayer, LayoutError> {
    let sizes = c.rnn.map(|RnnSizes { input, hidden }| (input, hidden));
    let wrong = || {
        let sizes = match sizes {
            Some((input, hidden)) => format!("of input size {input} and hidden size {hidden}"),
            None => "of unknown sizes".to_owned(),
        };
        LayoutError::Unfit(format!(
            "shape {shape} does not fit a recurrent layer {sizes}"
        ))
    };
    let MatrixStack { lead, m, n } = split(shape)?;
    if device == Layout::FractalZnLstm {
        // The columns hold all gates, the rows input and hidden state: the shape contains both
        // sizes.
        let hidden = n / N_LSTM_GATES;
        let input = m.checked_sub(hidden).ok_or_else(wrong)?;
        if !n.is_multiple_of(N_LSTM_GATES) || lead != 1 || shape.n_axes() < 2 {
            return Err(wrong());
        }
        return Ok(RnnLayer {
            parts: vec![input, hidden],
            n_gates: N_LSTM_GATES,
            hidden,
        });
    }
    let (input, hidden) = sizes.ok_or_else(wrong)?;
    if hidden == 0 || !n.is_multiple_of(hidden) || shape.n_axes() == 0 {
        return Err(wrong());
    }
    let parts = match device {
        Layout::NdRnnBias => vec![],
        _ if shape.n_axes() < 2 => return Err(wrong()),
        // Both sizes are the caller's, and their sum may not fit.
        _ if Some(m) == input.checked_add(hidden) => vec![input, hidden],
        _ if m == input || m == hidden => vec![m],
        _ => return Err(wrong()),
    };
    Ok(RnnLayer {
        parts,
        n_gates: n / hidden,
        hidden,
    })
}

impl RnnLayer {
    /// Columns of a gate with its padding.
    fn gate(&self, block: usize) -> Result<usize, LayoutError> {
        extent(&[self.hidden.div_ceil(block), block])
    }

    fn shape(
        &self,
        c: &LayoutConversion<'_>,
        device: Layout,
        plain: &Shape,
    ) -> Result<Shape, LayoutError> {
        let c0 = c.c0.unwrap_or(BLOCK);
        let mut dims = plain.to_vec();
        if device == Layout::NdRnnBias {
            dims.pop();
            dims.push(extent(&[self.n_gates, self.gate(c0)?])?);
            return Ok(Shape::new(dims)?);
        }
        // Weights come in blocks of 16 by 16 whatever the dtype; only the padding of biases follows
        // C0.
        if c0 != BLOCK {
            return Err(LayoutError::block(device, c0));
        }
        match device {
            // This layout has no stack. `layer` has checked that axes before the matrix have size
            // 1.
            Layout::FractalZnLstm => dims.clear(),
            _ => dims.truncate(dims.len().saturating_sub(2)),
        }
        let n_row_blocks = self.parts.iter().map(|part| part.div_ceil(BLOCK)).sum();
        let n_column_blocks = extent(&[self.n_gates, self.hidden.div_ceil(BLOCK)])?;
        dims.extend([n_row_blocks, n_column_blocks, BLOCK, BLOCK]);
        Ok(Shape::new(dims)?)
    }

    fn bias(&self, c: &LayoutConversion<'_>, plain: &Shape, is_to_device: bool) -> CopyRegion {
        let gate = self.hidden.next_multiple_of(c.c0.unwrap_or(BLOCK));
        let n_gates = plain.n_elements() / self.hidden;
        let axes =
            [(n_gates, self.hidden, gate), (self.hidden, 1, 1)].map(|(extent, plain, device)| {
                axis(
                    extent,
                    AxisWalk::Even(plain),
                    AxisWalk::Even(device),
                    is_to_device,
                )
            });
        CopyRegion {
            src_base: 0,
            dst_base: 0,
            axes: axes.to_vec(),
        }
    }

    /// One region for each part of the rows.
    fn weight(&self, matrices: MatrixStack, is_to_device: bool) -> Vec<CopyRegion> {
        let MatrixStack { lead, m, n } = matrices;
        let gate = self.hidden.next_multiple_of(BLOCK);
        // Rows within a block are next to one another, columns a block's side apart.
        let row_block = self.n_gates * gate * BLOCK;
        // Each part is padded on its own, so that the second one begins with a block.
        let n_row_blocks: usize = self.parts.iter().map(|part| part.div_ceil(BLOCK)).sum();
        let row = AxisWalk::Blocked {
            block: BLOCK,
            shift: 0,
            outer: row_block,
            inner: 1,
        };
        let mut regions = Vec::new();
        let (mut plain_base, mut device_base) = (0, 0);
        for &part in &self.parts {
            let axis = |extent, plain, device| axis(extent, plain, device, is_to_device);
            let even = AxisWalk::Even;
            let axes = vec![
                axis(lead, even(m * n), even(n_row_blocks * row_block)),
                axis(part, even(n), row),
                axis(self.n_gates, even(self.hidden), even(gate * BLOCK)),
                axis(self.hidden, even(1), even(BLOCK)),
            ];
            let (src_base, dst_base) = if is_to_device {
                (plain_base, device_base)
            } else {
                (device_base, plain_base)
            };
            regions.push(CopyRegion {
                src_base,
                dst_base,
                axes,
            });
            plain_base += part * n;
            device_base += part.div_ceil(BLOCK) * row_block;
        }
        regions
    }
}

fn axis(extent: usize, plain: AxisWalk, device: AxisWalk, is_to_device: bool) -> AxisWalks {
    let (src, dst) = if is_to_device {
        (plain, device)
    } else {
        (device, plain)
    };
    AxisWalks { extent, src, dst }
}
