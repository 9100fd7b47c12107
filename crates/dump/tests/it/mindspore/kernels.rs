//! CPU, GPU and Ascend kernel by kernel.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::{
    CompiledKernelRule, FailureDetail, KernelSelection, ModelSelection, OperatorSelection, Plan,
    Purpose, Sink, SlotSides, Steps,
};
use opscope_config::dialect::mindspore::DevicePrecision;
use opscope_dump::{MindSporeOptions, MindSporeSink, RuntimeMode};
use opscope_store::file_format::npy;
use opscope_store::file_format::statistic_csv::StatisticCategory;
use opscope_store::record::{Operator, Record};
use opscope_store::tree::mindspore::{FILE_NAME_BYTES_MAX, TreeTarget};
use opscope_tensor::DType;

use super::run::{execute, files, floats, options, run, run_with, tensor, text};
use super::tree::grammar_differences;

fn with_parameters() -> Plan {
    Plan {
        has_parameters: true,
        has_constants: true,
        ..Plan::everything()
    }
}

fn chosen(rules: Vec<CompiledKernelRule>, plan: Plan) -> Plan {
    let kernels = KernelSelection::Rules(rules);
    Plan {
        models: ModelSelection::Every(OperatorSelection::by_kernels(kernels)),
        ..plan
    }
}

#[test]
fn the_tree_of_the_cpu_is_that_of_a_real_run() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        has_constants: false,
        ..with_parameters()
    };
    run(
        options(dir.path(), TreeTarget::Cpu),
        plan,
        2,
        &floats(&[2.0, 4.0]),
    );
    let golden = "../store/tests/golden/mindspore/lenet_all/dump";
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(golden);
    assert_eq!(
        grammar_differences(dir.path(), &golden),
        Vec::<String>::new()
    );
}

#[test]
fn everything_on_the_cpu() {
    let dir = tempfile::tempdir().unwrap();
    let options = MindSporeOptions {
        first_iteration: 7,
        ..options(dir.path(), TreeTarget::Cpu)
    };
    let plan = Plan {
        steps: Steps::in_ranges(vec![1..=1]),
        ..with_parameters()
    };
    let summary = run(options, plan, 3, &floats(&[2.0, 4.0]));
    let end = "0.DefaultFormat.Float32.npy";
    assert_eq!(
        files(dir.path()),
        [
            "rank_0/.dump_metadata/config.json".to_owned(),
            "rank_0/.dump_metadata/data_dump.json".into(),
            format!("rank_0/Net/0/8/Add._add_Add.0.0.T.input.{end}"),
            "rank_0/Net/0/8/Add._add_Add.0.0.T.input.1.DefaultFormat.Float32.npy".into(),
            format!("rank_0/Net/0/8/Add._add_Add.0.0.T.output.{end}"),
            format!("rank_0/Net/0/8/Conv._conv_Conv.0.0.T.input.{end}"),
            "rank_0/Net/0/8/Conv._conv_Conv.0.0.T.input.1.DefaultFormat.Float32.npy".into(),
            format!("rank_0/Net/0/8/Conv._conv_Conv.0.0.T.output.{end}"),
            format!("rank_0/Net/0/8/Parameter.conv_weight.0.0.T.output.{end}"),
            format!("rank_0/Net/0/8/Parameter.x.0.0.T.output.{end}"),
            format!("rank_0/Net/0/constants/Parameter.data-0.0.0.T.output.{end}"),
            "rank_0/execution_order/ms_execution_order_graph_0.csv".into(),
            "rank_0/execution_order/ms_global_execution_order_graph_0.csv".into(),
            "rank_0/graphs/ms_output_trace_code_graph_0.ir".into(),
            "rank_0/graphs/ms_output_trace_code_graph_0.pb".into(),
        ]
    );
    assert_eq!(summary.counters.n_written, 9);
    assert_eq!(summary.counters.n_files, 15 - 2);
    let orders = "rank_0/execution_order/ms_";
    assert_eq!(
        text(dir.path(), &format!("{orders}execution_order_graph_0.csv")),
        "NodeExecutionOrder-FullNameWithScope\n/conv/Conv\n/add/Add\n"
    );
    let global = text(
        dir.path(),
        &format!("{orders}global_execution_order_graph_0.csv"),
    );
    assert_eq!(global, "8\n");
    let ir = text(dir.path(), "rank_0/graphs/ms_output_trace_code_graph_0.ir");
    assert!(ir.contains("<Tensor[Float32], (2)>"), "{ir}");
    let graph = opscope_store::file_format::ms_graph_ir::decode(&ir).unwrap();
    assert_eq!(graph.nodes[1].full_name, "/add/Add");
    let pb = dir
        .path()
        .join("rank_0/graphs/ms_output_trace_code_graph_0.pb");
    let pb = opscope_store::file_format::ms_graph_pb::decode(&std::fs::read(pb).unwrap()).unwrap();
    // The last one holds the result.
    assert_eq!(pb.nodes.len(), 3);
}

#[test]
fn times_follow_the_order_of_execution_and_differ() {
    let dir = tempfile::tempdir().unwrap();
    run(
        options(dir.path(), TreeTarget::Cpu),
        with_parameters(),
        1,
        &floats(&[2.0]),
    );
    let mut times: Vec<(u64, String)> = std::fs::read_dir(dir.path().join("rank_0/Net/0/0"))
        .unwrap()
        .map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let mut fields = name.split('.').skip(4);
            (fields.next().unwrap().parse().unwrap(), name)
        })
        .collect();
    times.sort();
    assert!(times.is_sorted_by(|(a, _), (b, _)| a < b));
    let types: Vec<&str> = times
        .iter()
        .map(|(_, n)| n.split('.').next().unwrap())
        .collect();
    let expected = [
        "Conv",
        "Conv",
        "Conv",
        "Add",
        "Add",
        "Add",
        "Parameter",
        "Parameter",
    ];
    assert_eq!(types, expected);
}

#[test]
fn rules_choose_operators_and_parameters() {
    let dir = tempfile::tempdir().unwrap();
    let plan = chosen(
        vec![CompiledKernelRule::op_type("conv.w")],
        with_parameters(),
    );
    run(
        options(dir.path(), TreeTarget::Gpu),
        plan,
        1,
        &floats(&[2.0]),
    );
    let names = files(&dir.path().join("rank_0/Net/0"));
    // Not its type, but its name has it after the last slash.
    assert_eq!(
        names,
        ["0/Parameter.conv_weight.0.0.T.output.0.DefaultFormat.float32.npy"]
    );
}

#[test]
fn types_are_converted_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (h, descr, dtype) in [
        (
            tensor(DType::BF16, &[1], &[0x80, 0x3f]),
            DType::F32,
            "bfloat16",
        ),
        (tensor(DType::I4, &[2], &[0x18]), DType::I8, "int4"),
        (tensor(DType::Bool, &[], &[1]), DType::Bool, "bool"),
    ] {
        let dir = dir.path().join(dtype);
        let plan = chosen(
            vec![CompiledKernelRule::op_type("Conv")],
            Plan::everything(),
        );
        run(options(&dir, TreeTarget::AscendKernels), plan, 1, &h);
        let dump = dir.join("rank_0/Net/0/0");
        let mut found = std::fs::read_dir(dump).unwrap().map(|e| e.unwrap().path());
        let path = found.find(|p| p.to_string_lossy().contains(&format!(".{dtype}.npy")));
        assert_eq!(npy::read_file(&path.unwrap()).unwrap().dtype(), descr);
    }
    for h in [
        tensor(DType::F8E5M2, &[1], &[0]),
        tensor(DType::F32, &[0], &[]),
        tensor(DType::C64, &[1], &[0; 8]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let summary = run(
            options(dir.path(), TreeTarget::Gpu),
            Plan::everything(),
            1,
            &h,
        );
        let c = summary.counters;
        assert_eq!((c.n_refused, c.n_written), (2, 4), "{}", h.dtype());
    }
}

#[test]
fn statistics_follow_the_tensors_and_add_up_over_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let options = || MindSporeOptions {
        statistics: Some(vec![
            StatisticCategory::Max,
            StatisticCategory::L2Norm,
            StatisticCategory::Count,
        ]),
        ..options(dir.path(), TreeTarget::AscendKernels)
    };
    let plan = || Plan {
        sides: SlotSides::Outputs,
        ..chosen(
            vec![CompiledKernelRule::name("/conv/Conv")],
            Plan::everything(),
        )
    };
    for _ in 0..2 {
        run(options(), plan(), 1, &floats(&[3.0, -4.0]));
    }
    let csv = text(dir.path(), "rank_0/Net/0/0/statistic.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].ends_with(",Shape,Max Value,L2Norm Value,Count"));
    let names = files(&dir.path().join("rank_0/Net/0/0"));
    for line in &lines[1..] {
        assert!(line.starts_with("Conv,/conv/Conv,0,0,"), "{line}");
        assert!(
            line.ends_with(",output,0,8,float32,\"[2]\",3,5,2,"),
            "{line}"
        );
        let time = line.split(',').nth(4).unwrap();
        let npy = format!("Conv._conv_Conv.0.0.{time}.output.0.DefaultFormat.float32.npy");
        assert!(
            dir.path().join("rank_0/Net/0/0").join(npy).exists(),
            "{names:?}"
        );
    }
    let only = tempfile::tempdir().unwrap();
    let on_device = MindSporeOptions {
        path: only.path().to_owned(),
        has_tensors: false,
        device_statistics: Some(DevicePrecision::High),
        ..options()
    };
    run(on_device, plan(), 1, &floats(&[3.0, -4.0]));
    assert_eq!(
        files(&only.path().join("rank_0/Net")),
        ["0/0/statistic.csv"]
    );
    let csv = text(only.path(), "rank_0/Net/0/0/statistic.csv");
    assert!(csv.ends_with("3,5,null,\n"), "{csv}");
}

#[test]
fn samples_are_the_first_elements() {
    let dir = tempfile::tempdir().unwrap();
    let options = MindSporeOptions {
        n_samples: Some(2),
        has_kernel_args: true,
        ..options(dir.path(), TreeTarget::AscendKernels)
    };
    let plan = chosen(
        vec![CompiledKernelRule::op_type("Conv")],
        Plan::everything(),
    );
    let summary = run(options, plan, 1, &floats(&[1.0, 2.0, 3.0]));
    assert_eq!(summary.counters.n_written, 3);
    let dump = dir.path().join("rank_0/Net/0/0");
    let entries = std::fs::read_dir(&dump).unwrap().map(|e| e.unwrap().path());
    let output = entries
        .into_iter()
        .find(|p| p.to_string_lossy().contains(".output."));
    assert_eq!(
        npy::read_file(&output.unwrap()).unwrap().shape().dims(),
        [2]
    );
    assert_eq!(
        text(&dump, "Conv._conv_Conv.json"),
        "{\n    \"axis\": \"[1]\",\n    \"group\": \"1\"\n}"
    );
}

#[test]
fn overflow_keeps_the_first_few_operators() {
    let count = |n_overflows_max| {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan {
            purpose: Purpose::NonFinite,
            n_overflows_max,
            ..Plan::everything()
        };
        let infinite = floats(&[f32::INFINITY, 1.0]);
        let summary = run(
            options(dir.path(), TreeTarget::AscendKernels),
            plan,
            3,
            &infinite,
        );
        let steps = dir.path().join("rank_0/Net/0");
        let steps = std::fs::read_dir(steps).unwrap().count();
        (
            summary.counters.n_operators_overflowed,
            steps,
            summary.counters.n_files,
        )
    };
    // Only `Conv` makes an infinity; `Add` reads it. The other files are the graph and the order.
    assert_eq!(count(None), (3, 3, 9 + 3));
    assert_eq!(count(Some(2)), (3, 2, 6 + 3));
}

#[test]
fn a_failing_operator_leaves_its_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let options = MindSporeOptions {
        runtime: RuntimeMode::Exceptions,
        ..options(dir.path(), TreeTarget::AscendKernels)
    };
    let plan = Plan {
        purpose: Purpose::Failures(FailureDetail::Brief),
        ..Plan::everything()
    };
    run_with(options, plan, |tap, operators| {
        tap.begin_step(0);
        let h = floats(&[1.0]);
        execute(tap, &operators[0], &[h.clone(), h.clone()], &h);
        let mut probe = tap.open(&operators[1]).unwrap();
        probe.input(0, h.clone());
        probe.output(0, h);
        probe.fail("broken");
    });
    let names = files(&dir.path().join("rank_0/Net"));
    assert_eq!(
        names,
        ["0/0/Add._add_Add.0.0.T.input.0.DefaultFormat.float32.npy"]
    );
}

#[test]
fn long_names_are_mapped() {
    let dir = tempfile::tempdir().unwrap();
    let sink = MindSporeSink::create(options(dir.path(), TreeTarget::Cpu)).unwrap();
    let record = |op_name: String| Record {
        model: Arc::default(),
        operator: Arc::new(Operator {
            op_type: "Add".into(),
            op_name,
            outputs: vec!["y".into()],
            ..Operator::default()
        }),
        step: 0,
        timestamp_us: 1_700_000_000_000_000,
        inputs: vec![],
        outputs: vec![(0, floats(&[1.0]))],
    };
    let n_others = "Add..0.0.1700000000000000.output.0.DefaultFormat.Float32.npy".len();
    let fitting = "n".repeat(FILE_NAME_BYTES_MAX - n_others);
    sink.write(&record(fitting.clone())).unwrap();
    let step = dir.path().join("rank_0/Net/0/0");
    assert!(!step.join("mapping.csv").exists());
    let long = fitting + "n";
    sink.write(&record(long.clone())).unwrap();
    let mapping = text(&step, "mapping.csv");
    let (stored, real) = mapping.trim_end().split_once(',').unwrap();
    assert!(
        real.starts_with(&format!("Add.{long}.0.0.1700000000000000.output")),
        "{real}"
    );
    assert_eq!(
        npy::read_file(&step.join(stored)).unwrap().shape().dims(),
        [1]
    );
}

#[test]
fn graph_files_take_the_models_word_for_what_no_record_shows() {
    for (plan, expected) in [
        (Plan::nothing(), "Ref[Tensor[Float16]], (8, 3, -1)"),
        (Plan::everything(), "Ref[Tensor[Float32]], (1)"),
    ] {
        let plan = Plan {
            models: if plan == Plan::nothing() {
                ModelSelection::Every(OperatorSelection::none())
            } else {
                plan.models.clone()
            },
            ..plan
        };
        let dir = tempfile::tempdir().unwrap();
        run(
            options(dir.path(), TreeTarget::AscendKernels),
            plan,
            1,
            &floats(&[2.0]),
        );
        let ir = text(dir.path(), "rank_0/graphs/ms_output_trace_code_graph_0.ir");
        let line = ir.lines().find(|line| line.contains("_conv.weight: "));
        assert!(line.unwrap().contains(expected), "{ir}");
    }
}

#[test]
fn a_parameter_that_was_overwritten_has_its_last_value() {
    let dir = tempfile::tempdir().unwrap();
    run_with(
        options(dir.path(), TreeTarget::Cpu),
        with_parameters(),
        |tap, operators| {
            tap.begin_step(0);
            let inputs = [floats(&[1.0]), floats(&[3.0])];
            execute(tap, &operators[0], &inputs, &floats(&[2.0]));
            tap.show_parameter("conv.weight", floats(&[4.0]));
            // What no operator has read is no parameter of the step.
            tap.show_parameter("nobody", floats(&[5.0]));
            tap.end_step();
        },
    );
    let step = dir.path().join("rank_0/Net/0/0");
    let mut values = Vec::new();
    for entry in std::fs::read_dir(&step).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.contains("conv_weight") || name.contains("nobody") || name.contains("input.1") {
            let tensor = npy::read_file(&path).unwrap();
            let kind = name.split('.').next().unwrap_or_default().to_owned();
            values.push((kind, tensor.host_bytes().unwrap().to_vec()));
        }
    }
    values.sort();
    let bytes = |value: f32| value.to_le_bytes().to_vec();
    assert_eq!(
        values,
        [
            ("Conv".to_owned(), bytes(3.0)),
            ("Parameter".to_owned(), bytes(4.0))
        ]
    );
}
