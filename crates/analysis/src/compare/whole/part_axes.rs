//! The axes of a tensor on one of its parts.

use std::ops::Range;

use super::cut::{AxisOrder, HeldRanges, Segment, joined, length, segments};

/// Which tokens of a batch there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenMap {
    /// Of each sequence of a padded batch the positions that hold tokens.
    Padded(Vec<Vec<Range<u64>>>),
    /// The lengths of concatenated sequences.
    Packed(Vec<u64>),
}

/// The axes of the whole on a part.
pub(super) struct PartAxes {
    pub(super) names: Vec<String>,
    pub(super) extents: Vec<u64>,
    pub(super) segments: Vec<Vec<Segment>>,
    strides: Vec<u64>,
}

impl PartAxes {
    pub(super) fn new(
        local: &[u64],
        held: &[HeldRanges],
        orders: &[Option<AxisOrder>],
        extents: &[u64],
    ) -> Result<PartAxes, String> {
        let mut strides = vec![1_u64; held.len()];
        for axis in (1..held.len()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(local[axis]);
        }
        let mut axes = PartAxes {
            names: Vec::new(),
            extents: Vec::new(),
            segments: Vec::new(),
            strides,
        };
        for (axis, held) in held.iter().enumerate() {
            let order = orders[axis].as_ref();
            let found = segments(held, order, axes.strides[axis]);
            axes.segments
                .push(found.ok_or("it is cut into too many pieces")?);
            axes.extents
                .push(order.map_or(extents[axis], |order| order.extent));
        }
        Ok(axes)
    }

    /// The axes of sequences and positions as one of tokens.
    pub(super) fn with_tokens(
        mut self,
        names: &[String],
        held: &[HeldRanges],
        tokens: Option<&TokenMap>,
    ) -> Result<PartAxes, String> {
        self.names = names.to_vec();
        let Some(TokenMap::Padded(kept)) = tokens else {
            return Ok(self);
        };
        let places = ["b", "s"].map(|wanted| names.iter().position(|name| name == wanted));
        let [Some(b), Some(s)] = places else {
            return Err("the mapping names no axes `b` and `s` of it".to_owned());
        };
        let mut found = Vec::new();
        let mut before = 0;
        let mut firsts = Vec::with_capacity(kept.len());
        for (sequence, ranges) in kept.iter().enumerate() {
            // Lengths and masks come from a file, and may be longer than the axis.
            if let Some(range) = ranges.iter().find(|range| range.end > self.extents[s]) {
                return Err(format!(
                    "sequence {sequence} has a token at {}, and the axis has {} places",
                    range.end - 1,
                    self.extents[s]
                ));
            }
            firsts.push(before);
            before += length(ranges);
        }
        // A length too few would leave a sequence out without a word.
        if self.extents[b] != kept.len() as u64 {
            return Err(format!(
                "it has {} sequences, and the mapping tells of {}",
                self.extents[b],
                kept.len()
            ));
        }
        for (local_b, sequence) in held[b].iter().cloned().flatten().enumerate() {
            let base = local_b as u64 * self.strides[b];
            let mut token = firsts[sequence as usize];
            for range in &kept[sequence as usize] {
                found.extend(self.tokens_of(s, &held[s], range, (token, base)));
                token += range.end - range.start;
            }
        }
        found.sort_by_key(|segment: &Segment| segment.first);
        // Tokens take the place of whichever of both axes comes first.
        let (first, second) = (b.min(s), b.max(s));
        self.segments[first] = joined(found);
        self.extents[first] = before;
        self.names[first] = "t".to_owned();
        self.segments.remove(second);
        self.extents.remove(second);
        self.names.remove(second);
        Ok(self)
    }

    /// The tokens of a range of positions that a part holds, which begin at `token` among all.
    fn tokens_of(
        &self,
        s: usize,
        held: &[Range<u64>],
        range: &Range<u64>,
        (token, base): (u64, u64),
    ) -> Vec<Segment> {
        let mut local = 0;
        let mut found = Vec::new();
        for own in held {
            let (begin, end) = (own.start.max(range.start), own.end.min(range.end));
            if begin < end {
                found.push(Segment {
                    first: token + (begin - range.start),
                    n: end - begin,
                    offset: base + (local + (begin - own.start)) * self.strides[s],
                    stride: self.strides[s],
                });
            }
            local += own.end - own.start;
        }
        found
    }

    /// The axes in another order.
    pub(super) fn turned(mut self, names: Option<&[String]>) -> Result<PartAxes, String> {
        let Some(wanted) = names else {
            return Ok(self);
        };
        if wanted.len() != self.names.len() {
            return Err(format!(
                "it has the axes `{}`, and is to be compared as `{}`",
                self.names.join(" "),
                wanted.join(" ")
            ));
        }
        // Axes of 1 may have one name.
        let mut is_taken = vec![false; wanted.len()];
        let mut order = Vec::with_capacity(wanted.len());
        for name in wanted {
            let mut open = (0..is_taken.len()).filter(|&at| !is_taken[at]);
            let at = open.find(|&at| self.names[at] == *name);
            let at = at.ok_or_else(|| format!("it has no axis `{name}`"))?;
            is_taken[at] = true;
            order.push(at);
        }
        self.segments = order.iter().map(|&at| self.segments[at].clone()).collect();
        self.extents = order.iter().map(|&at| self.extents[at]).collect();
        self.names = wanted.to_vec();
        Ok(self)
    }
}
