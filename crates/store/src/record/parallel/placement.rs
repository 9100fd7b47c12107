//! Parts of distributed tensors.

use std::fmt;
use std::str::FromStr;

use super::{N_ENTRIES_MAX, ParallelTextError, Reduction, call, number};

/// How the ranks along an axis of the mesh share a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AxisPlacement {
    /// Each has the same.
    Replicated,
    /// Each has a part of one axis of the tensor.
    Sharded {
        /// The axis of the tensor.
        axis: u32,
        /// Into how many parts later axes of the mesh have cut that axis before: PyTorch's
        /// `_StridedShard`. 1 where the axes of the mesh cut in their own order.
        split_factor: u32,
    },
    /// Each has a contribution of the same shape.
    Partial(Reduction),
}

impl AxisPlacement {
    /// A part of an axis of the tensor, cut in the order of the mesh.
    pub fn sharded(axis: u32) -> AxisPlacement {
        AxisPlacement::Sharded {
            axis,
            split_factor: 1,
        }
    }

    fn parse(text: &str) -> Option<AxisPlacement> {
        match call(text)? {
            ("R", arguments) if arguments.is_empty() => Some(AxisPlacement::Replicated),
            ("S", arguments) => match arguments[..] {
                [axis] => Some(AxisPlacement::sharded(number(axis)?)),
                // A factor of 1 has the shorter text alone.
                [axis, factor] => Some(AxisPlacement::Sharded {
                    axis: number(axis)?,
                    split_factor: number(factor).filter(|factor| *factor > 1)?,
                }),
                _ => None,
            },
            ("P", arguments) => match arguments[..] {
                [reduction] => Reduction::from_name(reduction).map(AxisPlacement::Partial),
                _ => None,
            },
            _ => None,
        }
    }
}

impl fmt::Display for AxisPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AxisPlacement::Replicated => f.write_str("R"),
            AxisPlacement::Sharded {
                axis,
                split_factor: 1,
            } => write!(f, "S({axis})"),
            AxisPlacement::Sharded { axis, split_factor } => write!(f, "S({axis},{split_factor})"),
            AxisPlacement::Partial(reduction) => write!(f, "P({})", reduction.name()),
        }
    }
}

/// An axis of the mesh of ranks, and the place of one rank on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MeshAxis {
    /// Its name, such as `tp`.
    pub name: String,
    /// Where the rank is, counted from 0.
    pub coordinate: u32,
    /// Number of ranks along it.
    pub size: u32,
    /// How they share the tensor.
    pub placement: AxisPlacement,
}

/// Which part of a distributed tensor a rank holds.
///
/// As text: `dp=1/2:R,tp=0/4:S(0) of [4096,1024]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// The axes of the mesh, those that vary slowest first. Their order is that in which they cut
    /// the tensor, unless a [`split_factor`](AxisPlacement::Sharded::split_factor) says otherwise.
    pub axes: Vec<MeshAxis>,
    /// Dimensions of the whole tensor.
    pub shape: Vec<u64>,
}

impl Placement {
    fn parse(text: &str) -> Option<Placement> {
        let (axes, shape) = text.split_once(" of ")?;
        let shape = shape.strip_prefix('[')?.strip_suffix(']')?;
        let extents = shape.split(',').filter(|_| !shape.is_empty());
        let placement = Placement {
            axes: split_axes(axes).map(axis).collect::<Option<_>>()?,
            shape: extents.map(number).collect::<Option<_>>()?,
        };
        // Texts of damaged tables must not make lists of any length.
        let n_entries = placement.axes.len().max(placement.shape.len());
        let n_dims = placement.shape.len();
        // An axis that the tensor lacks cannot be cut.
        let has_axes = placement.axes.iter().all(|axis| match axis.placement {
            AxisPlacement::Sharded { axis, .. } => (axis as usize) < n_dims,
            _ => true,
        });
        (n_entries <= N_ENTRIES_MAX && has_axes).then_some(placement)
    }
}

/// The texts of the axes: commas inside parentheses are theirs.
fn split_axes(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

fn axis(text: &str) -> Option<MeshAxis> {
    // From the end: names of axes are a program's own.
    let (place, placement) = text.rsplit_once(':')?;
    let (name, place) = place.split_once('=')?;
    let (coordinate, size) = place.split_once('/')?;
    let axis = MeshAxis {
        name: name.to_owned(),
        coordinate: number(coordinate)?,
        size: number(size)?,
        placement: AxisPlacement::parse(placement)?,
    };
    // A rank outside its axis would put elements where there are none.
    (!name.is_empty() && axis.coordinate < axis.size).then_some(axis)
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without blanks, so that the text can be cut at ` of `.
        for (i, axis) in self.axes.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let MeshAxis {
                name,
                coordinate,
                size,
                placement,
            } = axis;
            write!(f, "{comma}{name}={coordinate}/{size}:{placement}")?;
        }
        let extents: Vec<_> = self.shape.iter().map(u64::to_string).collect();
        write!(f, " of [{}]", extents.join(","))
    }
}

impl FromStr for Placement {
    type Err = ParallelTextError;

    fn from_str(text: &str) -> Result<Placement, ParallelTextError> {
        let expected = "placement, such as dp=0/2:R,tp=1/2:S(0) of [8,16]";
        Placement::parse(text).ok_or_else(|| ParallelTextError::new(text, expected))
    }
}

#[cfg(test)]
mod tests {
    use super::{AxisPlacement, Placement};

    #[test]
    fn texts_give_the_same_again() {
        for text in [
            "tp=0/4:S(0) of [8]",
            "dp=1/2:R,tp=0/2:P(sum) of []",
            "dp_shard=1/2:S(0,2),tp=0/2:S(0) of [4096,0,3]",
        ] {
            let placement: Placement = text.parse().unwrap();
            assert_eq!(placement.to_string(), text);
        }
        let placement: Placement = "dp=1/2:S(0,2),tp=0/2:S(1) of [4,6]".parse().unwrap();
        let tp = &placement.axes[1];
        assert_eq!((tp.name.as_str(), tp.coordinate, tp.size), ("tp", 0, 2));
        assert_eq!(tp.placement, AxisPlacement::sharded(1));
        assert_eq!(placement.shape, [4, 6]);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            " of [8]",
            "tp=0/4:S(0)",
            "tp=4/4:S(0) of [8]",
            "tp=0/0:R of [8]",
            "=0/1:R of [8]",
            "tp=0/2:S(1) of [8]",
            "tp=0/2:S of [8]",
            "tp=0/2:S(0,1) of [8]",
            "tp=0/2:P of [8]",
            "tp=0/2:P(mean) of [8]",
            "tp=0/2:R(1) of [8]",
            "tp=0/2:R,, of [8]",
            "tp=0/2:R of [8",
            "tp=0/2:R of [-8]",
        ] {
            assert!(text.parse::<Placement>().is_err(), "{text}");
        }
    }
}
