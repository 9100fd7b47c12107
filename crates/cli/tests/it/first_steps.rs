//! The first steps of a user: the machine, completions, manual pages and the next command.

use super::support::{digits, json, opscope, text};

#[test]
fn the_built_in_engine_works_and_the_rest_is_reported() {
    let mut command = opscope();
    // Neither of them exists, and the exit code is 0 nevertheless.
    command
        .args(["doctor", "--json"])
        .env("OPSCOPE_PYTHON", "/nowhere/python3")
        .env("OPSCOPE_ENGINE_LIB", "/nowhere/lib")
        .env("TMPDIR", "/nowhere/tmp");
    let found = json(&mut command);
    assert_eq!(found["works"], true, "{found:#}");
    let states = found["checks"].as_array().unwrap();
    let state = |name: &str| {
        let check = states.iter().find(|check| check["name"] == name);
        let check = check.unwrap_or_else(|| panic!("{name}: {found:#}"));
        let needs_advice = check["state"] != "ok";
        assert_eq!(check["advice"].is_string(), needs_advice, "{check:#}");
        check["state"].as_str().unwrap().to_owned()
    };
    for (name, expected) in [
        ("tract", "ok"),
        ("onnxruntime", "problem"),
        ("variables", "ok"),
        ("python", "missing"),
        ("temporary files", "problem"),
        ("processors", "ok"),
    ] {
        assert_eq!(state(name), expected, "{name}: {found:#}");
    }
    for name in ["gpu", "disk", "open files", "file size", "memory", "umask"] {
        state(name);
    }
}

#[test]
fn variables_that_no_engine_fits_are_a_problem() {
    for (name, value) in [
        ("OPSCOPE_ENGINE", "none"),
        ("OPSCOPE_ENGINE_LIB", "/nowhere/lib"),
    ] {
        let mut command = opscope();
        command.arg("doctor").env_remove("OPSCOPE_ENGINE");
        let (code, told, errors) = text(command.env(name, value));
        assert_eq!((code, errors.as_str()), (1, ""), "{told}");
        let line = format!("\nvariables        problem: {name}={value}\n");
        assert!(told.contains(&line), "{told}");
        assert!(told.ends_with("models cannot be run\n"), "{told}");
    }
}

#[test]
fn the_text_names_the_next_command() {
    let (code, told, errors) = text(opscope().arg("doctor").env_remove("OPSCOPE_PYTHON"));
    assert_eq!((code, errors.as_str()), (0, ""), "{told}");
    assert!(told.contains("\nengine in use    tract 0.23.9\n"), "{told}");
    let last = told.lines().last().unwrap();
    assert!(last.contains("next: opscope dump MODEL.onnx"), "{told}");
}

#[test]
fn shells_get_their_completions_and_man_its_pages() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (code, script, errors) = text(opscope().args(["completions", shell]));
        assert_eq!((code, errors.as_str()), (0, ""), "{shell}");
        // An option that only `--help-all` shows.
        assert!(script.contains("queue-mib"), "{shell}");
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("man1");
    for _ in 0..2 {
        let (code, told, errors) = text(opscope().args(["man", "--out"]).arg(&out));
        assert_eq!((code, errors.as_str()), (0, ""), "{told}");
        assert!(told.ends_with("/opscope.1\n"), "{told}");
    }
    let page = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert!(page("opscope.1").contains("opscope\\-dump(1)"));
    assert!(page("opscope-dump.1").contains("\\-\\-queue\\-mib"));
    assert!(page("opscope-config-check.1").contains("opscope config check"));
}

/// The last line of a report is a command, and that command works.
#[test]
fn reports_end_with_the_next_command() {
    // MindSpore's paths have no dots.
    let dir = tempfile::Builder::new().prefix("next").tempdir().unwrap();
    let run = |words: &[&str]| {
        let mut command = opscope();
        command.current_dir(&dir).args(words);
        text(&mut command)
    };
    let next = |words: &[&str], expected: &str| {
        let (code, told, errors) = run(words);
        assert!(code <= 1, "{words:?}: {code} {errors}");
        let last = told.lines().last().unwrap_or_default();
        let command = last.strip_prefix("next: opscope ");
        let command = command.unwrap_or_else(|| panic!("{words:?}: {told}"));
        assert!(command.starts_with(expected), "{words:?}: {last}");
        command.split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let (model, input) = (digits("digits_cnn.onnx"), digits("images.npy"));
    let model = model.to_str().unwrap();
    let input = format!("image={}", input.display());
    for form in ["native", "acl", "mindspore"] {
        let words = [
            "dump", model, "--input", &input, "--form", form, "--out", form,
        ];
        let words = next(&words, "view ");
        assert!(words[1].contains(form), "{words:?}");
        let (code, _, errors) = run(&["show", &words[1]]);
        assert_eq!(code, 0, "{words:?}: {errors}");
    }
    let other = digits("digits_cnn_transposed.onnx");
    let words = [
        "dump",
        other.to_str().unwrap(),
        "--input",
        &input,
        "--out",
        "other",
    ];
    next(&words, "view other/");
    next(&["compare", "other", "native"], "view other native");
    let (_, told, _) = run(&["compare", "acl", "native"]);
    assert!(!told.contains("next: "), "{told}");
    next(&["index", "native"], "sql 'select");
    next(
        &["convert", "-d", "native", "--form", "acl", "--out", "again"],
        "view again",
    );
    let words = next(&["convert", "-d", "acl", "--out", "npy"], "show npy");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(run(&words).0, 0);
    let (_, told, _) = run(&["index", "native", "--out", "tables"]);
    assert!(
        told.ends_with("\nnext: duckdb -init tables/views.sql\n"),
        "{told}"
    );
    // Nothing was written.
    let (_, told, _) = run(&["dump", model, "--input", &input, "--stats"]);
    assert!(!told.contains("next: "), "{told}");
}

#[test]
fn help_begins_with_what_to_type_first() {
    let (code, told, errors) = text(opscope().arg("--help"));
    assert_eq!((code, errors.as_str()), (0, ""), "{told}");
    assert!(told.contains("\nStart with:\n  opscope doctor "), "{told}");
}
