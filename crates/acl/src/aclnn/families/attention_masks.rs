//! Lengths of samples, masks and sparse modes: the keys that each token attends to.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::{DType, Shape, Tensor};

use super::movement::sliced;
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::shape::broadcast;

/// The tokens of a sample: offset and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) queries: (usize, usize),
    pub(super) keys: (usize, usize),
}

impl Sample {
    /// A sample with a separate entry of the batch axis.
    pub(super) fn alone(queries: usize, keys: usize) -> Sample {
        Sample {
            queries: (0, queries),
            keys: (0, keys),
        }
    }
}

/// The position of samples in the tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Samples {
    /// Each has an entry of the first axis, and starts at its beginning.
    Apart(Vec<Sample>),
    /// Concatenated in a single entry.
    Packed(Vec<Sample>),
}

impl Samples {
    /// The mask of the keys that belong to no sample, with the shape of the values; none if all
    /// belong to one.
    pub(super) fn unused_keys(
        &self,
        call: &OperatorCall<'_>,
        keys: usize,
    ) -> Composed<Option<Value>> {
        let n = match self {
            Samples::Apart(list) => list.len(),
            Samples::Packed(_) => 1,
        };
        // Masked by default, which includes gaps between samples.
        let mut flags = vec![1_u8; n * keys];
        for (at, sample) in self.list().iter().enumerate() {
            let entry = if n == 1 { 0 } else { at };
            let first = entry * keys + sample.keys.0;
            let own = flags.get_mut(first..first + sample.keys.1);
            own.unwrap_or_default().fill(0);
        }
        if flags.iter().all(|&flag| flag == 0) {
            return Ok(None);
        }
        flag_value(call, flags, vec![n, 1, keys, 1]).map(Some)
    }

    /// Number of keys of each sample.
    pub(super) fn key_lengths(&self) -> Vec<usize> {
        self.list().iter().map(|sample| sample.keys.1).collect()
    }

    fn list(&self) -> &[Sample] {
        match self {
            Samples::Apart(list) | Samples::Packed(list) => list,
        }
    }
}

/// The visible keys of a query, by their distance.
#[derive(Clone, Copy, Debug)]
struct Band {
    before: i64,
    after: i64,
    /// This many keys at the beginning are always visible.
    prefix: usize,
}

impl Band {
    const EVERYTHING: Band = Band {
        before: i64::MAX,
        after: i64::MAX,
        prefix: 0,
    };

    fn sees(&self, query: usize, key: usize) -> bool {
        let distance = key.cast_signed() as i64 - query.cast_signed() as i64;
        let is_within = distance >= self.before.saturating_neg() && distance <= self.after;
        is_within || key < self.prefix
    }
}

/// The mask of an attention and its mode.
pub(super) struct Sparsity<'a> {
    mask: Option<&'a TensorArgument>,
    mode: i64,
    before: i64,
    after: i64,
    prefixes: &'a [i64],
    /// Whether a mask may be longer than the scores, as the inference documentation advises.
    may_be_longer: bool,
}

/// The size of a mask that represents a larger one of the same form.
const SMALL_MASK: usize = 2048;
/// The rows of one that represents a mask with visible prefixes.
const SMALL_PREFIX_MASK: usize = 3072;

impl<'a> Sparsity<'a> {
    /// The arguments for the mask `name`.
    pub(super) fn new(
        call: &OperatorCall<'a>,
        name: &str,
        may_be_longer: bool,
    ) -> Composed<Sparsity<'a>> {
        let number = |name: &str, other: i64| {
            if call.has(name) {
                call.int(name)
            } else {
                Ok(other)
            }
        };
        let mask = call.optional_tensor(name)?.filter(|mask| !mask.is_empty());
        let mode = number("sparseMode", 0)?;
        // Only training has modes with prefixes.
        let last = if call.has("prefixOptional") { 6 } else { 4 };
        // According to the documentation, modes and bands have no effect without a mask.
        refuse_if!(
            mask.is_some() && !(0..=last).contains(&mode),
            "`sparseMode` is {mode}; expected 0 to {last}"
        );
        let prefixes = if call.has("prefixOptional") {
            call.optional_ints("prefixOptional")?.unwrap_or_default()
        } else {
            &[]
        };
        Ok(Sparsity {
            mask,
            mode,
            before: number("preTokens", i64::MAX)?,
            after: number("nextTokens", i64::MAX)?,
            prefixes,
            may_be_longer,
        })
    }

    /// For a single token modes and bands have no effect.
    pub(super) fn expect_single_token(&mut self) -> Composed {
        refuse_if!(
            self.mask.is_some() && matches!(self.mode, 2 | 4),
            "`sparseMode` is 2 or 4 for a single token; expected 0, 1 or 3"
        );
        // In mode 3 the only token is the last one, which sees all keys.
        (self.before, self.after) = (i64::MAX, i64::MAX);
        Ok(())
    }

    fn has_mask_of_scores(&self) -> bool {
        self.mask.is_some() && matches!(self.mode, 0 | 1 | 5)
    }

    /// The band of a sample.
    fn band(&self, at: usize, sample: &Sample) -> Composed<Band> {
        if self.mask.is_none() {
            return Ok(Band::EVERYTHING);
        }
        let (queries, keys) = (sample.queries.1, sample.keys.1);
        // Distance of the last key after the last query, the reference point of two modes.
        let corner = keys.cast_signed() as i64 - queries.cast_signed() as i64;
        let band = match self.mode {
            // According to the documentation, both have to agree; if not, neither takes precedence.
            0 => Band {
                before: self.before,
                after: self.after,
                prefix: 0,
            },
            2 => Band {
                after: 0,
                ..Band::EVERYTHING
            },
            // The last query sees the last key.
            3 => Band {
                after: corner,
                ..Band::EVERYTHING
            },
            4 => Band {
                before: self.before.saturating_sub(corner),
                after: self.after.saturating_add(corner),
                prefix: 0,
            },
            5 | 6 => Band {
                after: corner,
                prefix: self.prefix(at, keys)?,
                ..Band::EVERYTHING
            },
            _ => Band::EVERYTHING,
        };
        Ok(band)
    }

    fn prefix(&self, at: usize, keys: usize) -> Composed<usize> {
        let found = self.prefixes.get(at).and_then(|&n| usize::try_from(n).ok());
        found.filter(|&n| n <= keys).ok_or_else(|| {
            Refusal::invalid(format!(
                "`prefixOptional` is {:?}; expected a number of 0 to {keys} for sample {at}",
                self.prefixes
            ))
        })
    }

    /// The masks for scores of shape `scores`; masked scores are excluded.
    pub(super) fn masks(
        &self,
        call: &OperatorCall<'_>,
        samples: &Samples,
        scores: &[usize; 4],
    ) -> Composed<Vec<Value>> {
        let mut masks = Vec::new();
        if let Some(mask) = self.mask {
            if !self.has_mask_of_scores() {
                self.expect_small_mask(call, mask)?;
            } else if let Samples::Packed(list) = samples {
                masks.push(self.packed_mask(call, mask, list, scores)?);
            } else {
                masks.push(read_mask(call, mask, scores, self.may_be_longer)?);
            }
        }
        masks.extend(self.made_mask(call, samples, scores)?);
        Ok(masks)
    }

    /// The mask of packed samples. Each uses the first rows and columns of one mask, which is as
    /// large as the longest sample.
    fn packed_mask(
        &self,
        call: &OperatorCall<'_>,
        mask: &TensorArgument,
        samples: &[Sample],
        scores: &[usize; 4],
    ) -> Composed<Value> {
        let &[_, _, queries, keys] = scores;
        let (&[rows, columns] | &[1, 1, rows, columns]) = mask.dims() else {
            return Err(self.unfit(call, mask));
        };
        let mut sizes = samples.iter();
        // The inference documentation does not define such a mask.
        if self.may_be_longer
            || sizes.any(|sample| sample.queries.1 > rows || sample.keys.1 > columns)
        {
            return Err(self.unfit(call, mask));
        }
        call.expect_dtype(mask, is_mask, "bool, uint8 or int8")?;
        let value = call.read(mask, DType::Bool)?;
        let mut value = value.reshaped(&[rows, columns]);
        let row_lists = samples.iter().map(|sample| sample.queries);
        let column_lists = samples.iter().map(|sample| sample.keys);
        let sides = [
            (queries, row_lists.collect()),
            (keys, column_lists.collect()),
        ];
        for (axis, (n, lists)) in (0..).zip(sides) {
            let places = places_within(n, lists);
            let places = call.constant_dims(&places);
            let along = vec![("axis", OperatorAttribute::Int(axis))];
            value = call.node_with("Gather", &[&value, &places], along, DType::Bool);
        }
        Ok(value.reshaped(&[1, 1, queries, keys]))
    }

    fn unfit(&self, call: &OperatorCall<'_>, mask: &TensorArgument) -> Refusal {
        Refusal::invalid(format!(
            "`{}` has the shape {:?} and `sparseMode` is {} for packed samples; \
             expected mode 2, 3 or 4, or in training a mask of two axes as large as the \
             longest sample",
            call.name(mask),
            mask.dims(),
            self.mode
        ))
    }

    /// Causal masks are long for long texts; the small one represents all of its form, and is not
    /// read.
    fn expect_small_mask(&self, call: &OperatorCall<'_>, mask: &TensorArgument) -> Composed {
        call.expect_dtype(mask, is_mask, "bool, uint8 or int8")?;
        let rows = if self.mode == 6 {
            SMALL_PREFIX_MASK
        } else {
            SMALL_MASK
        };
        if mask.dims().ends_with(&[rows, SMALL_MASK]) {
            return Ok(());
        }
        Err(Refusal::invalid(format!(
            "`{}` has the shape {:?}; expected {rows} by {SMALL_MASK} for sparse mode {}",
            call.name(mask),
            mask.dims(),
            self.mode
        )))
    }

    /// The mask of lengths and bands; none if everything is visible.
    fn made_mask(
        &self,
        call: &OperatorCall<'_>,
        samples: &Samples,
        scores: &[usize; 4],
    ) -> Composed<Option<Value>> {
        let &[batch, _, queries, keys] = scores;
        let list = samples.list();
        // Samples with the same lengths share a mask.
        let are_alike = !matches!(self.mode, 5 | 6) && list.iter().all(|sample| *sample == list[0]);
        let (list, n) = match samples {
            Samples::Apart(list) if are_alike => (list.get(..1).unwrap_or_default(), 1),
            Samples::Apart(list) => (list.as_slice(), batch),
            Samples::Packed(list) => (list.as_slice(), 1),
        };
        let bands = list.iter().enumerate();
        let bands: Composed<Vec<Band>> = bands.map(|(at, sample)| self.band(at, sample)).collect();
        let bands = bands?;
        // One byte for each; the scores of all heads are already known to fit.
        let mut flags = vec![1_u8; n * queries * keys];
        for (at, (sample, band)) in list.iter().zip(&bands).enumerate() {
            let entry = if n == 1 { 0 } else { at };
            for query in 0..sample.queries.1 {
                let row = (entry * queries + sample.queries.0 + query) * keys + sample.keys.0;
                let row = flags.get_mut(row..row + sample.keys.1);
                for (key, flag) in row.into_iter().flatten().enumerate() {
                    *flag = u8::from(!band.sees(query, key));
                }
            }
        }
        if flags.iter().all(|&flag| flag == 0) {
            return Ok(None);
        }
        // Passed to each run: lengths grow with every token, but the graph stays.
        flag_value(call, flags, vec![n, 1, queries, keys]).map(Some)
    }
}

/// For each of `n` tokens its position in its sample.
fn places_within(n: usize, lists: Vec<(usize, usize)>) -> Vec<usize> {
    // Tokens outside of all samples are masked by the lengths, so their position does not matter.
    let mut places = vec![0; n];
    for (start, length) in lists {
        let own = places.get_mut(start..start + length).unwrap_or_default();
        for (place, slot) in own.iter_mut().enumerate() {
            *slot = place;
        }
    }
    places
}

pub(super) fn is_mask(dtype: DType) -> bool {
    matches!(dtype, DType::Bool | DType::U8 | DType::I8)
}

/// A mask of scores: nonzero elements are excluded. With three axes the first is the batch; also
/// with two, if each sample has a single token.
pub(super) fn read_mask(
    call: &OperatorCall<'_>,
    mask: &TensorArgument,
    scores: &[usize],
    may_be_longer: bool,
) -> Composed<Value> {
    call.expect_dtype(mask, is_mask, "bool, uint8 or int8")?;
    let dims = match mask.dims() {
        &[batch, queries, keys] => vec![batch, 1, queries, keys],
        &[batch, keys] if may_be_longer && scores[2] == 1 => vec![batch, 1, 1, keys],
        &[queries, keys] => vec![1, 1, queries, keys],
        other => other.to_vec(),
    };
    let value = call.read(mask, DType::Bool)?;
    let value = value.reshaped(&dims);
    fitted(call, mask, value, dims, scores, may_be_longer)
}

/// A value that broadcasts to the scores; a longer one, if allowed, is cut.
pub(super) fn fitted(
    call: &OperatorCall<'_>,
    tensor: &TensorArgument,
    value: Value,
    mut dims: Vec<usize>,
    scores: &[usize],
    may_be_longer: bool,
) -> Composed<Value> {
    let mut value = value;
    if may_be_longer && dims.len() == 4 {
        for axis in [2, 3] {
            if dims[axis] > scores[axis] {
                let end = scores[axis].cast_signed() as i64;
                value = sliced(call, &value, axis, [0, end, 1]);
                dims[axis] = scores[axis];
            }
        }
    }
    expect_broadcast(call, tensor, &dims, scores)?;
    Ok(value)
}

pub(super) fn expect_broadcast(
    call: &OperatorCall<'_>,
    tensor: &TensorArgument,
    dims: &[usize],
    whole: &[usize],
) -> Composed {
    if dims.len() >= 2 && broadcast(dims, whole).is_some_and(|found| found == whole) {
        return Ok(());
    }
    let (name, found) = (call.name(tensor), tensor.dims());
    Err(Refusal::invalid(format!(
        "`{name}` has the shape {found:?}; expected one that broadcasts to {whole:?}"
    )))
}

fn flag_value(call: &OperatorCall<'_>, flags: Vec<u8>, dims: Vec<usize>) -> Composed<Value> {
    let shape = Shape::new(dims).ok();
    let tensor = shape.and_then(|shape| Tensor::from_vec(DType::Bool, shape, flags).ok());
    let tensor = tensor.ok_or_else(|| Refusal::invalid("the scores are too large"))?;
    Ok(call.tensor_value(tensor))
}

/// Offsets and lengths of consecutive samples, from a list of ends.
pub(super) fn lengths_of_ends(name: &str, ends: &[i64]) -> Composed<Vec<(usize, usize)>> {
    // Descending ends would yield negative lengths; equal ends are empty samples.
    let mut start = 0;
    let mut samples = Vec::with_capacity(ends.len());
    for &end in ends {
        let end = usize::try_from(end).ok().filter(|&end| end >= start);
        let end = end.ok_or_else(|| {
            Refusal::invalid(format!(
                "`{name}` is {ends:?}; expected where each sample ends, in ascending order"
            ))
        })?;
        samples.push((start, end - start));
        start = end;
    }
    Ok(samples)
}

/// The samples of two lists of ends, which must match the tensors' sizes.
pub(super) fn packed(
    call: &OperatorCall<'_>,
    names: [&str; 2],
    tokens: [usize; 2],
) -> Composed<Samples> {
    let mut sides = Vec::with_capacity(2);
    for (name, tokens) in names.into_iter().zip(tokens) {
        let ends = call.optional_ints(name)?.unwrap_or_default();
        refuse_if!(
            ends.is_empty()
                || ends
                    .iter()
                    .any(|&n| usize::try_from(n).is_ok_and(|n| n > tokens)),
            "`{name}` is {ends:?}; expected where samples end among {tokens} tokens"
        );
        sides.push(lengths_of_ends(name, ends)?);
    }
    let [queries, keys] = sides.as_slice() else {
        return Err(Refusal::invalid("there are no lengths"));
    };
    // Samples of both lists correspond by index.
    if queries.len() != keys.len() {
        let (a, b) = (queries.len(), keys.len());
        let text = format!("`{}` has {a} samples, `{}` {b}", names[0], names[1]);
        return Err(Refusal::invalid(text));
    }
    let pairs = queries.iter().zip(keys);
    let samples = pairs.map(|(&queries, &keys)| Sample { queries, keys });
    Ok(Samples::Packed(samples.collect()))
}
