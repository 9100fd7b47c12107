//! Programs in C and C++ that use the library the way NPU samples do.

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

/// Without the engine that the environment asks for, loading says so.
#[test]
fn loading_without_an_engine_says_so() {
    let program = Program::compile("model_process.cpp");
    let model = program.file("model.onnx", "a model");
    let absent = program.dir().join("absent");
    let no_library = match cfg!(feature = "onnxruntime") {
        true => "OPSCOPE_ENGINE_LIB names `",
        false => "this build has no ONNX Runtime",
    };
    for (engine, part) in [
        (
            "none",
            "OPSCOPE_ENGINE is `none`: expected auto, tract or onnxruntime",
        ),
        ("onnxruntime", no_library),
    ] {
        let output = std::process::Command::new(program.dir().join("program"))
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
    use std::path::{Path, PathBuf};

    use opscope_store::dump;
    use opscope_store::file_format::dump_data::{DumpFile, PayloadKind};

    use super::Program;
    use super::digits::{self, N_IMAGE_BYTES, N_IMAGES};

    /// The images of the digit classifier, and the model for exactly that many.
    fn with_digits(program: &Program, n_images: u8) -> [PathBuf; 2] {
        let images = digits::images();
        let images = &images[..usize::from(n_images) * N_IMAGE_BYTES];
        [
            program.file("digits.onnx", digits::fixed_model(n_images)),
            program.file("images.bin", images),
        ]
    }

    /// A configuration that dumps into `dump` beside the program.
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
        // Two executions of the one operator, and one of all operators.
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

    /// Runs `configured.c` on a configuration, in which `@` stands for the directory of the dump.
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
            .env("HOME", &dump);
        (command.output().expect("a shell"), program)
    }

    #[test]
    fn the_documents_promises_are_kept() {
        let third = r#""dump_list": [], "dump_data": "tensor""#;
        for (config, said, n_files) in [
            // The path of the documents' example, and their third example as it is printed.
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

    /// A limit of the host's, and a panic inside the engine, are codes and reports.
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
}
