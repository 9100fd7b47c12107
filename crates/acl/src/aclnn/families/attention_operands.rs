//! Query, key and value of an attention: axis orders and sizes.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::activation::{SMALL_FLOATS, is_small_float};
use super::pooling::expect_room;
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value};
use crate::aclnn::parameter::TensorArgument;

pub(super) fn turned(call: &OperatorCall<'_>, x: &Value, order: [i64; 4]) -> Value {
    let order = vec![("perm", OperatorAttribute::Ints(order.to_vec()))];
    call.node_with("Transpose", &[x], order, x.dtype)
}

/// The axis order of query, key and value: batch, tokens, heads and elements of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AxisOrder {
    /// Heads and their elements share an axis.
    Bsh,
    /// Like [`AxisOrder::Bsh`], with the tokens first.
    Sbh,
    Bsnd,
    Bnsd,
    /// Tokens of all samples, concatenated.
    Tnd,
}

impl AxisOrder {
    pub(super) fn new(call: &OperatorCall<'_>, known: &[AxisOrder]) -> Composed<AxisOrder> {
        let text = call.text("inputLayout")?;
        let found = match text.as_ref() {
            "BSH" | "" => Some(AxisOrder::Bsh),
            "SBH" => Some(AxisOrder::Sbh),
            "BSND" => Some(AxisOrder::Bsnd),
            // The caller writes the result, which has another order.
            "BNSD" | "BNSD_BSND" => Some(AxisOrder::Bnsd),
            "TND" => Some(AxisOrder::Tnd),
            _ => None,
        };
        let found = found.filter(|order| known.contains(order));
        found.ok_or_else(|| Refusal::invalid(format!("`inputLayout` \"{text}\" is not supported")))
    }

    pub(super) fn sizes(self, x: &TensorArgument, heads: Option<usize>) -> Option<Sizes> {
        let (batch, tokens, heads, width) = match (self, x.dims()) {
            // The program passes the number of heads, which the shape does not determine.
            (AxisOrder::Bsh, &[b, s, h]) | (AxisOrder::Sbh, &[s, b, h]) => {
                let heads = heads.filter(|&n| n > 0 && h.is_multiple_of(n))?;
                (b, s, heads, h / heads)
            }
            (AxisOrder::Bsnd, &[b, s, n, d]) | (AxisOrder::Bnsd, &[b, n, s, d]) => (b, s, n, d),
            (AxisOrder::Tnd, &[t, n, d]) => (1, t, n, d),
            _ => return None,
        };
        Some(Sizes {
            batch,
            tokens,
            heads,
            width,
        })
    }

    /// The shape of a tensor in this order.
    pub(super) fn dims(self, sizes: &Sizes) -> Vec<usize> {
        let Sizes {
            batch,
            tokens,
            heads,
            width,
        } = *sizes;
        match self {
            AxisOrder::Bsh => vec![batch, tokens, heads * width],
            AxisOrder::Sbh => vec![tokens, batch, heads * width],
            AxisOrder::Bsnd => vec![batch, tokens, heads, width],
            AxisOrder::Bnsd => vec![batch, heads, tokens, width],
            AxisOrder::Tnd => vec![tokens, heads, width],
        }
    }

    /// The positions of batch, heads, tokens and elements, once heads are an axis.
    pub(super) fn order(self) -> [i64; 4] {
        match self {
            AxisOrder::Bsh | AxisOrder::Bsnd | AxisOrder::Tnd => [0, 2, 1, 3],
            AxisOrder::Sbh => [1, 2, 0, 3],
            AxisOrder::Bnsd => [0, 1, 2, 3],
        }
    }

    /// The inverse of [`AxisOrder::order`].
    fn way_back(self) -> [i64; 4] {
        match self {
            AxisOrder::Sbh => [2, 0, 1, 3],
            other => other.order(),
        }
    }

    pub(super) fn split_dims(self, sizes: &Sizes) -> Vec<usize> {
        let Sizes {
            batch,
            tokens,
            heads,
            width,
        } = *sizes;
        match self {
            AxisOrder::Sbh => vec![tokens, batch, heads, width],
            AxisOrder::Bnsd => vec![batch, heads, tokens, width],
            AxisOrder::Bsh | AxisOrder::Bsnd | AxisOrder::Tnd => {
                vec![batch, tokens, heads, width]
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) batch: usize,
    pub(super) tokens: usize,
    pub(super) heads: usize,
    pub(super) width: usize,
}

impl Sizes {
    pub(super) fn is_empty(&self) -> bool {
        [self.batch, self.tokens, self.heads, self.width].contains(&0)
    }
}

/// The operands of an attention.
pub(super) struct Operands<'a> {
    pub(super) query: &'a TensorArgument,
    pub(super) order: AxisOrder,
    /// The axis order of the result.
    pub(super) result_order: AxisOrder,
    pub(super) queries: Sizes,
    pub(super) keys: Sizes,
    pub(super) values: Sizes,
}

/// Query, key and value with the axes batch, heads, tokens and elements.
pub(super) struct HeadsFirst {
    pub(super) query: Value,
    pub(super) key: Value,
    pub(super) value: Value,
}

pub(super) fn expect_same_types(
    call: &OperatorCall<'_>,
    query: &TensorArgument,
    others: &[&TensorArgument],
) -> Composed {
    call.expect_dtype(query, is_small_float, SMALL_FLOATS)?;
    for tensor in others {
        if tensor.dtype != query.dtype {
            let text = format!("`{}` is {}", call.name(tensor), tensor.dtype);
            return Err(Refusal::invalid(format!(
                "{text}, but `query` {}",
                query.dtype
            )));
        }
    }
    Ok(())
}

impl<'a> Operands<'a> {
    /// `heads` and `key_heads` are numbers of heads; 0 or `None` to derive them from the shapes.
    pub(super) fn new(
        call: &OperatorCall<'_>,
        [query, key, value]: [&'a TensorArgument; 3],
        order: AxisOrder,
        heads: i64,
        key_heads: Option<i64>,
    ) -> Composed<Operands<'a>> {
        expect_same_types(call, query, &[key, value])?;
        let misfit = || {
            Refusal::invalid(format!(
                "query, key and value of the shapes {:?}, {:?} and {:?} do not fit together with \
                 {heads} heads",
                query.dims(),
                key.dims(),
                value.dims()
            ))
        };
        let queries = query_sizes(query, order, heads).ok_or_else(misfit)?;
        let key_heads = match key_heads {
            Some(0) => Some(queries.heads),
            Some(n) => usize::try_from(n).ok(),
            // The number with the query's head width.
            None => key.dims().last().map(|h| h / queries.width.max(1)),
        };
        let keys = order.sizes(key, key_heads).ok_or_else(misfit)?;
        let values = order.sizes(value, Some(keys.heads)).ok_or_else(misfit)?;
        Operands::of_sizes(query, order, [queries, keys, values]).ok_or_else(misfit)?
    }

    /// The operands, if their sizes match.
    pub(super) fn of_sizes(
        query: &'a TensorArgument,
        order: AxisOrder,
        [queries, keys, values]: [Sizes; 3],
    ) -> Option<Composed<Operands<'a>>> {
        let fits = keys.batch == queries.batch
            && keys.width == queries.width
            && Sizes {
                width: keys.width,
                ..values
            } == keys
            && keys.heads > 0
            && queries.heads.is_multiple_of(keys.heads);
        let operands = Operands {
            query,
            order,
            result_order: order,
            queries,
            keys,
            values,
        };
        fits.then(|| operands.expect_room().map(|()| operands))
    }

    pub(super) fn result(&self) -> Sizes {
        Sizes {
            width: self.values.width,
            ..self.queries
        }
    }

    /// Checks that scores and repeated keys fit into memory.
    pub(super) fn expect_room(&self) -> Composed {
        expect_room(self.score_dims())?;
        let [batch, heads, _, keys] = self.score_dims();
        expect_room([batch, heads, keys, self.keys.width.max(self.values.width)])
    }

    /// Batch, heads, tokens of the query and tokens of the key.
    pub(super) fn score_dims(&self) -> [usize; 4] {
        let Sizes {
            batch,
            tokens,
            heads,
            ..
        } = self.queries;
        [batch, heads, tokens, self.keys.tokens]
    }

    /// Reads the operands.
    pub(super) fn read(
        &self,
        call: &OperatorCall<'_>,
        [key, value]: [&TensorArgument; 2],
    ) -> Composed<HeadsFirst> {
        // Every axis order is converted to the same, for shared code.
        Ok(HeadsFirst {
            query: heads_first(call, self.query, self.order, &self.queries)?,
            key: heads_first(call, key, self.order, &self.keys)?,
            value: heads_first(call, value, self.order, &self.values)?,
        })
    }

    /// A value with heads repeated to the query's number of heads.
    pub(super) fn repeated(&self, value: Value, sizes: &Sizes) -> Value {
        // Adjacent query heads share a key head.
        let n = self.queries.heads / sizes.heads;
        if n == 1 {
            return value;
        }
        let (batch, heads, tokens, width) = (sizes.batch, sizes.heads, sizes.tokens, sizes.width);
        let value = value.reshaped(&[batch, heads, 1, tokens, width]);
        let value = value.expanded(&[batch, heads, n, tokens, width]);
        value.reshaped(&[batch, heads * n, tokens, width])
    }

    pub(super) fn is_empty(&self) -> bool {
        let each = [self.queries, self.keys, self.values];
        each.iter().any(Sizes::is_empty)
    }
}

/// The sizes of a query with this number of heads.
pub(super) fn query_sizes(query: &TensorArgument, order: AxisOrder, heads: i64) -> Option<Sizes> {
    let heads = usize::try_from(heads).ok().filter(|&n| n > 0);
    let sizes = order.sizes(query, heads)?;
    (Some(sizes.heads) == heads).then_some(sizes)
}

/// A tensor with the axes batch, heads, tokens and elements.
pub(super) fn heads_first(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    order: AxisOrder,
    sizes: &Sizes,
) -> Composed<Value> {
    let value = call.read(x, DType::F32)?;
    let value = value.reshaped(&order.split_dims(sizes));
    Ok(turned(call, &value, order.order()))
}

/// Stores a value with the axes batch, heads, tokens and elements in this axis order.
pub(super) fn write_ordered(
    call: &OperatorCall<'_>,
    order: AxisOrder,
    value: &Value,
    out: &TensorArgument,
    dtype: DType,
) -> Composed {
    let value = turned(call, value, order.way_back());
    call.write(out, value.reshaped(out.dims()), dtype)
}
