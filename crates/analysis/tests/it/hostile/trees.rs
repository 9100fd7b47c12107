//! Small dumps whose names, shapes and graphs come from any bytes, two by two.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use opscope_analysis::compare::matching::{self, FusionRules, Mapping, MappingForm, Matching};
use opscope_analysis::compare::report::{self, ReportFormat};
use opscope_analysis::compare::run::{self, ComparisonRequest, VerdictOptions};
use opscope_analysis::compare::side::ComparedDump;
use opscope_analysis::compare::verdict::Thresholds;
use opscope_analysis::compare::{Selection, attribution};
use opscope_analysis::overview::Overview;
use opscope_analysis::read_whole;
use opscope_store::dump;
use opscope_store::file_format::dump_data::{
    DumpHeader, OriginalOp, TensorEntry, dtype_code, with_length,
};
use opscope_store::file_format::npy::encode_header;
use opscope_store::tree::own::graphs_dir;
use opscope_tensor::{DType, Shape, difference};

/// Names that are empty, made of others, or made to be misread.
const NAMES: [&str; 30] = [
    "",
    "a",
    "b",
    "a_a",
    "a_b",
    "b_a",
    "_",
    "__",
    "a/b",
    "a.b",
    ".",
    "..",
    "/",
    "fused",
    "1",
    "1_1",
    "and",
    "a_and_b",
    "+",
    "a+b",
    "\u{202e}a",
    "a\nb",
    "\u{1b}[31m",
    "ä",
    "a_1",
    "a_2",
    "x/y/z",
    "x_y_z",
    "Conv",
    "Relu_1",
];
const TYPES: [&str; 9] = [
    "",
    "Conv",
    "Relu",
    "Add",
    "Transpose",
    "Cast",
    "Data",
    "Fusion",
    "a",
];
const SHAPES: [&[u64]; 6] = [&[2], &[2, 3], &[3, 2], &[1], &[0], &[]];
const VALUES: [f32; 6] = [0.0, 1.0, 1.5, -2.0, f32::NAN, f32::INFINITY];
/// Most operators of a dump.
const N_OPERATORS_MAX: usize = 24;

/// Choices that bytes make. After the last byte every choice is the first.
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        usize::from(*first) % n
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn is(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 1
    }

    fn names(&mut self, n_max: usize) -> Vec<&'static str> {
        let n = self.below(n_max + 1);
        (0..n).map(|_| self.one_of(&NAMES)).collect()
    }
}

/// Writes two dumps below a directory, and compares them in every way that there is.
pub(crate) fn compare_pair(choices: &mut Choices<'_>, root: &Path) {
    let [target, golden] = ["target", "golden"].map(|name| root.join(name));
    let is_same_form = !choices.is(3);
    let form = choices.below(2);
    write_tree(choices, &target, form);
    let form = if is_same_form { form } else { 1 - form };
    write_tree(choices, &golden, form);
    let request = request(choices, target, golden);
    for path in [&request.target, &request.golden] {
        let _ = Overview::new(path, &read_whole(dump::list(path), 1));
    }
    let _ = run::mapping(&request);
    let Ok(mut comparison) = run::run(&request, None) else {
        return;
    };
    for format in [
        ReportFormat::Json,
        ReportFormat::Jsonl,
        ReportFormat::Csv,
        ReportFormat::Xlsx,
    ] {
        let mut bytes = Vec::new();
        report::write(&comparison, format, &mut bytes).unwrap();
    }
    attribution::attribute(&mut comparison, 3);
    check(&request);
}

/// Every execution is in the matching once.
fn check(request: &ComparisonRequest) {
    let [target, golden] =
        [&request.target, &request.golden].map(|path| ComparedDump::open(path, 1).unwrap());
    let Ok(matching) = Matching::align(&target, &golden, &request.matching) else {
        return;
    };
    for (i, side) in [&target, &golden].into_iter().enumerate() {
        let mut n_of = vec![0; side.runs.len()];
        let pairs = matching.pairs.iter();
        for &run in pairs.flat_map(|pair| [&pair.target, &pair.golden][i]) {
            n_of[run] += 1;
        }
        let left = matching.unmatched.iter();
        for one in left.filter(|one| one.party.index() == i) {
            n_of[one.run] += 1;
        }
        assert!(n_of.iter().all(|&n| n == 1), "side {i}: {n_of:?}");
    }
}

fn request(choices: &mut Choices<'_>, target: PathBuf, golden: PathBuf) -> ComparisonRequest {
    let rules = |choices: &mut Choices<'_>| {
        let wanted = choices.is(4);
        let json = fusion_rules(choices);
        wanted.then(|| FusionRules::parse(json.as_bytes()).ok())?
    };
    let matching = matching::MatchingOptions {
        mapping: choices.is(4).then(|| mapping(choices)).flatten(),
        target_fusion: rules(choices),
        golden_fusion: rules(choices),
        no_guesses: choices.is(8),
        ..matching::MatchingOptions::default()
    };
    ComparisonRequest {
        reference: choices.is(6).then(|| golden.clone()),
        target,
        golden,
        selection: Selection::default(),
        matching,
        is_whole: false,
        has_parameters: false,
        n_threads: 1,
        difference: difference::DifferenceOptions::default(),
        judging: VerdictOptions {
            thresholds: Thresholds::default(),
            n_ranked: 5,
            allowed: Vec::new(),
            is_strict: false,
            limit: None,
        },
        program: String::new(),
        options: Vec::new(),
        progress: None,
    }
}

fn write_tree(choices: &mut Choices<'_>, root: &Path, form: usize) {
    let dir = match form {
        0 => root.join("20240102030405/0/net/1/0"),
        _ => root.to_owned(),
    };
    fs::create_dir_all(&dir).unwrap();
    let n = 1 + choices.below(N_OPERATORS_MAX);
    // Without a number, order follows from times; equal times leave it open.
    let has_tasks = !choices.is(4);
    let is_timed = !choices.is(4);
    let mut operators = Vec::new();
    for task in 0..n {
        let (op_type, op_name) = (choices.one_of(&TYPES), choices.one_of(&NAMES));
        let time = 1_700_000_000_000_000 + if is_timed { task as u64 } else { 0 };
        let file = if has_tasks {
            format!("{}.{}.{task}.0.{time}", clean(op_type), clean(op_name))
        } else {
            format!("{}.{task}.{time}", clean(op_name))
        };
        if form == 0 {
            write_record(choices, &dir.join(file), op_name);
        } else {
            write_arrays(choices, &dir, &file);
        }
        operators.push((op_type, op_name));
    }
    if choices.is(2) {
        let text = description(choices, &operators);
        fs::create_dir_all(graphs_dir(root)).unwrap();
        fs::write(graphs_dir(root).join("net.json"), text).unwrap();
    }
}

/// A name as it can be that of a file.
fn clean(name: &str) -> String {
    name.replace('/', "_")
}

fn write_record(choices: &mut Choices<'_>, path: &Path, op_name: &str) {
    let mut payload = Vec::new();
    let n_inputs = choices.below(3);
    let inputs = (0..n_inputs)
        .map(|_| entry(choices, &mut payload))
        .collect();
    let n_outputs = choices.below(3);
    let outputs = (0..n_outputs)
        .map(|_| entry(choices, &mut payload))
        .collect();
    let header = DumpHeader {
        version: "2.0".to_owned(),
        op_name: op_name.to_owned(),
        inputs,
        outputs,
        ..DumpHeader::default()
    };
    let mut bytes = [with_length(&header), payload].concat();
    if choices.is(16) {
        bytes.truncate(choices.below(256).min(bytes.len()));
    }
    // Two operators may have one file name, and `.` and `..` are none.
    let _ = fs::write(path, bytes);
}

fn entry(choices: &mut Choices<'_>, payload: &mut Vec<u8>) -> TensorEntry {
    let shape = choices.one_of(&SHAPES);
    let n_elements: u64 = shape.iter().product();
    let value = choices.one_of(&VALUES);
    payload.extend((0..n_elements).flat_map(|_| value.to_le_bytes()));
    let original_op = choices.is(3).then(|| OriginalOp {
        name: choices.one_of(&NAMES).to_owned(),
        output_index: choices.below(3) as u32,
        ..OriginalOp::default()
    });
    TensorEntry {
        data_type: dtype_code(DType::F32).unwrap(),
        format: choices.one_of(&[2, 2, 0, 3, 29]),
        shape: Some(shape.to_vec()),
        size: n_elements * 4,
        original_op,
        original_shape: choices.is(6).then(|| choices.one_of(&SHAPES).to_vec()),
        ..TensorEntry::default()
    }
}

fn write_arrays(choices: &mut Choices<'_>, dir: &Path, file: &str) {
    let n = choices.below(3);
    for i in 0..n {
        let shape = choices.one_of(&SHAPES);
        let dims: Vec<usize> = shape.iter().map(|&dim| dim as usize).collect();
        let shape = Shape::new(dims).unwrap();
        let n_elements: usize = shape.dims().iter().product();
        let value = choices.one_of(&VALUES);
        let mut bytes = encode_header(DType::F32, &shape).unwrap();
        bytes.extend((0..n_elements).flat_map(|_| value.to_le_bytes()));
        let side = choices.one_of(&["input", "output", "output"]);
        let _ = fs::write(dir.join(format!("{file}.{side}.{i}.npy")), bytes);
    }
}

/// A description in which any operator may read what any one makes, itself among them.
fn description(choices: &mut Choices<'_>, operators: &[(&str, &str)]) -> String {
    let mut text = String::from(r#"{"version": 1, "name": "net", "operators": ["#);
    for (task, (op_type, op_name)) in operators.iter().enumerate() {
        let comma = if task == 0 { "" } else { "," };
        let values = |choices: &mut Choices<'_>| quoted_list(&choices.names(3));
        let (inputs, outputs) = (values(choices), values(choices));
        let originals = quoted_list(&choices.names(4));
        let made = if choices.is(3) {
            format!("[[{}, 0]]", quoted(choices.one_of(&NAMES)))
        } else {
            "[]".to_owned()
        };
        let _ = write!(
            text,
            r#"{comma}{{"task_id": {}, "op_type": {}, "op_name": {}, "inputs": {inputs}, "outputs": {outputs},
                "original_names": {originals}, "original_outputs": {made}}}"#,
            choices.below(operators.len()),
            quoted(op_type),
            quoted(op_name),
        );
    }
    text + "]}"
}

fn fusion_rules(choices: &mut Choices<'_>) -> String {
    let n = choices.below(6);
    let operators: Vec<String> = (0..n)
        .map(|_| {
            let name = quoted(choices.one_of(&NAMES));
            let originals = quoted_list(&choices.names(5));
            format!(
                r#"{{"name": {name}, "type": "Conv", "attr": [{{"key": "_datadump_original_op_names",
                    "value": {{"list": {{"s": {originals}}}}}}}]}}"#
            )
        })
        .collect();
    format!(r#"{{"graph": [{{"op": [{}]}}]}}"#, operators.join(","))
}

fn mapping(choices: &mut Choices<'_>) -> Option<Mapping> {
    let n = 1 + choices.below(3);
    let operators: Vec<String> = (0..n)
        .map(|_| {
            let [target, golden] = [0, 1].map(|_| quoted_list(&choices.names(3)));
            format!(r#"{{"target": {target}, "golden": {golden}}}"#)
        })
        .collect();
    let ignored = quoted_list(&choices.names(2));
    let text = format!(
        r#"{{"operators": [{}], "ignore": {ignored}}}"#,
        operators.join(",")
    );
    Mapping::parse(&text, MappingForm::Json).ok()
}

fn quoted_list(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("[{}]", names.join(","))
}

fn quoted(name: &str) -> String {
    let escaped: String = name
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}
