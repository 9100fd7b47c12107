//! Names from models stay inside the directory of the dump, whatever is in them.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::{GraphView, SelectedOperators, Sink};
use opscope_dump::{AclSink, FileSharing, MindSporeOptions, MindSporeSink, RuntimeMode};
use opscope_store::atomic_file::PermissionModes;
use opscope_store::file_format::statistic_csv::StatisticCategory;
use opscope_store::record::{ModelId, Operator, Record};
use opscope_store::tree::mindspore::TreeTarget;
use opscope_tensor::{DType, Shape, Tensor};

const TIME: &str = "20240102030405";

fn names() -> Vec<String> {
    let names = [
        "..",
        ".",
        "",
        "/",
        "//",
        "../../escape",
        "/tmp/escape",
        "a/../../../escape",
        "\\..\\escape",
        "nul\0nul",
        "line\nbreak\r",
        "tab\tbell\u{7}",
        "\u{202e}lrtr.gpj",
        "\u{2066}isolated\u{2069}",
        "e\u{301}",
        "\u{e9}",
        "\u{ff0f}etc\u{ff0f}passwd",
        "\u{2215}etc",
        "\u{2044}etc",
        "trailing.",
        "trailing ",
        " ",
        "...",
        "Conv",
        "conv",
        "CONV",
        "CON",
        "mapping.csv",
        ".opscope",
        ".opscope-tmp-1-2-0000000000000003-4-5",
        "statistic.csv",
        "~",
        "$HOME",
        "-rf",
        "*",
        "a,b\"c",
        "\u{85}\u{2028}",
    ];
    let mut names: Vec<String> = names.map(str::to_owned).into();
    names.push("x".repeat(5000));
    names.push("../".repeat(2000));
    names.push("\u{1f642}".repeat(64));
    names
}

fn record(name: &str, is_model_named: bool) -> Record {
    let model_name = if is_model_named { name } else { "net" };
    let shape = Shape::new([3]).unwrap();
    Record {
        model: Arc::new(ModelId {
            // A file's name is no longer than the file system allows, and holds no `/`.
            file_stem: String::new(),
            graph_name: model_name.to_owned(),
            load: Some(1),
            device: 0,
        }),
        operator: Arc::new(Operator {
            task_id: 4,
            op_type: name.to_owned(),
            op_name: name.to_owned(),
            inputs: vec![name.to_owned()],
            outputs: vec![name.to_owned()],
            attributes: vec![(name.to_owned(), name.to_owned())],
            ..Operator::default()
        }),
        step: 0,
        timestamp_us: 1_700_000_000_000_000,
        inputs: vec![],
        outputs: vec![(
            0,
            Tensor::from_vec(DType::U8, shape, vec![1, 2, 3]).unwrap(),
        )],
    }
}

/// Files below `dir` that hold tensors; everything below it must be private.
fn tensor_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let bits = metadata.permissions().mode() & 0o777;
            if metadata.is_dir() {
                assert_eq!(bits, 0o700, "{path:?}");
                dirs.push(path);
            } else {
                assert!(metadata.is_file() && bits == 0o600, "{path:?}");
                let bytes = fs::read(&path).unwrap();
                if bytes.ends_with(&[1, 2, 3]) {
                    files.push(path);
                }
            }
        }
    }
    files
}

/// Runs `write` with a directory inside one that holds nothing else, and looks what is there then.
fn check(name: &str, n_files: usize, write: impl FnOnce(&Path)) {
    let outer = tempfile::tempdir().unwrap();
    let dump = outer.path().join("a/b/dump");
    fs::create_dir_all(dump.parent().unwrap()).unwrap();
    write(&dump);
    let shown: String = name.chars().take(40).collect();
    let files = tensor_files(&dump);
    assert_eq!(files.len(), n_files, "{shown:?}: {files:?}");
    let mut path = outer.path().to_owned();
    for inner in ["a", "b", "dump"] {
        let entries: Vec<_> = fs::read_dir(&path).unwrap().flatten().collect();
        assert_eq!(entries.len(), 1, "{shown:?} left the dump: {entries:?}");
        path.push(inner);
    }
}

#[test]
fn in_trees_of_acl() {
    for name in names() {
        check(&name, 2, |dump| {
            let sink =
                AclSink::create(dump, [TIME.to_owned()], PermissionModes::default()).unwrap();
            sink.write(&record(&name, true)).unwrap();
            sink.write(&record(&name, false)).unwrap();
        });
    }
}

fn options(dir: &Path, target: TreeTarget, net_name: &str) -> MindSporeOptions {
    MindSporeOptions {
        dedup: FileSharing::default(),
        compression: None,
        target,
        path: dir.to_owned(),
        rank: 0,
        net_name: net_name.to_owned(),
        first_iteration: 0,
        has_tensors: true,
        statistics: Some(vec![StatisticCategory::Max]),
        device_statistics: None,
        n_samples: None,
        has_host_layout: true,
        is_bin: false,
        has_kernel_args: true,
        has_parameters_only: false,
        runtime: RuntimeMode::Values("all"),
        configuration: b"{}".to_vec(),
        time: TIME.into(),
        modes: PermissionModes::default(),
    }
}

#[test]
fn in_trees_of_mindspore() {
    for target in [
        TreeTarget::Cpu,
        TreeTarget::AscendKernels,
        TreeTarget::AscendGraph,
        TreeTarget::GraphEngine,
    ] {
        for name in names() {
            check(&name, 3, |dump| {
                let sink = MindSporeSink::create(options(dump, target, &name)).unwrap();
                let mut record = record(&name, true);
                let inputs = [name.clone()];
                let view = GraphView {
                    types: &[],
                    operators: &[record.operator.clone()],
                    inputs: &inputs,
                    constants: &[],
                    ..GraphView::default()
                };
                let model = record.model.clone();
                sink.open_model(&model, view, &SelectedOperators::default())
                    .unwrap();
                sink.begin_step(&model, 0).unwrap();
                sink.write(&record).unwrap();
                sink.write(&record).unwrap();
                let operator = Operator {
                    op_type: "Parameter".into(),
                    ..(*record.operator).clone()
                };
                record.operator = Arc::new(operator);
                sink.write(&record).unwrap();
                sink.finish().unwrap();
            });
        }
    }
}

/// Names that a file system may take for the same have separate files here, and no file takes
/// another's place there, since every name is newly created.
#[test]
fn names_that_look_alike_stay_apart() {
    let dir = tempfile::tempdir().unwrap();
    let sink = AclSink::create(dir.path(), [TIME.to_owned()], PermissionModes::default()).unwrap();
    let alike = [
        "Conv", "conv", "e\u{301}", "\u{e9}", "a/b", "a.b", "a b", "a_b",
    ];
    for name in alike {
        let written = sink.write(&record(name, false)).unwrap();
        assert_eq!(written.n_files, 1, "{name}");
    }
    let files: HashSet<_> = tensor_files(dir.path()).into_iter().collect();
    assert_eq!(files.len(), alike.len());
}

/// Another program has put links where the dump is going to write.
#[test]
fn planted_links_are_not_followed() {
    let outer = tempfile::tempdir().unwrap();
    let target = outer.path().join("target");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("file"), "mine\n").unwrap();
    let plants = [
        ("rank_0", ""),
        ("rank_0/Net", ""),
        ("rank_0/Net/0", ""),
        ("rank_0/Net/0/0", ""),
        ("rank_0/Net/0/0/statistic.csv", "file"),
        ("rank_0/execution_order", ""),
    ];
    for (link, leads_to) in plants {
        let dump = outer.path().join("dump").join(link.replace('/', "-"));
        let link = dump.join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target.join(leads_to), &link).unwrap();
        let result = MindSporeSink::create(options(&dump, TreeTarget::Cpu, "Net"));
        let record = record("op", false);
        let failed = match result {
            Err(_) => true,
            Ok(sink) => {
                let order = sink.begin_step(&record.model, 0);
                sink.write(&record).is_err() || order.is_err()
            }
        };
        assert!(failed, "{link:?}");
        let there: Vec<_> = fs::read_dir(&target).unwrap().flatten().collect();
        assert_eq!(there.len(), 1, "{link:?}: {there:?}");
        assert_eq!(fs::read(target.join("file")).unwrap(), b"mine\n");
    }
    let dump = outer.path().join("acl");
    fs::create_dir_all(dump.join(TIME)).unwrap();
    std::os::unix::fs::symlink(&target, dump.join(TIME).join("0")).unwrap();
    let sink = AclSink::lazy(&dump, TIME, PermissionModes::default());
    assert!(sink.write(&record("op", false)).is_err());
    assert_eq!(fs::read_dir(&target).unwrap().count(), 1);
}
