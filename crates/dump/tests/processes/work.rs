//! The work of the other processes, and a look at what they leave.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use opscope_capture::Sink;
use opscope_dump::{
    AclSink, FileSharing, MindSporeOptions, MindSporeSink, NativeSink, RuntimeMode,
};
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::dump::read_mapping;
use opscope_store::file_format::dump_data::DumpFile;
use opscope_store::file_format::run_json::{RunRecord, RunState};
use opscope_store::file_format::statistic_csv::StatisticCategory;
use opscope_store::file_format::{mapping_csv, npy, statistic_csv};
use opscope_store::reader::{TensorFile, read_dump};
use opscope_store::record::{ModelId, Operator, Record};
use opscope_store::run_file::{self, RunFile};
use opscope_store::temporary::TemporaryName;
use opscope_store::tree::mindspore::{STATISTIC_FILE_NAME, TreeTarget};
use opscope_tensor::digest::hex;
use opscope_tensor::{DType, Shape, Tensor};

const JOB: &str = "OPSCOPE_TEST_JOB";
const N_THREADS: u64 = 3;
const N_STEP_RECORDS: u64 = 30;
/// Bytes that tell tensors apart.
pub(crate) const N_HEAD_BYTES: usize = 20;

/// Whose form a dump has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Acl,
    MindSpore,
    Native,
}

pub(crate) const FORMS: [Form; 3] = [Form::Acl, Form::MindSpore, Form::Native];

/// Starts this binary again: the test `name` finds its job there.
pub(crate) fn start(name: &str, form: Form, dir: &Path, time: &str, n_records: u64) -> Child {
    start_reporting(name, form, dir, time, n_records, Stdio::null())
}

/// [`start`] where the process says on standard error what it was told is written.
pub(crate) fn start_reporting(
    name: &str,
    form: Form,
    dir: &Path,
    time: &str,
    n_records: u64,
    reports: Stdio,
) -> Child {
    let job = format!("{form:?}|{time}|{n_records}|{}", dir.display());
    Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact"])
        .env(JOB, job)
        .stdout(Stdio::null())
        .stderr(reports)
        .spawn()
        .unwrap()
}

/// Does the job that this process was started for; `false` if it was not.
pub(crate) fn is_done_here() -> bool {
    let Ok(job) = std::env::var(JOB) else {
        return false;
    };
    let fields: Vec<&str> = job.splitn(4, '|').collect();
    let [form, time, n_records, dir] = fields[..] else {
        panic!("{job}");
    };
    let (dir, n_records) = (Path::new(dir), n_records.parse().unwrap());
    match form {
        "Acl" => {
            let sink = AclSink::lazy(dir, time, PermissionModes::default());
            write_all(dir, &dir.join(time), &sink, n_records);
        }
        "Native" => {
            let creator = Arc::new(Creator::in_dump(dir, PermissionModes::default()));
            let sink = NativeSink::lazy_by(creator, dir, time, 0);
            write_all(dir, &dir.join(time), &sink, n_records);
        }
        _ => {
            let sink = MindSporeSink::create(options(dir)).unwrap();
            write_all(dir, dir, &sink, n_records);
        }
    }
    true
}

fn options(dir: &Path) -> MindSporeOptions {
    MindSporeOptions {
        dedup: FileSharing::default(),
        compression: None,
        target: TreeTarget::Cpu,
        path: dir.to_owned(),
        rank: 0,
        net_name: "Net".into(),
        first_iteration: 0,
        has_tensors: true,
        statistics: Some(vec![StatisticCategory::Max, StatisticCategory::Md5]),
        device_statistics: None,
        n_samples: None,
        has_host_layout: true,
        is_bin: false,
        has_kernel_args: false,
        has_parameters_only: false,
        runtime: RuntimeMode::Values("all"),
        configuration: b"{}".to_vec(),
        time: "20240102030405".into(),
        modes: PermissionModes::default(),
    }
}

fn write_all(dump_path: &Path, root: &Path, sink: &dyn Sink, n_records: u64) {
    let run = RunFile::new(
        dump_path,
        root,
        PermissionModes::default(),
        RunRecord::default(),
    );
    run.begin().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..N_THREADS {
            scope.spawn(move || {
                for i in 0..n_records {
                    let record = record(thread, i);
                    sink.write(&record).unwrap();
                    report(&record);
                    if i % N_STEP_RECORDS == N_STEP_RECORDS - 1 {
                        sink.end_step(&record.model, record.step).unwrap();
                    }
                }
            });
        }
    });
    sink.finish().unwrap();
    run.finish(RunState::Finished, String::new()).unwrap();
}

/// One line with the first bytes of a tensor that is written, by a single call.
fn report(record: &Record) {
    let bytes = record.outputs[0].1.host_bytes().unwrap();
    let line = format!("{}\n", hex(&bytes[..N_HEAD_BYTES]));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// How many records a process writes that is told to write `n`.
pub(crate) fn n_written(n: u64) -> usize {
    usize::try_from(N_THREADS * n).unwrap()
}

/// All processes give the same names and the same times. Some names are too long for a file system;
/// the bytes belong to the process.
pub(crate) fn record(thread: u64, i: u64) -> Record {
    let n_bytes = [16, 4096, 40_000][usize::try_from(i % 3).unwrap()];
    let mut bytes = std::process::id().to_le_bytes().to_vec();
    bytes.extend(thread.to_le_bytes());
    bytes.extend(i.to_le_bytes());
    bytes.resize(n_bytes + 20, 7);
    let shape = Shape::new([bytes.len()]).unwrap();
    let name = match i % 10 {
        9 => "long_".repeat(60),
        _ => format!("op/{thread}"),
    };
    Record {
        model: Arc::new(ModelId::first_load("net", "g")),
        operator: Arc::new(Operator {
            task_id: 1,
            op_type: "Relu".into(),
            op_name: name,
            inputs: vec![],
            outputs: vec!["y".into()],
            ..Operator::default()
        }),
        // Every thread has its own steps, and ends them.
        step: thread * 1_000_000 + i / N_STEP_RECORDS,
        timestamp_us: 1_700_000_000_000_000 + i,
        inputs: vec![],
        outputs: vec![(0, Tensor::from_vec(DType::U8, shape, bytes).unwrap())],
    }
}

/// Contents of a dump directory.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The first bytes of each tensor: they tell the tensors of all processes apart.
    pub(crate) tensors: Vec<Vec<u8>>,
    pub(crate) n_rows: usize,
    pub(crate) n_unfinished: u64,
}

/// Checks that every file with a final name is whole.
pub(crate) fn look(form: Form, dir: &Path) -> Found {
    if let Form::Native = form {
        return look_at_native(dir);
    }
    let mut found = Found::default();
    let mut real_names = HashMap::new();
    for path in files(dir) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if TemporaryName::parse(name).is_some() {
            found.n_unfinished += 1;
            continue;
        }
        assert!(!name.starts_with(".opscope-tmp-"), "{name}");
        let parent = path.parent().unwrap();
        let real_names = real_names
            .entry(parent.to_owned())
            .or_insert_with(|| read_mapping(parent));
        match name {
            mapping_csv::FILE_NAME => {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(text.is_empty() || text.ends_with('\n'), "{text}");
            }
            STATISTIC_FILE_NAME => {
                let text = std::fs::read_to_string(&path).unwrap();
                let table = statistic_csv::parse(&text).unwrap();
                assert!(table.errors.is_empty(), "{:?}", table.errors);
                assert!(text.ends_with('\n'));
                assert_eq!(text.matches("Op Type").count(), 1);
                found.n_rows += table.rows.len();
            }
            _ if path.parent().unwrap().ends_with(".opscope") => {
                run_file::read(&path).unwrap();
            }
            _ if path.parent().unwrap().ends_with(".dump_metadata") => {}
            _ => {
                let is_named = name.contains('.') && name != format!("{}.npy", digits(name));
                assert!(is_named || real_names.contains_key(name), "{name}");
                found.tensors.push(first_bytes(form, &path));
            }
        }
    }
    found
}

/// All rows with their elements; nothing may be damaged.
fn look_at_native(dir: &Path) -> Found {
    let index = read_dump(dir, &mut |_| Vec::new()).unwrap();
    assert!(index.errors.is_empty(), "{:?}", index.errors);
    let mut found = Found::default();
    let unfinished = index.passed_over.iter().filter(|one| {
        let name = one.path.file_name().unwrap().to_str().unwrap();
        TemporaryName::parse(name).is_some()
    });
    found.n_unfinished = unfinished.count() as u64;
    for record in &index.tensors {
        let file = TensorFile::open_elements(record).unwrap();
        let bytes = file.elements(file.tensors().next().unwrap()).unwrap();
        let bytes = bytes.as_ref();
        assert!(bytes[N_HEAD_BYTES..].iter().all(|byte| *byte == 7));
        found.tensors.push(bytes[..N_HEAD_BYTES].to_vec());
    }
    found.n_rows = index.tensors.len();
    found
}

fn digits(name: &str) -> &str {
    let n = name.bytes().take_while(u8::is_ascii_digit).count();
    &name[..n]
}

fn first_bytes(form: Form, path: &Path) -> Vec<u8> {
    let bytes = match form {
        Form::Acl => {
            let file = DumpFile::open(path).unwrap();
            let tensor = file.tensors().next().unwrap();
            tensor.bytes.to_vec()
        }
        Form::MindSpore => npy::read_file(path).unwrap().host_bytes().unwrap().to_vec(),
        Form::Native => unreachable!("its tensors are in files with others"),
    };
    assert!(bytes[20..].iter().all(|byte| *byte == 7));
    bytes[..20].to_vec()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files
}
