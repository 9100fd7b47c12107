//! From notes about how ranks share a tensor to the tensor itself.

use std::collections::{BTreeMap, BTreeSet};

use opscope_store::record::parallel::{AxisPlacement, MeshShare, Placement, Reduction};

use super::cut::{AxisCut, AxisOrder, FusedPiece, HeldRanges, fused_extent, length};
use super::part_axes::{PartAxes, TokenMap};
use super::rules::{CheckedRule, FusedAxis, Mesh};
use super::shared_axis::SharedAxis;
use super::tensor::{RankPart, VaryingShare, WholeTensor};
use crate::compare::side::ExecutionSlot;

/// Axes that a mesh or a tensor may have: far more than any has, and few enough to be searched.
const N_AXES_MAX: usize = 64;
/// Contributions that a value may have.
const N_CONTRIBUTIONS_MAX: u64 = 1 << 16;

/// A part, as a dump has it.
pub(super) struct FoundPart<'a> {
    pub(super) rank: Option<u32>,
    pub(super) slot: &'a ExecutionSlot,
}

/// How ranks share a tensor.
#[derive(Default)]
struct TensorNote {
    /// Names and sizes of the axes of the mesh that the note is about.
    mesh: Vec<(String, u64)>,
    /// For each axis of the tensor the axes of the mesh that cut it, in the order in which they do.
    cuts: Vec<Vec<(usize, AxisCut)>>,
    /// Number of them from a rule that goes beyond the dump's own note.
    n_outer: Vec<usize>,
    partials: Vec<(usize, Reduction)>,
    names: Vec<String>,
    fused: BTreeMap<usize, FusedAxis>,
    extents: BTreeMap<usize, u64>,
    compared_as: Option<Vec<String>>,
    varying: Option<VaryingShare>,
}

/// A part with its place on the mesh of the note.
struct PlacedPart<'a> {
    found: &'a FoundPart<'a>,
    coordinates: Vec<u64>,
    local: Vec<u64>,
    /// Shape of the tensor according to the dump's note.
    told: Option<Vec<u64>>,
}

impl PlacedPart<'_> {
    /// The size of an axis according to the dump's note, else that of the part.
    fn extent(&self, axis: usize) -> u64 {
        let told = self.told.as_ref();
        told.map_or(self.local[axis], |told| told[axis])
    }
}

/// Assembles the parts of a tensor.
///
/// # Errors
/// A message that says why they cannot be.
pub(super) fn assemble(
    parts: &[FoundPart<'_>],
    rule: Option<&CheckedRule>,
    mesh: &Mesh,
    tokens: Option<&TokenMap>,
) -> Result<WholeTensor, String> {
    let placements: Vec<Option<&Placement>> = parts
        .iter()
        .map(|part| part.slot.record().placement.as_deref())
        .collect();
    let n_noted = placements.iter().flatten().count();
    // A rank without a note may hold anything: to take it for a replica would be a guess.
    if n_noted > 0 && n_noted < parts.len() {
        return Err("some ranks say which part they hold, and others do not".to_owned());
    }
    let note = TensorNote::new(&placements, rule, mesh, parts, tokens)?;
    let mut placed = Vec::with_capacity(parts.len());
    for (found, placement) in parts.iter().zip(&placements) {
        placed.push(PlacedPart {
            found,
            coordinates: note.coordinates(found.rank, *placement, mesh)?,
            local: local_extents(found)?,
            told: placement.map(|placement| placement.shape.clone()),
        });
    }
    note.put_together(&placed, tokens)
}

/// Assembles parts of axes that ranks share, or returns why they cannot be.
pub(super) fn in_parts_of(
    parts: &[FoundPart<'_>],
    cuts: &[SharedAxis],
) -> Result<WholeTensor, String> {
    let first = parts.first().and_then(|part| part.slot.shape.as_ref());
    let n_axes = first.map_or(0, Vec::len);
    let names = ["part", "inner part"].into_iter().zip(cuts);
    let mut note = TensorNote {
        mesh: names
            .map(|(name, cut)| (name.to_owned(), cut.n_parts))
            .collect(),
        cuts: vec![Vec::new(); n_axes],
        n_outer: vec![0; n_axes],
        names: vec![String::new(); n_axes],
        varying: Some(VaryingShare::Parts),
        ..TensorNote::default()
    };
    let section = FusedPiece {
        name: String::new(),
        n_units: 1,
        is_divisible: true,
    };
    for (m, cut) in cuts.iter().enumerate() {
        let of_axis = match cut.n_sections {
            0 | 1 => AxisCut::Plain,
            n => AxisCut::Fused(vec![section.clone(); n]),
        };
        note.cuts[cut.axis].push((m, of_axis));
    }
    let placed = parts.iter().enumerate().map(|(at, found)| {
        Ok(PlacedPart {
            found,
            coordinates: cuts.iter().map(|cut| cut.places[at]).collect(),
            local: local_extents(found)?,
            told: None,
        })
    });
    note.put_together(&placed.collect::<Result<Vec<_>, String>>()?, None)
}

/// Combines contributions of all ranks.
///
/// # Errors
/// A message that says why they cannot be.
pub(super) fn contributions_of(
    parts: &[FoundPart<'_>],
    reduction: Reduction,
) -> Result<WholeTensor, String> {
    let first = parts.first().and_then(|part| part.slot.shape.as_ref());
    let n_axes = first.map_or(0, Vec::len);
    let note = TensorNote {
        mesh: vec![("part".to_owned(), parts.len() as u64)],
        cuts: vec![Vec::new(); n_axes],
        n_outer: vec![0; n_axes],
        names: vec![String::new(); n_axes],
        partials: vec![(0, reduction)],
        ..TensorNote::default()
    };
    let placed = parts.iter().enumerate().map(|(place, found)| {
        Ok(PlacedPart {
            found,
            coordinates: vec![place as u64],
            local: local_extents(found)?,
            told: None,
        })
    });
    note.put_together(&placed.collect::<Result<Vec<_>, String>>()?, None)
}

/// Whether two ranks say the same of how a tensor is shared.
fn is_shared_alike(a: &Placement, b: &Placement) -> bool {
    let mut axes = a.axes.iter().zip(&b.axes);
    a.axes.len() == b.axes.len()
        && axes.all(|(a, b)| (&a.name, a.size, a.placement) == (&b.name, b.size, b.placement))
}

fn local_extents(part: &FoundPart<'_>) -> Result<Vec<u64>, String> {
    if let Some(problem) = &part.slot.problem {
        return Err(format!("{}: {problem}", rank_name(part.rank)));
    }
    if !part.slot.has_elements {
        return Err(format!(
            "the dump has no elements of it on {}",
            rank_name(part.rank)
        ));
    }
    let n = part
        .slot
        .n_elements()
        .filter(|&n| n <= u64::from(u32::MAX) << 16);
    let shape = part.slot.shape.clone().filter(|_| n.is_some());
    shape.ok_or_else(|| format!("its shape on {} is unknown", rank_name(part.rank)))
}

/// Whether ranks that differ in their place on one axis of the mesh alone hold the same elements.
fn are_same(parts: &[FoundPart<'_>], mesh: &Mesh, axis: &str) -> Result<bool, String> {
    let axis = mesh.position(axis).ok_or("the mesh has no such axis")?;
    let mut firsts: BTreeMap<Vec<u64>, &ExecutionSlot> = BTreeMap::new();
    for part in parts {
        let place = part.rank.and_then(|rank| mesh.coordinates(rank));
        let mut others =
            place.ok_or_else(|| format!("{} is not on the mesh", rank_name(part.rank)))?;
        // Places that are equal except for this axis form a group.
        others.remove(axis);
        let first = *firsts.entry(others).or_insert(part.slot);
        if std::ptr::eq(first, part.slot) {
            continue;
        }
        if first.shape != part.slot.shape || first.dtype != part.slot.dtype {
            return Ok(false);
        }
        let [a, b] = [first, part.slot].map(|slot| slot.load(None));
        let (a, b) = (a.map_err(|e| e.to_string())?, b.map_err(|e| e.to_string())?);
        if a.view().bytes != b.view().bytes {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn rank_name(rank: Option<u32>) -> String {
    rank.map_or_else(|| "the only rank".to_owned(), |rank| format!("rank {rank}"))
}

impl TensorNote {
    fn new(
        placements: &[Option<&Placement>],
        rule: Option<&CheckedRule>,
        mesh: &Mesh,
        parts: &[FoundPart<'_>],
        tokens: Option<&TokenMap>,
    ) -> Result<TensorNote, String> {
        let first = parts.first().and_then(|part| part.slot.shape.as_ref());
        let mut n_axes = first.map_or(0, Vec::len);
        let mut note = TensorNote::default();
        if let Some(Some(placement)) = placements.first() {
            if placement.axes.len().max(placement.shape.len()) > N_AXES_MAX {
                return Err(format!("its note tells of more than {N_AXES_MAX} axes"));
            }
            n_axes = placement.shape.len();
            note.cuts = vec![Vec::new(); n_axes];
            note.take_placement(placement)?;
            let mut others = placements.iter().flatten();
            if !others.all(|other| is_shared_alike(other, placement)) {
                return Err("ranks say different things of how they share it".to_owned());
            }
        }
        note.cuts.resize(n_axes, Vec::new());
        note.n_outer = vec![0; n_axes];
        note.names = vec![String::new(); n_axes];
        if let Some(rule) = rule {
            note.take_rule(rule, mesh, parts, tokens)?;
        }
        let n = note
            .partials
            .iter()
            .map(|(axis, _)| note.mesh[*axis].1)
            .try_fold(1_u64, u64::checked_mul);
        if n.is_none_or(|n| n > N_CONTRIBUTIONS_MAX) {
            return Err(format!(
                "it has more than {N_CONTRIBUTIONS_MAX} contributions"
            ));
        }
        if note.partials.windows(2).any(|pair| pair[0].1 != pair[1].1) {
            return Err("contributions are reduced in two ways at once".to_owned());
        }
        Ok(note)
    }

    fn take_placement(&mut self, placement: &Placement) -> Result<(), String> {
        // For each axis of the tensor the axes of the mesh that cut it, first the one that cuts
        // first.
        let mut orders: Vec<Vec<usize>> = vec![Vec::new(); placement.shape.len()];
        for (m, axis) in placement.axes.iter().enumerate() {
            self.mesh.push((axis.name.clone(), u64::from(axis.size)));
            if let AxisPlacement::Partial(reduction) = axis.placement {
                self.partials.push((m, reduction));
            }
        }
        // From the last one on, because a factor refers to those after it.
        for (m, axis) in placement.axes.iter().enumerate().rev() {
            let AxisPlacement::Sharded { axis, split_factor } = axis.placement else {
                continue;
            };
            let order = &mut orders[axis as usize];
            // Behind as many of the later axes as have cut before.
            let mut n = 1_u64;
            let mut at = 0;
            while n < u64::from(split_factor) && at < order.len() {
                n = n.saturating_mul(self.mesh[order[at]].1);
                at += 1;
            }
            if n != u64::from(split_factor) {
                return Err(format!(
                    "`{}` cuts an axis that others have cut into {split_factor} parts before, \
                     and the note names no such axes",
                    self.mesh[m].0
                ));
            }
            if split_factor > 1 {
                let sizes = order.iter().map(|&m| self.mesh[m].1);
                let n_parts = sizes
                    .chain([self.mesh[m].1])
                    .try_fold(1_u64, u64::checked_mul)
                    .unwrap_or(u64::MAX);
                // Of parts of unequal length programs do not agree where they begin.
                if !placement.shape[axis as usize].is_multiple_of(n_parts) {
                    return Err(format!(
                        "axis {axis} is cut out of order into {n_parts} parts of unequal length"
                    ));
                }
            }
            order.insert(at, m);
        }
        let cuts = orders.into_iter().map(|order| {
            let cuts = order.into_iter().map(|m| (m, AxisCut::Plain));
            cuts.collect()
        });
        self.cuts = cuts.collect();
        Ok(())
    }

    fn take_rule(
        &mut self,
        rule: &CheckedRule,
        mesh: &Mesh,
        parts: &[FoundPart<'_>],
        tokens: Option<&TokenMap>,
    ) -> Result<(), String> {
        let n_axes = self.cuts.len();
        let dims = rule.dims.for_axes(n_axes).ok_or_else(|| {
            let named = rule.dims.axes.len();
            format!("the mapping names {named} axes of it, and it has {n_axes}")
        })?;
        for (a, axis) in dims.axes.iter().enumerate() {
            self.names[a].clone_from(&axis.name);
            for mark in &axis.marks {
                // The dump's own notes take precedence.
                if self.mesh.iter().any(|(name, _)| *name == mark.mesh_axis) {
                    continue;
                }
                let size = mesh
                    .position(&mark.mesh_axis)
                    .map_or(1, |at| mesh.axes[at].1);
                let m = self.mesh.len();
                self.mesh.push((mark.mesh_axis.clone(), size));
                let share = match mark.share {
                    MeshShare::Varying if are_same(parts, mesh, &mark.mesh_axis)? => {
                        self.varying = self.varying.max(Some(VaryingShare::Replicas));
                        MeshShare::Replicated
                    }
                    MeshShare::Varying => {
                        self.varying = Some(VaryingShare::Parts);
                        MeshShare::Sharded
                    }
                    share => share,
                };
                // Marks of several mesh axes split the tensor in the order of their appearance.
                let cut = match share {
                    MeshShare::Sharded => match rule.fused.get(&axis.name) {
                        Some(fused) if fused.n_groups.is_none() => {
                            AxisCut::Fused(fused.pieces.clone())
                        }
                        _ => AxisCut::Plain,
                    },
                    MeshShare::Zigzag => AxisCut::Zigzag(match tokens {
                        Some(TokenMap::Packed(lengths)) if axis.name == "t" => {
                            Some(lengths.clone())
                        }
                        _ => None,
                    }),
                    MeshShare::Partial(reduction) => {
                        self.partials.push((m, reduction));
                        continue;
                    }
                    MeshShare::Replicated | MeshShare::Varying => continue,
                };
                // Outside of what the dump's own note cuts.
                self.cuts[a].insert(self.n_outer[a], (m, cut));
                self.n_outer[a] += 1;
            }
        }
        let fused = rule.fused.iter();
        self.fused = fused
            .filter_map(|(name, fused)| Some((dims.position(name)?, fused.clone())))
            .collect();
        let extents = rule.extents.iter();
        self.extents = extents
            .filter_map(|(name, extent)| Some((dims.position(name)?, *extent)))
            .collect();
        self.compared_as.clone_from(&rule.compared_as);
        Ok(())
    }

    /// Where a rank is along each axis of the note's mesh.
    fn coordinates(
        &self,
        rank: Option<u32>,
        placement: Option<&Placement>,
        mesh: &Mesh,
    ) -> Result<Vec<u64>, String> {
        let of_rules = rank.and_then(|rank| mesh.coordinates(rank));
        let axes = self.mesh.iter().map(|(name, _)| {
            let told = placement.and_then(|placement| {
                let mut axes = placement.axes.iter();
                axes.find(|axis| axis.name == *name)
            });
            if let Some(axis) = told {
                return Some(u64::from(axis.coordinate));
            }
            of_rules.as_ref()?.get(mesh.position(name)?).copied()
        });
        let found: Option<Vec<u64>> = axes.collect();
        found.ok_or_else(|| format!("{} is not on the mesh", rank_name(rank)))
    }

    fn put_together(
        &self,
        parts: &[PlacedPart<'_>],
        tokens: Option<&TokenMap>,
    ) -> Result<WholeTensor, String> {
        let n_axes = self.cuts.len();
        if let Some(part) = parts.iter().find(|part| part.local.len() != n_axes) {
            return Err(format!(
                "{} holds {} axes of it, and its note tells of {n_axes}",
                rank_name(part.found.rank),
                part.local.len()
            ));
        }
        // Axis by axis: how an axis is cut does not depend on the others.
        let mut extents = Vec::with_capacity(n_axes);
        let mut held: Vec<Vec<HeldRanges>> = vec![Vec::with_capacity(n_axes); parts.len()];
        for axis in 0..n_axes {
            let (extent, cuts) = self.extent(axis, parts)?;
            for (part, held) in parts.iter().zip(&mut held) {
                held.push(self.hold((axis, extent), &cuts, part)?);
            }
            extents.push(extent);
        }
        let orders = self.orders(&extents)?;
        let mut found = Vec::with_capacity(parts.len());
        let mut shape = Vec::new();
        for (part, held) in parts.iter().zip(&held) {
            let axes = PartAxes::new(&part.local, held, &orders, &extents)?;
            let axes = axes.with_tokens(&self.names, held, tokens)?;
            let axes = axes.turned(self.compared_as.as_deref())?;
            shape = axes.extents;
            found.push(RankPart {
                rank: part.found.rank,
                coordinates: self.coordinates_text(&part.coordinates),
                slot: Box::new(part.found.slot.clone()),
                axes: axes.segments,
                contribution: self.contribution(&part.coordinates),
                noted: part.coordinates.clone(),
            });
        }
        // Bytes of other dtypes would be read as those of the first.
        let dtype = parts.first().and_then(|part| part.found.slot.dtype);
        let dtype = dtype.ok_or("its dtype is unknown")?;
        if parts
            .iter()
            .any(|part| part.found.slot.dtype != Some(dtype))
        {
            return Err("ranks hold parts of several dtypes".to_owned());
        }
        // Notes of a damaged table may contain any shape.
        let n = shape.iter().try_fold(1_u64, |n, &dim| n.checked_mul(dim));
        if n.is_none_or(|n| n > u64::from(u32::MAX) << 20) {
            return Err("it has more elements than can be counted".to_owned());
        }
        // Several axes of the mesh may add up, each rank once.
        let reduction = self.partials.first().map(|&(_, reduction)| {
            let sizes = self.partials.iter().map(|&(m, _)| self.mesh[m].1 as usize);
            (reduction, sizes.product())
        });
        let whole = WholeTensor::new((dtype, shape), reduction, found)?;
        Ok(WholeTensor {
            varying: self.varying,
            ..whole
        })
    }

    /// The size of an axis in the ranks' tensors, and its splits.
    fn extent(
        &self,
        axis: usize,
        parts: &[PlacedPart<'_>],
    ) -> Result<(u64, Vec<(usize, AxisCut)>), String> {
        let mut cuts = self.cuts[axis].clone();
        let n_outer = self.n_outer[axis];
        // The result of the outer splits: from the dump's note, or the size that the ranks hold.
        let is_told = parts.iter().all(|part| part.told.is_some());
        let n_open = if is_told { n_outer } else { cuts.len() };
        // By their places on the axes that cut: ranks at one place must agree.
        let mut lengths: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
        for part in parts {
            let key = cuts[..n_open].iter().map(|&(m, _)| part.coordinates[m]);
            let n = *lengths.entry(key.collect()).or_insert(part.extent(axis));
            if n != part.extent(axis) {
                return Err(format!(
                    "ranks hold {n} and {} along axis {axis}, and should hold the same",
                    part.extent(axis)
                ));
            }
        }
        // Pieces that several ranks hold would be counted more than once in a sum of lengths.
        if let [(m, AxisCut::Fused(pieces)), ..] = &cuts[..n_open] {
            let size = self.mesh[*m].1;
            let n = lengths.values().next().copied().unwrap_or(0);
            let is_same = lengths.values().all(|other| *other == n);
            let extent = fused_extent(pieces, n, size).filter(|_| is_same);
            let extent = extent
                .ok_or_else(|| format!("{n} elements of axis {axis} are not made of its pieces"))?;
            return Ok((extent, cuts));
        }
        let mut sizes = cuts[..n_open].iter().map(|&(m, _)| self.mesh[m].1);
        let n_wanted = sizes.try_fold(1_u64, u64::checked_mul).unwrap_or(u64::MAX);
        // If one of them is missing, the size is unknown, and so is the start of the later ones.
        if lengths.len() as u64 != n_wanted {
            return Err(format!(
                "ranks that hold {} of {n_wanted} parts of axis {axis} are not in the dump",
                n_wanted - lengths.len() as u64
            ));
        }
        let all = lengths
            .values()
            .try_fold(0_u64, |n, &one| n.checked_add(one));
        let extent = all.ok_or_else(|| format!("axis {axis} is too long"))?;
        // One cut has the lengths that are there, equal or not.
        if let [(_, cut @ AxisCut::Plain)] = &mut cuts[..n_open] {
            *cut = AxisCut::Lengths(lengths.into_values().collect());
        }
        Ok((extent, cuts))
    }

    /// The ranges of an axis that a part holds.
    fn hold(
        &self,
        (axis, extent): (usize, u64),
        cuts: &[(usize, AxisCut)],
        part: &PlacedPart<'_>,
    ) -> Result<HeldRanges, String> {
        let mut held: HeldRanges = std::iter::once(0..extent).collect();
        for (m, cut) in cuts {
            let next = cut.apply(&held, part.coordinates[*m], self.mesh[*m].1);
            held = next.ok_or_else(|| {
                let n = length(&held);
                format!("{n} elements of axis {axis} cannot be cut as its note says")
            })?;
        }
        let n = length(&held);
        if n == part.local[axis] {
            return Ok(held);
        }
        Err(format!(
            "{} holds {} elements along axis {axis}, and by its note it should hold {n}",
            rank_name(part.found.rank),
            part.local[axis]
        ))
    }

    fn orders(&self, extents: &[u64]) -> Result<Vec<Option<AxisOrder>>, String> {
        let mut orders: Vec<Option<AxisOrder>> = vec![None; extents.len()];
        for (&axis, fused) in &self.fused {
            if let Some(n_groups) = fused.n_groups {
                let order = AxisOrder::ungrouped(&fused.pieces, n_groups, extents[axis]);
                orders[axis] = Some(order.ok_or_else(|| {
                    format!(
                        "{} elements of axis {axis} are not made of its groups",
                        extents[axis]
                    )
                })?);
            }
        }
        for (&axis, &extent) in &self.extents {
            if extent > extents[axis] || orders[axis].is_some() {
                return Err(format!(
                    "axis {axis} has {} elements, of which {extent} cannot be taken",
                    extents[axis]
                ));
            }
            orders[axis] = Some(AxisOrder::cropped(extent));
        }
        Ok(orders)
    }

    fn coordinates_text(&self, coordinates: &[u64]) -> String {
        // Axes along which all ranks are equal do not identify the part.
        let cutting: BTreeSet<usize> = self
            .cuts
            .iter()
            .flatten()
            .map(|(m, _)| *m)
            .chain(self.partials.iter().map(|(m, _)| *m))
            .collect();
        let texts = cutting
            .into_iter()
            .map(|m| format!("{}={}", self.mesh[m].0, coordinates[m]));
        texts.collect::<Vec<_>>().join(",")
    }

    fn contribution(&self, coordinates: &[u64]) -> usize {
        let axes = self.partials.iter();
        // Numbered like ranks of a mesh of these axes alone.
        axes.fold(0, |n, &(m, _)| n * self.mesh[m].1 + coordinates[m]) as usize
    }
}
