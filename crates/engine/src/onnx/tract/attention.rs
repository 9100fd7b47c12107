//! `AttentionComposition` of the standard domain, complete.
//!
//! tract's own operator lacks soft caps, the scores as an output, windows and lengths without
//! padding, takes a mask of booleans for numbers where it is causal, and counts positions wrongly
//! where there is a past. This one is composed of tract's products and its softmax. The visible
//! keys of each query are kept as booleans to the end, so that NaN in hidden keys does no harm and
//! a query that sees none yields zeros.

mod heads;
mod visible;

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::array::TypedConcat;
use tract_onnx::tract_core::ops::logic::Iff;
use tract_onnx::tract_core::ops::math::{add, div, mul, tanh};
use tract_onnx::tract_core::ops::nn::{Softmax, SoftmaxKind};
use tract_onnx::tract_hir::internal::*;

use self::heads::{AttentionExtents, join, split};
use self::visible::{AttentionMask, VisibilityRules};
use super::composition::{Composition, ResultShape, ResultType};
use super::wiring::{NodeWiring, WiredOutlets};

/// Most optional inputs and outputs that an `AttentionComposition` has.
const N_SLOTS_MAX: usize = 7;

#[derive(Debug, Clone)]
pub(super) struct AttentionComposition {
    is_causal: bool,
    /// Most keys to the left and to the right of a query's own position; `None` for all.
    window: [Option<i64>; 2],
    scale: Option<f32>,
    softcap: f32,
    scores: ScoreOutput,
    /// Heads of the query, and of key and value; given where these have three axes.
    n_heads: Option<(usize, usize)>,
    /// Positions of the inputs among the present ones.
    inputs: [Option<usize>; N_SLOTS_MAX],
    /// Whether each output is there.
    outputs: [bool; 4],
}

/// The values that the fourth output holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScoreOutput {
    /// The products.
    Raw,
    /// The same after the soft cap.
    Capped,
    /// The same with the mask.
    Masked,
    /// The result of softmax on them.
    Shares,
}

impl Composition for AttentionComposition {
    const OP_TYPE: &'static str = "Attention";
    const RESULT_TYPE: ResultType = ResultType::EachOfFirstInput;
    const RESULT_SHAPE: ResultShape = ResultShape::OfSameRank;

    fn from_node(_context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        let scores = match node.get_attr_opt::<i64>("qk_matmul_output_mode")? {
            None | Some(0) => ScoreOutput::Raw,
            Some(1) => ScoreOutput::Capped,
            Some(2) => ScoreOutput::Masked,
            Some(3) => ScoreOutput::Shares,
            Some(other) => bail!("`qk_matmul_output_mode` is {other}, expected 0 to 3"),
        };
        let mut inputs = [None; N_SLOTS_MAX];
        let present = (0..N_SLOTS_MAX).filter(|&i| is_there(&node.input, i));
        // tract passes on only the inputs that are there, so that positions shift.
        for (position, i) in present.enumerate() {
            inputs[i] = Some(position);
        }
        ensure!(
            inputs[4].is_some() == inputs[5].is_some(),
            "a past key needs a past value"
        );
        ensure!(
            inputs[4].is_none() || inputs[6].is_none(),
            "a past and lengths without padding exclude each other"
        );
        Ok(AttentionComposition {
            is_causal: node.get_attr_opt::<i64>("is_causal")?.unwrap_or(0) != 0,
            window: [
                window(node, "left_window_size")?,
                window(node, "right_window_size")?,
            ],
            scale: node.get_attr_opt("scale")?,
            softcap: node.get_attr_opt("softcap")?.unwrap_or(0.0),
            scores,
            n_heads: n_heads(node, "q_num_heads")?.zip(n_heads(node, "kv_num_heads")?),
            inputs,
            outputs: std::array::from_fn(|i| is_there(&node.output, i)),
        })
    }

    fn n_outputs(&self) -> usize {
        self.outputs.iter().filter(|is_there| **is_there).count()
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let input = |i: usize| self.inputs[i].and_then(|at| inputs.get(at)).copied();
        let required = |i: usize| input(i).context("a required input is missing");
        let has_three_axes = wiring.dims(required(0)?)?.len() == 3;
        let (mut query, mut key, mut value) = (required(0)?, required(1)?, required(2)?);
        if has_three_axes {
            let (n_query, n_key) = self.n_heads.context("three axes need numbers of heads")?;
            query = split(wiring, query, n_query)?;
            key = split(wiring, key, n_key)?;
            value = split(wiring, value, n_key)?;
        }
        let mut n_past = 0;
        if let (Some(past_key), Some(past_value)) = (input(4), input(5)) {
            n_past = wiring.dims(past_key)?[2];
            // The past comes first: positions count from its beginning.
            key = wiring.wire_as_is(TypedConcat { axis: 2 }, &[past_key, key])?;
            value = wiring.wire_as_is(TypedConcat { axis: 2 }, &[past_value, value])?;
        }
        let heads = AttentionExtents::new(wiring, query, key)?;
        let mask = match input(3) {
            Some(mask) => AttentionMask::new(wiring, mask, heads.n_keys)?,
            None => AttentionMask::default(),
        };
        let visible = VisibilityRules {
            is_causal: self.is_causal,
            window: self.window,
            n_past,
            lengths: input(6),
        };
        let visible = visible.wire(wiring, &heads, mask.admits)?;
        let (scores, shares) = self.shares(wiring, &heads, query, key, mask.bias, visible)?;
        let mut result = heads.product(wiring, shares, value)?;
        if has_three_axes {
            result = join(wiring, result)?;
        }
        let outputs = [result, key, value, scores];
        let wanted = outputs.into_iter().zip(self.outputs);
        Ok(wanted
            .filter_map(|(wire, is_there)| is_there.then_some(wire))
            .collect())
    }
}

impl AttentionComposition {
    /// Returns the fourth output, and how much of each value a query takes.
    fn shares(
        &self,
        wiring: &mut NodeWiring<'_>,
        heads: &AttentionExtents,
        query: OutletId,
        key: OutletId,
        bias: Option<OutletId>,
        visible: Option<OutletId>,
    ) -> TractResult<(OutletId, OutletId)> {
        let default = 1.0 / (heads.head_size as f64).sqrt();
        let scale = wiring.number(self.scale.map_or(default, f64::from), query)?;
        let query = wiring.wire(mul(), &[query, scale])?;
        let raw = heads.scores(wiring, query, key)?;
        let mut capped = raw;
        // The cap goes before the mask, or hidden keys would come back with a finite score.
        if self.softcap > 0.0 {
            let cap = wiring.number(self.softcap, raw)?;
            capped = wiring.wire(div(), &[raw, cap])?;
            capped = wiring.wire(tanh(), &[capped])?;
            capped = wiring.wire(mul(), &[capped, cap])?;
        }
        let mut masked = capped;
        if let Some(bias) = bias {
            masked = wiring.wire(add(), &[masked, bias])?;
        }
        let lowest = wiring.number(f32::NEG_INFINITY, raw)?;
        if let Some(visible) = visible {
            masked = wiring.wire(Iff, &[visible, masked, lowest])?;
        }
        // A softmax over nothing but `-inf` is NaN; the standard has zeros for a query that sees no
        // key.
        let sees = visible::sees_any(wiring, visible, bias)?;
        let zero = wiring.number(0.0, raw)?;
        let mut exponents = masked;
        if let Some(sees) = sees {
            // Any finite numbers will do here, since the result is replaced below.
            exponents = wiring.wire(Iff, &[sees, masked, zero])?;
        }
        let softmax = Softmax::new(tvec!(3), None, SoftmaxKind::Softmax);
        let mut shares = wiring.wire_as_is(softmax, &[exponents])?;
        if let Some(sees) = sees {
            shares = wiring.wire(Iff, &[sees, shares, zero])?;
        }
        let shown = match self.scores {
            ScoreOutput::Raw => raw,
            ScoreOutput::Capped => capped,
            ScoreOutput::Masked => masked,
            ScoreOutput::Shares => shares,
        };
        Ok((shown, shares))
    }
}

/// The attribute that limits the window on one side; -1 is no limit.
fn window(node: &NodeProto, name: &str) -> TractResult<Option<i64>> {
    let n = node.get_attr_opt::<i64>(name)?.unwrap_or(-1);
    ensure!(n >= -1, "`{name}` is {n}, expected -1 or more");
    Ok((n >= 0).then_some(n))
}

fn n_heads(node: &NodeProto, name: &str) -> TractResult<Option<usize>> {
    let n = node.get_attr_opt::<i64>(name)?;
    n.map(|n| usize::try_from(n).with_context(|| format!("`{name}` is {n}")))
        .transpose()
}

/// Whether the input or output at position `i` is there.
fn is_there(names: &[String], i: usize) -> bool {
    names.get(i).is_some_and(|name| !name.is_empty())
}
