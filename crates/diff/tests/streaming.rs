//! A target that is compared while it runs, with models built from closures.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};

use opscope_analysis::compare::run::{ComparisonRequest, OpenedDumps, run_opened};
use opscope_analysis::compare::side::ComparedDump;
use opscope_analysis::compare::verdict::Thresholds;
use opscope_capture::{SessionOptions, Sink};
use opscope_diff::{
    ComparingSink, GoldenSlots, RunError, RunOutcome, RunningGolden, TargetStore, WatchOptions,
    run_steps,
};
use opscope_dump::held::{HeldDump, HeldRoom, describe};
use opscope_engine::fake::FakeModel;
use opscope_engine::{DeclaredDim, LoadedModel, ModelSignature, ValueInfo};
use opscope_store::record::ModelId;
use opscope_tensor::{DType, Shape, Tensor};

const N: usize = 100;

fn tensor(value: impl Fn(usize) -> f32) -> Tensor {
    let bytes = (0..N).flat_map(|i| value(i).to_le_bytes()).collect();
    Tensor::from_vec(DType::F32, Shape::new([N]).unwrap(), bytes).unwrap()
}

fn mapped(inputs: &[Tensor], map: impl Fn(f32) -> f32) -> Result<Vec<Tensor>, String> {
    let bytes = inputs[0].host_bytes().unwrap().as_chunks::<4>().0;
    let values: Vec<f32> = bytes.iter().map(|&b| map(f32::from_le_bytes(b))).collect();
    Ok(vec![tensor(|i| values[i])])
}

/// `x` → double → shift → negate, where the caller chooses the factor of `double`.
fn model(factor: impl Fn() -> f32 + Send + 'static) -> FakeModel {
    let signature = ModelSignature {
        inputs: vec![ValueInfo {
            name: "x".into(),
            dtype: DType::F32,
            dims: Some(vec![DeclaredDim::Fixed(N)]),
        }],
        ..ModelSignature::default()
    };
    FakeModel::new(signature)
        .with("Mul", "double", &["x"], &["a"], move |inputs| {
            let factor = factor();
            mapped(inputs, |x| factor * x)
        })
        .with("Add", "shift", &["a"], &["b"], |inputs| {
            mapped(inputs, |x| x + 1.0)
        })
        .with("Neg", "negate", &["b"], &["y"], |inputs| {
            mapped(inputs, |x| -x)
        })
}

fn id() -> Arc<ModelId> {
    Arc::new(ModelId::first_load("net", ""))
}

fn run(
    model: &mut FakeModel,
    sink: Arc<dyn Sink>,
    steps: &[u64],
    comparing: Option<&ComparingSink>,
) -> RunOutcome {
    let input = |nth: usize| Ok::<_, RunError>(vec![tensor(|i| (i + nth) as f32)]);
    let options = SessionOptions::default();
    run_steps((model, &id()), sink, options, steps, input, |session| {
        if let Some(comparing) = comparing {
            comparing.set_stop_flag(session.stop_flag());
        }
    })
    .unwrap()
}

fn dump(model: &FakeModel, held: &HeldDump) -> ComparedDump {
    let graph = describe(model, &id()).unwrap();
    ComparedDump::from_index("net".as_ref(), held.take_index(vec![graph]))
}

fn golden(room: &Arc<HeldRoom>, steps: &[u64]) -> Arc<ComparedDump> {
    let mut model = model(|| 2.0);
    let held = Arc::new(HeldDump::new(room.clone()));
    let outcome = run(&mut model, held.clone(), steps, None);
    assert_eq!(outcome.n_steps, steps.len() as u64);
    Arc::new(dump(&model, &held))
}

#[test]
fn tensors_that_are_the_same_are_held_once() {
    let room = Arc::new(HeldRoom::new(u64::MAX));
    let golden = golden(&room, &[0, 1]);
    let [before, _] = room.n_bytes();
    // Each step has an input and three values.
    assert_eq!(before, 2 * 4 * 4 * N as u64);
    let mut same = model(|| 2.0).in_place();
    let held = Arc::new(HeldDump::new(room.clone()));
    let slots = GoldenSlots::new(golden.clone());
    let store = TargetStore::Held(held.clone());
    let sink = Arc::new(ComparingSink::new(slots, store, WatchOptions::default()));
    run(&mut same, sink.clone(), &[0, 1], None);
    assert_eq!(room.n_bytes(), [before, 0]);
    let target = dump(&same, &held);
    check_equal_sides(&sink, [&target, &golden], 6);
}

/// Runs `target` together with a golden model, and returns the comparison and both dumps.
fn run_beside(
    room: &Arc<HeldRoom>,
    (mut target, mut golden): (FakeModel, FakeModel),
    steps: &[u64],
) -> (Arc<ComparingSink>, [ComparedDump; 2]) {
    let [held, golden_held] = [0, 1].map(|_| Arc::new(HeldDump::new(room.clone())));
    let running = Arc::new(RunningGolden::new(golden_held.clone(), &golden));
    let slots = GoldenSlots::of_run(running.clone());
    let store = TargetStore::Held(held.clone());
    let sink = Arc::new(ComparingSink::new(slots, store, WatchOptions::default()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _end = running.end();
            run(&mut golden, running.clone(), steps, None);
        });
        run(&mut target, sink.clone(), steps, None);
    });
    (sink, [dump(&target, &held), dump(&golden, &golden_held)])
}

#[test]
fn runs_at_the_same_time_give_what_runs_one_after_the_other_give() {
    // The golden side begins each step after its target, which has to wait for it.
    let (begun, has_begun) = mpsc::channel();
    let first = move || {
        begun.send(()).unwrap();
        2.0
    };
    let second = move || {
        has_begun.recv().unwrap();
        2.0
    };
    let room = Arc::new(HeldRoom::new(u64::MAX));
    let pair = (model(first).in_place(), model(second));
    let (sink, [target, golden]) = run_beside(&room, pair, &[0, 1, 2]);
    // Tensors equal on both sides are held once.
    assert_eq!(room.n_bytes(), [3 * 4 * 4 * N as u64, 0]);
    check_equal_sides(&sink, [&target, &golden], 9);
}

/// Using the measurements of the sink does not change the result.
fn check_equal_sides(
    sink: &ComparingSink,
    [target, golden]: [&ComparedDump; 2],
    n_operators: usize,
) {
    let request =
        ComparisonRequest::with_defaults("a".as_ref(), "b".as_ref(), 1, "test".to_owned());
    let results = [Some(sink.measured()), None].map(|measured| {
        let dumps = OpenedDumps {
            target,
            golden,
            reference: None,
            measured,
            experimenter: None,
        };
        run_opened(&request, dumps).unwrap()
    });
    assert_eq!(results[0].operators, results[1].operators);
    assert_eq!(results[0].operators.len(), n_operators);
    assert!(results[0].summary.first_divergence.is_none());
}

#[test]
fn a_golden_run_that_ends_early_keeps_nobody_waiting() {
    let room = Arc::new(HeldRoom::new(u64::MAX));
    let [held, golden_held] = [0, 1].map(|_| Arc::new(HeldDump::new(room.clone())));
    let mut golden = model(|| 2.0);
    let running = Arc::new(RunningGolden::new(golden_held, &golden));
    let slots = GoldenSlots::of_run(running.clone());
    let store = TargetStore::Held(held.clone());
    let sink = Arc::new(ComparingSink::new(slots, store, WatchOptions::default()));
    let mut target = model(|| 2.0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _end = running.end();
            run(&mut golden, running.clone(), &[0], None);
        });
        // Steps that the golden side never reaches.
        run(&mut target, sink.clone(), &[0, 1, 2], None);
    });
    assert_eq!(dump(&target, &held).runs.len(), 9);
}

#[test]
fn the_first_output_beyond_the_limits_is_told_whatever_ran_behind_it() {
    let room = Arc::new(HeldRoom::new(0));
    let golden = golden(&room, &[0, 1, 2]);
    // It fails in the second step.
    let n_calls = AtomicU32::new(0);
    let factor = move || {
        if n_calls.fetch_add(1, Ordering::Relaxed) == 0 {
            2.0
        } else {
            2.5
        }
    };
    let mut wrong = model(factor);
    let held = Arc::new(HeldDump::new(room));
    let options = WatchOptions {
        stop_beyond: Some(Thresholds::default()),
        ..WatchOptions::default()
    };
    let slots = GoldenSlots::new(golden.clone());
    let sink = Arc::new(ComparingSink::new(
        slots,
        TargetStore::Held(held.clone()),
        options,
    ));
    run(&mut wrong, sink.clone(), &[0, 1, 2], Some(&sink));
    let beyond = sink.first_beyond().unwrap();
    assert_eq!(beyond.step, 1);
    let mut target = dump(&wrong, &held);
    target.cut_after(beyond.step, beyond.timestamp_us);
    let last = target.runs.last().unwrap();
    assert_eq!((&*last.op_name, last.place.step), ("double", Some(1)));
    let mut part = ComparedDump::clone(&golden);
    part.cut_behind(&target);
    assert_eq!(part.runs.len(), target.runs.len());
    assert_eq!(part.runs.len(), 4);
}

#[test]
fn operators_that_vary_by_themselves_are_told_from_those_that_inherit() {
    let room = Arc::new(HeldRoom::new(u64::MAX));
    let golden = golden(&room, &[0]);
    let n_calls = AtomicU32::new(0);
    let varying = move || 2.0 + n_calls.fetch_add(1, Ordering::Relaxed) as f32 / 4.0;
    let mut model = model(varying);
    let options = WatchOptions {
        notes_operators: true,
        ..WatchOptions::default()
    };
    let slots = GoldenSlots::new(golden);
    let sink = Arc::new(ComparingSink::new(slots, TargetStore::Nothing, options));
    let as_sink: Arc<dyn Sink> = sink.clone();
    // The same inputs twice in one session; the golden side returned the result of the first.
    let input = |_| Ok::<_, RunError>(vec![tensor(|i| i as f32)]);
    let session = SessionOptions::default();
    run_steps(
        (&mut model, &id()),
        as_sink,
        session,
        &[0, 0],
        input,
        |_| {},
    )
    .unwrap();
    let seen: Vec<(String, Vec<String>)> = sink
        .take_operators()
        .into_iter()
        .map(|operator| {
            assert!(operator.is_whole);
            let slots = operator.slots.iter();
            let slots = slots.map(|slot| format!("{}.{}", slot.side.name(), slot.index));
            (operator.operator.op_name.clone(), slots.collect())
        })
        .collect();
    let expected = [
        ("double", &["output.0"][..]),
        ("shift", &["input.0", "output.0"]),
        ("negate", &["input.0", "output.0"]),
    ];
    let expected = expected.map(|(name, slots)| {
        (
            name.to_owned(),
            slots.iter().map(|&slot| slot.to_owned()).collect(),
        )
    });
    assert_eq!(seen, expected);
}

#[test]
fn a_run_that_is_stopped_says_so() {
    // The command holds a trait object.
    let mut model: Box<dyn LoadedModel> = Box::new(model(|| 2.0));
    let room = Arc::new(HeldRoom::new(u64::MAX));
    let held = Arc::new(HeldDump::new(room));
    let input = |_| Ok::<_, RunError>(vec![tensor(|_| 1.0)]);
    let outcome = run_steps(
        (&mut *model, &id()),
        held.clone(),
        SessionOptions::default(),
        &[0, 1],
        input,
        |session| session.stop_flag().store(true, Ordering::Relaxed),
    );
    let outcome = outcome.unwrap();
    assert!(outcome.is_stopped);
    assert_eq!(outcome.n_steps, 0);
    assert!(held.take_index(Vec::new()).tensors.is_empty());
}
