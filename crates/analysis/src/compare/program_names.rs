//! The program's names in a result: modules, lines of source, parameters and attributes.

use std::collections::HashSet;

use super::argument_names::argument_name;
use super::attributes_across::across_frameworks;
use super::matching::MatchedDumps;
use super::result::{AttributeDifference, Comparison, Evidence, OperatorName, WiringChange};
use super::side::ComparedDump;

/// Sets the program's names of operators and inputs that do not pass. The target's take precedence.
pub(super) fn name_origins(comparison: &mut Comparison, sides: MatchedDumps<'_>) {
    let dumps = [sides.target, sides.golden];
    let named: HashSet<usize> = comparison.partings.iter().map(|at| at.operator).collect();
    let mut golden_names = None;
    for (pair, operator) in sides.matching.pairs.iter().zip(&mut comparison.operators) {
        if !operator.level.is_apart() && !named.contains(&operator.index) {
            continue;
        }
        let runs = [pair.target.last(), pair.golden.last()];
        for (dump, run) in dumps.into_iter().zip(runs) {
            let [module, source] = run
                .map(|&run| dump.module_and_source(run))
                .unwrap_or_default();
            operator.module = operator.module.take().or(module.map(Into::into));
            operator.source = operator.source.take().or(source.map(Into::into));
        }
        if let [Some(&target), Some(&golden)] = runs {
            operator.attributes = differing_attributes(dumps, [target, golden]).into();
        }
        for (slot, places) in operator.slots.iter_mut().zip(&pair.slots) {
            if !slot.is_apart() {
                continue;
            }
            let of_ranks = sides.target.rank_operators.get(&places.target);
            slot.change_rare(|rare| {
                if let Some(ranks) = &mut rare.ranks {
                    ranks.operators = of_ranks.cloned().unwrap_or_default();
                }
            });
            if !slot.is_output() {
                let own = sides.target.parameter_of(places.target);
                let golden = sides.golden.parameter_of(places.golden);
                if let (Some(own), Some(golden)) = (&own, &golden)
                    && own != golden
                {
                    // Where the sides name nothing alike, another name says nothing.
                    let names = golden_names.get_or_insert_with(|| sides.golden.parameter_names());
                    let other = names.contains(own).then(|| golden.as_str().into());
                    slot.change_rare(|rare| rare.golden_parameter = other);
                }
                let name = own.or(golden);
                // Exporters number constants anew each time, so that their names pair nothing.
                let name = name.or_else(|| {
                    let name = sides.target.constant_of(places.target)?;
                    let is_constant = sides.golden.is_constant(places.golden);
                    (operator.is_certain && is_constant).then(|| name.to_owned())
                });
                slot.change_rare(|rare| rare.parameter = name.map(Into::into));
            }
        }
    }
}

/// Sets the attributes of operators whose outputs differ, as causes need them, and of certain ones
/// that agree by statistics alone: another attribute may put their elements into another order.
pub(super) fn name_attributes(comparison: &mut Comparison, sides: MatchedDumps<'_>) {
    let dumps = [sides.target, sides.golden];
    for (pair, operator) in sides.matching.pairs.iter().zip(&mut comparison.operators) {
        let is_wanted = operator.outputs().any(|slot| {
            let is_hidden = slot.evidence == Evidence::Statistics && operator.is_certain;
            is_hidden || slot.is_apart()
        });
        if let (&[target], &[golden]) = (&pair.target[..], &pair.golden[..])
            && is_wanted
        {
            operator.attributes = differing_attributes(dumps, [target, golden]).into();
        }
    }
}

/// Sets the program's names of an operator that the verdict names and no row of the result has, or
/// one whose values agree.
pub(super) fn name_places(comparison: &mut Comparison, dumps: [&ComparedDump; 2]) {
    let before_output = comparison.contract.before_output.as_deref();
    // Both sides may number an operator alike, so one that the target lacks is golden's alone.
    let missing = comparison.partings.iter().chain(before_output);
    let missing = missing.filter(|parting| parting.change == Some(WiringChange::Missing));
    let missing: HashSet<OperatorName> = missing.map(|parting| parting.name.clone()).collect();
    let summary = &mut comparison.summary;
    let points = [&mut summary.first_divergence, &mut summary.first_failure];
    for point in points.into_iter().flatten() {
        let Some(name) = &point.name else {
            let operator = comparison.operators.get_mut(point.operator);
            let run = operator.and_then(|operator| {
                let is_open = operator.module.is_none() && operator.source.is_none();
                Some((
                    operator.target.last().cloned().filter(|_| is_open)?,
                    operator,
                ))
            });
            if let Some((name, operator)) = run {
                let [module, source] = place_of(dumps[0], &name);
                operator.module = module.map(Into::into);
                operator.source = source.map(Into::into);
            }
            continue;
        };
        let dump = dumps[usize::from(missing.contains(name))];
        [point.module, point.source] = place_of(dump, name);
    }
}

/// The module and line of an operator.
fn place_of(dump: &ComparedDump, name: &OperatorName) -> [Option<String>; 2] {
    let mut runs = dump.runs.iter();
    let run = runs.position(|run| OperatorName::for_execution(run) == *name);
    run.map(|run| dump.module_and_source(run))
        .unwrap_or_default()
}

/// The attributes of two operators of one type and framework that differ.
pub(super) fn differing_attributes(
    dumps: [&ComparedDump; 2],
    runs: [usize; 2],
) -> Vec<AttributeDifference> {
    let [target, golden] = [0, 1].map(|i| {
        let framework = dumps[i].description_of(runs[i])?.1.opsets.is_empty();
        Some((framework, dumps[i].attributes_of(runs[i])?))
    });
    let (Some((framework, target)), Some((other, golden))) = (target, golden) else {
        return Vec::new();
    };
    if framework != other {
        let is_torch = [framework, other];
        let known = [0, 1].map(|i| &dumps[i].runs[runs[i]]);
        return across_frameworks(known, [&target.given, &golden.given], is_torch);
    }
    let op_type = &dumps[0].runs[runs[0]].op_type;
    if *op_type != dumps[1].runs[runs[1]].op_type {
        return Vec::new();
    }
    let mut found = target.differences(&golden);
    for difference in &mut found {
        difference.argument = argument_name(op_type, &difference.name).map(Into::into);
    }
    found
}
