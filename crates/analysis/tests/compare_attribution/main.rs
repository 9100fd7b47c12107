//! Planted faults: who is named, and who must not be.

mod network;

use std::path::Path;

use network::{Arithmetic, Fault, Kind, Network, Random, write};
use opscope_analysis::compare::attribution::attribute;
use opscope_analysis::compare::matching::{self, Matching};
use opscope_analysis::compare::measure::{self, Sides, measure};
use opscope_analysis::compare::result::{
    Cause, Comparison, Config, Divergence, Level, NonFiniteRole, OperatorResult,
};
use opscope_analysis::compare::side::Side;
use opscope_analysis::compare::verdict::{Thresholds, judge};
use opscope_tensor::difference;

fn compare(target: &Path, golden: &Path) -> Comparison {
    let open = |path| Side::open(path, 1).unwrap();
    let (target, golden) = (open(target), open(golden));
    let matching = Matching::of(&target, &golden, &matching::Options::default());
    let sides = Sides {
        target: &target,
        golden: &golden,
        matching: &matching,
        reference: None,
    };
    let options = measure::Options {
        n_threads: 1,
        difference: difference::Options::default(),
    };
    let mut comparison = measure(sides, Config::default(), options);
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

    fn name(&self, divergence: &Divergence) -> String {
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

    fn has_suspect(&self, divergence: &Divergence, op_name: &str) -> bool {
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
                    (self.name(failure), failure.slot.as_str()),
                    (node(k), "input.1")
                );
                assert_eq!(failure.cause, Cause::Outside);
                self.none_accused();
            }
            Fault::Output(k) => {
                let failure = failure.as_ref().unwrap();
                assert_eq!(
                    (self.name(failure), failure.slot.as_str()),
                    (node(k), "output.0")
                );
                let is_steep = self.network.nodes[k].kind == Kind::Tanh;
                if self.arithmetic == Arithmetic::F32 || !is_steep {
                    assert_eq!(failure.cause, Cause::Own);
                    assert_eq!(self.accused(), [node(k)]);
                } else {
                    assert!([Cause::Own, Cause::Gradual].contains(&failure.cause));
                    assert!(self.accused().iter().all(|name| *name == node(k)));
                }
                assert_eq!(
                    summary
                        .ranking
                        .first()
                        .map(|&i| name(&self.comparison.operators[i])),
                    Some(node(k))
                );
            }
            Fault::OutputWithoutInputs(k) => {
                let failure = failure.as_ref().unwrap();
                assert_eq!(self.name(failure), node(k));
                assert_eq!(failure.cause, Cause::Unknown);
                self.none_accused();
            }
            Fault::OutputOfDamaged(k) => {
                self.none_accused();
                if let Some(failure) = failure {
                    assert_eq!(failure.cause, Cause::Unknown);
                    assert!(self.has_suspect(failure, &node(k)));
                    assert_eq!(self.name(failure), node(self.network.readers(k)[0]));
                }
            }
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
            Fault::Removed(k) => {
                self.none_accused();
                if let Some(failure) = failure {
                    assert_eq!(failure.cause, Cause::Unknown);
                    assert!(self.has_suspect(failure, &node(k)));
                    assert_eq!(self.name(failure), node(self.network.readers(k)[0]));
                }
            }
        }
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
    operator.target[0].op_name.clone()
}

#[test]
fn planted_faults_are_found_and_nobody_else_is_accused() {
    let mut n_found = 0;
    for seed in 1..=400 {
        let dir = tempfile::tempdir().unwrap();
        let case = Case::new(seed, dir.path());
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case.check()));
        if checked.is_err() {
            let first = &case.comparison.summary.first_divergence;
            let failure = &case.comparison.summary.first_failure;
            for operator in &case.comparison.operators {
                eprintln!(
                    "{} {:?} {:?} {:?}",
                    name(operator),
                    operator.level,
                    operator.cause,
                    operator.error
                );
                eprintln!(
                    "    {:?}",
                    operator
                        .slots
                        .iter()
                        .map(|s| (&s.slot, s.level, &s.rules))
                        .collect::<Vec<_>>()
                );
            }
            panic!(
                "seed {seed}: {:?} {:?}\n{:#?}\n{first:?}\n{failure:?}",
                case.arithmetic, case.fault, case.network.nodes
            );
        }
        n_found += usize::from(case.comparison.summary.level == Level::Fail);
    }
    assert!(n_found > 250, "{n_found}");
}
