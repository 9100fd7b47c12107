//! The windows along the axes of a pool, and their elements.

/// The windows along an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    pub(super) extent: usize,
    pub(super) kernel: usize,
    pub(super) stride: usize,
    /// Padding at the beginning; the end is padded as far as the windows reach.
    pub(super) before: usize,
    pub(super) after: usize,
    pub(super) dilation: usize,
    pub(super) n: usize,
}

impl Windows {
    /// Computes the number of windows; the last one must begin before the padding at the end.
    pub(super) fn count(&mut self, is_rounded_up: bool) -> Option<()> {
        let reach = self
            .dilation
            .checked_mul(self.kernel.checked_sub(1)?)?
            .checked_add(1)?;
        let front = self.extent.checked_add(self.before)?;
        let more = if is_rounded_up { self.stride - 1 } else { 0 };
        let room = front
            .checked_add(self.after)?
            .checked_add(more)?
            .checked_sub(reach)?;
        self.n = room / self.stride + 1;
        // Rounding up may create a last window of padding alone, which has no maximum.
        if is_rounded_up && (self.n - 1).checked_mul(self.stride)? >= front {
            self.n -= 1;
        }
        (self.n > 0).then_some(())
    }

    /// Number of elements of a window, with or without those in the padding.
    pub(super) fn members(&self, window: usize, with_padding: bool) -> usize {
        let first = window * self.stride;
        let last = first + self.kernel;
        let (low, high) = if with_padding {
            (0, self.extent + self.before + self.after)
        } else {
            (self.before, self.extent + self.before)
        };
        last.min(high).saturating_sub(first.max(low))
    }

    /// The index in the unpadded axis of an element of the padded one. Elements of the leading
    /// padding map to the first element of their window, the index of a maximum if all are -inf.
    fn place(&self, at: usize) -> usize {
        // In multiples of the dilation, the distance of a window's elements.
        let missing = self.before.saturating_sub(at).div_ceil(self.dilation) * self.dilation;
        (at + missing)
            .saturating_sub(self.before)
            .min(self.extent - 1)
    }

    /// The elements of each window, without padding.
    pub(super) fn axis_members(&self) -> Members {
        let windows = (0..self.n).map(|window| window * self.stride);
        let places =
            windows.flat_map(|first| (0..self.kernel).map(move |tap| first + tap * self.dilation));
        let places: Vec<usize> = places.collect();
        let last = self.before + self.extent;
        Members {
            extent: self.extent,
            n: self.n,
            longest: self.kernel,
            are_members: places
                .iter()
                .map(|at| (self.before..last).contains(at))
                .collect(),
            places: places.iter().map(|&at| self.place(at)).collect(),
        }
    }
}

/// The elements of the windows along an axis, the same number for each window.
pub(super) struct Members {
    pub(super) extent: usize,
    pub(super) n: usize,
    /// Number of elements per window; shorter windows are filled up.
    pub(super) longest: usize,
    /// The indices of each window's elements.
    pub(super) places: Vec<usize>,
    /// Whether each is an element of the window rather than filling.
    pub(super) are_members: Vec<bool>,
}

impl Members {
    /// `n` windows that cover an axis and may overlap.
    pub(super) fn shares(extent: usize, n: usize) -> Members {
        let bounds =
            (0..n).map(|window| (window * extent / n, ((window + 1) * extent).div_ceil(n)));
        let bounds: Vec<(usize, usize)> = bounds.collect();
        let longest = bounds
            .iter()
            .map(|(first, end)| end - first)
            .max()
            .unwrap_or(0);
        let each = bounds
            .iter()
            .flat_map(|&(first, end)| (first..first + longest).map(move |at| (at, end)));
        Members {
            extent,
            n,
            longest,
            places: each.clone().map(|(at, end)| at.min(end - 1)).collect(),
            are_members: each.map(|(at, end)| at < end).collect(),
        }
    }
}

/// Numbers of some axes, combined over all pairs, with the first axis outermost.
pub(super) fn combined<T: Copy>(
    axes: &[&[T]],
    shares: &[Members],
    first: T,
    combine: impl Fn(T, T, usize) -> T,
) -> Vec<T> {
    // Axes are combined pairwise, for any number of axes: by windows first, then by members, like
    // the values.
    let mut lists: Vec<Vec<T>> = vec![vec![first]];
    for (numbers, share) in axes.iter().zip(shares) {
        let windows = numbers.chunks(share.longest.max(1));
        let windows: Vec<&[T]> = windows.collect();
        let mut next = Vec::with_capacity(lists.len() * windows.len());
        for list in &lists {
            for window in &windows {
                let pairs = list
                    .iter()
                    .flat_map(|&value| window.iter().map(move |&n| (value, n)));
                next.push(
                    pairs
                        .map(|(value, n)| combine(value, n, share.extent))
                        .collect(),
                );
            }
        }
        lists = next;
    }
    lists.concat()
}
