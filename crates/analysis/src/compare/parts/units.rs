//! The work that a comparison falls into, by rank and step.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use opscope_tensor::digest::{hex, xxh3_128};
use thiserror::Error;

use super::facts::{ElementFacts, Fact, FactKey};
use super::part_file;
use super::steps::{DumpSteps, RankStep};
use crate::compare::matching::MatchingOptions;
use crate::compare::run::{self, CompareError, ComparisonRequest, OpenedDumps};
use crate::job;

/// Version of the parts: their sources and computation.
const VERSION: u32 = 1;
/// Extension of parts.
const EXTENSION: &str = "part";

/// Why parts were not made, or not put together.
#[derive(Debug, Error)]
pub enum PartsError {
    /// Nothing can be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A part cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The dumps have no such unit.
    #[error("the dumps have no unit `{0}`")]
    NoUnit(String),
    /// The parts together exceed the memory.
    #[error(
        "{n} parts have {n_bytes} bytes together; this machine's memory can merge {n_bytes_max}"
    )]
    TooLarge {
        /// Number of parts.
        n: usize,
        /// Bytes of their files.
        n_bytes: u64,
        /// The largest sum that is accepted.
        n_bytes_max: u64,
    },
    /// Parts are missing or damaged.
    #[error("{} of {n} parts are missing: {}", missing.len(), missing.join(", "))]
    Missing {
        /// The units whose parts are missing, with what is wrong with a part that is there.
        missing: Vec<String>,
        /// Number of all parts.
        n: usize,
    },
}

/// The units of a comparison: its pass over the elements, divided by the target's ranks and steps.
/// Steps that the golden side lacks have none.
pub struct ComparisonUnits<'a> {
    request: &'a ComparisonRequest,
    /// The target, the golden side, and the reference if there is one.
    sides: Vec<DumpSteps>,
    units: Vec<ComparisonUnit>,
}

/// One step of one rank of the target, with its partners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparisonUnit {
    /// Its name, such as `rank-3.step-1`, which no other unit of the comparison has.
    pub name: String,
    /// The place of each side.
    places: Vec<RankStep>,
}

/// The current state of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitPlan {
    /// The unit's name.
    pub name: String,
    /// Digest of what is asked and of names, sizes and times of the files of all sides.
    pub key: String,
    /// The name of its part.
    pub part: String,
    /// Bytes of elements of all sides.
    pub n_bytes: u64,
}

/// The state of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartState {
    /// It is there, whole.
    Done,
    /// It is not there.
    Missing,
    /// It is there, and is not what it should be: why.
    Damaged(String),
}

/// The outcome of [`ComparisonUnits::measure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredUnit {
    /// The unit, as it stood before.
    pub plan: UnitPlan,
    /// The part as it was found; unless it is done, it was made.
    pub found: PartState,
    /// Bytes of elements that were read.
    pub n_bytes_read: u64,
}

/// The names of the sides in results.
pub(super) const ROLES: [&str; 3] = ["target", "golden", "reference"];

impl<'a> ComparisonUnits<'a> {
    /// Lists the dumps of a request. Dumps of the native form are listed only, others are opened.
    ///
    /// # Errors
    /// [`CompareError::Open`], [`CompareError::Empty`], and [`CompareError::NothingChosen`] if the
    /// request leaves no step.
    pub fn list(request: &'a ComparisonRequest) -> Result<ComparisonUnits<'a>, CompareError> {
        let paths = [Some(&request.target), Some(&request.golden)];
        let paths = paths.into_iter().chain([request.reference.as_ref()]);
        let mut sides = Vec::new();
        for (path, side) in paths.flatten().zip(ROLES) {
            let steps = DumpSteps::open(path, request.n_threads);
            let steps = steps.map_err(|source| CompareError::Open { side, source })?;
            // An empty dump is distinct from an empty selection, as in a single process.
            if steps.places().is_empty() {
                return Err(CompareError::Empty {
                    side,
                    path: path.clone(),
                    problems: steps.problems(),
                });
            }
            sides.push(steps);
        }
        let all: Vec<BTreeSet<RankStep>> = sides
            .iter()
            .map(|side| {
                let places = side.places().into_iter();
                places
                    .filter(|&place| request.selection.has_place(place))
                    .collect::<BTreeSet<RankStep>>()
            })
            .collect();
        if let Some(at) = all.iter().position(BTreeSet::is_empty) {
            return Err(CompareError::NothingChosen { side: ROLES[at] });
        }
        let options = &request.matching;
        let partner =
            |place: RankStep, side: usize| partner_of(place, [&all[0], &all[side]], options);
        let units = all[0].iter().filter_map(|&place| {
            let golden = partner(place, 1)?;
            let reference = all.get(2).and_then(|_| partner(place, 2));
            let places = [Some(place), Some(golden), reference];
            Some(ComparisonUnit {
                name: name_of(place),
                places: places.into_iter().flatten().collect(),
            })
        });
        Ok(ComparisonUnits {
            request,
            units: units.collect(),
            sides,
        })
    }

    /// The units, by rank and step.
    pub fn units(&self) -> &[ComparisonUnit] {
        &self.units
    }

    /// The unit with a name.
    ///
    /// # Errors
    /// [`PartsError::NoUnit`].
    pub fn named(&self, name: &str) -> Result<&ComparisonUnit, PartsError> {
        let found = self.units.iter().find(|unit| unit.name == name);
        found.ok_or_else(|| PartsError::NoUnit(name.to_owned()))
    }

    /// Keys and sizes of units, for which tables are read and elements are not.
    pub fn plans(&self) -> Vec<UnitPlan> {
        job::map(&self.units, self.request.n_threads, |unit| self.plan(unit))
    }

    /// The key and the size of a unit.
    pub fn plan(&self, unit: &ComparisonUnit) -> UnitPlan {
        let mut text = self.question();
        let mut n_bytes = 0_u64;
        for ((side, place), role) in self.sides.iter().zip(&unit.places).zip(ROLES) {
            let files = side.files(*place);
            n_bytes = n_bytes.saturating_add(files.n_bytes);
            text += &format!("{role} {place:?}\n{}", side.stamps(&files));
        }
        let key = hex(&xxh3_128(text.as_bytes()));
        UnitPlan {
            part: format!("{}.{key}.{EXTENSION}", unit.name),
            name: unit.name.clone(),
            key,
            n_bytes,
        }
    }

    /// Everything in the request that decides which elements are read. Limits do not: changing them
    /// must not cause the elements to be read again.
    fn question(&self) -> String {
        let ComparisonRequest {
            selection,
            matching,
            difference,
            ..
        } = self.request;
        let version = env!("CARGO_PKG_VERSION");
        let selected = (
            &selection.names,
            &selection.op_types,
            selection.is_outputs_only,
        );
        let matched = (
            &matching.models,
            &matching.mapping,
            &matching.target_fusion,
            &matching.golden_fusion,
            matching.no_guesses,
            matching.step_offset,
        );
        format!("{VERSION} {version} {difference:?} {selected:?} {matched:?}\n")
    }

    /// Measures a unit, unless its part exists, and writes the part.
    ///
    /// # Errors
    /// [`PartsError::Store`] if the part cannot be written. Elements that cannot be read or matched
    /// are left to the merging process.
    pub fn measure(
        &self,
        unit: &ComparisonUnit,
        dir: &Path,
        creator: &Creator,
    ) -> Result<MeasuredUnit, PartsError> {
        // Before the files are read: of one that changes meanwhile the part has the old key.
        let plan = self.plan(unit);
        let path = plan.path(dir);
        let found = plan.state(dir);
        let mut n_bytes_read = 0;
        if found != PartState::Done {
            let facts = Arc::new(ElementFacts::default());
            self.look(unit, &facts)?;
            n_bytes_read = facts.n_bytes_read();
            part_file::write(creator, &path, plan.digest(), &facts.sorted())?;
        }
        Ok(MeasuredUnit {
            plan,
            found,
            n_bytes_read,
        })
    }

    /// Compares the sides of a unit by themselves, for the sake of what is read on the way.
    fn look(&self, unit: &ComparisonUnit, facts: &Arc<ElementFacts>) -> Result<(), StoreError> {
        let opened = self.sides.iter().zip(&unit.places).zip(ROLES);
        let mut sides: Vec<_> = opened
            .map(|((side, place), role)| {
                let mut side = side.open_step(*place, self.request.n_threads);
                side.share_facts(facts, role);
                side
            })
            .collect();
        // As the whole comparison does before it matches anything.
        for (side, role) in sides.iter_mut().zip(ROLES) {
            // A step without tensors is a matter of the whole comparison.
            if run::narrow(role, side, self.request).is_err() {
                return Ok(());
            }
        }
        let [target, golden, reference @ ..] = &sides[..] else {
            return Ok(());
        };
        let dumps = OpenedDumps {
            target,
            golden,
            reference: reference.first(),
            measured: None,
            experimenter: None,
        };
        if let Err(CompareError::Mapping(_)) = run::run_opened(self.request, dumps) {
            // A mapping may name operators of other steps. It is checked against all steps; pairs
            // with other names are read during the merge.
            let without = self.request.without_mapping();
            let _ = run::run_opened(&without, dumps);
        }
        Ok(())
    }
}

impl UnitPlan {
    /// Where its part is.
    pub fn path(&self, dir: &Path) -> PathBuf {
        dir.join(&self.part)
    }

    /// Size of its part's file; 0 if there is none.
    pub(super) fn n_part_bytes(&self, dir: &Path) -> u64 {
        part_file::n_bytes(&self.path(dir))
    }

    /// Whether its part is there.
    pub fn state(&self, dir: &Path) -> PartState {
        match part_file::check(&self.path(dir), self.digest()) {
            Ok(true) => PartState::Done,
            Ok(false) => PartState::Missing,
            Err(why) => PartState::Damaged(why),
        }
    }

    /// The facts of its part.
    pub(super) fn read(&self, dir: &Path) -> Result<Vec<(FactKey, Fact)>, PartState> {
        match part_file::read(&self.path(dir), self.digest()) {
            Ok(Some(facts)) => Ok(facts),
            Ok(None) => Err(PartState::Missing),
            Err(why) => Err(PartState::Damaged(why)),
        }
    }

    fn digest(&self) -> [u8; 16] {
        xxh3_128(self.key.as_bytes())
    }
}

fn name_of((rank, step): RankStep) -> String {
    let rank = rank.map_or("no-rank".to_owned(), |rank| format!("rank-{rank}"));
    let step = step.map_or("no-step".to_owned(), |step| format!("step-{step}"));
    format!("{rank}.{step}")
}

/// The rank and step that matching will bring together with one of the target, by the same rules:
/// those that are chosen, else the only one of each side, else equal numbers.
fn partner_of(
    (rank, step): RankStep,
    sides: [&BTreeSet<RankStep>; 2],
    MatchingOptions { ranks, steps, .. }: &MatchingOptions,
) -> Option<RankStep> {
    let of_ranks = sides.map(|side| side.iter().map(|place| place.0).collect());
    let partner = partner(rank, &of_ranks, ranks)?;
    let of_steps = [rank, partner];
    let of_steps = [0, 1].map(|i| {
        let own = sides[i].iter().filter(|place| place.0 == of_steps[i]);
        own.map(|place| place.1).collect()
    });
    Some((partner, self::partner(step, &of_steps, steps)?))
}

fn partner<N: Copy + Ord>(
    number: Option<N>,
    sides: &[BTreeSet<Option<N>>; 2],
    chosen: &[(N, N)],
) -> Option<Option<N>> {
    let found = if let [_, ..] = chosen {
        let pair = chosen.iter().find(|(own, _)| Some(*own) == number);
        pair.map(|(_, other)| Some(*other))?
    } else {
        let only = sides.each_ref().map(|side| {
            let mut numbers = side.iter().flatten();
            (numbers.next(), numbers.next().is_none())
        });
        match only {
            [(Some(own), true), (other, true)] if Some(*own) == number => other.copied(),
            [(None, _), (other, true)] => other.copied(),
            _ => number,
        }
    };
    sides[1].contains(&found).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_the_partners_that_matching_gives_them() {
        let places = |all: &[(u32, u64)]| -> BTreeSet<RankStep> {
            all.iter()
                .map(|&(rank, step)| (Some(rank), Some(step)))
                .collect()
        };
        let check = |own: &[(u32, u64)], other: &[(u32, u64)], ranks: &[(u32, u32)], expected| {
            let (own, other) = (places(own), places(other));
            let place = *own.first().expect("a place");
            let options = MatchingOptions {
                ranks: ranks.to_vec(),
                ..MatchingOptions::default()
            };
            let found = partner_of(place, [&own, &other], &options);
            let expected: Option<(u32, u64)> = expected;
            let expected = expected.map(|(rank, step)| (Some(rank), Some(step)));
            assert_eq!(found, expected, "{own:?} {other:?}");
        };
        check(&[(0, 1), (1, 1)], &[(0, 1), (1, 1)], &[], Some((0, 1)));
        // The only one of each side, whatever their numbers.
        check(&[(3, 7)], &[(0, 1)], &[], Some((0, 1)));
        check(&[(3, 7)], &[(0, 1), (0, 7)], &[], Some((0, 7)));
        // Others go by their numbers.
        check(&[(3, 7)], &[(0, 7), (1, 7)], &[], None);
        check(&[(0, 1), (0, 2)], &[(0, 2), (0, 3)], &[], None);
        check(
            &[(0, 1), (1, 1)],
            &[(5, 1), (6, 1)],
            &[(0, 6)],
            Some((6, 1)),
        );
        let nowhere = BTreeSet::from([(None, Some(1))]);
        let options = MatchingOptions::default();
        let found = partner_of((None, Some(1)), [&nowhere, &places(&[(4, 1)])], &options);
        assert_eq!(found, Some((Some(4), Some(1))));
    }
}
