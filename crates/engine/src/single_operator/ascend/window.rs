//! Convolutions and pools: windows that move over an image.

use opscope_tensor::Layout;

use crate::single_operator::axes::order_of_onnx;
use crate::single_operator::operator::{OperatorAttribute, OperatorError, SingleOperator};

/// Lists come for every axis of the image, in its own order, or as ONNX has them for the spatial
/// ones. The vendor's pads are those before and behind each spatial axis in turn; ONNX has all
/// those before first.
pub(super) fn convolution(
    onnx: &mut SingleOperator,
    is_vendors: bool,
) -> Result<(), OperatorError> {
    if is_vendors {
        if onnx.inputs.iter().take(2).flatten().count() < 2 {
            return Err(onnx.inexpressible("a convolution reads an image and a kernel"));
        }
        onnx.inputs.truncate(3);
        onnx.take("offset_x");
    }
    for name in ["strides", "dilations"] {
        spatial(onnx, name, name)?;
    }
    if is_vendors {
        padding(onnx)?;
        if let Some(groups) = onnx.take("groups") {
            onnx.attributes.push(("group".into(), groups));
        }
    }
    Ok(())
}

/// Pools of ONNX have `kernel_shape`; those of the vendor `ksize`, and words for padding.
pub(super) fn pool(onnx: &mut SingleOperator) -> Result<(), OperatorError> {
    for name in ["strides", "dilations"] {
        spatial(onnx, name, name)?;
    }
    let has_size = onnx.attributes.iter().any(|(name, _)| name == "ksize");
    if !has_size {
        return Ok(());
    }
    spatial(onnx, "ksize", "kernel_shape")?;
    if onnx.take("global_pooling") == Some(OperatorAttribute::Int(1)) {
        onnx.op_type = format!("Global{}", onnx.op_type);
        for name in [
            "kernel_shape",
            "strides",
            "pads",
            "padding_mode",
            "ceil_mode",
            "exclusive",
        ] {
            onnx.take(name);
        }
        return Ok(());
    }
    let includes_padding = onnx.take("exclusive") == Some(OperatorAttribute::Int(0));
    if includes_padding && onnx.op_type == "AveragePool" {
        let one = OperatorAttribute::Int(1);
        onnx.attributes.push(("count_include_pad".into(), one));
    }
    padding(onnx)
}

/// The layout of the image; ONNX's by default.
fn image_layout(onnx: &SingleOperator) -> Layout {
    let image = onnx.inputs.first().and_then(Option::as_ref);
    image.map_or(Layout::Nd, |image| image.layout)
}

/// Takes the spatial ones of a list for all axes; shorter lists are ONNX's own.
fn spatial(onnx: &mut SingleOperator, name: &str, to: &str) -> Result<(), OperatorError> {
    let Some(value) = onnx.take(name) else {
        return Ok(());
    };
    let layout = image_layout(onnx);
    let image = onnx.inputs.first().and_then(Option::as_ref);
    let n_axes = image.and_then(|image| image.dims.as_ref()).map(Vec::len);
    let values = match value {
        OperatorAttribute::Ints(values) => values,
        OperatorAttribute::Int(value) => vec![value],
        _ => return Err(onnx.inexpressible(format!("`{name}` must be a list of numbers"))),
    };
    let n = values.len();
    // ONNX lists spatial axes only, of which an image has at most three.
    let is_for_all = n > 3 && n_axes.is_none_or(|n_axes| n_axes == n);
    if !is_for_all {
        onnx.attributes
            .push((to.to_owned(), OperatorAttribute::Ints(values)));
        return Ok(());
    }
    let order = match layout {
        Layout::Nd if n == 4 => Layout::Nchw,
        Layout::Nd => Layout::Ncdhw,
        named => named,
    };
    // The letters of the layout assign the numbers to axes.
    if order_of_onnx(order).is_none() || order.n_named_axes() != Some(n) {
        let reason = format!("`{name}` has {n} numbers, and input 0 the format {layout}");
        return Err(onnx.inexpressible(reason));
    }
    // ONNX cannot step over batches or channels.
    let letters = order.name().chars().zip(values.iter().copied());
    let (others, spatial): (Vec<_>, Vec<_>) =
        letters.partition(|(letter, _)| matches!(letter, 'N' | 'C'));
    if others.iter().any(|(_, value)| *value != 1) {
        let reason = format!("`{name}` is {values:?}: batch and channels (of {order}) take 1 only");
        return Err(onnx.inexpressible(reason));
    }
    let spatial = spatial.into_iter().map(|(_, value)| value).collect();
    onnx.attributes
        .push((to.to_owned(), OperatorAttribute::Ints(spatial)));
    Ok(())
}

/// Pads by a word, or before and behind each axis.
fn padding(onnx: &mut SingleOperator) -> Result<(), OperatorError> {
    let word = onnx.take("padding").or_else(|| onnx.take("padding_mode"));
    let pads = onnx.take("pads");
    let is_same = matches!(
        &pads,
        Some(OperatorAttribute::Ints(pads)) if !pads.is_empty() && pads.iter().all(|&pad| pad == -1)
    );
    let auto_pad = match &word {
        Some(OperatorAttribute::Text(word)) if word == "SAME" => Some("SAME_UPPER"),
        Some(OperatorAttribute::Text(word)) if word == "VALID" => Some("VALID"),
        Some(OperatorAttribute::Text(word)) if word == "CALCULATED" || word == "EXPLICIT" => None,
        None if is_same => Some("SAME_UPPER"),
        None => None,
        Some(other) => {
            let reason =
                format!("padding is {other:?}, expected SAME, VALID, CALCULATED or EXPLICIT");
            return Err(onnx.inexpressible(reason));
        }
    };
    if let Some(auto_pad) = auto_pad {
        let value = OperatorAttribute::Text(auto_pad.to_owned());
        onnx.attributes.push(("auto_pad".into(), value));
        return Ok(());
    }
    match pads {
        None => {}
        Some(OperatorAttribute::Ints(pads)) if matches!(pads.len(), 4 | 6) => {
            if pads.iter().any(|&pad| pad < 0) {
                return Err(onnx.inexpressible(format!("`pads` are {pads:?}: one is negative")));
            }
            // The vendor lists the two pads of an axis side by side, ONNX all first ones before all
            // last ones.
            let before = pads.iter().step_by(2);
            let behind = pads.iter().skip(1).step_by(2);
            let sorted = before.chain(behind).copied().collect();
            onnx.attributes
                .push(("pads".into(), OperatorAttribute::Ints(sorted)));
        }
        Some(_) => {
            return Err(onnx.inexpressible("`pads` must be two numbers for each spatial axis"));
        }
    }
    Ok(())
}
