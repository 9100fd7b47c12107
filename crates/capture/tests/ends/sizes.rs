//! Very many tensors, and a very large one.

use std::sync::Arc;

use memmap2::MmapMut;
use opscope_capture::{Plan, SlotSides};
use opscope_tensor::{DType, Shape, Tensor};

use crate::double::{addition, additions, float, one_writer, willing, with_session};

#[test]
fn a_hundred_thousand_tiny_tensors() {
    const N_STEPS: u64 = 1000;
    let operators = additions(100);
    let plan = Plan {
        sides: SlotSides::Outputs,
        ..Plan::everything()
    };
    let tensor = float(1.0);
    let sink = willing();
    let options = Default::default();
    let summary = with_session(plan, sink.clone(), options, &operators, |tap| {
        for step in 0..N_STEPS {
            tap.begin_step(step);
            for operator in &operators {
                let mut probe = tap.open(operator).unwrap();
                probe.output(0, tensor.clone());
                probe.submit();
            }
        }
    });
    let c = summary.counters;
    assert_eq!((c.n_selected, c.n_written), (100_000, 100_000));
    assert_eq!(c.n_bytes_written, 400_000);
    assert_eq!(sink.kept().len(), 100_000);
}

#[test]
#[expect(
    clippy::print_stderr,
    reason = "says that there is nothing to test with"
)]
fn a_tensor_of_four_gigabytes() {
    const N: usize = 4 << 30;
    // Pages that are never written to take no memory.
    let Ok(memory) = MmapMut::map_anon(N) else {
        eprintln!("not tested: no address space for {N} bytes");
        return;
    };
    let shape = Shape::new([N]).unwrap();
    let tensor = Tensor::new(DType::U8, shape, Arc::new(memory)).unwrap();
    let operators = [addition(0), addition(1)];
    let plan = Plan {
        sides: SlotSides::Outputs,
        ..Plan::everything()
    };
    for (n_bytes_max, n_written) in [(None, 2), (Some(N as u64), 1), (Some(N as u64 - 1), 0)] {
        let options = opscope_capture::SessionOptions {
            n_bytes_max,
            ..one_writer()
        };
        let summary = with_session(plan.clone(), willing(), options, &operators, |tap| {
            for operator in &operators {
                if let Some(mut probe) = tap.open(operator) {
                    probe.output(0, tensor.clone());
                    probe.submit();
                }
            }
        });
        let c = summary.counters;
        assert_eq!((c.n_written, c.dropped.n_limit), (n_written, 2 - n_written));
        assert_eq!(c.n_bytes_written, n_written * N as u64);
    }
}
