//! Engines that lend their memory for the time of a call.

use std::sync::Arc;

use opscope_capture::sink::MemorySink;
use opscope_capture::{BorrowError, ModelSelection, OperatorSelection, Plan, Purpose, SlotSides};
use opscope_store::record::Record;
use opscope_tensor::{DType, Layout, Shape, TensorView};

use crate::double::{additions, one_writer, with_session};

fn view<'a>(shape: &'a Shape, bytes: &'a [u8]) -> TensorView<'a> {
    TensorView {
        dtype: DType::U8,
        shape,
        layout: Layout::Nchw,
        bytes,
    }
}

fn contents(record: &Record) -> Vec<Vec<u8>> {
    let slots = record.slots();
    slots
        .map(|(_, _, tensor)| tensor.host_bytes().unwrap().to_vec())
        .collect()
}

#[test]
fn what_was_shown_is_kept_whatever_becomes_of_the_memory() {
    // Below and above the size from which memory is kept for the next copy.
    for n in [0, 5, 100_000] {
        let operators = additions(20);
        let sink = Arc::new(MemorySink::default());
        let shape = Shape::new([n]).unwrap();
        let mut memory = vec![0; n];
        with_session(
            Plan::everything(),
            sink.clone(),
            one_writer(),
            &operators,
            |tap| {
                for operator in &operators {
                    let mut probe = tap.open(operator).unwrap();
                    let first = operator.task_id as u8 * 3;
                    for slot in 0..3_u8 {
                        memory.fill(first + slot);
                        let shown = view(&shape, &memory);
                        let result = match slot {
                            0 | 1 => probe.input_borrowed(slot.into(), shown),
                            _ => probe.output_borrowed(0, shown),
                        };
                        result.unwrap();
                        memory.fill(0xff);
                    }
                    // Shown twice: the first one counts.
                    probe.output_borrowed(0, view(&shape, &memory)).unwrap();
                    probe.submit();
                }
            },
        );
        let records = sink.take();
        assert_eq!(records.len(), 20);
        for (i, record) in records.iter().enumerate() {
            let expected: Vec<_> = (0..3).map(|slot| vec![i as u8 * 3 + slot; n]).collect();
            assert_eq!(contents(record), expected);
            assert_eq!(record.outputs[0].1.layout(), Layout::Nchw);
        }
    }
}

#[test]
fn a_tensor_with_several_places_is_copied_once() {
    let operators = additions(1);
    let sink = Arc::new(MemorySink::default());
    let plan = Plan {
        has_graph_inputs: true,
        has_parameters: true,
        ..Plan::everything()
    };
    let shape = Shape::new([4]).unwrap();
    with_session(plan, sink.clone(), one_writer(), &operators, |tap| {
        tap.begin_step(0);
        let mut probe = tap.open(&operators[0]).unwrap();
        let mut memory = [1, 2, 3, 4];
        probe.input_borrowed(0, view(&shape, &memory)).unwrap();
        memory.fill(9);
        probe.input_borrowed(0, view(&shape, &memory)).unwrap();
        probe.submit();
        tap.end_step();
    });
    let records = sink.take();
    let copies: Vec<*const u8> = records
        .iter()
        .flat_map(|record| record.slots())
        .map(|(_, _, tensor)| {
            assert_eq!(tensor.host_bytes().unwrap(), [1, 2, 3, 4]);
            tensor.host_bytes().unwrap().as_ptr()
        })
        .collect();
    // The operator's own, the graph input's and the parameter's.
    assert_eq!(copies.len(), 3);
    assert!(copies.iter().all(|copy| *copy == copies[0]));
}

#[test]
fn sizes_are_checked_where_the_tensor_is_wanted() {
    let operators = additions(1);
    let plan = Plan {
        sides: SlotSides::Outputs,
        ..Plan::everything()
    };
    let sink = Arc::new(MemorySink::default());
    let shape = Shape::new([4]).unwrap();
    let summary = with_session(plan, sink, one_writer(), &operators, |tap| {
        let mut probe = tap.open(&operators[0]).unwrap();
        // It is not selected, so it is not inspected.
        assert_eq!(probe.input_borrowed(0, view(&shape, &[0; 3])), Ok(()));
        assert_eq!(probe.output_borrowed(7, view(&shape, &[0; 3])), Ok(()));
        for n in [0, 3, 5] {
            let error = probe.output_borrowed(0, view(&shape, &vec![0; n]));
            assert!(matches!(error, Err(BorrowError::Tensor(_))), "{n}");
        }
        probe.submit();
    });
    let c = summary.counters;
    assert_eq!((c.n_selected, c.dropped.n_not_shown), (1, 1));
}

#[test]
fn lent_memory_cannot_be_watched() {
    let operators = additions(2);
    let plan = Plan {
        purpose: Purpose::Watch,
        models: ModelSelection::Every(OperatorSelection {
            watched: vec!["op0".into()],
            ..OperatorSelection::every()
        }),
        ..Plan::everything()
    };
    let sink = Arc::new(MemorySink::default());
    let shape = Shape::new([1]).unwrap();
    let summary = with_session(plan, sink, one_writer(), &operators, |tap| {
        let mut probe = tap.open(&operators[0]).unwrap();
        let error = probe.output_borrowed(0, view(&shape, &[1]));
        assert_eq!(error, Err(BorrowError::Watched));
        probe.submit();
    });
    assert_eq!(summary.counters.dropped.n_not_shown, 1);
}
