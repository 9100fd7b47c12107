//! Heads of queries that share those of keys and values.

use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::change_axes::AxisOp;
use tract_onnx::tract_core::ops::einsum::EinSum;
use tract_onnx::tract_hir::internal::*;

use crate::onnx::tract::wiring::NodeWiring;

/// The dimensions of an `Attention`.
pub(super) struct AttentionExtents {
    pub(super) n_query_heads: usize,
    pub(super) n_key_heads: usize,
    pub(super) n_queries: usize,
    pub(super) n_keys: usize,
    pub(super) head_size: usize,
}

impl AttentionExtents {
    /// Of a query and a key with four axes: batch, head, position, element.
    pub(super) fn new(
        wiring: &mut NodeWiring<'_>,
        query: OutletId,
        key: OutletId,
    ) -> TractResult<AttentionExtents> {
        let (query, key) = (wiring.dims(query)?, wiring.dims(key)?);
        let (&[_, n_query_heads, n_queries, head_size], &[_, n_key_heads, n_keys, _]) =
            (&query[..], &key[..])
        else {
            bail!(
                "query and key have {} and {} axes, expected 4",
                query.len(),
                key.len()
            );
        };
        ensure!(
            n_key_heads > 0 && n_query_heads % n_key_heads == 0,
            "{n_query_heads} heads of the query cannot share {n_key_heads} of the key"
        );
        Ok(AttentionExtents {
            n_query_heads,
            n_key_heads,
            n_queries,
            n_keys,
            head_size,
        })
    }

    /// `[batch, query head, query, key]`.
    pub(super) fn scores(
        &self,
        wiring: &mut NodeWiring<'_>,
        query: OutletId,
        key: OutletId,
    ) -> TractResult<OutletId> {
        let query = self.group(wiring, query)?;
        let scores = multiply(wiring, "bhsd,bhtd->bhst", query, key)?;
        self.ungroup(wiring, scores)
    }

    /// `[batch, query head, query, element]`.
    pub(super) fn product(
        &self,
        wiring: &mut NodeWiring<'_>,
        shares: OutletId,
        value: OutletId,
    ) -> TractResult<OutletId> {
        let shares = self.group(wiring, shares)?;
        let result = multiply(wiring, "bhst,bhtd->bhsd", shares, value)?;
        self.ungroup(wiring, result)
    }

    /// Moves queries of all heads that share a key's head into one row.
    fn group(&self, wiring: &mut NodeWiring<'_>, wire: OutletId) -> TractResult<OutletId> {
        // Grouped queries turn many small products into few large ones, without a copy of the keys
        // for each head.
        let (apart, together) = self.groups();
        reshape(wiring, wire, apart, together)
    }

    fn ungroup(&self, wiring: &mut NodeWiring<'_>, wire: OutletId) -> TractResult<OutletId> {
        let (apart, together) = self.groups();
        reshape(wiring, wire, together, apart)
    }

    fn groups(&self) -> ([usize; 2], [usize; 2]) {
        let n_shared = self.n_query_heads / self.n_key_heads;
        let together = [self.n_key_heads, n_shared * self.n_queries];
        ([self.n_query_heads, self.n_queries], together)
    }
}

fn reshape(
    wiring: &mut NodeWiring<'_>,
    wire: OutletId,
    from: [usize; 2],
    to: [usize; 2],
) -> TractResult<OutletId> {
    if from == to {
        return Ok(wire);
    }
    let [from, to] = [from, to].map(|dims| dims.iter().map(ToDim::to_dim).collect());
    wiring.wire_as_is(AxisOp::Reshape(1, from, to), &[wire])
}

/// `[batch, position, head and element]` as `[batch, head, position, element]`.
pub(super) fn split(
    wiring: &mut NodeWiring<'_>,
    wire: OutletId,
    n_heads: usize,
) -> TractResult<OutletId> {
    let dims = wiring.dims(wire)?;
    ensure!(
        dims.len() == 3 && n_heads > 0 && dims[2] % n_heads == 0,
        "{dims:?} cannot be split into {n_heads} heads"
    );
    let to = tvec!(n_heads.to_dim(), (dims[2] / n_heads).to_dim());
    let wire = wiring.wire_as_is(AxisOp::Reshape(2, tvec!(dims[2].to_dim()), to), &[wire])?;
    wiring.wire_as_is(AxisOp::Move(2, 1), &[wire])
}

/// The reverse of [`split`].
pub(super) fn join(wiring: &mut NodeWiring<'_>, wire: OutletId) -> TractResult<OutletId> {
    let dims = wiring.dims(wire)?;
    let from = tvec!(dims[1].to_dim(), dims[3].to_dim());
    let to = tvec!((dims[1] * dims[3]).to_dim());
    let wire = wiring.wire_as_is(AxisOp::Move(1, 2), &[wire])?;
    wiring.wire_as_is(AxisOp::Reshape(2, from, to), &[wire])
}

/// A product along axes that an expression names.
fn multiply(
    wiring: &mut NodeWiring<'_>,
    expression: &str,
    a: OutletId,
    b: OutletId,
) -> TractResult<OutletId> {
    let datum_type = wiring.model.outlet_fact(a)?.datum_type;
    let product = EinSum::new(expression.parse()?, datum_type);
    wiring.wire_as_is(product, &[a, b])
}
