//! Programs in C and C++ that use the library like the NPU samples.

mod support;

#[cfg(feature = "tract")]
#[path = "support/digits.rs"]
mod digits;

use support::Program;

#[test]
fn misuse_gives_codes() {
    Program::compile("misuse.c").run::<&str>(&[]);
}

#[test]
fn callbacks_run_between_tasks() {
    Program::compile("report.c").run::<&str>(&[]);
}

#[test]
fn functions_of_the_program_run_in_the_order_of_their_stream() {
    Program::compile("host_function.c").run::<&str>(&[]);
}

#[test]
fn media_functions_work_or_say_what_to_use() {
    Program::compile("media.c").run::<&str>(&[]);
}

#[test]
fn logged_lines_carry_their_arguments() {
    let said = Program::compile("app_log.c").run::<&str>(&[]);
    let lines: Vec<&str> = said.stderr.lines().collect();
    let expected = [
        "no arguments",
        "words 1 two 3 4 5 6 7",
        "vectors 1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5 9.5 10.5",
        "both 1 2.25 three 4.75 5",
    ];
    assert_eq!(lines.len(), expected.len() + 1, "{}", said.stderr);
    for (line, text) in lines.iter().zip(expected) {
        assert!(line.starts_with("[ERROR] APP("), "{line}");
        assert!(line.contains("app_log.c:"), "{line}");
        assert!(line.ends_with(&format!("] main: {text}")), "{line}");
    }
    let cut = lines[expected.len()];
    assert!(cut.len() > 4000 && cut.len() < 4500, "{} bytes", cut.len());
    assert_eq!(said.stdout, "");
}

/// Without the engine that the environment requests, loading reports it.
#[test]
fn loading_without_an_engine_says_so() {
    let program = Program::compile("model_process.cpp");
    let model = program.file("model.onnx", "a model");
    let absent = program.dir().join("absent");
    let no_library = if cfg!(feature = "onnxruntime") {
        "OPSCOPE_ENGINE_LIB names `"
    } else {
        "this build has no ONNX Runtime"
    };
    for (engine, part) in [
        (
            "none",
            "OPSCOPE_ENGINE is `none`: expected auto, tract or onnxruntime",
        ),
        ("onnxruntime", no_library),
    ] {
        let output = std::process::Command::new(program.dir().join("program"))
            .env_remove("LD_LIBRARY_PATH")
            .args([&model, &model])
            .env("OPSCOPE_ENGINE", engine)
            .env("OPSCOPE_ENGINE_LIB", &absent)
            .output()
            .expect("the program starts");
        assert!(!output.status.success());
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains(part), "{stdout}");
    }
}

#[cfg(feature = "tract")]
mod with_an_engine {
    use std::ffi::{OsStr, OsString};
    use std::path::{Path, PathBuf};

    use opscope_engine::single_operator::read_json;
    use opscope_store::dump;
    use opscope_store::file_format::dump_data::{DumpFile, PayloadKind};
    use opscope_store::file_format::gears_json::{
        AippInputFormat, AippMode, AippOp, ExtentGear, GearInput, GearKind, GearOutput, Gears,
        encode,
    };
    use opscope_tensor::Layout;

    use super::Program;
    use super::digits::{self, N_IMAGE_BYTES, N_IMAGES};
    use super::support::Said;

    /// The images of the digit classifier, and its model with a batch of `n_images`.
    fn with_digits(program: &Program, n_images: u8) -> [PathBuf; 2] {
        let images = digits::images();
        let images = &images[..usize::from(n_images) * N_IMAGE_BYTES];
        [
            program.file("digits.onnx", digits::fixed_model(n_images)),
            program.file("images.bin", images),
        ]
    }

    /// A configuration that dumps into `dump` next to the program.
    fn config(program: &Program, name: &str, dump: &str) -> (PathBuf, PathBuf) {
        let dir = program.dir().join(name);
        std::fs::create_dir(&dir).expect("a directory for the dump");
        let text = format!(r#"{{"dump":{{"dump_path":"{}",{dump}}}}}"#, dir.display());
        (program.file(&format!("{name}.json"), text), dir)
    }

    fn names(dir: &Path) -> Vec<String> {
        let listing = dump::list(dir);
        assert!(listing.errors.is_empty(), "{:?}", listing.errors);
        let names = listing.entries.into_iter().map(|entry| {
            let name = entry.name.expect("the name follows the pattern");
            format!("{}.{}", name.op_type, name.op_name)
        });
        names.collect()
    }

    #[test]
    fn images_are_classified() {
        let program = Program::compile("classify.c");
        let n_images = u8::try_from(N_IMAGES).expect("there are few");
        let [fixed, images] = with_digits(&program, n_images);
        let expected = digits::answers();
        for model in [fixed, digits::model_path()] {
            let said = program.run(&[&model, &images, Path::new("16")]);
            let found: Vec<&str> = said.stdout.lines().collect();
            assert_eq!(found, expected, "{}", model.display());
        }
    }

    #[test]
    fn a_class_around_a_model_runs_it() {
        let program = Program::compile("model_process.cpp");
        let said = program.run(&with_digits(&program, 1));
        let lines: Vec<&str> = said.stdout.lines().collect();
        let at = |start: &str| lines.iter().find(|line| line.starts_with(start));
        let message = at("recent error: ").expect("the missing model was reported");
        assert!(!message.ends_with("none"), "{message}");
        assert_eq!(
            at("input"),
            Some(&"input image (image) size 256 type 0 format 0 dims 1 1 8 8")
        );
        assert_eq!(
            at("output"),
            Some(&"output probs (probs) size 40 type 0 format 2 dims 1 10")
        );
        let best = format!("top 1: index[{}] value[", digits::answers()[0]);
        assert!(at(&best).is_some(), "{}", said.stdout);
        assert!(at("top 5: ").is_some() && at("top 6: ").is_none());
        assert!(
            said.stderr.contains("query model failed"),
            "{}",
            said.stderr
        );
    }

    #[test]
    fn two_models_are_dumped_as_each_was_asked_for() {
        let program = Program::compile("two_dumps.c");
        let [first, images] = with_digits(&program, 1);
        let second = program.file("other.onnx", digits::fixed_model(1));
        let (config_1, dir_1) = config(
            &program,
            "one",
            r#""dump_list":[{"model_name":"digits","layer":["/fc/Gemm"]}],"dump_mode":"output""#,
        );
        let (config_2, dir_2) = config(
            &program,
            "two",
            r#""dump_list":[{"model_name":"other"}],"dump_mode":"all""#,
        );
        let said = program.run(&[&first, &config_1, &second, &config_2, &images]);
        let paths: Vec<&str> = said.stdout.lines().collect();
        assert_eq!(paths.len(), 2, "{}", said.stdout);
        for (path, dir) in paths.iter().zip([&dir_1, &dir_2]) {
            assert!(Path::new(path).starts_with(dir), "{path}");
        }
        // Two executions of the single operator, and one of all operators.
        assert_eq!(names(&dir_1), ["Gemm._fc_Gemm", "Gemm._fc_Gemm"]);
        let dumped = names(&dir_2);
        for name in [
            "Conv._conv1_Conv",
            "Relu._conv2_Relu",
            "Softmax._probs_Softmax",
        ] {
            assert_eq!(
                dumped.iter().filter(|dumped| *dumped == name).count(),
                1,
                "{name} in {dumped:?}"
            );
        }
        let n_dirs = |dir: &Path, name: &str| {
            let times = std::fs::read_dir(dir).expect("the dump is there");
            let path = times.map(|time| time.expect("an entry").path().join("0").join(name));
            path.filter(|path| path.is_dir()).count()
        };
        assert_eq!((n_dirs(&dir_1, "digits"), n_dirs(&dir_2, "other")), (1, 1));
    }

    #[test]
    fn a_callback_receives_what_would_have_been_written() {
        let program = Program::compile("callback.c");
        let [model, images] = with_digits(&program, 1);
        let (config, dir) = config(&program, "dump", r#""dump_list":[{}],"dump_mode":"all""#);
        let taken = program.dir().join("taken");
        std::fs::create_dir(&taken).expect("a directory for what is taken");
        let said = program.run(&[&model, &config, &images, &taken]);
        assert_eq!(names(&dir), [""; 0], "files are on disk all the same");
        let names = said.stdout.lines();
        let mut gemm_inputs = 0;
        let mut n_files = 0;
        for path in names {
            assert!(Path::new(path).starts_with(&dir), "{path}");
            let name = Path::new(path).file_name().expect("a file has a name");
            let file = DumpFile::open(&taken.join(name)).expect("chunks make up a file");
            let n_bytes: usize = file.tensors().map(|tensor| tensor.bytes.len()).sum();
            assert!(n_bytes > 0, "{path} holds no tensor");
            if file.header().op_name == "/fc/Gemm" {
                let of_input = |kind| kind == PayloadKind::Input;
                gemm_inputs = file
                    .tensors()
                    .filter(|tensor| of_input(tensor.kind))
                    .count();
            }
            n_files += 1;
        }
        assert!(n_files >= 9, "{n_files} files");
        assert_eq!(gemm_inputs, 3);
    }

    #[test]
    fn an_operator_runs_without_a_model() {
        let said = Program::compile("single_op.c").run::<&str>(&[]);
        assert_eq!(said.stdout, "11 22 33 44\n110 22 33 44\n");
    }

    /// The output of `aclnn.c`.
    const ADDED: &str = "add 11 42 23 54 35 66\nagain 20 60 50 90 80 120\n\
                         divided 2 1.5 2.5 1.8 2.66667 2\n";

    #[test]
    fn operators_of_two_stages_run_and_are_dumped() {
        let program = Program::compile("aclnn.c");
        assert_eq!(program.run::<&str>(&[]).stdout, ADDED);
        let dump = r#""dump_list":[],"dump_op_switch":"on","dump_mode":"all""#;
        let (config, dir) = config(&program, "tensors", dump);
        assert_eq!(program.run(&[&config]).stdout, ADDED);
        let mut dumped = names(&dir);
        dumped.sort();
        assert_eq!(dumped, ["Add.Add_0", "Add.Add_1", "Add.Add_2", "Div.Div_0"]);
        for entry in dump::list(&dir).entries {
            let file = DumpFile::open(&entry.path).expect("a file of the dump");
            let sides: Vec<_> = file.tensors().map(|tensor| tensor.kind).collect();
            let (input, output) = (PayloadKind::Input, PayloadKind::Output);
            assert_eq!(sides, [input, input, output], "{}", entry.path.display());
        }
    }

    /// The names of files below a directory, sorted, up to the operator.
    fn files(dir: &Path) -> Vec<String> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                names.extend(files(&path));
            } else if let Some(name) = path.file_name() {
                let name = name.to_string_lossy();
                names.push(name.split(".65535").next().unwrap_or_default().to_owned());
            }
        }
        names.sort();
        names
    }

    #[test]
    fn operators_of_two_stages_leave_statistics_and_failures() {
        let program = Program::compile("aclnn.c");
        let dump = r#""dump_list":[],"dump_op_switch":"on","dump_data":"stats""#;
        let (stats, dir) = config(&program, "stats", dump);
        assert_eq!(program.run(&[&stats]).stdout, ADDED);
        let names = ["Add.Add_0", "Add.Add_1", "Add.Add_2", "Div.Div_0"];
        let found = files(&dir);
        let found: Vec<_> = found.iter().filter(|name| *name != "run.json").collect();
        assert_eq!(found, names.map(str::to_owned).iter().collect::<Vec<_>>());
        let scene = r#""dump_scene":"lite_exception""#;
        let (scene, dir) = config(&program, "failures", scene);
        assert_eq!(program.run(&[&scene]).stdout, ADDED);
        assert_eq!(files(&dir), ["exception_info"]);
    }

    #[test]
    fn operators_of_two_stages_are_described_once_for_each_shape() {
        let program = Program::compile("aclnn.c");
        let dump = r#""dump_list":[],"dump_op_switch":"off""#;
        let (config, dir) = config(&program, "described", dump);
        let described = dir.join("operators");
        assert_eq!(program.run(&[&config, &described]).stdout, ADDED);
        let mut types = Vec::new();
        for entry in std::fs::read_dir(&described).expect("the directory that the program named") {
            let text = std::fs::read_to_string(entry.expect("an entry").path());
            let found: serde_json::Value =
                serde_json::from_str(&text.expect("a text")).expect("JSON");
            assert_eq!(found["outputs"][0]["shape"], serde_json::json!([3, 2]));
            assert_eq!(found["inputs"][1]["strides"], serde_json::json!([1, 3]));
            types.push(found["function"].as_str().unwrap_or_default().to_owned());
        }
        types.sort();
        // Three additions with the same types, shapes and numbers are one test.
        assert_eq!(types, ["aclnnAdd", "aclnnInplaceDiv"]);
    }

    #[test]
    fn misused_objects_of_operators_give_codes() {
        let program = Program::compile("aclnn_fuzz.c");
        for seed in 0..12 {
            let said = program.run(&[&seed.to_string()]).stdout;
            let counts: Vec<u32> = said
                .split_whitespace()
                .map(|n| n.parse().expect("a count"))
                .collect();
            assert!(
                counts.len() == 2 && counts.iter().all(|&n| n > 100),
                "{seed}: {said}"
            );
        }
    }

    /// Runs `configured.c` with a configuration in which `@` is replaced by the directory of the
    /// dump.
    #[test]
    fn calls_in_any_order_give_codes() {
        let program = Program::compile("random_calls.c");
        for seed in ["1", "2", "3"] {
            program.run(&[seed, "3000"]);
        }
    }

    #[test]
    fn products_of_matrices_are_exact_and_dumped() {
        let program = Program::compile("gemm.c");
        let (config, dump) = config(&program, "products", r#""dump_op_switch": "on""#);
        program.run(&[config]);
        let names = names(&dump);
        // Five pairs of types in four transpositions, and two vectors.
        assert_eq!(names.len(), 22, "{names:?}");
        assert!(
            names.iter().all(|name| name.contains("GEMM.GEMM_")),
            "{names:?}"
        );
    }

    #[test]
    fn the_overflow_status_is_that_of_operators_since_the_reset() {
        let program = Program::compile("overflow_status.c");
        program.run::<&str>(&[]);
        // A dump of values shows the operators too, and the status must not change.
        let (config, dump) = config(&program, "values", r#""dump_op_switch": "on""#);
        program.run(&[config]);
        assert!(!names(&dump).is_empty(), "nothing was dumped");
    }

    fn configured(config: &str, index: &str, before: &str) -> (std::process::Output, Program) {
        let program = Program::compile("configured.c");
        let dump = program.dir().join("dump");
        std::fs::create_dir_all(dump.join("below")).expect("a directory for the dump");
        let config = config.replace('@', &dump.display().to_string());
        let config = program.file("acl.json", config);
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", &format!("{before} exec \"$0\" \"$@\"")])
            .arg(program.dir().join("program"))
            .args([config.as_os_str(), index.as_ref()])
            .env("OPSCOPE_ENGINE", "tract")
            .env("HOME", &dump)
            .env_remove("LD_LIBRARY_PATH");
        (command.output().expect("a shell"), program)
    }

    #[test]
    fn the_documents_promises_are_kept() {
        let third = r#""dump_list": [], "dump_data": "tensor""#;
        for (config, said, n_files) in [
            // The path of the documented example, and the third example of the documentation.
            (
                format!(r#""dump_path": "$HOME/below", {third}"#),
                "init 0\nset_dump 0\ngather 0\n",
                1,
            ),
            (
                format!(r#""dump_path": "~/below", {third}"#),
                "init 0\nset_dump 0\ngather 0\n",
                1,
            ),
            (
                r#""dump_path": "@", "dump_list": [], "dump_op_switch": "off""#.to_owned(),
                "init 0\nset_dump 0\ngather 0\n",
                0,
            ),
            (
                r#""dump_path": "@", "dump_list": [{}], "dump_debug": "on""#.to_owned(),
                "init 100009\n",
                0,
            ),
        ] {
            let config = format!(r#"{{"dump": {{{config}}}}}"#);
            let (output, program) = configured(&config, "2", "");
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{config}: {stdout}");
            assert!(stdout.starts_with(said), "{config}: {stdout}");
            assert_eq!(
                said.contains("100009"),
                stdout.contains("EP0005"),
                "{stdout}"
            );
            assert_eq!(
                names(&program.dir().join("dump")).len(),
                n_files,
                "{config}"
            );
        }
    }

    /// A limit of the host, and a panic inside the engine, become codes and reports.
    #[test]
    fn a_host_goes_on() {
        let all = r#"{"dump": {"dump_path": "@", "dump_op_switch": "on", "dump_list": [], "dump_mode": "all"}}"#;
        let (output, _program) = configured(all, "2", "ulimit -f 0;");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{:?}: {stdout}", output.status);
        assert!(stdout.contains("gather 0\n"), "{stdout}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("the dump is not complete"), "{stderr}");
        let (output, _program) = configured(all, "9", "");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains("gather 507011\n"), "{stdout}");
        assert!(stdout.contains("the engine panicked"), "{stdout}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked at"), "{stderr}");
    }

    /// tract, and ONNX Runtime if the environment of the tests names it.
    fn engines() -> Vec<Vec<(&'static str, OsString)>> {
        let mut engines = vec![vec![("OPSCOPE_ENGINE", OsString::from("tract"))]];
        if let Some(library) = std::env::var_os("OPSCOPE_ENGINE_LIB") {
            engines.push(vec![
                ("OPSCOPE_ENGINE", OsString::from("onnxruntime")),
                ("OPSCOPE_ENGINE_LIB", library),
            ]);
        }
        engines
    }

    fn run_on(program: &Program, engine: &[(&str, OsString)], arguments: &[&OsStr]) -> Said {
        let variables: Vec<(&str, &OsStr)> = engine.iter().map(|(k, v)| (*k, &**v)).collect();
        program.run_in(&variables, arguments)
    }

    #[test]
    fn operators_keep_the_layout_of_their_descriptions() {
        let program = Program::compile("nhwc.c");
        let image: Vec<f32> = (0..18).map(|i| (i % 7) as f32 - 2.0).collect();
        let kernel: Vec<f32> = (0..12).map(|i| (i % 5) as f32 - 1.0).collect();
        // Two columns of an image with a column of zeros on the right.
        let expected: Vec<f32> = (0usize..27)
            .map(|at| {
                let (row, column, out) = (at / 9, at / 3 % 3, at % 3);
                let pairs = (0..2).flat_map(|j| (0..2).map(move |c| (j, c)));
                let pairs = pairs.filter(|(j, _)| column + j < 3);
                let product =
                    |(j, c)| image[(row * 3 + column + j) * 2 + c] * kernel[(j * 2 + c) * 3 + out];
                pairs.map(product).sum()
            })
            .collect();
        let line: Vec<String> = expected.iter().map(f32::to_string).collect();
        let line = line.join(" ");
        for (i, engine) in engines().iter().enumerate() {
            let dump = r#""dump_op_switch":"on","dump_mode":"all""#;
            let (config, dir) = config(&program, &format!("nhwc{i}"), dump);
            let said = run_on(&program, engine, &[config.as_os_str()]);
            let lines: Vec<&str> = said.stdout.lines().collect();
            assert_eq!(
                lines,
                [&line, &line, &line, "conflict 100027", "blocks 100027"],
                "{engine:?}"
            );
            // Names count the executions.
            let mut dumped = names(&dir);
            dumped.sort();
            assert_eq!(
                dumped,
                ["Conv.Conv2D_0", "Conv.Conv2D_1", "Conv.Conv2D_2"],
                "{engine:?}"
            );
            for entry in dump::list(&dir).entries {
                let file = DumpFile::open(&entry.path).expect("a file of the dump");
                let name = entry.name.expect("the name follows the pattern").op_name;
                assert_eq!(file.header().op_name, name);
                let shown: Vec<_> = file.tensors().collect();
                let all = [
                    (Layout::Nhwc, vec![1, 3, 3, 2], &image),
                    (Layout::Hwcn, vec![1, 2, 2, 3], &kernel),
                    (Layout::Nhwc, vec![1, 3, 3, 3], &expected),
                ];
                assert_eq!(shown.len(), all.len());
                for (tensor, (layout, dims, values)) in shown.iter().zip(all) {
                    let entry = tensor.entry;
                    assert_eq!(
                        (entry.layout(), &entry.shape),
                        (Some(layout), &Some(dims)),
                        "{name}"
                    );
                    let bytes: Vec<u8> =
                        values.iter().flat_map(|v: &f32| v.to_le_bytes()).collect();
                    assert_eq!(tensor.bytes, bytes, "{name}");
                }
            }
        }
    }

    /// A model of one operator with open dimensions.
    fn open_model(text: &str) -> Vec<u8> {
        let operator = read_json(text).expect("a description").remove(0);
        operator.to_onnx().expect("ONNX has the operator")
    }

    /// The gears of a model as `opscope gears` writes them.
    fn gears(
        kind: GearKind,
        inputs: &[(&str, &[i64])],
        output: &str,
        all: &[(&[u64], &[i64])],
    ) -> String {
        let input = |(name, dims): &(&str, &[i64])| GearInput {
            name: (*name).to_owned(),
            dims: dims.to_vec(),
        };
        let gear = |(values, dims): &(&[u64], &[i64])| ExtentGear {
            values: values.to_vec(),
            outputs: vec![dims.to_vec()],
        };
        let outputs = vec![GearOutput {
            name: output.to_owned(),
            dtype: "float32".to_owned(),
        }];
        let inputs = inputs.iter().map(input).collect();
        let gears = Gears::new(kind, inputs, outputs, all.iter().map(gear).collect());
        encode(&gears.expect("they fit together"))
    }

    #[test]
    fn programs_switch_gears() {
        let program = Program::compile("gears.c");
        let relu = r#"{"op": "Relu", "inputs": [{"name": "x", "type": "float", "shape": SHAPE}],
            "outputs": [{"name": "y", "type": "float"}]}"#;
        let product = r#"{"op": "MatMul", "inputs": [{"name": "a", "type": "float", "shape": [-1, 2]},
            {"name": "b", "type": "float", "shape": [2, -1]}], "outputs": [{"name": "y", "type": "float"}]}"#;
        let cases = [
            (
                "batch",
                open_model(&relu.replace("SHAPE", "[-1, 3]")),
                gears(
                    GearKind::Batch,
                    &[("x", &[-1, 3])],
                    "y",
                    &[(&[1], &[1, 3]), (&[4], &[4, 3]), (&[2], &[2, 3])],
                ),
                "x [-1,3] 48 bytes\nascend_mbatch_shape_data [1] 8 bytes\nbatch 1 -> [1,3] sum 3\n\
                 batch 4 -> [4,3] sum 66\nbatch 2 -> [2,3] sum 15\nrefused 145013 100000 145013\n",
            ),
            (
                "size",
                open_model(&relu.replace("SHAPE", "[1, 2, -1, -1]")),
                gears(
                    GearKind::Size,
                    &[("x", &[1, 2, -1, -1])],
                    "y",
                    &[(&[2, 1], &[1, 2, 2, 1]), (&[1, 3], &[1, 2, 1, 3])],
                ),
                "x [1,2,-1,-1] 24 bytes\nascend_mbatch_shape_data [2] 16 bytes\nsize 2x1 -> [1,2,2,1] sum 6\n\
                 size 1x3 -> [1,2,1,3] sum 15\nrefused 145013 100000 145013\n",
            ),
            (
                "dims",
                open_model(product),
                gears(
                    GearKind::Dims,
                    &[("a", &[-1, 2]), ("b", &[2, -1])],
                    "y",
                    &[(&[1, 2], &[1, 2]), (&[2, 1], &[2, 1])],
                ),
                "a [-1,2] 16 bytes\nb [2,-1] 16 bytes\nascend_mbatch_shape_data [2] 16 bytes\n\
                 dims [1,2,2,2] -> [1,2] sum 5\ndims [2,2,2,1] -> [2,1] sum 4\nrefused 145013 145012 145013\n",
            ),
        ];
        for (kind, model, gears, expected) in cases {
            let model = program.file(&format!("{kind}.onnx"), model);
            let file = program.file(&format!("{kind}.onnx.gears.json"), &gears);
            for engine in engines() {
                let said = run_on(&program, &engine, &[model.as_os_str(), OsStr::new(kind)]);
                assert_eq!(said.stdout, expected, "{kind} {engine:?}");
            }
            // A damaged file, or a file for another model, is reported.
            for (from, to, part) in [
                ("{", "[", "expected an object"),
                ("\"y\"", "\"z\"", "its outputs are not those"),
            ] {
                std::fs::write(&file, gears.replacen(from, to, 1)).expect("a file");
                let said = run_on(
                    &program,
                    &engines()[0],
                    &[model.as_os_str(), OsStr::new(kind)],
                );
                assert!(said.stdout.starts_with("load 145006 "), "{}", said.stdout);
                assert!(said.stdout.contains(part), "{}", said.stdout);
                assert!(
                    said.stdout.contains(&file.display().to_string()),
                    "{}",
                    said.stdout
                );
            }
        }
    }

    #[test]
    fn pictures_are_prepared() {
        let program = Program::compile("aipp.c");
        let relu = r#"{"op": "Relu", "inputs": [{"name": "x", "type": "float", "shape": [1, 3, 2, 2]}],
            "outputs": [{"name": "y", "type": "float"}]}"#;
        let made_static = AippOp {
            aipp_mode: AippMode::Static,
            input_format: AippInputFormat::Yuv420spU8,
            rbuv_swap_switch: true,
            mean_chn_0: 5,
            var_reci_chn_1: Some(0.5),
            ..AippOp::default()
        };
        let made_dynamic = AippOp {
            aipp_mode: AippMode::Dynamic,
            max_src_image_size: 16,
            ..AippOp::default()
        };
        let cases = [
            (
                "static",
                made_static,
                "x type 1 attached ffffffff size 6 format 1 data 4\ndims [1,2,2,3]\nin bytes [1,3,2,1]\n\
                 format 1 picture 0x0 crop 0 swap 1 csc 0 mean 5 factor 0.5\n\
                 source 0 0 4 shapes 1 bytes 48 48\nout [1,3,2,2]\n\
                 5 15 25 35 100 100 100 100 100 100 100 100\n",
            ),
            (
                "dynamic",
                made_dynamic,
                "x type 2 attached 1 size 16 format 1 data 4\ndims [1,-1,-1,-1]\nin bytes [1,-1,-1,-1]\n\
                 ascend_dynamic_aipp_data type 3 attached ffffffff size 160 format 2 data 4\n\
                 dims [160]\nin bytes [160]\n\
                 format 0 picture 0x0 crop 0 swap 0 csc 0 mean 0 factor 0\n\
                 source 0 0 4 shapes 1 bytes 48 48\nout [1,3,2,2]\n\
                 0 0 15 21 0 0 8 11 0 0 1.75 2.5\n",
            ),
        ];
        for (kind, op, expected) in cases {
            let input = GearInput {
                name: "x".to_owned(),
                dims: vec![1, 3, 2, 2],
            };
            let output = GearOutput {
                name: "y".to_owned(),
                dtype: "float32".to_owned(),
            };
            let gear = ExtentGear {
                values: vec![],
                outputs: vec![vec![1, 3, 2, 2]],
            };
            let gears = Gears::new(GearKind::Fixed, vec![input], vec![output], vec![gear]);
            let gears = gears.and_then(|gears| gears.with_aipp(vec![op]));
            let model = program.file(&format!("{kind}.onnx"), open_model(relu));
            let file = format!("{kind}.onnx.gears.json");
            program.file(&file, encode(&gears.expect("they fit together")));
            for engine in engines() {
                let said = run_on(&program, &engine, &[model.as_os_str(), OsStr::new(kind)]);
                assert_eq!(said.stdout, expected, "{kind} {engine:?}");
            }
        }
    }

    /// The ONNX Runtime engine does not support dumps here: the program runs anyway, and the dump
    /// exists if the engine may be tract.
    #[test]
    fn a_dump_that_an_engine_lacks_fails_no_program() {
        let Some(library) = std::env::var_os("OPSCOPE_ENGINE_LIB") else {
            return;
        };
        let program = Program::compile("two_dumps.c");
        let [first, images] = with_digits(&program, 1);
        let second = program.file("other.onnx", digits::fixed_model(1));
        let watch = r#""dump_scene":"watcher","dump_list":[{"layer":["/fc/Gemm"],"watcher_nodes":["/conv1/Conv"]}]"#;
        for (i, (engine, is_named)) in [("auto", false), ("onnxruntime", true)]
            .into_iter()
            .enumerate()
        {
            let (config_1, dir_1) = config(&program, &format!("watch{i}"), watch);
            let (config_2, dir_2) = config(&program, &format!("values{i}"), r#""dump_list":[{}]"#);
            let mut variables = vec![("OPSCOPE_ENGINE", OsStr::new(engine))];
            // Naming a library would choose it; this variable only adds a place to search.
            variables.push((
                if is_named {
                    "OPSCOPE_ENGINE_LIB"
                } else {
                    "ORT_DYLIB_PATH"
                },
                &library,
            ));
            let arguments = [&first, &config_1, &second, &config_2, &images];
            let said = program.run_in(&variables, &arguments);
            let watched = names(&dir_1);
            if is_named {
                assert_eq!(watched, [""; 0]);
                assert!(
                    said.stderr.contains("nothing of model `digits` is dumped"),
                    "{}",
                    said.stderr
                );
            } else {
                assert!(
                    watched.contains(&"Conv._fc_Gemm_To__conv1_Conv".to_owned()),
                    "{watched:?}"
                );
                assert_eq!(said.stderr, "");
            }
            assert!(names(&dir_2).len() > 5, "{}", said.stderr);
        }
    }
}
