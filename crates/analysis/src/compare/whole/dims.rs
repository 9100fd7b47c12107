//! Notes about the axes of a tensor, in the way of SGLang's dumper: `b s[cp:zigzag] h[tp:partial]`.

use opscope_store::record::parallel::Reduction;

/// Axes that a note may have.
const N_AXES_MAX: usize = 32;

/// The axes of a tensor, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dims {
    pub(super) axes: Vec<NamedAxis>,
}

/// An axis, and how ranks share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedAxis {
    pub(super) name: String,
    pub(super) marks: Vec<MeshMark>,
}

/// How the ranks along an axis of the mesh share the tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MeshMark {
    /// The axis of the mesh.
    pub(super) mesh_axis: String,
    pub(super) share: Share,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    Sharded,
    Zigzag,
    Partial(Reduction),
    Replicated,
}

impl Dims {
    /// Reads a note; whatever stands behind `#` is a comment.
    ///
    /// # Errors
    /// A message that says what is wrong.
    pub(super) fn parse(text: &str) -> Result<Dims, String> {
        let text = text.split('#').next().unwrap_or_default();
        let axes: Vec<NamedAxis> = words(text).map(named_axis).collect::<Result<_, _>>()?;
        if axes.len() > N_AXES_MAX {
            return Err(format!("more than {N_AXES_MAX} axes"));
        }
        let mut names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
        // Axes of 1 have no name of their own.
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
        Ok(Dims { axes })
    }

    /// The position of an axis.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.name == name)
    }
}

/// Words between blanks, of which brackets may hold some.
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
    let mut share = Share::Sharded;
    for qualifier in qualifiers.split('+').map(str::trim) {
        share = match qualifier {
            "" | "natural" | "sharded" => share,
            "zigzag" => Share::Zigzag,
            "replicated" => Share::Replicated,
            "partial" => Share::Partial(Reduction::Sum),
            other => {
                let reduction = other.strip_prefix("partial(");
                let reduction = reduction.and_then(|rest| rest.strip_suffix(')'));
                match reduction.and_then(Reduction::from_name) {
                    Some(reduction) => Share::Partial(reduction),
                    None => {
                        return Err(format!(
                            "`{other}` is none of sharded, zigzag, natural, replicated, partial and \
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
        let dims =
            Dims::parse("b s[cp:zigzag, sp] (heads * d)[tp:partial(avg)] # as saved").unwrap();
        let names: Vec<&str> = dims.axes.iter().map(|axis| axis.name.as_str()).collect();
        assert_eq!(names, ["b", "s", "(heads * d)"]);
        let marks: Vec<(&str, Share)> = dims
            .axes
            .iter()
            .flat_map(|axis| &axis.marks)
            .map(|mark| (mark.mesh_axis.as_str(), mark.share))
            .collect();
        let expected = [
            ("cp", Share::Zigzag),
            ("sp", Share::Sharded),
            ("tp", Share::Partial(Reduction::Mean)),
        ];
        assert_eq!(marks, expected);
        assert_eq!(Dims::parse("").unwrap(), Dims::default());
        assert_eq!(Dims::parse("1 1 h").unwrap().axes.len(), 3);
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
            assert!(Dims::parse(text).is_err(), "{text}");
        }
    }
}
