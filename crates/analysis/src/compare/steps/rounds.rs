//! Narrowing down the first step that differs, dump by dump.

use super::NextDump;

/// Maximum number of steps of one dump. A run takes as long for one of them as for ten, and most of
/// the runs to come are spared.
const N_STEPS_MAX: u64 = 10;

/// The steps to dump of those from `begin` up to and without `end`, which is larger. None of them
/// was compared, and `end` differs.
pub(super) fn narrowing(begin: u64, end: u64) -> NextDump {
    let n = end - begin;
    let n_steps = n.min(N_STEPS_MAX);
    let steps = (1..=n_steps).map(|i| {
        // In 128 bits, as a program may number its steps as it likes.
        let place = u128::from(i) * (u128::from(n) + 1) / u128::from(n_steps + 1);
        begin + (place as u64 - 1)
    });
    NextDump {
        steps: steps.collect(),
        needs_elements: false,
        n_rounds_after: n_rounds(n) - 1,
    }
}

/// How many dumps it takes until no step is left that was not compared, at worst.
fn n_rounds(mut n: u64) -> usize {
    let mut n_rounds = 0;
    while n > 0 {
        let n_steps = n.min(N_STEPS_MAX);
        // Steps that are left between two of the dump.
        n = n.saturating_add(1).div_ceil(n_steps + 1) - 1;
        n_rounds += 1;
    }
    n_rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_gaps_are_dumped_whole() {
        let check = |begin, end, steps: &[u64], n_rounds_after| {
            let expected = NextDump {
                steps: steps.to_vec(),
                needs_elements: false,
                n_rounds_after,
            };
            assert_eq!(narrowing(begin, end), expected);
        };
        check(0, 1, &[0], 0);
        check(5, 6, &[5], 0);
        check(31, 40, &[31, 32, 33, 34, 35, 36, 37, 38, 39], 0);
        check(1, 11, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0);
        check(
            101,
            200,
            &[109, 118, 127, 136, 145, 154, 163, 172, 181, 190],
            1,
        );
        let all = narrowing(0, u64::MAX);
        assert_eq!(all.steps.len(), 10);
        assert_eq!(all.n_rounds_after, 18);
    }

    #[test]
    fn rounds_are_enough_wherever_the_fault_is() {
        for end in [2, 11, 12, 120, 121, 122, 1000] {
            for fault in 1..=end {
                let (mut begin, mut bad, mut n_rounds) = (1, end, 0);
                let promised = narrowing(begin, bad).n_rounds_after + 1;
                while begin < bad {
                    for step in narrowing(begin, bad).steps {
                        assert!((begin..bad).contains(&step), "{begin} {bad} {step}");
                        if step >= fault {
                            bad = step;
                            break;
                        }
                        begin = step + 1;
                    }
                    n_rounds += 1;
                }
                assert_eq!(bad, fault);
                assert!(n_rounds <= promised, "{end} {fault}");
            }
        }
    }
}
