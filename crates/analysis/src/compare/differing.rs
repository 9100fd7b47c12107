//! Where in a tensor the elements are that differ.

use serde::{Deserialize, Serialize};

/// The elements of a slot that differ by more than a tolerance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DifferingElements {
    /// The absolute difference beyond which an element counts. NaN and infinities count unless the
    /// other side has the same.
    pub tolerance: f64,
    /// Number of elements that differ.
    pub n: u64,
    /// The shape of the tensor, as compared.
    pub shape: Vec<u64>,
    /// For each axis, the first index with a differing element, and the index after the last one.
    pub ranges: Vec<[u64; 2]>,
}

impl DifferingElements {
    /// The number of elements of the tensor.
    pub fn n_elements(&self) -> u64 {
        self.shape.iter().fold(1, |n, &dim| n.saturating_mul(dim))
    }

    /// The region as Python would index it: `[37, :, 2:4]`. `None` if it is the whole tensor.
    pub fn region(&self) -> Option<String> {
        let axes = self.ranges.iter().zip(&self.shape);
        if axes.clone().all(|(&range, &dim)| range == [0, dim]) {
            return None;
        }
        let axes = axes.map(|(&[first, end], &dim)| match (first, end) {
            // An axis of 1 is a whole axis, whatever its only index is.
            (0, end) if end == dim => ":".to_owned(),
            (first, end) if end.checked_sub(1) == Some(first) => first.to_string(),
            (first, end) => format!("{first}:{end}"),
        });
        Some(format!("[{}]", axes.collect::<Vec<_>>().join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::DifferingElements;

    #[test]
    fn regions_are_indices_of_python() {
        let check = |shape: &[u64], ranges: &[[u64; 2]], expected: Option<&str>| {
            let differing = DifferingElements {
                shape: shape.to_vec(),
                ranges: ranges.to_vec(),
                ..DifferingElements::default()
            };
            assert_eq!(differing.region().as_deref(), expected, "{shape:?}");
        };
        check(&[], &[], None);
        check(&[4], &[[0, 4]], None);
        check(&[1, 4], &[[0, 1], [0, 4]], None);
        check(&[4], &[[3, 4]], Some("[3]"));
        check(&[1, 4], &[[0, 1], [1, 3]], Some("[:, 1:3]"));
        check(
            &[64, 3, 7, 7],
            &[[37, 38], [0, 3], [0, 7], [0, 7]],
            Some("[37, :, :, :]"),
        );
        // A saved result may hold anything.
        check(
            &[2],
            &[[u64::MAX - 1, u64::MAX]],
            Some("[18446744073709551614]"),
        );
        check(&[2, 3], &[[0, 2]], None);
    }
}
