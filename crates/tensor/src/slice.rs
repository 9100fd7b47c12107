//! A slice of a tensor as a picture: some axes go down, some to the right, the others have a fixed
//! index.
//!
//! Where there are more elements than pixels, a pixel shows the element of largest magnitude: NaN
//! before infinities, and these before numbers. A mean would hide the outliers that a picture is
//! meant to show.

/// The use of an axis in a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisRole {
    /// It goes down. Several are joined in their order.
    Row,
    /// It goes to the right. Several are joined in their order.
    Column,
    /// It has a fixed index.
    At(usize),
}

/// A slice, reduced to the requested pixels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlicePicture {
    /// Rows and columns of pixels.
    pub size: [usize; 2],
    /// Rows and columns of elements.
    pub full_size: [usize; 2],
    /// Smallest and largest finite pixel; `None` without finite ones.
    pub range: Option<(f64, f64)>,
    /// Pixels, row by row.
    pub pixels: Vec<f64>,
}

/// Why a slice has no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// There is not one role for each axis.
    #[error("expected a role for each of {n_axes} axes, found {n_roles}")]
    Roles {
        /// Axes of the tensor.
        n_axes: usize,
        /// Roles that were given.
        n_roles: usize,
    },
    /// An index is outside of its axis.
    #[error("index {index} is outside axis {axis} of size {extent}")]
    Index {
        /// The axis.
        axis: usize,
        /// The index that was given.
        index: usize,
        /// Its size.
        extent: usize,
    },
}

/// The axes of a slice with their strides, in elements.
#[derive(Clone, Debug)]
pub struct SliceAxes {
    rows: Vec<(usize, usize)>,
    columns: Vec<(usize, usize)>,
    start: usize,
    roles: Vec<AxisRole>,
}

impl SliceAxes {
    /// Lays out the axes of a tensor of dimensions `dims`, in row-major order, according to
    /// `roles`.
    ///
    /// # Errors
    /// [`SliceError`].
    pub fn new(dims: &[usize], roles: &[AxisRole]) -> Result<SliceAxes, SliceError> {
        if dims.len() != roles.len() {
            return Err(SliceError::Roles {
                n_axes: dims.len(),
                n_roles: roles.len(),
            });
        }
        let mut axes = SliceAxes {
            rows: Vec::new(),
            columns: Vec::new(),
            start: 0,
            roles: roles.to_vec(),
        };
        let mut stride = 1;
        for (axis, (&extent, &role)) in dims.iter().zip(roles).enumerate().rev() {
            match role {
                AxisRole::Row => axes.rows.push((extent, stride)),
                AxisRole::Column => axes.columns.push((extent, stride)),
                AxisRole::At(index) if index < extent => axes.start += index * stride,
                AxisRole::At(index) => {
                    return Err(SliceError::Index {
                        axis,
                        index,
                        extent,
                    });
                }
            }
            stride *= extent;
        }
        axes.rows.reverse();
        axes.columns.reverse();
        Ok(axes)
    }

    /// Rows and columns of elements.
    pub fn full_size(&self) -> [usize; 2] {
        [&self.rows, &self.columns].map(|axes| axes.iter().map(|(extent, _)| extent).product())
    }

    /// The position in memory order of the element at a row and a column.
    pub fn position(&self, row: usize, column: usize) -> usize {
        self.start + offset(&self.rows, row) + offset(&self.columns, column)
    }

    /// The index of that element, one number for each axis.
    pub fn index(&self, row: usize, column: usize) -> Vec<usize> {
        let mut rows = indices(&self.rows, row).into_iter();
        let mut columns = indices(&self.columns, column).into_iter();
        let index = self.roles.iter().map(|role| match role {
            AxisRole::Row => rows.next().unwrap_or(0),
            AxisRole::Column => columns.next().unwrap_or(0),
            AxisRole::At(index) => *index,
        });
        index.collect()
    }

    /// Draws the slice with at most `most` rows and columns of pixels. `read` returns the element
    /// at a position in memory order.
    pub fn draw(&self, most: [usize; 2], read: impl Fn(usize) -> f64) -> SlicePicture {
        let full_size = self.full_size();
        let size = [0, 1].map(|i| full_size[i].min(most[i].max(1)));
        let mut picture = SlicePicture {
            size,
            full_size,
            range: None,
            // Less than anything that is drawn over it.
            pixels: vec![0.0; size[0] * size[1]],
        };
        if full_size.contains(&0) {
            return picture;
        }
        // Where each pixel begins among the elements.
        let [rows, columns] = [0, 1].map(|i| {
            let pixels = 0..=size[i];
            pixels
                .map(|at| at * full_size[i] / size[i])
                .collect::<Vec<usize>>()
        });
        for (y, line) in picture.pixels.chunks_mut(size[1]).enumerate() {
            for row in rows[y]..rows[y + 1] {
                let start = self.start + offset(&self.rows, row);
                for (x, pixel) in line.iter_mut().enumerate() {
                    for column in columns[x]..columns[x + 1] {
                        let value = read(start + offset(&self.columns, column));
                        if is_more(value, *pixel) {
                            *pixel = value;
                        }
                    }
                }
            }
        }
        let finite = picture.pixels.iter().copied().filter(|x| x.is_finite());
        picture.range = finite.fold(None, |range, x| match range {
            None => Some((x, x)),
            Some((low, high)) => Some((x.min(low), x.max(high))),
        });
        picture
    }
}

/// Whether a pixel shows `value` and not `other`.
fn is_more(value: f64, other: f64) -> bool {
    !other.is_nan() && (value.is_nan() || value.abs() > other.abs())
}

/// Where the `at`-th element of some axes is, counted from the first.
fn offset(axes: &[(usize, usize)], mut at: usize) -> usize {
    if let [(_, stride)] = axes {
        return at * stride;
    }
    let mut offset = 0;
    for (extent, stride) in axes.iter().rev() {
        offset += at % extent * stride;
        at /= extent;
    }
    offset
}

fn indices(axes: &[(usize, usize)], mut at: usize) -> Vec<usize> {
    let mut indices: Vec<usize> = axes
        .iter()
        .rev()
        .map(|(extent, _)| {
            let index = at.checked_rem(*extent).unwrap_or(0);
            at = at.checked_div(*extent).unwrap_or(0);
            index
        })
        .collect();
    indices.reverse();
    indices
}

#[cfg(test)]
mod tests {
    use super::AxisRole::{At, Column, Row};
    use super::{SliceAxes, SliceError};

    #[test]
    fn pictures_show_the_elements_of_the_slice() {
        // The element at a position is its position.
        let check = |dims: &[usize], roles: &[_], most, size, expected: &[f64]| {
            let axes = SliceAxes::new(dims, roles).unwrap();
            let picture = axes.draw(most, |position| position as f64);
            assert_eq!(
                (picture.size, &picture.pixels[..]),
                (size, expected),
                "{roles:?}"
            );
        };
        let all = [usize::MAX; 2];
        check(
            &[2, 3],
            &[Row, Column],
            all,
            [2, 3],
            &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
        );
        check(
            &[2, 3],
            &[Column, Row],
            all,
            [3, 2],
            &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0],
        );
        check(
            &[2, 2, 2],
            &[At(1), Row, Column],
            all,
            [2, 2],
            &[4.0, 5.0, 6.0, 7.0],
        );
        check(
            &[2, 2, 2],
            &[Column, At(0), Column],
            all,
            [1, 4],
            &[0.0, 1.0, 4.0, 5.0],
        );
        check(&[3], &[Column], all, [1, 3], &[0.0, 1.0, 2.0]);
        check(&[], &[], all, [1, 1], &[0.0]);
        // Two columns of elements in each pixel, of which the larger one shows.
        check(&[1, 4], &[Row, Column], [1, 2], [1, 2], &[1.0, 3.0]);
        check(&[4, 1], &[Row, Column], [2, 1], [2, 1], &[1.0, 3.0]);
        check(&[0, 4], &[Row, Column], all, [0, 4], &[]);
    }

    #[test]
    fn a_pixel_shows_the_worst_of_its_elements() {
        let check = |values: &[f64], expected: f64| {
            let axes = SliceAxes::new(&[values.len()], &[Column]).unwrap();
            let picture = axes.draw([1, 1], |position| values[position]);
            let same = picture.pixels[0].to_bits() == expected.to_bits();
            assert!(same, "{values:?}: {:?}", picture.pixels);
        };
        check(&[1.0, -3.0, 2.0], -3.0);
        check(&[0.0, f64::NEG_INFINITY, 5.0], f64::NEG_INFINITY);
        check(&[f64::INFINITY, f64::NAN, 5.0], f64::NAN);
    }

    #[test]
    fn indices_lead_back_to_positions() {
        let dims = [2, 3, 4, 5];
        let roles = [Column, At(2), Row, Column];
        let axes = SliceAxes::new(&dims, &roles).unwrap();
        let [n_rows, n_columns] = axes.full_size();
        for (row, column) in (0..n_rows).flat_map(|r| (0..n_columns).map(move |c| (r, c))) {
            let index = axes.index(row, column);
            let place = index.iter().zip(dims).fold(0, |at, (i, dim)| at * dim + i);
            assert_eq!(place, axes.position(row, column), "{index:?}");
        }
    }

    #[test]
    fn wrong_axes_are_refused() {
        let roles = SliceAxes::new(&[2, 3], &[Row]).unwrap_err();
        let expected = SliceError::Roles {
            n_axes: 2,
            n_roles: 1,
        };
        assert_eq!(roles, expected);
        let index = SliceAxes::new(&[2, 3], &[Row, At(3)]).unwrap_err();
        let expected = SliceError::Index {
            axis: 1,
            index: 3,
            extent: 3,
        };
        assert_eq!(index, expected);
    }
}
