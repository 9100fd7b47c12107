//! Which values are dumped, of which model, and where.

mod support;

use std::sync::{Arc, Mutex};

use opscope_acl::{DumpCallback, status};
use opscope_store::file_format::run_json::RunState;
use opscope_store::run_file::{self, RunEnd};

use support::{Fixture, bytes};

const ALL: &str = "\"dump_list\": [{}]";

/// The files of one execution of the chain model.
fn files(time: usize, model: &str, id: u32, step: u64) -> Vec<String> {
    ["Next.b.1.0", "Twice.a.0.0"]
        .iter()
        .map(|file| format!("{time}/0/{model}/{id}/{step}/{file}"))
        .collect()
}

#[test]
fn two_models_are_dumped_one_after_the_other() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    fixture.begin_dump(ALL);
    let first = fixture.load("first.v1.onnx", "chain");
    assert_eq!(first, 1);
    assert_eq!(fixture.execute(first, [1.0, 2.0]).unwrap(), [3.0, 5.0]);
    process.finalize_dump().unwrap();
    process.unload(first).unwrap();

    process.init_dump().unwrap();
    fixture.set_dump(ALL);
    let second = fixture.load("second.onnx", "chain");
    assert_eq!(second, 2);
    fixture.execute(second, [1.0, 2.0]).unwrap();
    fixture.execute(second, [1.0, 2.0]).unwrap();
    process.finalize_dump().unwrap();
    // Nothing after the end of the dump.
    fixture.execute(second, [1.0, 2.0]).unwrap();
    process.finalize().unwrap();

    let mut expected = files(0, "first_v1", 1, 0);
    expected.extend(files(1, "second", 2, 0));
    expected.extend(files(1, "second", 2, 1));
    assert_eq!(fixture.dumped(), expected);
}

#[test]
fn each_dump_says_what_it_did() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    fixture.begin_dump(ALL);
    let model = fixture.load("first.onnx", "chain");
    let records = || run_file::find(&fixture.out()).runs;
    assert!(records().is_empty(), "nothing is written yet");
    fixture.execute(model, [1.0, 2.0]).unwrap();
    assert_eq!(records()[0].end, RunEnd::AtWork);
    fixture.execute(model, [1.0, 2.0]).unwrap();
    process.finalize_dump().unwrap();
    // A configuration under which nothing runs leaves no files.
    process.init_dump().unwrap();
    fixture.set_dump(ALL);
    process.finalize().unwrap();
    let [run] = &records()[..] else {
        panic!("{:?}", records());
    };
    assert_eq!(
        (run.end, run.record.state),
        (RunEnd::Ended, RunState::Finished)
    );
    assert_eq!((run.record.n_steps, run.record.models.len()), (2, 1));
    let count = |name: &str| run.record.counters[name];
    assert_eq!((count("n_operators_written"), count("n_files")), (4, 4));
    assert_eq!(count("n_selected"), count("n_written"));
}

#[test]
fn a_model_keeps_what_it_was_loaded_with() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    process.init(None).unwrap();
    process.init_dump().unwrap();
    let before = fixture.load("before.onnx", "chain");
    fixture.set_dump("\"dump_list\": [{\"layer\": [\"a\"]}], \"dump_mode\": \"output\"");
    let during = fixture.load("during.onnx", "chain");
    for model in [before, during] {
        fixture.execute(model, [1.0, 2.0]).unwrap();
    }
    assert_eq!(fixture.dumped(), ["0/0/during/2/0/Twice.a.0.0"]);
    process.finalize_dump().unwrap();
    fixture.execute(during, [1.0, 2.0]).unwrap();
    process.init_dump().unwrap();
    // Directory, time and steps are the new ones, the operators those at load time.
    fixture.set_dump("\"dump_list\": [{\"layer\": [\"b\"]}], \"dump_step\": \"3\"");
    for _ in 0..2 {
        for model in [before, during] {
            fixture.execute(model, [1.0, 2.0]).unwrap();
        }
    }
    let expected = ["Twice.a.0.0"].map(|file| format!("1/0/during/2/3/{file}"));
    assert_eq!(fixture.dumped()[1..], expected);
    // A model loaded now follows the new configuration entirely.
    let after = fixture.load("after.onnx", "chain");
    for _ in 0..4 {
        fixture.execute(after, [1.0, 2.0]).unwrap();
    }
    assert!(
        fixture
            .dumped()
            .contains(&"1/0/after/3/3/Next.b.1.0".to_owned())
    );
}

#[test]
fn the_latest_configuration_that_asks_for_something_counts() {
    let fixture = Fixture::new();
    fixture.begin_dump(ALL);
    fixture.set_dump("\"dump_list\": [{\"layer\": [\"b\"]}]");
    fixture.set_dump("\"dump_list\": []");
    let refused = fixture.file(
        "bad.json",
        "{\"dump\": {\"dump_path\": \"@DIR@\", \"dump_mode\": 1}}",
    );
    let answer = fixture.process.set_dump(Some(&refused));
    assert_eq!(answer, Err(status::INVALID_DUMP_CONFIG));
    let model = fixture.load("net.onnx", "chain");
    fixture.execute(model, [1.0, 2.0]).unwrap();
    assert_eq!(fixture.dumped(), ["0/0/net/1/0/Next.b.1.0"]);
    let path = fixture.process.dump_path(4).unwrap();
    assert!(path.starts_with(fixture.out().canonicalize().unwrap().to_str().unwrap()));
    assert!(path.ends_with('/'));
    let time = path.trim_end_matches('/').rsplit('/').next().unwrap();
    assert!(
        time.len() == 14 && time.bytes().all(|b| b.is_ascii_digit()),
        "{time}"
    );
    assert_eq!(
        [5, 1, 2, 3, 0, 6].map(|kind| fixture.process.dump_path(kind)),
        [const { None }; 6]
    );
}

#[test]
fn a_configuration_of_init_holds_until_the_end() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    let config = "{\"dump\": {\"dump_path\": \"@DIR@\", \"dump_list\": [{}]}}";
    let config = fixture.file("acl.json", config);
    process.init(Some(&config)).unwrap();
    let model = fixture.load("net.onnx", "chain");
    fixture.execute(model, [1.0, 2.0]).unwrap();
    process.finalize().unwrap();
    assert_eq!(
        fixture.execute(model, [1.0, 2.0]),
        Err(status::GE_EXEC_NOT_INIT)
    );
    process.init(None).unwrap();
    fixture.execute(model, [1.0, 2.0]).unwrap();
    assert_eq!(fixture.dumped(), files(0, "net", 1, 0));
}

#[test]
fn a_callback_gets_what_would_be_written() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    type Piece = (String, Vec<u8>, bool);
    let seen: Arc<Mutex<Vec<Piece>>> = Arc::default();
    let sink = seen.clone();
    let callback: DumpCallback = Arc::new(move |chunk| {
        let piece = (
            chunk.file_name.to_owned(),
            chunk.bytes.to_vec(),
            chunk.is_last,
        );
        sink.lock().unwrap().push(piece);
        0
    });
    process.register_callback(Some(callback), 0).unwrap();
    process
        .register_callback(Some(Arc::new(|_| panic!("the first one stays"))), 0)
        .unwrap();
    fixture.begin_dump("\"dump_list\": [{\"layer\": [\"b\"]}]");
    let model = fixture.load("net.onnx", "chain");
    fixture.execute(model, [1.0, 2.0]).unwrap();
    assert!(fixture.dumped().is_empty());
    let pieces = std::mem::take(&mut *seen.lock().unwrap());
    let file: Vec<u8> = pieces
        .iter()
        .flat_map(|(_, bytes, _)| bytes.clone())
        .collect();
    assert!(pieces.iter().all(|(name, bytes, _)| {
        name.contains("/0/net/1/0/Next.b.1.0.") && name.starts_with('/') && !bytes.is_empty()
    }));
    let last: Vec<bool> = pieces.iter().map(|(.., is_last)| *is_last).collect();
    assert_eq!(last.iter().filter(|is| **is).count(), 1);
    assert!(last[last.len() - 1]);
    assert!(file.ends_with(&bytes(&[3.0, 5.0])));

    fixture.set_dump("\"dump_list\": [{}], \"dump_data\": \"stats\"");
    let model = fixture.load("rows.onnx", "chain");
    fixture.execute(model, [1.0, 2.0]).unwrap();
    let pieces = std::mem::take(&mut *seen.lock().unwrap());
    let rows = pieces
        .iter()
        .find(|(name, ..)| name.contains("/rows/"))
        .unwrap();
    assert!(rows.0.ends_with(".csv") && rows.1.ends_with(&[0]) && rows.2);

    process.unregister_callback();
    fixture.execute(model, [1.0, 2.0]).unwrap();
    assert!(
        fixture
            .dumped()
            .iter()
            .any(|file| file.ends_with("/rows/2/1/Next.b.1.0.csv"))
    );
}

#[test]
fn an_operator_that_fails_is_dumped() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    fixture.begin_dump("\"dump_scene\": \"aic_err_norm_dump\"");
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = told.clone();
    let callback: opscope_acl::ExceptionCallback =
        Arc::new(move |info| sink.lock().unwrap().push((info.task_id, info.error_code)));
    process.set_exception_callback(Some(callback)).unwrap();
    let model = fixture.load("net.onnx", "fails");
    assert_eq!(
        fixture.execute(model, [1.0, 2.0]),
        Err(status::RT_MODEL_EXECUTE)
    );
    assert!(process.recent_error().unwrap().contains("it is broken"));
    assert_eq!(*told.lock().unwrap(), [(1, 507_018)]);
    assert_eq!(fixture.dumped(), ["extra-info/data-dump/0/Broken.b.1"]);
    let root = process.dump_path(1).unwrap();
    assert_eq!(process.exception_info_path(4096), Ok(format!("{root}0/")));
    assert_eq!(process.exception_info_path(1), Err(status::INVALID_PARAM));
    assert_eq!(
        process.exception_info_path(root.len() + 2),
        Err(status::INVALID_PARAM)
    );
    assert!(process.exception_info_path(root.len() + 3).is_ok());
    process.finalize_dump().unwrap();
    assert_eq!(process.dump_path(1), None);
    assert_eq!(process.exception_info_path(4096), Err(status::FAILURE));
}

#[test]
fn full_detail_of_failures_is_configured_before_a_device_is_used() {
    const DETAIL: &str = "{\"dump\": {\"dump_scene\": \"aic_err_detail_dump\"}}";
    let fixture = Fixture::new();
    let process = &fixture.process;
    process.init(None).unwrap();
    process.init_dump().unwrap();
    let file = fixture.file("detail.json", DETAIL);
    process.set_device(0).unwrap();
    let late = process.set_dump(Some(&file));
    assert_eq!(late, Err(status::INTERNAL_ERROR));
    let report = process.recent_error().unwrap();
    assert!(report.contains("before aclrtSetDevice"), "{report}");
    assert_eq!(process.dump_path(3), None);
    process.reset_device(0).unwrap();
    process.set_dump(Some(&file)).unwrap();
    process.finalize_dump().unwrap();
    assert!(process.dump_path(3).is_some(), "full detail is not ended");
    // A later configuration of the kind switches the first one on, whatever it asks for.
    process.set_device(0).unwrap();
    process.init_dump().unwrap();
    process.set_dump(Some(&file)).unwrap();
}

#[test]
fn the_environment_asks_for_failures() {
    let fixture = Fixture::with(|env| {
        env.collect_path = Some(env.current_dir.join("out"));
    });
    let process = &fixture.process;
    process.init(None).unwrap();
    process.init_dump().unwrap();
    // The environment's dump stays whatever a file requests.
    let elsewhere = "{\"dump\": {\"dump_path\": \"/tmp\", \"dump_scene\": \"lite_exception\"}}";
    process
        .set_dump(Some(&fixture.file("acl.json", elsewhere)))
        .unwrap();
    process.finalize_dump().unwrap();
    let model = fixture.load("net.onnx", "fails");
    fixture.execute(model, [1.0, 2.0]).unwrap_err();
    assert_eq!(fixture.dumped(), ["extra-info/data-dump/0/Broken.b.1"]);
}

#[test]
fn values_and_failures_are_dumped_of_the_same_execution() {
    let fixture = Fixture::with(|env| {
        env.dump_scene = Some("aic_err_brief_dump".into());
        env.dump_path = Some(env.current_dir.join("out"));
    });
    fixture.begin_dump(ALL);
    let model = fixture.load("net.onnx", "fails");
    fixture.execute(model, [1.0, 2.0]).unwrap_err();
    let files = fixture.dumped();
    assert!(
        files.contains(&"0/0/net/1/0/Twice.a.0.0".to_owned()),
        "{files:?}"
    );
    assert!(
        files.contains(&"extra-info/data-dump/0/exception_info.0.1".to_owned()),
        "{files:?}"
    );
}

#[test]
fn operators_on_their_own() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    fixture.begin_dump("\"dump_op_switch\": \"on\", \"dump_mode\": \"all\", \"dump_step\": \"7\"");
    let desc = process.create_tensor_desc(0, &[2], 2).unwrap();
    let buffer = |values: [f32; 2]| {
        let dataset = fixture.dataset(&[&bytes(&values)]);
        (desc, process.dataset_buffer(dataset, 0).unwrap())
    };
    let (a, b, sum) = (buffer([1.0, 2.0]), buffer([3.0, 4.0]), buffer([0.0, 0.0]));
    process.execute_op("Add", &[a, b], &[sum], 0, 0).unwrap();
    let address = process.data_buffer_address(sum.1);
    assert_eq!(process.read_memory(address, 8).unwrap(), bytes(&[4.0, 6.0]));
    assert_eq!(fixture.dumped(), ["0/0/Add.Add_0.65535.65535"]);

    assert_eq!(
        process.execute_op("Sub", &[a, b], &[sum], 0, 0),
        Err(status::OP_LOAD_FAILED)
    );
    let odd = process.create_tensor_desc(0, &[-1], 2).unwrap();
    let answer = process.execute_op("Add", &[(odd, a.1), b], &[sum], 0, 0);
    assert_eq!(answer, Err(status::INVALID_PARAM));
    let attributes = process.create_op_attr();
    let lists = opscope_acl::AttributeValue::IntLists(vec![vec![1]]);
    process.set_op_attr(attributes, "pads", lists).unwrap();
    let answer = process.execute_op("Add", &[a, b], &[sum], attributes, 0);
    assert_eq!(answer, Err(status::OP_ATTR_NOT_MATCH));
    let add = process
        .create_op_handle("Add", &[desc, desc], &[desc], 0)
        .unwrap();
    process
        .execute_op_handle(add, &[b.1, b.1], &[sum.1], 0)
        .unwrap();
    assert_eq!(process.read_memory(address, 8).unwrap(), bytes(&[6.0, 8.0]));
    process.destroy_op_handle(add).unwrap();
    assert_eq!(process.destroy_op_handle(add), Err(status::INVALID_PARAM));
}

#[test]
fn programs_keep_tensors_of_their_own() {
    use opscope_acl::ExceptionTensor;
    use opscope_store::file_format::dump_data::DumpFile;

    let fixture = Fixture::new();
    let process = &fixture.process;
    let address = process.malloc(8, 0).unwrap();
    process.write_memory(address, &bytes(&[1.0, 2.0])).unwrap();
    let tensor = |kind| ExceptionTensor {
        kind,
        size: 8,
        format: 2,
        data_type: 0,
        address,
        address_kind: 2,
        shape_num: 1,
        shape: vec![2],
        ..ExceptionTensor::default()
    };
    let tensors = [tensor(1), tensor(2), tensor(0)];
    let save = |name: Option<&str>, tensors: Option<&[ExceptionTensor]>| {
        process.save_exception_info(name, Some("tag"), tensors)
    };
    assert_eq!(save(Some("mine"), Some(&tensors)), Err(status::FAILURE));
    fixture.begin_dump("\"dump_scene\": \"lite_exception\"");
    save(Some("sub/mine"), Some(&tensors)).unwrap();
    assert_eq!(fixture.dumped(), ["extra-info/data-dump/0/sub/mine.custom"]);
    let dir = fixture.out().join("extra-info/data-dump/0/sub");
    let path = std::fs::read_dir(dir)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let file = DumpFile::open(&path).unwrap();
    let header = file.header();
    assert_eq!(header.op_name, "mine");
    assert_eq!(
        (&*header.attrs[0].name, &*header.attrs[0].value),
        ("user_tag", "tag")
    );
    assert_eq!(
        (
            header.inputs.len(),
            header.outputs.len(),
            header.spaces.len()
        ),
        (1, 1, 1)
    );
    assert_eq!(
        (header.inputs[0].data_type, &header.inputs[0].shape),
        (1, &Some(vec![2]))
    );

    let wrong = |change: fn(&mut ExceptionTensor)| {
        let mut wrong = tensor(0);
        change(&mut wrong);
        save(Some("mine"), Some(&[wrong]))
    };
    let refused = Err(status::INVALID_PARAM);
    assert_eq!(wrong(|tensor| tensor.kind = 3), refused);
    assert_eq!(wrong(|tensor| tensor.shape_num = 26), refused);
    assert_eq!(wrong(|tensor| tensor.address_kind = 0), refused);
    assert_eq!(wrong(|tensor| tensor.placement = 1), refused);
    assert_eq!(wrong(|tensor| tensor.address = 0), refused);
    assert_eq!(wrong(|tensor| tensor.size = 0), refused);
    assert_eq!(save(None, Some(&tensors)), refused);
    assert_eq!(save(Some(""), Some(&tensors)), refused);
    assert_eq!(save(Some("../mine"), Some(&tensors)), refused);
    assert_eq!(save(Some("mine"), None), refused);
    assert_eq!(save(Some("mine"), Some(&[])), refused);
}

#[test]
fn a_later_mode_replaces_an_earlier_one() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    fixture.begin_dump("\"dump_list\": [{\"layer\": [\"b\"]}]");
    let model = fixture.load("net.onnx", "chain");
    fixture.set_dump("\"dump_debug\": \"on\"");
    // Both are on until the end of the dump; models follow the latest.
    assert!(process.dump_path(4).is_some() && process.dump_path(5).is_some());
    fixture.execute(model, [1.0, 2.0]).unwrap();
    assert!(fixture.dumped().is_empty());
    fixture.execute(model, [3e38, 2.0]).unwrap();
    let files = fixture.dumped();
    // `b` only passes the infinity on.
    let expected =
        ["Opdebug.Node_OpDebug.0.0", "Twice.a.0.0"].map(|file| format!("0/0/net/1/1/{file}"));
    assert_eq!(files, expected);
    process.finalize_dump().unwrap();
    assert!(process.dump_path(4).is_none() && process.dump_path(5).is_none());
}

#[test]
fn executions_of_several_threads_are_all_dumped() {
    let fixture = Fixture::new();
    fixture.begin_dump("\"dump_list\": [{\"layer\": [\"b\"]}]");
    let models = [
        fixture.load("m.onnx", "chain"),
        fixture.load("n.onnx", "chain"),
    ];
    let five = |model| {
        for _ in 0..5 {
            fixture.execute(model, [1.0, 2.0]).unwrap();
        }
    };
    std::thread::scope(|scope| {
        for model in [models[0], models[1], models[0], models[1]] {
            let five = &five;
            scope.spawn(move || five(model));
        }
    });
    fixture.process.finalize_dump().unwrap();
    let mut expected: Vec<String> = Vec::new();
    for (name, id) in [("m", 1), ("n", 2)] {
        expected.extend((0..10).map(|step| format!("0/0/{name}/{id}/{step}/Next.b.1.0")));
    }
    assert_eq!(fixture.dumped(), expected);
}
