//! The longest common part of two sequences.
//!
//! Myers' search for the middle of a shortest edit script, from both ends at once, in linear space.
//! Sequences that have little in common would take quadratic time; after [`COST_MAX`] steps the
//! search takes the way that has come farthest instead, so that the result is a common part, though
//! maybe not the longest.

/// Steps of a search after which it takes what it has.
const COST_MAX: isize = 256;

/// Positions of elements that both have, rising in both.
pub(super) fn common(a: &[u32], b: &[u32]) -> Vec<[usize; 2]> {
    let mut found = Vec::new();
    let mut open = vec![[0, a.len(), 0, b.len()]];
    let size = a.len() + b.len() + 3;
    let mut search = AlignmentSearch {
        a,
        b,
        forward: vec![0; size],
        backward: vec![0; size],
        offset: b.len() as isize + 1,
    };
    // A list of open boxes rather than recursion, whose depth would depend on the dumps.
    while let Some([mut a_start, mut a_end, mut b_start, mut b_end]) = open.pop() {
        // `middle` relies on boxes whose first and last elements differ, so common ends are taken
        // off.
        while a_start < a_end && b_start < b_end && a[a_start] == b[b_start] {
            found.push([a_start, b_start]);
            a_start += 1;
            b_start += 1;
        }
        while a_start < a_end && b_start < b_end && a[a_end - 1] == b[b_end - 1] {
            a_end -= 1;
            b_end -= 1;
            found.push([a_end, b_end]);
        }
        if a_start == a_end || b_start == b_end {
            continue;
        }
        let [x, y] = search.middle([a_start, a_end, b_start, b_end]);
        open.push([x, a_end, y, b_end]);
        open.push([a_start, x, b_start, y]);
    }
    found.sort_unstable();
    found
}

struct AlignmentSearch<'a> {
    a: &'a [u32],
    b: &'a [u32],
    /// How far each diagonal has come from the start, and from the end.
    forward: Vec<isize>,
    backward: Vec<isize>,
    offset: isize,
}

impl AlignmentSearch<'_> {
    fn at(&self, diagonal: isize) -> usize {
        // Diagonals lie between -len(b) - 1 and len(a) + 1.
        (diagonal + self.offset) as usize
    }

    /// A point on a shortest way through a box whose first and last elements differ; never a corner
    /// of it where it would be left as it is.
    fn middle(&mut self, [a_start, a_end, b_start, b_end]: [usize; 4]) -> [usize; 2] {
        let [x0, x1, y0, y1] = [a_start, a_end, b_start, b_end].map(|n| n as isize);
        let (low, high) = (x0 - y1, x1 - y0);
        let (start, end) = (x0 - y0, x1 - y1);
        // Both searches meet in a step from the start if the difference is odd, and in one from the
        // end if it is even, so each looks out for the other in one case only.
        let is_odd = (start - end) & 1 != 0;
        let [mut f_low, mut f_high, mut b_low, mut b_high] = [start, start, end, end];
        let (at_start, at_end) = (self.at(start), self.at(end));
        self.forward[at_start] = x0;
        self.backward[at_end] = x1;
        for cost in 1.. {
            (f_low, f_high) = self.widen([f_low, f_high], [low, high], true);
            let mut d = f_high;
            while d >= f_low {
                let x = self.advance(d, [x1, y1]);
                if is_odd && (b_low..=b_high).contains(&d) && self.backward[self.at(d)] <= x {
                    return [x as usize, (x - d) as usize];
                }
                d -= 2;
            }
            (b_low, b_high) = self.widen([b_low, b_high], [low, high], false);
            let mut d = b_high;
            while d >= b_low {
                let x = self.retreat(d, [x0, y0]);
                if !is_odd && (f_low..=f_high).contains(&d) && x <= self.forward[self.at(d)] {
                    return [x as usize, (x - d) as usize];
                }
                d -= 2;
            }
            if cost >= COST_MAX {
                return self.farthest([f_low, f_high], [x0, x1, y0, y1]);
            }
        }
        // The loop ends at `COST_MAX` at the latest, which the compiler does not see.
        [a_start, b_start]
    }

    /// One more diagonal on each side, as far as the box has any; the borders are filled so that
    /// they are never chosen.
    fn widen(
        &mut self,
        [low, high]: [isize; 2],
        [least, most]: [isize; 2],
        is_forward: bool,
    ) -> (isize, isize) {
        let border = if is_forward { -1 } else { isize::MAX };
        let mut put = |diagonal: isize| {
            let at = (diagonal + self.offset) as usize;
            let values = if is_forward {
                &mut self.forward
            } else {
                &mut self.backward
            };
            if let Some(value) = values.get_mut(at) {
                *value = border;
            }
        };
        let low = if low > least {
            put(low - 2);
            low - 1
        } else {
            low + 1
        };
        let high = if high < most {
            put(high + 2);
            high + 1
        } else {
            high - 1
        };
        (low, high)
    }

    fn advance(&mut self, d: isize, [x1, y1]: [isize; 2]) -> isize {
        let (below, above) = (self.forward[self.at(d - 1)], self.forward[self.at(d + 1)]);
        let mut x = if below < above { above } else { below + 1 };
        while x < x1 && x - d < y1 && self.a[x as usize] == self.b[(x - d) as usize] {
            x += 1;
        }
        let at = self.at(d);
        self.forward[at] = x;
        x
    }

    fn retreat(&mut self, d: isize, [x0, y0]: [isize; 2]) -> isize {
        let (below, above) = (self.backward[self.at(d - 1)], self.backward[self.at(d + 1)]);
        let mut x = if below < above { below } else { above - 1 };
        while x > x0 && x - d > y0 && self.a[x as usize - 1] == self.b[(x - d) as usize - 1] {
            x -= 1;
        }
        let at = self.at(d);
        self.backward[at] = x;
        x
    }

    /// The point that the search from the start has come to farthest.
    fn farthest(&self, [low, high]: [isize; 2], [x0, x1, y0, y1]: [isize; 4]) -> [usize; 2] {
        let mut best = [x0, y0];
        let mut d = low;
        while d <= high {
            // A step may have gone over the border of the box by one.
            let x = self.forward[self.at(d)].min(x1).min(y1 + d);
            // With `y` as `x - d`, `2 * x - d` is how much of both sequences is done.
            if x >= x0 && x - d >= y0 && 2 * x - d > best[0] + best[1] {
                best = [x, x - d];
            }
            d += 2;
        }
        best.map(|n| n as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The length of the longest common part, by the table that every book has.
    fn longest(a: &[u32], b: &[u32]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut diagonal = 0;
            for (j, y) in b.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y {
                    diagonal + 1
                } else {
                    above.max(row[j])
                };
                diagonal = above;
            }
        }
        row[b.len()]
    }

    proptest! {
        #[test]
        fn it_is_the_longest(a in prop::collection::vec(0_u32..4, 0..40), b in prop::collection::vec(0_u32..4, 0..40)) {
            let found = common(&a, &b);
            prop_assert!(found.iter().all(|&[i, j]| a[i] == b[j]));
            prop_assert!(found.windows(2).all(|w| w[0][0] < w[1][0] && w[0][1] < w[1][1]));
            prop_assert_eq!(found.len(), longest(&a, &b));
        }
    }

    #[test]
    fn what_has_nothing_in_common_ends() {
        let a: Vec<u32> = (0..50_000).collect();
        let b: Vec<u32> = (50_000..100_000).collect();
        assert!(common(&a, &b).is_empty());
        // Every other element is the other's.
        let odd: Vec<u32> = (0..50_000)
            .map(|n| if n % 2 == 0 { n } else { n + 100_000 })
            .collect();
        let found = common(&a, &odd);
        assert!(found.iter().all(|&[i, j]| a[i] == odd[j]));
        assert!(found.len() > 20_000, "{}", found.len());
    }
}
