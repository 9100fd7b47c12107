//! The operators of one execution of the model on both sides, and their matches.

use std::collections::{BTreeSet, HashMap, HashSet};

use opscope_analysis::compare::result::{Comparison, OperatorName, Skip, SkipSide};

use super::members::{SIDES, ShownMember, ShownNode};
use super::scopes;
use crate::answers::AnswerError;
use crate::graph::in_step::{StepEdges, StepMember};
use crate::viewed::{ShownSide, ViewedRuns};

/// Maximum number of operators in a layout.
const N_OPERATORS_MAX: usize = 200_000;

/// The operators of one rank and step.
pub(super) struct ShownGraph<'a> {
    pub(super) nodes: Vec<ShownNode<'a>>,
    /// Dataflow edges between operators, by side.
    pub(super) edges: [StepEdges; 2],
}

type GraphPlace = (Option<u32>, Option<u64>);

impl<'a> ShownGraph<'a> {
    /// The graph of an operator; without one, that of the first operator.
    pub(super) fn new(
        runs: &'a ViewedRuns,
        center: Option<usize>,
    ) -> Result<ShownGraph<'a>, AnswerError> {
        let place = match center {
            Some(id) => {
                let place = runs.facts(id).map(|facts| (facts.rank, facts.step));
                place.ok_or_else(|| AnswerError::Missing(format!("there is no operator {id}")))?
            }
            None => first_place(runs),
        };
        let mut nodes = pairs(runs, place);
        // Steps and ranks would overlap in one drawing.
        if let Some(comparison) = runs.comparison() {
            nodes = with_unpaired(runs, comparison, place, nodes);
        }
        let n: usize = nodes
            .iter()
            .flat_map(|node| &node.members)
            .map(Vec::len)
            .sum();
        if n > N_OPERATORS_MAX {
            let text = format!("a graph of {n} operators is too large to be drawn");
            return Err(AnswerError::Missing(text));
        }
        for side in [0, 1] {
            count_executions(&mut nodes, side);
        }
        scopes::set(runs, &mut nodes);
        let edges = [0, 1].map(|side| edges(runs, &nodes, side));
        Ok(ShownGraph { nodes, edges })
    }

    /// The node of a pair, or of an operator of a single dump.
    pub(super) fn node_of(&self, id: usize) -> Option<usize> {
        self.nodes.iter().position(|node| node.id() == Some(id))
    }

    /// The groups around an operator, outermost first.
    pub(super) fn around(&self, id: usize) -> Vec<String> {
        let node = self.node_of(id).and_then(|at| self.nodes.get(at));
        node.map(|node| paths(&node.scopes)).unwrap_or_default()
    }
}

/// The paths of nested groups, outermost first.
pub(super) fn paths(scopes: &[String]) -> Vec<String> {
    let mut paths: Vec<String> = Vec::with_capacity(scopes.len());
    for scope in scopes {
        let path = match paths.last() {
            Some(outer) => format!("{outer}/{scope}"),
            None => scope.clone(),
        };
        paths.push(path);
    }
    paths
}

/// Rank and step of the first operator, even if nothing matches.
fn first_place(runs: &ViewedRuns) -> GraphPlace {
    if let Some(facts) = runs.facts(0) {
        return (facts.rank, facts.step);
    }
    let skips = runs.comparison().map(|comparison| &comparison.skips);
    let mut names = skips.into_iter().flatten().filter_map(unpaired);
    names
        .next()
        .map(|(_, name)| (name.rank, name.step))
        .unwrap_or_default()
}

/// The pairs of a place, or the operators of a single dump.
fn pairs(runs: &ViewedRuns, place: GraphPlace) -> Vec<ShownNode<'_>> {
    let all = (0..runs.n_operators()).filter_map(|id| runs.facts(id));
    let all = all.filter(|facts| (facts.rank, facts.step) == place);
    let nodes = all.map(|facts| {
        let mut node = ShownNode::default();
        if let Some(operator) = facts.compared {
            let names = [&operator.target, &operator.golden];
            for (side, names) in names.into_iter().enumerate() {
                let members = names.iter().map(|name| member(runs, SIDES[side], name));
                node.members[side] = members.collect();
            }
        } else {
            let run = runs.target.dump.runs.get(facts.id);
            node.members[0].push(ShownMember {
                op_type: facts.op_type,
                op_name: facts.op_name,
                model: run.and_then(|run| run.place.model.as_deref()),
                call: facts.call,
                number: None,
                run: Some(facts.id),
                reason: None,
            });
        }
        node.facts = Some(facts);
        node
    });
    nodes.collect()
}

fn member<'a>(runs: &'a ViewedRuns, side: ShownSide, name: &'a OperatorName) -> ShownMember<'a> {
    ShownMember {
        op_type: &name.op_type,
        op_name: &name.op_name,
        model: name.model.as_deref(),
        call: name.repeat,
        number: None,
        run: runs.side(side).and_then(|dump| dump.run_of(name)),
        reason: None,
    }
}

/// The operator that a whole-operator skip refers to, and its side.
fn unpaired(skip: &Skip) -> Option<(usize, &OperatorName)> {
    let side = match skip.side {
        SkipSide::Target => 0,
        SkipSide::Golden => 1,
        SkipSide::Both | SkipSide::Reference => return None,
    };
    let name = skip.operator.as_ref().filter(|_| skip.slot.is_none())?;
    Some((side, name))
}

/// Adds unmatched operators, each before the pair that ran next on its side, and adds operators
/// that a fused one replaced to that one.
fn with_unpaired<'a>(
    runs: &'a ViewedRuns,
    comparison: &'a Comparison,
    place: GraphPlace,
    mut nodes: Vec<ShownNode<'a>>,
) -> Vec<ShownNode<'a>> {
    let places: HashMap<usize, usize> = nodes
        .iter()
        .enumerate()
        .filter_map(|(at, node)| Some((node.id()?, at)))
        .collect();
    let operators = places.keys().filter_map(|id| comparison.operators.get(*id));
    let mut of_golden: BTreeSet<GraphPlace> = BTreeSet::new();
    let mut paired: HashSet<(usize, &OperatorName)> = HashSet::new();
    for operator in operators {
        of_golden.extend(operator.golden.iter().map(|name| (name.rank, name.step)));
        paired.extend(operator.target.iter().map(|name| (0, name)));
        paired.extend(operator.golden.iter().map(|name| (1, name)));
    }
    // Ranks and steps may have other numbers on the golden side; the pairs show which.
    if of_golden.is_empty() {
        of_golden.insert(place);
    }
    let mut alone: Vec<(usize, ShownNode<'a>)> = Vec::new();
    for skip in &comparison.skips {
        let Some((side, name)) = unpaired(skip) else {
            continue;
        };
        let at = (name.rank, name.step);
        let is_here = [at == place, of_golden.contains(&at)][side];
        // A damaged operator may still be matched.
        if !is_here || !paired.insert((side, name)) {
            continue;
        }
        let mut new = member(runs, SIDES[side], name);
        new.reason = Some(skip.reason);
        let around = skip.inside.and_then(|id| places.get(&id).copied());
        if let Some(around) = around.and_then(|at| nodes.get_mut(at)) {
            around.members[side].push(new);
            continue;
        }
        let before = skip.before.and_then(|id| places.get(&id).copied());
        let mut node = ShownNode::default();
        node.members[side].push(new);
        alone.push((before.unwrap_or(nodes.len()), node));
    }
    for members in nodes.iter_mut().flat_map(|node| &mut node.members) {
        // Without runs, the comparison's order stays.
        members.sort_by_key(|member| member.run);
    }
    merge(nodes, alone)
}

/// Inserts each unmatched node before the pair with its number.
fn merge<'a>(
    pairs: Vec<ShownNode<'a>>,
    mut alone: Vec<(usize, ShownNode<'a>)>,
) -> Vec<ShownNode<'a>> {
    // Stable, because skips are in execution order.
    alone.sort_by_key(|(before, _)| *before);
    let mut alone = alone.into_iter().peekable();
    let mut all = Vec::with_capacity(pairs.len() + alone.len());
    for (at, pair) in pairs.into_iter().enumerate() {
        while let Some((_, node)) = alone.next_if(|(before, _)| *before <= at) {
            all.push(node);
        }
        all.push(pair);
    }
    all.extend(alone.map(|(_, node)| node));
    all
}

/// Numbers the executions of each name that runs several times.
fn count_executions(nodes: &mut [ShownNode<'_>], side: usize) {
    let members = nodes.iter_mut().flat_map(|node| &mut node.members[side]);
    let mut members: Vec<&mut ShownMember<'_>> = members.collect();
    members.sort_by_key(|member| member.run);
    let mut n_of: HashMap<(Option<String>, String), usize> = HashMap::new();
    for member in &mut members {
        let n = n_of.entry(mapped_name(member)).or_default();
        member.number = Some(*n);
        *n += 1;
    }
    for member in members {
        // A number for an operator that runs once would only tie the mapping to this step.
        if n_of.get(&mapped_name(member)) == Some(&1) {
            member.number = None;
        }
    }
}

/// Model and name in the form that mappings compare, which is that of file names.
fn mapped_name(member: &ShownMember<'_>) -> (Option<String>, String) {
    let name = member.op_name.replace(['/', '.', ' ', '\\'], "_");
    (member.model.map(str::to_owned), name)
}

/// Dataflow edges between operators of a side.
fn edges(runs: &ViewedRuns, nodes: &[ShownNode<'_>], side: usize) -> StepEdges {
    let Some(dump) = runs.side(SIDES[side]) else {
        return StepEdges::new();
    };
    let mut of_run: HashMap<usize, StepMember> = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        for (place, member) in node.members[side].iter().enumerate() {
            let known = StepMember {
                node: at as u32,
                place: place as u32,
            };
            of_run.extend(member.run.map(|run| (run, known)));
        }
    }
    let mut edges = StepEdges::new();
    for (&run, &to) in &of_run {
        let producers = dump.links.producers(run);
        let producers = producers.filter_map(|(_, made_by)| of_run.get(&made_by));
        edges.extend(producers.map(|&from| (from, to)));
    }
    // The map is unordered, but the same dumps must produce the same picture.
    edges.sort_unstable();
    edges.dedup();
    edges
}
