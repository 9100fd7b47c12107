//! Windows along the axes of a pool, and the elements that they have.

/// Where windows lie along an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    pub(super) extent: usize,
    pub(super) kernel: usize,
    pub(super) stride: usize,
    /// At the beginning; at the end there is as much as the windows need.
    pub(super) before: usize,
    pub(super) after: usize,
    pub(super) dilation: usize,
    pub(super) n: usize,
}

impl Windows {
    /// How many fit, the last one only if it begins before the padding behind.
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
        // Rounding up may leave a last window with padding alone, which would have no maximum.
        if is_rounded_up && (self.n - 1).checked_mul(self.stride)? >= front {
            self.n -= 1;
        }
        (self.n > 0).then_some(())
    }

    /// How many elements of a window count: those of the axis, or those of its padding as well.
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

    /// Where an element of the padded axis is without the padding. Those in front count as the
    /// first one of their window, which is the place of a maximum if all are -inf.
    fn place(&self, at: usize) -> usize {
        // Steps of the dilation, as the elements of a window are that far apart.
        let missing = self.before.saturating_sub(at).div_ceil(self.dilation) * self.dilation;
        (at + missing)
            .saturating_sub(self.before)
            .min(self.extent - 1)
    }

    /// The elements of each window. Those in the padding are none.
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

/// The elements of the windows along an axis, as many for each window.
pub(super) struct Members {
    pub(super) extent: usize,
    pub(super) n: usize,
    /// How many each window has; shorter ones are filled up.
    pub(super) longest: usize,
    /// For each window where its elements are.
    pub(super) places: Vec<usize>,
    /// Whether these are elements of the window, or fill it up.
    pub(super) are_members: Vec<bool>,
}

impl Members {
    /// As many windows as asked for, which cover an axis and may overlap.
    pub(super) fn shares(extent: usize, n: usize) -> Members {
        let bounds = |window: usize| (window * extent / n, ((window + 1) * extent).div_ceil(n));
        let bounds: Vec<(usize, usize)> = (0..n).map(bounds).collect();
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

/// Numbers of some axes, combined: all pairs, with the first axis outermost.
pub(super) fn combined<T: Copy>(
    axes: &[&[T]],
    shares: &[Members],
    first: T,
    combine: impl Fn(T, T, usize) -> T,
) -> Vec<T> {
    // Pairs of axes are combined one after the other, so that any number of axes goes.
    // By windows first, then by members, as the values are.
    let mut lists: Vec<Vec<T>> = vec![vec![first]];
    for (numbers, share) in axes.iter().zip(shares) {
        let windows = numbers.chunks(share.longest.max(1));
        let windows: Vec<&[T]> = windows.collect();
        let mut next = Vec::with_capacity(lists.len() * windows.len());
        for list in &lists {
            for window in &windows {
                let pairs = list
                    .iter()
                    .flat_map(|&one| window.iter().map(move |&n| (one, n)));
                next.push(
                    pairs
                        .map(|(one, n)| combine(one, n, share.extent))
                        .collect(),
                );
            }
        }
        lists = next;
    }
    lists.concat()
}
