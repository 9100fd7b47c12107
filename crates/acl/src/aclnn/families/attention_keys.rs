//! Keys and values in inference: one tensor, one for each sample, or blocks with a block table.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::{DType, Shape, Tensor};

use super::attention_masks::Samples;
use super::attention_operands::{AxisOrder, Sizes, heads_first, turned};
use super::indexing::read_places;
use super::movement::joined;
use super::pooling::expect_room;
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::parameter::TensorArgument;

/// The keys of all samples, or their values.
pub(super) struct KeyStore<'a> {
    pub(super) tensors: Vec<&'a TensorArgument>,
    order: AxisOrder,
    /// The combined sizes of the tensors.
    pub(super) sizes: Sizes,
    /// Number of tokens of each sample.
    pub(super) lengths: Vec<usize>,
    pub(super) table: Option<&'a TensorArgument>,
}

/// The parameter names of a block table.
const TABLES: [&str; 3] = ["blockTableOptional", "blockTable", "blocktable"];

impl<'a> KeyStore<'a> {
    pub(super) fn new(
        call: &OperatorCall<'a>,
        name: &str,
        order: AxisOrder,
        queries: &Sizes,
        heads: usize,
    ) -> Composed<KeyStore<'a>> {
        let longer = format!("{name}Optional");
        let name = if call.has(&longer) { &longer } else { name };
        let tensors = match call.optional_tensor(name) {
            Ok(tensor) => tensor.into_iter().collect(),
            Err(_) => call.tensors(name)?.iter().collect::<Vec<_>>(),
        };
        let table = TABLES.into_iter().find(|name| call.has(name));
        let table = table.map(|name| call.optional_tensor(name)).transpose()?;
        let table = table.flatten().filter(|table| !table.is_empty());
        let mut store = KeyStore {
            tensors,
            order,
            sizes: *queries,
            lengths: Vec::new(),
            table,
        };
        let is_known = heads > 0 && store.measure(call, queries, heads)?;
        if is_known {
            return Ok(store);
        }
        let shapes: Vec<&[usize]> = store.tensors.iter().map(|tensor| tensor.dims()).collect();
        Err(Refusal::invalid(format!(
            "`{name}` has the shapes {shapes:?}; expected a tensor of {} samples, one for each, or \
             blocks, with {heads} heads",
            queries.batch
        )))
    }

    /// Determines the sizes; `false` if they do not match.
    fn measure(
        &mut self,
        call: &OperatorCall<'_>,
        queries: &Sizes,
        heads: usize,
    ) -> Composed<bool> {
        if let Some(table) = self.table {
            return self.measure_blocks(call, table, queries, heads);
        }
        let sizes = self
            .tensors
            .iter()
            .map(|tensor| self.order.sizes(tensor, Some(heads)));
        let Some(sizes) = sizes.collect::<Option<Vec<Sizes>>>() else {
            return Ok(false);
        };
        let Some(first) = sizes.first().copied() else {
            return Ok(false);
        };
        self.sizes = first;
        // A single tensor holds all samples, several hold one each.
        if sizes.len() == 1 {
            self.lengths = vec![first.tokens; first.batch];
            return Ok(first.heads == heads);
        }
        self.lengths = sizes.iter().map(|sizes| sizes.tokens).collect();
        let longest = self.lengths.iter().copied().max().unwrap_or(0);
        let fits = sizes.iter().all(|sizes| {
            sizes.batch == 1
                && (sizes.heads, sizes.width) == (heads, first.width)
                && sizes.tokens > 0
        });
        self.sizes.batch = sizes.len();
        self.sizes.tokens = longest;
        Ok(fits && self.order != AxisOrder::Tnd && sizes.len() == queries.batch)
    }

    fn measure_blocks(
        &mut self,
        call: &OperatorCall<'_>,
        table: &TensorArgument,
        queries: &Sizes,
        heads: usize,
    ) -> Composed<bool> {
        call.expect_dtype(table, |dtype| dtype == DType::I32, "int32")?;
        let ([blocks], &[samples, most]) = (self.tensors.as_slice(), table.dims()) else {
            return Ok(false);
        };
        let (size, width) = match *blocks.dims() {
            [n, size, h] if n > 0 && h.is_multiple_of(heads) => (size, h / heads),
            [n, found, size, width] if n > 0 && found == heads => (size, width),
            _ => return Ok(false),
        };
        let declared = call.int("blockSize")?;
        refuse_if!(
            usize::try_from(declared) != Ok(size),
            "`blockSize` is {declared}, but blocks have {size} tokens"
        );
        expect_room([samples, most, size, heads, width])?;
        self.lengths = vec![most * size; samples];
        let is_packed = self.order == AxisOrder::Tnd;
        self.sizes = Sizes {
            batch: if is_packed { 1 } else { samples },
            tokens: if is_packed {
                samples * most * size
            } else {
                most * size
            },
            heads,
            width,
        };
        Ok(is_packed || samples == queries.batch)
    }

    /// The shape of the first tensor, for messages.
    pub(super) fn dims(&self) -> &[usize] {
        self.tensors.first().map_or(&[], |tensor| tensor.dims())
    }

    /// All keys or values, with the axes batch, heads, tokens and elements.
    pub(super) fn read(&self, call: &OperatorCall<'_>, samples: &Samples) -> Composed<Value> {
        match (self.table, self.tensors.as_slice()) {
            (Some(table), [blocks]) => self.read_blocks(call, blocks, table, samples),
            (_, [one]) => heads_first(call, one, self.order, &self.sizes),
            (_, several) => {
                let mut values = Vec::with_capacity(several.len());
                for (tensor, &tokens) in several.iter().zip(&self.lengths) {
                    let sizes = Sizes {
                        batch: 1,
                        tokens,
                        ..self.sizes
                    };
                    let value = heads_first(call, tensor, self.order, &sizes)?;
                    // The mask of lengths hides the padding.
                    let missing = self.sizes.tokens - tokens;
                    let pads = call.constant_dims(&[0, 0, 0, 0, 0, 0, missing, 0]);
                    values.push(call.node("Pad", &[&value, &pads], DType::F32));
                }
                Ok(joined(call, &values, 0))
            }
        }
    }

    fn read_blocks(
        &self,
        call: &OperatorCall<'_>,
        blocks: &TensorArgument,
        table: &TensorArgument,
        samples: &Samples,
    ) -> Composed<Value> {
        let &[n, most] = table.dims() else {
            return Err(Refusal::invalid("the table of blocks has not two axes"));
        };
        let (heads, width) = (self.sizes.heads, self.sizes.width);
        let has_heads_outside = blocks.n_axes() == 4;
        let size = blocks.dims()[if has_heads_outside { 2 } else { 1 }];
        let places = read_places(call, table)?;
        // Block numbers beyond the length of a sample are uninitialised.
        let used = samples
            .key_lengths()
            .into_iter()
            .flat_map(|length| (0..most).map(move |block| u8::from(block * size < length)));
        let shape = Shape::new(vec![n, most]).ok();
        let used =
            shape.and_then(|shape| Tensor::from_vec(DType::Bool, shape, used.collect()).ok());
        let used = used.ok_or_else(|| Refusal::invalid("the table of blocks is too large"))?;
        let used = call.tensor_value(used);
        let places = used.choose(&places, 0.0);
        let value = call.read(blocks, DType::F32)?;
        let along = vec![("axis", OperatorAttribute::Int(0))];
        let value = call.node_with("Gather", &[&value, &places], along, DType::F32);
        let value = if has_heads_outside {
            let order = vec![("perm", OperatorAttribute::Ints(vec![0, 2, 1, 3, 4]))];
            let value = call.node_with("Transpose", &[&value], order, DType::F32);
            value.reshaped(&[n, heads, most * size, width])
        } else {
            let value = value.reshaped(&[n, most * size, heads, width]);
            turned(call, &value, [0, 2, 1, 3])
        };
        if self.order != AxisOrder::Tnd {
            return Ok(value);
        }
        // Blocks of all samples become one row of keys, like the row of query tokens.
        let value = turned(call, &value, [1, 0, 2, 3]);
        Ok(value.reshaped(&[1, heads, n * most * size, width]))
    }
}

/// Concatenates two values along their last axis.
pub(super) fn joined_widths(call: &OperatorCall<'_>, a: &Value, b: &Value) -> Value {
    joined(call, &[a.clone(), b.clone()], 3)
}
