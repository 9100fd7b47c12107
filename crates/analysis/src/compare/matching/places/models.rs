//! Which model or graph of one side is which of the other.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::{PlaceScopes, grouped};
use crate::compare::matching::UnmatchedReason;
use crate::compare::matching::names::file_name;
use crate::compare::side::ComparedDump;

/// The weight of an equal name of the model, when the share of operators' names in common weighs 1.
const NAME_WEIGHT: f64 = 0.25;
/// The weight of an equal number.
const NUMBER_WEIGHT: f64 = 0.05;
/// Maximum number of model pairs whose operator names are compared.
const N_COMPARED_MAX: usize = 10_000;

type Key = (Option<String>, Option<u32>);

/// Models in the order of their first execution.
type Models = Vec<(Key, Vec<usize>)>;

/// The models that are chosen; else the only one of each side; else those with the most in common,
/// and, of those that have nothing in common, as many as each side has in order.
pub(super) fn align(
    sides: [&ComparedDump; 2],
    runs: &[Vec<usize>; 2],
    chosen: &[(String, String)],
    places: &mut PlaceScopes,
) -> Vec<[Vec<usize>; 2]> {
    let mut models = [0, 1].map(|i| models(sides[i], &runs[i]));
    let [targets, goldens] = [0, 1].map(|i| models[i].iter().map(|(key, _)| key.1));
    if chosen.is_empty() && targets.ne(goldens) {
        // Where a network is cut into graphs depends on how its loops and branches are written.
        models = [0, 1].map(|i| united(sides[i], std::mem::take(&mut models[i])));
        for i in [0, 1] {
            if models[1 - i].len() == 1 && are_of_one_program(sides[i], &models[i]) {
                models[i] = vec![as_one(std::mem::take(&mut models[i]))];
            }
        }
    }
    let pairs = if !chosen.is_empty() {
        by_choice(&models, chosen)
    } else if models.iter().all(|models| models.len() == 1) {
        vec![(0, 0)]
    } else {
        by_likeness(sides, &models)
    };
    let mut is_taken = [0, 1].map(|i| vec![false; models[i].len()]);
    for &(t, g) in &pairs {
        is_taken[0][t] = true;
        is_taken[1][g] = true;
    }
    for i in [0, 1] {
        for (model, _) in models[i]
            .iter()
            .zip(&is_taken[i])
            .filter(|(_, taken)| !**taken)
        {
            let is_named = chosen.iter().any(|pair| {
                let name = if i == 0 { &pair.0 } else { &pair.1 };
                model.0.0.as_ref() == Some(name)
            });
            let reason = if chosen.is_empty() || is_named {
                UnmatchedReason::NoSuchPlace
            } else {
                UnmatchedReason::LeftOut
            };
            places.set_apart(i, &model.1, &reason);
        }
    }
    let pairs = pairs.into_iter();
    pairs
        .map(|(t, g)| [models[0][t].1.clone(), models[1][g].1.clone()])
        .collect()
}

fn models(side: &ComparedDump, runs: &[usize]) -> Models {
    let mut models: Models = grouped(runs, |run| {
        let place = &side.runs[run].place;
        (
            place.model.as_ref().map(ToString::to_string),
            place.model_id,
        )
    })
    .into_iter()
    .collect();
    models.sort_by_key(|(_, runs)| runs.first().copied());
    models
}

/// The graphs of one network as one, if they have no operator in common: those of several networks,
/// or loads of one model, have.
fn united(side: &ComparedDump, models: Models) -> Models {
    let is_one_name = models.iter().all(|(key, _)| key.0 == models[0].0.0);
    if models.len() < 2 || !is_one_name {
        return models;
    }
    let mut graph_of: HashMap<(&str, &str), usize> = HashMap::new();
    for (graph, (_, runs)) in models.iter().enumerate() {
        for &run in runs {
            let run = &side.runs[run];
            let seen = graph_of.entry((&run.op_type, &run.op_name));
            if *seen.or_insert(graph) != graph {
                return models;
            }
        }
    }
    vec![as_one(models)]
}

/// Graphs as one, with their executions in order.
fn as_one(models: Models) -> (Key, Vec<usize>) {
    let name = models.first().and_then(|(key, _)| key.0.clone());
    let mut runs: Vec<usize> = models.into_iter().flat_map(|(_, runs)| runs).collect();
    runs.sort_unstable();
    ((name, None), runs)
}

/// Whether several graphs are those that torch compiled for the parts of one program: they have the
/// compiler's names, and ran in the same steps.
fn are_of_one_program(side: &ComparedDump, models: &Models) -> bool {
    let steps: HashSet<BTreeSet<Option<u64>>> = models
        .iter()
        .map(|(_, runs)| runs.iter().map(|&run| side.runs[run].place.step).collect())
        .collect();
    models.len() > 1
        && steps.len() == 1
        && models.iter().all(|((name, _), _)| {
            let number = name.as_deref().and_then(|name| name.strip_prefix("graph_"));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        })
}

/// The n-th load of a chosen model belongs to the n-th of its partner.
fn by_choice(models: &[Models; 2], chosen: &[(String, String)]) -> Vec<(usize, usize)> {
    let mut is_used = [HashSet::new(), HashSet::new()];
    let mut pairs = Vec::new();
    for (t, g) in chosen {
        let [targets, goldens] = [(0, t), (1, g)].map(|(i, name)| {
            let all = models[i].iter().enumerate();
            let named = all.filter(move |(_, ((model, _), _))| model.as_ref() == Some(name));
            named.map(|(index, _)| index)
        });
        for (t, g) in targets.zip(goldens) {
            if !is_used[0].contains(&t) && !is_used[1].contains(&g) {
                is_used[0].insert(t);
                is_used[1].insert(g);
                pairs.push((t, g));
            }
        }
    }
    pairs
}

fn by_likeness(sides: [&ComparedDump; 2], models: &[Models; 2]) -> Vec<(usize, usize)> {
    if models[0].len().saturating_mul(models[1].len()) > N_COMPARED_MAX {
        return by_name(models);
    }
    let shared = shared_names(sides, models);
    let mut scored: Vec<(f64, usize, usize)> = Vec::new();
    for (t, ((name, number), runs)) in models[0].iter().enumerate() {
        for (g, ((other_name, other_number), other_runs)) in models[1].iter().enumerate() {
            // The share is of the larger model, or a small one would be wholly in common with any
            // that contains it.
            let n_largest = runs.len().max(other_runs.len()).max(1);
            let n_shared = shared.get(&(t, g)).copied().unwrap_or(0);
            let mut score = n_shared as f64 / n_largest as f64;
            if name == other_name {
                score += NAME_WEIGHT;
                if number == other_number {
                    score += NUMBER_WEIGHT;
                }
            }
            if score > 0.0 {
                scored.push((score, t, g));
            }
        }
    }
    // Loads of one model have all in common with each other, and then their order decides.
    scored.sort_by(|a, b| {
        let by_score = b.0.total_cmp(&a.0);
        by_score.then((a.1.abs_diff(a.2), a.1, a.2).cmp(&(b.1.abs_diff(b.2), b.1, b.2)))
    });
    let mut is_taken = [0, 1].map(|i| vec![false; models[i].len()]);
    let mut pairs = Vec::new();
    for (_, t, g) in scored {
        if !is_taken[0][t] && !is_taken[1][g] {
            is_taken[0][t] = true;
            is_taken[1][g] = true;
            pairs.push((t, g));
        }
    }
    with_the_rest(pairs, &is_taken)
}

/// Of more models than can be held against each other: those of equal name and number, then the
/// n-th load of a name with the n-th of the other side.
fn by_name(models: &[Models; 2]) -> Vec<(usize, usize)> {
    let mut is_taken = [0, 1].map(|i| vec![false; models[i].len()]);
    let mut pairs = Vec::new();
    for has_numbers in [true, false] {
        let key = |(name, number): &Key| (name.clone(), number.filter(|_| has_numbers));
        let mut of_key: HashMap<Key, VecDeque<usize>> = HashMap::new();
        for (g, (model, _)) in models[1].iter().enumerate() {
            if !is_taken[1][g] {
                of_key.entry(key(model)).or_default().push_back(g);
            }
        }
        for (t, (model, _)) in models[0].iter().enumerate() {
            let partners = of_key.get_mut(&key(model)).filter(|_| !is_taken[0][t]);
            if let Some(g) = partners.and_then(VecDeque::pop_front) {
                is_taken[0][t] = true;
                is_taken[1][g] = true;
                pairs.push((t, g));
            }
        }
    }
    with_the_rest(pairs, &is_taken)
}

/// Pairs, and those that nothing brought together in order, if both sides have as many of them.
fn with_the_rest(mut pairs: Vec<(usize, usize)>, is_taken: &[Vec<bool>; 2]) -> Vec<(usize, usize)> {
    let [t, g] = [0, 1].map(|i| {
        let left = is_taken[i].iter().enumerate().filter(|(_, taken)| !**taken);
        left.map(|(index, _)| index).collect::<Vec<_>>()
    });
    // Of other numbers nothing says which one the other side lacks.
    if t.len() == g.len() {
        pairs.extend(t.into_iter().zip(g));
    }
    pairs.sort_unstable();
    pairs
}

/// How many executions of two models have names in common.
fn shared_names(
    sides: [&ComparedDump; 2],
    models: &[Models; 2],
) -> BTreeMap<(usize, usize), usize> {
    let mut shared = BTreeMap::new();
    let counts = [0, 1].map(|i| {
        let mut of_name: HashMap<String, BTreeMap<usize, usize>> = HashMap::new();
        for (model, (_, runs)) in models[i].iter().enumerate() {
            for &run in runs {
                let name = file_name(&sides[i].runs[run].op_name);
                *of_name.entry(name).or_default().entry(model).or_insert(0) += 1;
            }
        }
        of_name
    });
    // From names to models, so that models without a name in common cost nothing.
    for (name, of_target) in &counts[0] {
        for (&g, &n_golden) in counts[1].get(name).into_iter().flatten() {
            for (&t, &n_target) in of_target {
                *shared.entry((t, g)).or_insert(0) += n_target.min(n_golden);
            }
        }
    }
    shared
}
