//! From a description to what an engine runs: in ONNX's words, with axes in ONNX's order.

use opscope_tensor::{DType, Layout};

use super::ascend;
use super::axes::{OperandChange, channel_axis, is_plain, is_reordered, order_of_onnx, positions};
use super::operator::{Operand, OperatorAttribute, OperatorError, SingleOperator};
use super::roles::{self, OperandRole};
use crate::DeclaredDim;

/// Inputs that ONNX has in int64 alone, and Ascend in int32 as well.
const READ_AS_INT64: &[(&str, usize)] = &[
    ("ConstantOfShape", 0),
    ("Expand", 1),
    ("Pad", 1),
    ("ReduceMax", 1),
    ("ReduceMean", 1),
    ("ReduceMin", 1),
    ("ReduceProd", 1),
    ("ReduceSum", 1),
    ("Reshape", 1),
    ("Resize", 3),
    ("Split", 1),
    ("Squeeze", 1),
    ("Tile", 1),
    ("TopK", 1),
    ("Unsqueeze", 1),
];

/// An operator in ONNX's words, and what was done to its operands.
pub(super) struct OnnxLowering {
    /// The description, with the layout of every operand settled.
    pub(super) described: SingleOperator,
    /// The operator that the engine runs.
    pub(super) onnx: SingleOperator,
    /// Changes of inputs and outputs, by position; `None` where there is nothing to change.
    pub(super) inputs: Vec<Option<OperandChange>>,
    pub(super) outputs: Vec<Option<OperandChange>>,
}

/// # Errors
/// [`OperatorError::Inexpressible`] for what ONNX cannot say, [`OperatorError::Format`] for layouts
/// that contradict each other or have no order of axes that could be changed.
pub(super) fn lower(operator: &SingleOperator) -> Result<OnnxLowering, OperatorError> {
    let mut described = operator.clone();
    let name = ascend::name_in_onnx(&described.op_type).to_owned();
    // Every operand has one layout before any of them is compared with another.
    settle_layouts(&mut described)?;
    let roles = roles::of_inputs(&name);
    settle_data_format(&mut described, roles)?;
    if roles.is_some() {
        settle_output(&mut described);
    } else if roles::is_elementwise(&name) {
        // Such an operator pairs elements by position, whatever the axes are called.
        check_alike(&described)?;
    }
    let onnx = ascend::to_onnx_operator(&described)?;
    let mut lowered = OnnxLowering {
        inputs: vec![None; onnx.inputs.len()],
        outputs: vec![None; onnx.outputs.len()],
        described,
        onnx,
    };
    // A global pool may have become another operator.
    match roles::of_inputs(&lowered.onnx.op_type) {
        Some(roles) => lowered.reorder(roles)?,
        None => lowered.align_channels()?,
    }
    lowered.narrow_positions();
    lowered.widen_numbers();
    // The changes are collected first: a later check may still refuse the operator.
    lowered.apply()?;
    Ok(lowered)
}

/// Refuses layouts that mean more than the order of axes, and resolves those stated twice.
fn settle_layouts(operator: &mut SingleOperator) -> Result<(), OperatorError> {
    for (side, i, operand) in operands(operator) {
        let (layout, origin) = (operand.layout, operand.origin_layout);
        for layout in [Some(layout), origin].into_iter().flatten() {
            if !is_plain(layout) {
                return Err(operator.misformatted(format!(
                    "{side} {i} has the format {layout}, which no engine of the CPU computes with; \
                     describe it in one that names plain axes, such as NCHW, NHWC, HWCN or ND"
                )));
            }
        }
        let origin = origin.unwrap_or(Layout::Nd);
        if layout != origin && layout != Layout::Nd && origin != Layout::Nd {
            return Err(operator.misformatted(format!(
                "{side} {i} has the format {layout} and the origin format {origin}; describe it in one"
            )));
        }
    }
    let operands = operator.inputs.iter_mut().chain(&mut operator.outputs);
    for operand in operands.flatten() {
        if let (Layout::Nd, Some(origin)) = (operand.layout, operand.origin_layout) {
            operand.layout = origin;
        }
    }
    Ok(())
}

fn operands(operator: &SingleOperator) -> impl Iterator<Item = (&'static str, usize, &Operand)> {
    let inputs = operator.inputs.iter().enumerate();
    let inputs = inputs.filter_map(|(i, one)| Some(("input", i, one.as_ref()?)));
    let outputs = operator.outputs.iter().enumerate();
    inputs.chain(outputs.filter_map(|(i, one)| Some(("output", i, one.as_ref()?))))
}

/// Uses the attribute `data_format` as the layout of an image without a layout.
fn settle_data_format(
    operator: &mut SingleOperator,
    roles: Option<&[OperandRole]>,
) -> Result<(), OperatorError> {
    let Some(value) = operator.take("data_format") else {
        return Ok(());
    };
    let is_known = roles.is_some() || operator.op_type == "BiasAdd";
    let said = match &value {
        OperatorAttribute::Text(text) => text.parse::<Layout>().ok(),
        _ => None,
    };
    let said = said
        .filter(|layout| is_known && is_plain(*layout))
        .ok_or_else(|| {
            operator.misformatted(format!(
                "`data_format` is {value:?}, which says nothing of it"
            ))
        })?;
    if said == Layout::Nd {
        return Ok(());
    }
    let Some(Some(image)) = operator.inputs.first() else {
        return Err(operator.misformatted("it has `data_format` and no input"));
    };
    let found = image.layout;
    let n_axes = image.dims.as_ref().map(Vec::len);
    let does_fit = n_axes.is_none_or(|n| said.n_named_axes().is_none_or(|named| named == n));
    // Both may state the layout, if they agree.
    if found != Layout::Nd && found != said {
        return Err(operator.misformatted(format!(
            "`data_format` is {said}, and input 0 has the format {found}"
        )));
    }
    if !does_fit {
        return Err(operator.misformatted(format!(
            "`data_format` is {said}, and input 0 has {} axes",
            n_axes.unwrap_or(0)
        )));
    }
    if let Some(Some(image)) = operator.inputs.first_mut() {
        image.layout = said;
    }
    Ok(())
}

/// An image that is computed has the layout of the one that is read, unless it has its own.
fn settle_output(operator: &mut SingleOperator) {
    let read = operator.inputs.first().and_then(Option::as_ref);
    let layout = read.map_or(Layout::Nd, |image| image.layout);
    if let Some(Some(image)) = operator.outputs.first_mut()
        && image.layout == Layout::Nd
    {
        image.layout = layout;
    }
}

/// Refuses to combine elements of tensors whose axes are called differently.
fn check_alike(operator: &SingleOperator) -> Result<(), OperatorError> {
    let mut first: Option<(&str, usize, Layout)> = None;
    for (side, i, operand) in operands(operator) {
        let n_axes = operand.dims.as_ref().map(Vec::len);
        let named = operand.layout.n_named_axes();
        // A scalar, and one value for each channel, has no order of axes.
        if named.is_none() || n_axes.is_some_and(|n| Some(n) != named) {
            continue;
        }
        match first {
            None => first = Some((side, i, operand.layout)),
            Some((_, _, layout)) if layout == operand.layout => {}
            Some((first_side, first_i, layout)) => {
                return Err(operator.misformatted(format!(
                    "{first_side} {first_i} has the format {layout} and {side} {i} {}; an operator that \
                     works on elements takes them in one",
                    operand.layout
                )));
            }
        }
    }
    Ok(())
}

impl OnnxLowering {
    /// Notes how the operands of an operator get into the order of axes that it takes for granted.
    fn reorder(&mut self, roles: &[OperandRole]) -> Result<(), OperatorError> {
        let role = |i: usize| roles.get(i).copied().unwrap_or(OperandRole::Other);
        let inputs = self.onnx.inputs.iter().enumerate();
        let images =
            inputs.filter(|(i, _)| matches!(role(*i), OperandRole::Image | OperandRole::Kernel));
        let images = images.map(|(_, operand)| operand);
        let mut images = images.chain(self.onnx.outputs.first()).flatten();
        // In ONNX's order there is nothing to do, and the engine gets the operands as they are.
        if !images.any(|image| is_reordered(image.layout)) {
            return Ok(());
        }
        // Positions count elements in one order of axes and cannot be translated like values.
        self.check_positions()?;
        for i in 0..self.onnx.inputs.len() {
            let Some(operand) = &self.onnx.inputs[i] else {
                continue;
            };
            self.inputs[i] = match role(i) {
                OperandRole::Other => None,
                OperandRole::PerAxis => self.elements()?,
                OperandRole::Image | OperandRole::Kernel => self.axes("input", i, operand)?,
            };
        }
        if let Some(Some(operand)) = self.onnx.outputs.first() {
            self.outputs[0] = self.axes("output", 0, operand)?;
        }
        self.reorder_attributes()
    }

    /// Refuses operators with numbers that mean positions in an image: they stay those of ONNX's
    /// order.
    fn check_positions(&self) -> Result<(), OperatorError> {
        let has_positions = match self.onnx.op_type.as_str() {
            "MaxPool" => self.onnx.outputs.get(1).is_some_and(Option::is_some),
            "MaxUnpool" => true,
            _ => false,
        };
        if has_positions {
            let reason = "indices count elements in the order NCHW; describe every operand in it";
            return Err(self.described.misformatted(reason));
        }
        Ok(())
    }

    fn axes(
        &self,
        side: &str,
        i: usize,
        operand: &Operand,
    ) -> Result<Option<OperandChange>, OperatorError> {
        let layout = operand.layout;
        let Some(engine) = order_of_onnx(layout) else {
            return Err(self.described.misformatted(format!(
                "another operand names its axes, and {side} {i} has the format {layout}, which does not say \
                 where its channels are; give it one such as NCHW, NHWC or HWCN"
            )));
        };
        let n_axes = operand.dims.as_ref().map(Vec::len);
        if n_axes.is_some() && n_axes != layout.n_named_axes() {
            let (n, named) = (n_axes.unwrap_or(0), layout.n_named_axes().unwrap_or(0));
            return Err(self.described.misformatted(format!(
                "{side} {i} has the format {layout} and {n} axes, expected {named}"
            )));
        }
        if operand.dtype.bytes().is_none() {
            let dtype = operand.dtype;
            return Err(self.described.misformatted(format!(
                "{side} {i} has the format {layout}, and elements of the type {dtype} cannot be reordered"
            )));
        }
        let change = OperandChange::Axes {
            described: layout,
            engine,
        };
        Ok((layout != engine).then_some(change))
    }

    /// The layout of the image that is read.
    fn image_layout(&self) -> Layout {
        let image = self.onnx.inputs.first().and_then(Option::as_ref);
        image.map_or(Layout::Nd, |image| image.layout)
    }

    /// The positions of ONNX's axes among those of the image that is read.
    fn image_positions(&self) -> Option<Vec<usize>> {
        let layout = self.image_layout();
        Some(positions(layout, order_of_onnx(layout)?))
    }

    fn elements(&self) -> Result<Option<OperandChange>, OperatorError> {
        // With a list of axes, others are lists for these axes.
        if self.onnx.attributes.iter().any(|(name, _)| name == "axes") {
            return Ok(None);
        }
        Ok(self.image_positions().map(OperandChange::Elements))
    }

    /// Axes by number, and lists for each axis, in the order of ONNX.
    fn reorder_attributes(&mut self) -> Result<(), OperatorError> {
        let Some(positions) = self.image_positions() else {
            return Ok(());
        };
        let n = positions.len();
        if let Some(value) = self.onnx.take("axes") {
            let OperatorAttribute::Ints(axes) = &value else {
                return Err(self
                    .described
                    .misformatted("`axes` must be a list of numbers"));
            };
            let moved = axes.iter().map(|&axis| {
                // Negative axes count from the end, before the axes are permuted.
                let axis = if axis < 0 { axis + n as i64 } else { axis };
                let position = positions.iter().position(|&p| i64::try_from(p) == Ok(axis));
                position.and_then(|p| i64::try_from(p).ok())
            });
            let moved = moved.collect::<Option<Vec<i64>>>();
            let moved = moved.ok_or_else(|| {
                self.described
                    .misformatted(format!("`axes` {axes:?} are not {n}"))
            })?;
            self.onnx
                .attributes
                .push(("axes".into(), OperatorAttribute::Ints(moved)));
        }
        if let Some(value) = self.onnx.take("scales") {
            let OperatorAttribute::Floats(scales) = &value else {
                return Err(self
                    .described
                    .misformatted("`scales` must be a list of numbers"));
            };
            let moved = positions.iter().map(|&p| scales.get(p).copied());
            let moved = moved.collect::<Option<Vec<f32>>>();
            let moved = moved
                .ok_or_else(|| self.described.misformatted(format!("`scales` are not {n}")))?;
            self.onnx
                .attributes
                .push(("scales".into(), OperatorAttribute::Floats(moved)));
        }
        Ok(())
    }

    /// One value for each channel, of `PRelu` and `BiasAdd`, goes along the axis that the image
    /// says.
    fn align_channels(&mut self) -> Result<(), OperatorError> {
        let is_bias = self.described.op_type == "BiasAdd";
        if !is_bias && self.onnx.op_type != "PRelu" {
            return Ok(());
        }
        let [Some(Some(image)), Some(Some(values))] = [0, 1].map(|i| self.onnx.inputs.get(i))
        else {
            return Ok(());
        };
        let n_axes = image.dims.as_ref().map(Vec::len);
        let n_value_axes = values.dims.as_ref().map(Vec::len);
        if n_value_axes != Some(1) {
            let reason = "the bias must have one axis, with a value for each channel";
            return if is_bias {
                Err(self.described.misformatted(reason))
            } else {
                Ok(())
            };
        }
        let Some(axis) = channel_axis(image.layout) else {
            // Two axes are batch and channels; with more of them it is not said which are the
            // channels.
            return if is_bias && n_axes != Some(2) {
                Err(self.described.misformatted(
                    "it is not said which axis has the channels: give input 0 a format, or set `data_format`",
                ))
            } else {
                Ok(())
            };
        };
        let n_axes = image.layout.n_named_axes().unwrap_or(0);
        let n_behind = n_axes.saturating_sub(axis + 1);
        let [n_channels, n_values] = [(image, axis), (values, 0)].map(|(operand, axis)| {
            match operand.dims.as_ref()?.get(axis)? {
                DeclaredDim::Fixed(n) => Some(*n),
                DeclaredDim::Named(_) | DeclaredDim::Unknown => None,
            }
        });
        let is_for_channels =
            n_values != Some(1) && (n_channels.is_none() || n_channels == n_values);
        if n_behind > 0 && (is_bias || is_for_channels) {
            self.inputs[1] = Some(OperandChange::TrailingAxes(n_behind));
        }
        Ok(())
    }

    /// Describes int64 results of the engine as int32 where the operator has int32.
    fn narrow_positions(&mut self) {
        let outputs = self.described.outputs.iter().zip(&self.onnx.outputs);
        for (change, (described, onnx)) in self.outputs.iter_mut().zip(outputs) {
            let dtypes =
                [described, onnx].map(|operand| operand.as_ref().map(|operand| operand.dtype));
            if dtypes == [Some(DType::I32), Some(DType::I64)] {
                *change = Some(OperandChange::Positions);
            }
        }
    }

    /// Reads extents, axes and counts that are described as int32 as ONNX's int64.
    fn widen_numbers(&mut self) {
        let known = READ_AS_INT64.iter();
        let found = known.filter(|(op_type, _)| *op_type == self.onnx.op_type);
        for &(_, i) in found {
            if let Some(Some(operand)) = self.onnx.inputs.get_mut(i)
                && operand.dtype == DType::I32
            {
                operand.dtype = DType::I64;
                self.inputs[i] = Some(OperandChange::Positions);
            }
        }
    }

    /// Applies the changes to the engine's model.
    fn apply(&mut self) -> Result<(), OperatorError> {
        let inputs = self.onnx.inputs.iter_mut().zip(&self.inputs);
        for (i, (operand, change)) in inputs.enumerate() {
            let (Some(operand), Some(change)) = (operand, change) else {
                continue;
            };
            operand.dims = operand
                .dims
                .as_deref()
                .map(|dims| change.dims_to_engine(dims));
            if let Some(constant) = &operand.constant {
                let changed = change.to_engine(constant);
                let changed = changed.map_err(|reason| {
                    let described = &self.described;
                    described.misformatted(format!("input {i}: {reason}"))
                })?;
                operand.constant = Some(changed);
            }
        }
        let outputs = self.onnx.outputs.iter_mut().zip(&self.outputs);
        for (operand, change) in outputs {
            let (Some(operand), Some(change)) = (operand, change) else {
                continue;
            };
            operand.dims = operand
                .dims
                .as_deref()
                .map(|dims| change.dims_to_engine(dims));
        }
        Ok(())
    }
}
