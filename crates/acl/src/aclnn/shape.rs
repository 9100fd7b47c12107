//! Shapes: broadcasting, and axes that count from the end.

/// The broadcast of two shapes; `None` if they are incompatible.
pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    // Missing axes have size 1.
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut dims = long.to_vec();
    let tail = long.len() - short.len();
    for (extent, &other) in dims[tail..].iter_mut().zip(short) {
        *extent = match (*extent, other) {
            (a, b) if a == b => a,
            (1, b) => b,
            (a, 1) => a,
            _ => return None,
        };
    }
    Some(dims)
}

/// Resolves the number of an axis; negative ones count from the end. A tensor without axes accepts
/// one.
pub(crate) fn axis(number: i64, n_axes: usize) -> Option<usize> {
    // PyTorch accepts 0 and -1 for a tensor without axes.
    let n = i64::try_from(n_axes.max(1)).ok()?;
    let axis = if number < 0 { number + n } else { number };
    (0..n).contains(&axis).then(|| usize::try_from(axis).ok())?
}

/// Axes in ascending order; `None` if one is out of range or repeated.
pub(crate) fn axes(numbers: &[i64], n_axes: usize) -> Option<Vec<usize>> {
    let axes: Option<Vec<usize>> = numbers.iter().map(|&number| axis(number, n_axes)).collect();
    let mut axes = axes?;
    // Sorted, so that their order in the program does not create another graph.
    axes.sort_unstable();
    let is_unique = axes.windows(2).all(|pair| pair[0] != pair[1]);
    is_unique.then_some(axes)
}

/// The shape without these axes, or with size 1 in their places.
pub(crate) fn reduced(dims: &[usize], axes: &[usize], keeps_axes: bool) -> Vec<usize> {
    let mut reduced = Vec::with_capacity(dims.len());
    for (axis, &n) in dims.iter().enumerate() {
        match (axes.contains(&axis), keeps_axes) {
            (false, _) => reduced.push(n),
            (true, true) => reduced.push(1),
            (true, false) => {}
        }
    }
    reduced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_broadcast_from_the_end() {
        assert_eq!(broadcast(&[2, 1, 4], &[3, 1]), Some(vec![2, 3, 4]));
        assert_eq!(broadcast(&[], &[0, 5]), Some(vec![0, 5]));
        assert_eq!(broadcast(&[0, 1], &[1, 7]), Some(vec![0, 7]));
        assert_eq!(broadcast(&[2], &[3]), None);
        assert_eq!(broadcast(&[0], &[3]), None);
    }

    #[test]
    fn axes_count_from_both_ends() {
        assert_eq!(
            (axis(-1, 3), axis(3, 3), axis(-4, 3)),
            (Some(2), None, None)
        );
        assert_eq!(
            (axis(0, 0), axis(-1, 0), axis(1, 0)),
            (Some(0), Some(0), None)
        );
        assert_eq!(axes(&[2, -3], 3), Some(vec![0, 2]));
        assert_eq!(axes(&[0, -3], 3), None);
        assert_eq!(reduced(&[2, 3, 4], &[1], true), [2, 1, 4]);
        assert_eq!(reduced(&[2, 3, 4], &[0, 2], false), [3]);
    }
}
