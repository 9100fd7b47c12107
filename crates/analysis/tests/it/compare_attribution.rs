//! Planted faults: who is named, and who must not be.

mod bodies;
mod network;
mod suspects;

use std::path::Path;

use network::{Arithmetic, Executed, Fault, Kind, Network, Random, write};
use opscope_analysis::compare::attribution::attribute;
use opscope_analysis::compare::matching::{self, MatchedDumps, Matching};
use opscope_analysis::compare::measure::{self, measure};
use opscope_analysis::compare::result::{
    Cause, Comparison, ComparisonConfig, DivergencePoint, NonFiniteRole, OperatorResult,
    SkipReason, VerdictLevel,
};
use opscope_analysis::compare::side::ComparedDump;
use opscope_analysis::compare::verdict::{Thresholds, judge};
use opscope_tensor::difference;

/// Random networks.
const N_CASES: u64 = 400;

fn compare(target: &Path, golden: &Path) -> Comparison {
    let [target, golden] = [target, golden].map(|path| ComparedDump::open(path, 1).unwrap());
    compare_dumps(&target, &golden)
}

pub(crate) fn compare_dumps(target: &ComparedDump, golden: &ComparedDump) -> Comparison {
    let matching = Matching::align(target, golden, &matching::MatchingOptions::default()).unwrap();
    let sides = MatchedDumps {
        target,
        golden,
        matching: &matching,
        reference: None,
    };
    let options = measure::MeasureOptions {
        n_threads: 1,
        difference: difference::DifferenceOptions::default(),
        measured: None,
        progress: None,
    };
    let mut comparison = measure(sides, ComparisonConfig::default(), options);
    judge(&mut comparison, &Thresholds::default());
    attribute(&mut comparison, 10);
    comparison
}

/// One random network with one fault, compared.
struct Case {
    network: Network,
    arithmetic: Arithmetic,
    fault: Fault,
    comparison: Comparison,
}

impl Case {
    fn new(seed: u64, dir: &Path) -> Case {
        let mut random = Random::new(seed);
        let network = Network::random(&mut random);
        let all = [
            Arithmetic::F32,
            Arithmetic::F16,
            Arithmetic::BF16,
            Arithmetic::F32,
        ];
        let mut arithmetic = all[random.below(4)];
        let k = random.below(network.nodes.len());
        let fault = match seed % 8 {
            0 => Fault::None,
            1 => {
                let is_product = |&i: &usize| network.nodes[i].kind == Kind::MatMul;
                let product = (0..network.nodes.len()).find(is_product);
                product.map_or(Fault::None, Fault::Weight)
            }
            2 => Fault::Output(k),
            3 => Fault::OutputWithoutInputs(k),
            4 => Fault::OutputOfDamaged(k),
            5 => Fault::NotANumber(k),
            6 => Fault::Cast(k),
            _ => Fault::Removed(k),
        };
        if matches!(fault, Fault::Cast(_)) {
            arithmetic = Arithmetic::F32;
        }
        let (target, golden) = (dir.join("target"), dir.join("golden"));
        write(&target, &network.run(arithmetic, fault), arithmetic);
        let exact = Arithmetic::Exact;
        write(&golden, &network.run(exact, Fault::None), exact);
        Case {
            comparison: compare(&target, &golden),
            network,
            arithmetic,
            fault,
        }
    }

    fn name(&self, divergence: &DivergencePoint) -> String {
        name(&self.comparison.operators[divergence.operator])
    }

    /// Operators that are said to be wrong themselves.
    fn accused(&self) -> Vec<String> {
        let operators = self.comparison.operators.iter();
        let own = operators.filter(|operator| operator.cause == Some(Cause::Own));
        own.map(name).collect()
    }

    fn producers(&self) -> Vec<String> {
        let is_producer =
            |operator: &&OperatorResult| operator.non_finite == Some(NonFiniteRole::Producer);
        self.comparison
            .operators
            .iter()
            .filter(is_producer)
            .map(name)
            .collect()
    }

    fn has_suspect(&self, divergence: &DivergencePoint, op_name: &str) -> bool {
        let mut suspects = divergence.suspects.iter();
        suspects.any(|suspect| suspect.operator.op_name == op_name)
    }

    fn check(&self) {
        let summary = &self.comparison.summary;
        let (first, failure) = (&summary.first_divergence, &summary.first_failure);
        let node = |k: usize| format!("node_{k}");
        match self.fault {
            Fault::None => {
                assert_eq!(failure, &None);
                assert!(
                    first
                        .as_ref()
                        .is_none_or(|first| first.cause == Cause::Gradual)
                );
                self.none_accused();
            }
            Fault::Weight(k) => {
                let failure = failure.as_ref().unwrap();
                assert_eq!(
                    (self.name(failure), failure.slot.to_string().as_str()),
                    (node(k), "input.1")
                );
                assert_eq!(failure.cause, Cause::Outside);
                self.none_accused();
            }
            Fault::Output(k) => self.check_output(k),
            Fault::OutputWithoutInputs(k) => {
                let failure = failure.as_ref().unwrap();
                assert_eq!(self.name(failure), node(k));
                assert_eq!(failure.cause, Cause::Unknown);
                self.none_accused();
            }
            Fault::OutputOfDamaged(k) | Fault::Removed(k) => self.check_gap(k),
            Fault::NotANumber(k) => {
                let failure = failure.as_ref().unwrap();
                assert_eq!((self.name(failure), failure.cause), (node(k), Cause::Own));
                assert_eq!(self.accused(), [node(k)]);
                assert_eq!(self.producers(), [node(k)]);
                self.chain_leads_from(k);
            }
            Fault::Cast(k) => {
                self.none_accused();
                if let Some(&reader) = self.network.readers(k).first() {
                    let first = first.as_ref().unwrap();
                    assert_eq!(
                        (self.name(first), first.cause),
                        (node(reader), Cause::Unknown)
                    );
                    assert_eq!(first.suspects[0].operator.op_type, "Cast");
                }
            }
        }
    }

    fn is_steep(&self, k: usize) -> bool {
        let steep = [Kind::Tanh, Kind::Softmax, Kind::Exp];
        steep.contains(&self.network.nodes[k].kind)
    }

    fn check_output(&self, k: usize) {
        let (summary, node) = (&self.comparison.summary, format!("node_{k}"));
        let failure = summary.first_failure.as_ref().unwrap();
        assert_eq!(
            (self.name(failure), failure.slot.to_string().as_str()),
            (node.clone(), "output.0")
        );
        if self.arithmetic == Arithmetic::F32 || !self.is_steep(k) {
            assert_eq!(failure.cause, Cause::Own);
            assert_eq!(self.accused(), std::slice::from_ref(&node));
        } else {
            // Their slope, and the roundings before them, might be to blame.
            assert!([Cause::Own, Cause::Gradual].contains(&failure.cause));
            assert!(self.accused().iter().all(|name| *name == node));
        }
        let first = summary
            .ranking
            .first()
            .map(|&i| name(&self.comparison.operators[i]));
        assert_eq!(first, Some(node));
    }

    /// Checks that the error of an operator that was not compared shows in the first one that reads
    /// it.
    fn check_gap(&self, k: usize) {
        self.none_accused();
        if let Some(failure) = &self.comparison.summary.first_failure {
            assert_eq!(failure.cause, Cause::Unknown);
            assert!(self.has_suspect(failure, &format!("node_{k}")));
            assert_eq!(
                self.name(failure),
                format!("node_{}", self.network.readers(k)[0])
            );
        }
    }

    fn describe(&self, seed: u64) -> String {
        let (network, summary) = (&self.network.nodes, &self.comparison.summary);
        let first = (&summary.first_divergence, &summary.first_failure);
        let mut text = format!(
            "seed {seed}: {:?} {:?}\n{first:?}\n",
            self.arithmetic, self.fault
        );
        for (i, node) in network.iter().enumerate() {
            text += &format!("{i} {:?} {:?}\n", node.kind, node.operands);
        }
        for operator in &self.comparison.operators {
            let levels: Vec<_> = operator
                .slots
                .iter()
                .map(|slot| (slot.level, &slot.rules))
                .collect();
            let (cause, role) = (operator.cause, &operator.non_finite);
            text += &format!(
                "{} {cause:?} {role:?} {:?} {levels:?}\n",
                name(operator),
                operator.error
            );
        }
        text
    }

    fn none_accused(&self) {
        assert_eq!(self.accused(), Vec::<String>::new());
        assert_eq!(self.producers(), Vec::<String>::new());
    }

    /// The chain begins at the operator, and every part of it reads the one before.
    fn chain_leads_from(&self, k: usize) {
        let number = |i: &usize| -> usize {
            let name = name(&self.comparison.operators[*i]);
            name.strip_prefix("node_").unwrap().parse().unwrap()
        };
        let chain: Vec<usize> = self
            .comparison
            .summary
            .non_finite_chain
            .iter()
            .map(number)
            .collect();
        assert_eq!(chain.first(), Some(&k));
        for pair in chain.windows(2) {
            assert!(
                self.network.readers(pair[0]).contains(&pair[1]),
                "{chain:?}"
            );
        }
        if self.network.readers(k).iter().any(|_| true) {
            assert!(chain.len() > 1, "{chain:?}");
        }
    }
}

fn name(operator: &OperatorResult) -> String {
    operator.target[0].op_name.to_string()
}

/// Compares networks with a fault in the output of their last sum, dumped in another way on both
/// sides.
fn with_fault(
    seed: u64,
    change: impl Fn(usize, &mut Vec<Executed>),
) -> Option<(usize, Network, Comparison)> {
    let network = Network::random(&mut Random::new(seed));
    let is_sum = |&k: &usize| network.nodes[k].kind == Kind::Add && !network.readers(k).is_empty();
    let k = (0..network.nodes.len()).rev().find(is_sum)?;
    let dir = tempfile::tempdir().unwrap();
    let side = |name: &str, arithmetic, fault| {
        let root = dir.path().join(name);
        let mut executed = network.run(arithmetic, fault);
        change(k, &mut executed);
        write(&root, &executed, arithmetic);
        root
    };
    let target = side("target", Arithmetic::F32, Fault::Output(k));
    let golden = side("golden", Arithmetic::Exact, Fault::None);
    let comparison = compare(&target, &golden);
    Some((k, network, comparison))
}

#[test]
fn what_was_changed_in_place_is_no_input() {
    let cases = (1..60).filter_map(|seed| {
        with_fault(seed, |k, executed| {
            executed[k].rename("AssignAdd");
            executed[k].write_in_place();
        })
    });
    let mut n_cases = 0;
    for (k, _, comparison) in cases {
        let first = comparison.summary.first_failure.as_ref().unwrap();
        assert_eq!(
            (first.operator, first.slot.to_string().as_str()),
            (k, "output.0")
        );
        assert_eq!(first.cause, Cause::Own);
        let mut own = comparison
            .operators
            .iter()
            .filter(|o| o.cause == Some(Cause::Own));
        assert!(own.all(|operator| operator.index == k));
        n_cases += 1;
    }
    assert!(n_cases > 10);
}

#[test]
fn random_outputs_are_nobodys_fault() {
    let cases =
        (1..60).filter_map(|seed| with_fault(seed, |k, executed| executed[k].rename("Dropout")));
    let mut n_cases = 0;
    for (k, network, comparison) in cases {
        let first = comparison.summary.first_failure.as_ref().unwrap();
        assert_eq!(
            (first.operator, first.cause),
            (network.readers(k)[0], Cause::Unknown)
        );
        assert_eq!(first.suspects[0].operator.op_name, format!("node_{k}"));
        assert_eq!(first.suspects[0].reason, SkipReason::NotJudged);
        assert!(
            comparison
                .operators
                .iter()
                .all(|o| o.cause != Some(Cause::Own))
        );
        n_cases += 1;
    }
    assert!(n_cases > 10);
}

#[test]
fn dumps_of_outputs_name_the_first_and_accuse_nobody() {
    let cases = (1..60).filter_map(|seed| {
        with_fault(seed, |_, executed| {
            executed.iter_mut().for_each(Executed::drop_inputs);
        })
    });
    let mut n_cases = 0;
    for (k, _, comparison) in cases {
        let first = comparison.summary.first_failure.as_ref().unwrap();
        assert_eq!((first.operator, first.cause), (k, Cause::Unknown));
        assert_eq!(comparison.summary.ranking.first(), Some(&k));
        assert!(
            comparison
                .operators
                .iter()
                .all(|o| o.cause != Some(Cause::Own))
        );
        n_cases += 1;
    }
    assert!(n_cases > 10);
}

/// Two ranks and two steps: what comes first in a step comes first, whatever the order in the list.
#[test]
fn steps_and_ranks_have_their_own_order() {
    let dir = tempfile::tempdir().unwrap();
    let network = Network::random(&mut Random::new(1));
    let side = |name: &str, faults: [(u32, u32, Fault); 2]| {
        let root = dir.path().join(name);
        for (rank, step) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let fault = faults
                .iter()
                .find(|fault| (fault.0, fault.1) == (rank, step));
            let fault = fault.map_or(Fault::None, |fault| fault.2);
            let place = root.join(format!("20240102030405/{rank}/net/1/{step}"));
            write(
                &place,
                &network.run(Arithmetic::Exact, fault),
                Arithmetic::Exact,
            );
        }
        root
    };
    let none = [(0, 0, Fault::None); 2];
    let target = side(
        "target",
        [(0, 1, Fault::Output(0)), (1, 0, Fault::Output(3))],
    );
    let comparison = compare(&target, &side("golden", none));
    let name = |divergence: &DivergencePoint| {
        let operator = &comparison.operators[divergence.operator].target[0];
        (operator.rank, operator.step, operator.op_name.to_string())
    };
    let first = comparison.summary.first_failure.as_ref().unwrap();
    assert_eq!(name(first), (Some(1), Some(0), "node_3".to_owned()));
    let by_rank: Vec<_> = comparison.summary.first_by_rank.iter().map(name).collect();
    let other = (Some(0), Some(1), "node_0".to_owned());
    assert_eq!(by_rank, [other, name(first)]);
}

/// A saved result that is read again and judged has the same verdict, cause for cause.
#[test]
fn a_saved_result_is_judged_the_same() {
    for seed in [2, 4, 5, 6, 7] {
        let dir = tempfile::tempdir().unwrap();
        let comparison = Case::new(seed, dir.path()).comparison;
        let text = serde_json::to_string(&comparison).unwrap();
        let mut read: Comparison = serde_json::from_str(&text).unwrap();
        read.summary.level = VerdictLevel::Pass;
        for operator in &mut read.operators {
            (operator.level, operator.cause) = (VerdictLevel::Pass, None);
            let slots = operator.slots.iter_mut();
            slots.for_each(|slot| (slot.level, slot.rules) = (VerdictLevel::Pass, [].into()));
        }
        judge(&mut read, &Thresholds::default());
        attribute(&mut read, 10);
        // NaN equals no NaN, and its text does.
        assert_eq!(serde_json::to_string(&read).unwrap(), text, "{seed}");
    }
}

#[test]
fn planted_faults_are_found_and_nobody_else_is_accused() {
    let (mut n_found, mut failed) = (0, Vec::new());
    for seed in 1..=N_CASES {
        let dir = tempfile::tempdir().unwrap();
        let case = Case::new(seed, dir.path());
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case.check()));
        if checked.is_err() {
            failed.push(case.describe(seed));
        }
        n_found += usize::from(case.comparison.summary.level == VerdictLevel::Fail);
    }
    let first = failed.join("\n");
    assert!(
        failed.is_empty(),
        "{} of {N_CASES} cases, the first:\n{first}",
        failed.len()
    );
    assert!(n_found > N_CASES as usize / 2, "{n_found}");
}
