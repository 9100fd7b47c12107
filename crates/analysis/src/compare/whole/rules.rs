//! Rank notes in a mapping, for dumps without notes.

use std::collections::BTreeMap;

use opscope_store::record::parallel::{MeshShare, TensorDims};
use serde::{Deserialize, Serialize};

use super::cut::FusedPiece;
use crate::compare::slot_key::SlotKey;
use crate::compare::verdict::is_match;

/// Maximum number of ranks of a mesh.
const N_RANKS_MAX: u64 = 1 << 20;
/// The phases of training in descriptions of steps.
const PHASES: [&str; 3] = ["forward", "backward", "optimizer"];

/// Notes about the ranks of both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankRules {
    /// Those of the target.
    #[serde(default, skip_serializing_if = "SideRules::is_empty")]
    pub target: SideRules,
    /// Those of the golden side.
    #[serde(default, skip_serializing_if = "SideRules::is_empty")]
    pub golden: SideRules,
}

impl RankRules {
    /// Whether there are no notes.
    pub fn is_empty(&self) -> bool {
        self.target.is_empty() && self.golden.is_empty()
    }
}

/// Notes about the ranks of a side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideRules {
    /// The axes of the mesh with their sizes, such as `dp=2`. Consecutive ranks differ in the last
    /// axis first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mesh: Vec<String>,
    /// The mesh coordinates of ranks, if their numbers do not determine them: `dp=0,tp=1` by rank.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ranks: BTreeMap<String, String>,
    /// How tensors are shared. The first matching rule applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<TensorRule>,
    /// Numbers in names that each rank counts from 0, such as those of layers and experts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renumber: Vec<RenumberRule>,
}

/// How ranks share a tensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorRule {
    /// Names of operators, with `*` and `?`.
    pub operator: String,
    /// The slot; without it, all slots of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// The operator's phase of training according to the description of its step in the dump:
    /// `forward`, `backward` or `optimizer`. Without it, any phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The axes of the tensor, and how ranks share them: `b s h[tp]`.
    pub dims: String,
    /// The axes in the order in which tensors are compared; without it, that of `dims`.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub compared_as: Option<String>,
    /// Axes of concatenated pieces: `q*8 k*2 v*2`, or `(q*4 k v)*2` for repeated groups.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fused: BTreeMap<String, String>,
    /// Sizes without padding, which is at the end of an axis.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extents: BTreeMap<String, u64>,
    /// Which tokens exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenRule>,
}

/// Which tokens of a padded or packed batch exist.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRule {
    /// The number of tokens of each sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengths: Option<TokenNumbers>,
    /// The position of each sequence's first token among all tokens, and finally their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cu_seqlens: Option<TokenNumbers>,
    /// A slot of shape `[b, s]` with zeros for missing tokens, as `mask:output.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
    /// Whether padding is after the tokens, `right`, or before them, `left`.
    #[serde(default, skip_serializing_if = "PaddingSide::is_right")]
    pub padding: PaddingSide,
}

/// Numbers, or the slot of the dump that holds them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TokenNumbers {
    /// The numbers.
    Numbers(Vec<u64>),
    /// A slot, as `lengths:output.0`.
    Slot(String),
}

/// Where padding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PaddingSide {
    /// After the tokens.
    #[default]
    Right,
    /// Before the tokens.
    Left,
}

impl PaddingSide {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_right(&self) -> bool {
        *self == PaddingSide::Right
    }
}

/// A number in names that each rank along an axis of the mesh counts from 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenumberRule {
    /// The text before the number, such as `layers.`; empty if the number comes first.
    pub before: String,
    /// The axis of the mesh, such as `pp`.
    pub axis: String,
    /// Added for each step along the axis: the number of layers of a rank.
    pub by: u64,
}

impl SideRules {
    /// Whether there are no notes.
    pub fn is_empty(&self) -> bool {
        *self == SideRules::default()
    }

    /// The rules with all texts parsed.
    ///
    /// # Errors
    /// The place below the side, and the problem.
    pub(crate) fn check(&self) -> Result<CheckedRules, (String, String)> {
        let mesh = Mesh::parse(self)?;
        let mut tensors = Vec::new();
        for (i, rule) in self.tensors.iter().enumerate() {
            let checked = CheckedRule::check(rule, &mesh);
            tensors
                .push(checked.map_err(|(key, message)| (format!("tensors[{i}].{key}"), message))?);
        }
        for (i, rule) in self.renumber.iter().enumerate() {
            if mesh.position(&rule.axis).is_none() {
                let message = format!("the mesh has no axis `{}`", rule.axis);
                return Err((format!("renumber[{i}].axis"), message));
            }
            if rule.before.is_empty() {
                let message = "the text before the number is missing".to_owned();
                return Err((format!("renumber[{i}].before"), message));
            }
        }
        Ok(CheckedRules {
            mesh,
            tensors,
            renumber: self.renumber.clone(),
        })
    }
}

/// The axes of a mesh, and the coordinates of ranks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mesh {
    pub(super) axes: Vec<(String, u64)>,
    given: BTreeMap<u32, Vec<u64>>,
}

impl Mesh {
    fn parse(rules: &SideRules) -> Result<Mesh, (String, String)> {
        let mut mesh = Mesh::default();
        let mut n_ranks = 1_u64;
        for (i, text) in rules.mesh.iter().enumerate() {
            let place = format!("mesh[{i}]");
            let expected = || format!("`{text}` is no axis with its size, such as `tp=4`");
            let (name, size) = text
                .split_once('=')
                .ok_or_else(|| (place.clone(), expected()))?;
            let size: u64 = size
                .trim()
                .parse()
                .map_err(|_| (place.clone(), expected()))?;
            let name = name.trim().to_owned();
            let n = n_ranks
                .checked_mul(size)
                .filter(|&n| n > 0 && n <= N_RANKS_MAX);
            n_ranks = n.ok_or_else(|| {
                (
                    place.clone(),
                    format!("a mesh has from 1 to {N_RANKS_MAX} ranks"),
                )
            })?;
            if name.is_empty() || mesh.position(&name).is_some() {
                return Err((
                    place,
                    format!("`{text}` names no axis, or one that is there already"),
                ));
            }
            mesh.axes.push((name, size));
        }
        for (rank, text) in &rules.ranks {
            let place = format!("ranks.{rank}");
            let number: u32 = rank
                .parse()
                .map_err(|_| (place.clone(), format!("`{rank}` is no rank")))?;
            let found = mesh
                .coordinates_in(text)
                .map_err(|message| (place, message))?;
            mesh.given.insert(number, found);
        }
        Ok(mesh)
    }

    fn coordinates_in(&self, text: &str) -> Result<Vec<u64>, String> {
        let mut found: Vec<Option<u64>> = vec![None; self.axes.len()];
        for part in text.split(',') {
            let expected = || format!("`{part}` is no place on an axis of the mesh");
            let (name, at) = part.split_once('=').ok_or_else(expected)?;
            let axis = self.position(name.trim()).ok_or_else(expected)?;
            let at: u64 = at.trim().parse().map_err(|_| expected())?;
            if at >= self.axes[axis].1 || found[axis].is_some() {
                return Err(expected());
            }
            found[axis] = Some(at);
        }
        let all: Option<Vec<u64>> = found.into_iter().collect();
        all.ok_or_else(|| "each axis of the mesh needs a place".to_owned())
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|(known, _)| known == name)
    }

    /// The coordinates of a rank; `None` for a rank beyond the mesh.
    pub(super) fn coordinates(&self, rank: u32) -> Option<Vec<u64>> {
        // Explicit coordinates are complete: a rank without them is not on the mesh.
        if !self.given.is_empty() {
            return self.given.get(&rank).cloned();
        }
        let mut rest = u64::from(rank);
        let mut found = vec![0; self.axes.len()];
        for (at, (_, size)) in found.iter_mut().zip(&self.axes).rev() {
            *at = rest % size;
            rest /= size;
        }
        (rest == 0).then_some(found)
    }
}

/// The parsed rules of a side.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckedRules {
    pub(super) mesh: Mesh,
    pub(super) tensors: Vec<CheckedRule>,
    pub(super) renumber: Vec<RenumberRule>,
}

impl CheckedRules {
    /// Whether there are rules about tensors.
    pub(crate) fn has_tensors(&self) -> bool {
        !self.tensors.is_empty()
    }
}

/// A parsed rule of a tensor.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckedRule {
    operator: String,
    slot: Option<SlotKey>,
    phase: Option<String>,
    pub(super) dims: TensorDims,
    pub(super) compared_as: Option<Vec<String>>,
    /// By name of the axis.
    pub(super) fused: BTreeMap<String, FusedAxis>,
    pub(super) extents: BTreeMap<String, u64>,
    pub(super) tokens: Option<TokenRule>,
}

/// The properties of an operator that rules match.
#[derive(Clone, Copy)]
pub(super) struct NamedOperator<'a> {
    pub(super) op_name: &'a str,
    /// The training phase, if the dump has it.
    pub(super) phase: Option<&'a str>,
}

/// An axis of concatenated pieces.
#[derive(Clone, Debug)]
pub(super) struct FusedAxis {
    pub(super) pieces: Vec<FusedPiece>,
    /// The number of consecutive groups of these pieces; `None` if each piece exists once, and
    /// ranks share each separately.
    pub(super) n_groups: Option<u64>,
}

impl CheckedRule {
    fn check(rule: &TensorRule, mesh: &Mesh) -> Result<CheckedRule, (String, String)> {
        let at = |key: &str| {
            let key = key.to_owned();
            move |message: String| (key, message)
        };
        let dims = TensorDims::parse(&rule.dims).map_err(at("dims"))?;
        for mark in dims.axes.iter().flat_map(|axis| &axis.marks) {
            // A misspelt axis would count as not shared.
            if mesh.position(&mark.mesh_axis).is_none() {
                let message = format!("the mesh has no axis `{}`", mark.mesh_axis);
                return Err(at("dims")(message));
            }
        }
        if let Some(phase) = &rule.phase {
            // A misspelt phase would match nothing without any warning.
            if !PHASES.contains(&phase.as_str()) {
                let message = format!("there is no phase `{phase}`; {}", PHASES.join(", "));
                return Err(at("phase")(message));
            }
        }
        let slot = match &rule.slot {
            None => None,
            Some(text) => Some(SlotKey::parse(text).ok_or_else(|| {
                at("slot")(format!("`{text}` is no slot; `output.0` would be one"))
            })?),
        };
        let axis_of = |key: &str, name: &String| {
            dims.position(name)
                .ok_or_else(|| at(key)(format!("`dims` has no axis `{name}`")))
        };
        let mut checked = CheckedRule {
            operator: rule.operator.clone(),
            slot,
            phase: rule.phase.clone(),
            tokens: rule.tokens.clone(),
            ..CheckedRule::default()
        };
        for (name, text) in &rule.fused {
            let axis = axis_of("fused", name)?;
            let fused = FusedAxis::parse(text).map_err(at("fused"))?;
            let marks = dims.axes[axis].marks.iter();
            let n_cuts = marks
                .filter(|mark| {
                    use MeshShare::{Sharded, Varying, Zigzag};
                    matches!(mark.share, Sharded | Varying | Zigzag)
                })
                .count();
            // Cutting pieces twice would need the order of both cuts, which differs between
            // programs.
            if n_cuts > 1 && fused.n_groups.is_none() {
                let message = format!("one axis of the mesh can share `{name}`, not {n_cuts}");
                return Err(at("fused")(message));
            }
            checked.fused.insert(name.clone(), fused);
        }
        for (name, &extent) in &rule.extents {
            axis_of("extents", name)?;
            checked.extents.insert(name.clone(), extent);
        }
        if let Some(text) = &rule.compared_as {
            let names: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            checked.compared_as = Some(names);
        }
        if let Some(tokens) = &rule.tokens {
            check_tokens(tokens, &dims).map_err(at("tokens"))?;
        }
        checked.dims = dims;
        Ok(checked)
    }

    /// Whether it applies to a slot of an operator with this number of axes.
    pub(super) fn fits(&self, operator: NamedOperator<'_>, slot: SlotKey, n_axes: usize) -> bool {
        let NamedOperator { op_name, phase } = operator;
        self.slot.is_none_or(|own| own == slot)
            && self.phase.as_deref().is_none_or(|own| Some(own) == phase)
            && self.dims.for_axes(n_axes).is_some()
            && is_match(&self.operator, op_name)
    }
}

fn check_tokens(tokens: &TokenRule, dims: &TensorDims) -> Result<(), String> {
    let n_given = usize::from(tokens.lengths.is_some())
        + usize::from(tokens.cu_seqlens.is_some())
        + usize::from(tokens.mask.is_some());
    // Two of them could contradict each other.
    if n_given != 1 {
        return Err("one of `lengths`, `cu_seqlens` and `mask` says which tokens there are".into());
    }
    let is_padded = dims.position("b").is_some() && dims.position("s").is_some();
    if !is_padded && dims.position("t").is_none() {
        return Err("`dims` has neither the axes `b` and `s` nor an axis `t`".into());
    }
    Ok(())
}

impl FusedAxis {
    /// Reads `q*8 k*2 v*2`, or `(q*4 k v)*2`.
    fn parse(text: &str) -> Result<FusedAxis, String> {
        let expected =
            || format!("`{text}` is no list of pieces, such as `q*8 k*2 v*2` or `(q*4 k v)*2`");
        let text = text.trim();
        let (inner, n_groups) = match text.strip_prefix('(') {
            None => (text, None),
            Some(rest) => {
                let (inner, n) = rest.split_once(')').ok_or_else(expected)?;
                let n = n.trim().strip_prefix('*').ok_or_else(expected)?;
                let n: u64 = n.trim().parse().map_err(|_| expected())?;
                (inner, Some(n).filter(|n| *n > 0))
            }
        };
        let pieces = inner.split_whitespace().map(|word| {
            let (name, n) = match word.split_once('*') {
                Some((name, n)) => (name, Some(n)),
                None => (word, None),
            };
            let n_units = n.map_or(Some(1), |n| n.parse().ok().filter(|n: &u64| *n > 0))?;
            (!name.is_empty()).then(|| FusedPiece {
                name: name.to_owned(),
                n_units,
                is_divisible: n.is_none(),
            })
        });
        let pieces: Option<Vec<FusedPiece>> = pieces.collect();
        let pieces = pieces.filter(|pieces| !pieces.is_empty());
        Ok(FusedAxis {
            pieces: pieces.ok_or_else(expected)?,
            n_groups,
        })
    }
}
