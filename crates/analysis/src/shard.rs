//! Divides work between several processes.

use std::str::FromStr;

use thiserror::Error;

/// One of several processes that share work, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    nth: usize,
    n: usize,
}

/// Why a text is not a shard.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ShardError {
    /// The text is malformed.
    #[error("expected I/N, such as 0/4")]
    Form,
    /// The index is out of range.
    #[error("{0} is not below {1}: shards are counted from 0")]
    TooLarge(usize, usize),
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Shard, ShardError> {
        let (nth, n) = text.split_once('/').ok_or(ShardError::Form)?;
        let [nth, n] = [nth, n].map(|number| number.parse().map_err(|_| ShardError::Form));
        let (nth, n) = (nth?, n?);
        if nth >= n {
            return Err(ShardError::TooLarge(nth, n));
        }
        Ok(Shard { nth, n })
    }
}

impl Shard {
    /// The indices of this process's items, in order. Items are assigned largest first, to the
    /// process with the least work; every process computes the same division.
    pub fn share(self, sizes: &[u64]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&i| (std::cmp::Reverse(sizes[i]), i));
        // Surplus processes get no items and cost no memory.
        let n = self.n.min(sizes.len().max(1));
        let mut loads = vec![(0_u64, 0_usize); n];
        let mut own = Vec::new();
        for i in order {
            // On a tie, the process with fewer items: sizes may be unknown and 0.
            let least = (0..n).min_by_key(|&nth| loads[nth]).unwrap_or(0);
            loads[least].0 = loads[least].0.saturating_add(sizes[i]);
            loads[least].1 += 1;
            if least == self.nth {
                own.push(i);
            }
        }
        own.sort_unstable();
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_one_process() {
        let sizes = [5, 0, 9, 9, 1, 3, 0, 0, 7];
        for n in 1..12 {
            let shares: Vec<Vec<usize>> =
                (0..n).map(|nth| Shard { nth, n }.share(&sizes)).collect();
            let mut all: Vec<usize> = shares.concat();
            all.sort_unstable();
            assert_eq!(all, (0..sizes.len()).collect::<Vec<_>>(), "{n}");
            let loads = shares
                .iter()
                .map(|own| own.iter().map(|&i| sizes[i]).sum::<u64>());
            let even = 34_u64.div_ceil(n as u64);
            assert!(loads.max().unwrap() <= even + 9, "{n}");
        }
    }

    #[test]
    fn texts_are_checked() {
        assert_eq!("3/4".parse(), Ok(Shard { nth: 3, n: 4 }));
        assert_eq!("4/4".parse::<Shard>(), Err(ShardError::TooLarge(4, 4)));
        for text in ["", "1", "1/", "/2", "a/2", "-1/2", "0/0x"] {
            assert_eq!(text.parse::<Shard>(), Err(ShardError::Form), "{text}");
        }
    }
}
