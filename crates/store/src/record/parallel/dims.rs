//! Notes about the axes of a tensor, in the way of SGLang's dumper: `b s[cp:zigzag] h[tp:partial]`.

use super::{AxisPlacement, MeshAxis, Placement, Reduction};

/// Axes that a note may have.
const N_AXES_MAX: usize = 32;

/// Matches any number of axes that ranks do not share.
const ANY_AXES: &str = "...";

/// The axes of a tensor, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorDims {
    /// The axes.
    pub axes: Vec<NamedAxis>,
}

/// An axis, and how ranks share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAxis {
    /// Its name; `1` for an unnamed axis of size 1.
    pub name: String,
    /// The axes of the mesh along which ranks share it, in the order in which they cut it.
    pub marks: Vec<MeshMark>,
}

/// How the ranks along an axis of the mesh share the tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshMark {
    /// The axis of the mesh.
    pub mesh_axis: String,
    /// How they do.
    pub share: MeshShare,
}

/// How ranks share an axis of a tensor, or the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeshShare {
    /// Each has a part of the axis.
    Sharded,
    /// The axis is in twice as many parts as ranks, and each has one from the front and one from
    /// the back.
    Zigzag,
    /// Each has a contribution.
    Partial(Reduction),
    /// Each has the same.
    Replicated,
    /// Each has a part of the axis, unless all have the same: activations of a batch that is spread,
    /// and weights.
    Varying,
}

impl TensorDims {
    /// Which part of the tensor a rank has that holds `local` elements along each axis. `mesh`
    /// returns the rank's position on an axis of the mesh, and the size of that axis. Parts count
    /// as equally long. `None` if the note does not fit the shape, names an unknown axis of the
    /// mesh, does not mention ranks, or describes parts that are not a single range of an axis.
    pub fn placement(
        &self,
        local: &[u64],
        mesh: impl Fn(&str) -> Option<(u32, u32)>,
    ) -> Option<Placement> {
        if local.len() != self.axes.len() {
            return None;
        }
        let mut placement = Placement {
            axes: Vec::new(),
            shape: local.to_vec(),
        };
        for (i, axis) in self.axes.iter().enumerate() {
            for mark in &axis.marks {
                let (coordinate, size) = mesh(&mark.mesh_axis)?;
                let share = match mark.share {
                    MeshShare::Sharded => AxisPlacement::sharded(u32::try_from(i).ok()?),
                    MeshShare::Partial(reduction) => AxisPlacement::Partial(reduction),
                    MeshShare::Replicated => AxisPlacement::Replicated,
                    MeshShare::Zigzag | MeshShare::Varying => return None,
                };
                // Every rank of the mesh axis holds an equal part.
                if mark.share == MeshShare::Sharded {
                    placement.shape[i] = local[i].checked_mul(size.into())?;
                }
                if coordinate >= size {
                    return None;
                }
                placement.axes.push(MeshAxis {
                    name: mark.mesh_axis.clone(),
                    coordinate,
                    size,
                    placement: share,
                });
            }
        }
        (!placement.axes.is_empty()).then_some(placement)
    }

    /// Reads a note; `#` begins a comment.
    ///
    /// # Errors
    /// A message about the mistake.
    pub fn parse(text: &str) -> Result<TensorDims, String> {
        let text = text.split('#').next().unwrap_or_default();
        let axes: Vec<NamedAxis> = words(text).map(named_axis).collect::<Result<_, _>>()?;
        if axes.len() > N_AXES_MAX {
            return Err(format!("more than {N_AXES_MAX} axes"));
        }
        let mut names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
        // Axes of 1 have no name.
        names.retain(|name| *name != "1");
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two axes are called `{}`", twice[0]));
        }
        let mut mesh: Vec<&str> = axes
            .iter()
            .flat_map(|axis| &axis.marks)
            .map(|mark| mark.mesh_axis.as_str())
            .collect();
        mesh.sort_unstable();
        if let Some(twice) = mesh.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("`{}` shares the tensor twice", twice[0]));
        }
        Ok(TensorDims { axes })
    }

    /// The axes of a tensor with `n` of them, where `...` covers the unnamed ones. `None` if the
    /// numbers do not match.
    pub fn for_axes(&self, n: usize) -> Option<TensorDims> {
        let Some(at) = self.position(ANY_AXES) else {
            return (self.axes.len() == n).then(|| self.clone());
        };
        let n_others = n.checked_sub(self.axes.len() - 1)?;
        let mut axes = self.axes.clone();
        let unnamed = NamedAxis {
            name: "1".to_owned(),
            marks: Vec::new(),
        };
        axes.splice(at..=at, vec![unnamed; n_others]);
        Some(TensorDims { axes })
    }

    /// The position of an axis.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.name == name)
    }
}

/// Words separated by blanks, except blanks in brackets.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    let all = text.split(move |c: char| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c.is_whitespace() && depth == 0
    });
    all.filter(|word| !word.is_empty())
}

fn named_axis(word: &str) -> Result<NamedAxis, String> {
    let (name, marks) = match word.split_once('[') {
        None => (word, None),
        Some((name, rest)) => {
            let marks = rest.strip_suffix(']');
            let marks = marks.ok_or_else(|| format!("`{word}` lacks a `]` at its end"))?;
            (name, Some(marks))
        }
    };
    if name.is_empty() {
        return Err(format!("`{word}` names no axis"));
    }
    let marks = marks.into_iter().flat_map(|marks| marks.split(','));
    Ok(NamedAxis {
        name: name.to_owned(),
        marks: marks.map(mesh_mark).collect::<Result<_, _>>()?,
    })
}

fn mesh_mark(text: &str) -> Result<MeshMark, String> {
    let (mesh_axis, qualifiers) = text.split_once(':').unwrap_or((text, ""));
    let mesh_axis = mesh_axis.trim();
    if mesh_axis.is_empty() {
        return Err(format!("`{text}` names no axis of the mesh"));
    }
    let mut share = MeshShare::Sharded;
    for qualifier in qualifiers.split('+').map(str::trim) {
        share = match qualifier {
            "" | "natural" | "sharded" => share,
            "zigzag" => MeshShare::Zigzag,
            "replicated" => MeshShare::Replicated,
            "varying" => MeshShare::Varying,
            "partial" => MeshShare::Partial(Reduction::Sum),
            // `partial(max)` and the like name the reduction; a bare `partial` is a sum.
            other => {
                let reduction = other.strip_prefix("partial(");
                let reduction = reduction.and_then(|rest| rest.strip_suffix(')'));
                match reduction.and_then(Reduction::from_name) {
                    Some(reduction) => MeshShare::Partial(reduction),
                    None => {
                        return Err(format!(
                            "`{other}` is none of sharded, zigzag, natural, varying, replicated, partial and \
                             partial(sum|avg|product|min|max|band|bor|bxor)"
                        ));
                    }
                }
            }
        };
    }
    Ok(MeshMark {
        mesh_axis: mesh_axis.to_owned(),
        share,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_say_how_axes_are_shared() {
        let dims = TensorDims::parse("b s[cp:zigzag, sp] (heads * d)[tp:partial(avg)] # as saved")
            .unwrap();
        let names: Vec<&str> = dims.axes.iter().map(|axis| axis.name.as_str()).collect();
        assert_eq!(names, ["b", "s", "(heads * d)"]);
        let marks: Vec<(&str, MeshShare)> = dims
            .axes
            .iter()
            .flat_map(|axis| &axis.marks)
            .map(|mark| (mark.mesh_axis.as_str(), mark.share))
            .collect();
        let expected = [
            ("cp", MeshShare::Zigzag),
            ("sp", MeshShare::Sharded),
            ("tp", MeshShare::Partial(Reduction::Mean)),
        ];
        assert_eq!(marks, expected);
        assert_eq!(TensorDims::parse("").unwrap(), TensorDims::default());
        assert_eq!(TensorDims::parse("1 1 h").unwrap().axes.len(), 3);
    }

    #[test]
    fn notes_give_the_part_of_a_rank() {
        let place = |name: &str| match name {
            "tp" => Some((1, 4)),
            "dp" => Some((0, 2)),
            _ => None,
        };
        let part = |dims: &str, local: &[u64]| {
            let dims = TensorDims::parse(dims).unwrap();
            dims.placement(local, place).map(|found| found.to_string())
        };
        let expected = "dp=0/2:S(0),tp=1/4:S(2) of [4,3,20]";
        assert_eq!(part("b[dp] s h[tp]", &[2, 3, 5]).unwrap(), expected);
        let expected = "tp=1/4:P(sum) of [3,5]";
        assert_eq!(part("t h[tp:partial]", &[3, 5]).unwrap(), expected);
        for dims in ["t h", "t[cp] h", "t[tp:zigzag] h", "b t h[tp]"] {
            assert_eq!(part(dims, &[3, 5]), None, "{dims}");
        }
    }

    #[test]
    fn dots_stand_for_other_axes() {
        let dims = TensorDims::parse("b[dp] ... h").unwrap();
        let names = |n: usize| {
            let axes = dims.for_axes(n)?.axes.into_iter();
            Some(axes.map(|axis| axis.name).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names(1), None);
        assert_eq!(names(2).unwrap(), "b h");
        assert_eq!(names(4).unwrap(), "b 1 1 h");
        assert_eq!(TensorDims::parse("b h").unwrap().for_axes(3), None);
    }

    #[test]
    fn other_notes_are_refused() {
        for text in [
            "b b",
            "h[tp",
            "[tp]",
            "h[]",
            "h[tp:half]",
            "b[tp] h[tp]",
            "h[tp:partial(x)]",
        ] {
            assert!(TensorDims::parse(text).is_err(), "{text}");
        }
    }
}
