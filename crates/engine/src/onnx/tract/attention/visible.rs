//! Which keys a query may see.

use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::array::TypedConcat;
use tract_onnx::tract_core::ops::cast::cast;
use tract_onnx::tract_core::ops::change_axes::AxisOp;
use tract_onnx::tract_core::ops::logic::{and, comp_gt, comp_gte, comp_lt, comp_lte};
use tract_onnx::tract_core::ops::math::{add, sub};
use tract_onnx::tract_core::ops::nn::{Reduce, Reducer};
use tract_onnx::tract_hir::tract_ndarray::Array4;

use super::heads::AttentionExtents;
use crate::onnx::tract::wiring::NodeWiring;

/// A mask that the model computes, of one of two forms.
#[derive(Default)]
pub(super) struct AttentionMask {
    /// Where it is true a key may be seen.
    pub(super) admits: Option<OutletId>,
    /// The values that are added to the scores.
    pub(super) bias: Option<OutletId>,
}

impl AttentionMask {
    /// Takes a mask for `n_keys` keys; keys that it is too short for are hidden.
    pub(super) fn new(
        wiring: &mut NodeWiring<'_>,
        mask: OutletId,
        n_keys: usize,
    ) -> TractResult<AttentionMask> {
        let datum_type = wiring.model.outlet_fact(mask)?.datum_type;
        let mut dims = wiring.dims(mask)?;
        let mut mask = mask;
        // The standard lets a mask be shorter than the keys. One element is broadcast and no short
        // mask.
        if let Some(last) = dims.last_mut().filter(|n| **n < n_keys && **n != 1) {
            *last = n_keys - *last;
            let hidden = match datum_type {
                DatumType::Bool => tensor0(false),
                _ => tensor0(f32::NEG_INFINITY)
                    .cast_to_dt(datum_type)?
                    .into_owned(),
            };
            let axis = dims.len() - 1;
            let rest = wiring.constant(hidden.broadcast_scalar_to_shape(&dims)?)?;
            mask = wiring.wire_as_is(TypedConcat { axis }, &[mask, rest])?;
        }
        Ok(match datum_type {
            DatumType::Bool => AttentionMask {
                admits: Some(mask),
                bias: None,
            },
            _ => AttentionMask {
                admits: None,
                bias: Some(mask),
            },
        })
    }
}

/// Rules that hide keys apart from the mask.
pub(super) struct VisibilityRules {
    pub(super) is_causal: bool,
    pub(super) window: [Option<i64>; 2],
    /// Keys before those of the first query's own position.
    pub(super) n_past: usize,
    /// How many keys of each batch are there at all.
    pub(super) lengths: Option<OutletId>,
}

impl VisibilityRules {
    /// Booleans that `[batch, head, query, key]` broadcasts with, beginning with those of the mask;
    /// `None` if every query sees every key.
    pub(super) fn wire(
        &self,
        wiring: &mut NodeWiring<'_>,
        heads: &AttentionExtents,
        mask: Option<OutletId>,
    ) -> TractResult<Option<OutletId>> {
        let shape = (1, 1, heads.n_queries, heads.n_keys);
        let n_queries = heads.n_queries as i64;
        // The position of a key after that of the query that is the last but `n_queries`.
        // Everything but the position of the first query is known from the shapes, so one constant
        // serves all three rules.
        let distance = Array4::from_shape_fn(shape, |(_, _, i, j)| {
            (j as i64)
                .saturating_sub(i as i64)
                .saturating_add(n_queries)
        });
        let distance = wiring.constant(distance.into_tensor())?;
        let end = match self.lengths {
            Some(lengths) => {
                let mut end = wiring.wire_as_is(cast(DatumType::I64), &[lengths])?;
                // One length for each batch has to broadcast over heads, queries and keys.
                for axis in 1..4 {
                    end = wiring.wire_as_is(AxisOp::Add(axis), &[end])?;
                }
                end
            }
            None => wiring.constant(tensor0(n_queries + self.n_past as i64))?,
        };
        let mut all = mask;
        if self.is_causal {
            let is_past = wiring.compare(comp_lte(), distance, end)?;
            all = both(wiring, all, is_past)?;
        }
        if let Some(n) = self.window[0] {
            let n = wiring.constant(tensor0(n))?;
            let first = wiring.wire(sub(), &[end, n])?;
            let is_near = wiring.compare(comp_gte(), distance, first)?;
            all = both(wiring, all, is_near)?;
        }
        if let Some(n) = self.window[1] {
            let n = wiring.constant(tensor0(n))?;
            let last = wiring.wire(add(), &[end, n])?;
            let is_near = wiring.compare(comp_lte(), distance, last)?;
            all = both(wiring, all, is_near)?;
        }
        if self.lengths.is_some() {
            let keys = Array4::from_shape_fn((1, 1, 1, heads.n_keys), |(_, _, _, j)| j as i64);
            let keys = wiring.constant(keys.into_tensor())?;
            let is_there = wiring.compare(comp_lt(), keys, end)?;
            all = both(wiring, all, is_there)?;
        }
        Ok(all)
    }
}

fn both(
    wiring: &mut NodeWiring<'_>,
    all: Option<OutletId>,
    more: OutletId,
) -> TractResult<Option<OutletId>> {
    Ok(Some(match all {
        Some(all) => wiring.wire(and(), &[all, more])?,
        None => more,
    }))
}

/// Whether a query sees any key, with one key's size; `None` if every query does.
pub(super) fn sees_any(
    wiring: &mut NodeWiring<'_>,
    visible: Option<OutletId>,
    bias: Option<OutletId>,
) -> TractResult<Option<OutletId>> {
    let mut all = visible;
    if let Some(bias) = bias {
        let lowest = wiring.number(f32::NEG_INFINITY, bias)?;
        let is_above = wiring.compare(comp_gt(), bias, lowest)?;
        all = both(wiring, all, is_above)?;
    }
    let Some(all) = all else { return Ok(None) };
    let n_axes = wiring.dims(all)?.len();
    let reduce = Reduce::new(tvec!(n_axes - 1), Reducer::Any);
    Ok(Some(wiring.wire_as_is(reduce, &[all])?))
}
