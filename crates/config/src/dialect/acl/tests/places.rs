//! Directories of dumps.

use super::*;

#[test]
fn a_place_behind_an_address_is_below_the_current_directory() {
    let (dir, result) = load_in(r#"{"dump": {"dump_path": "1.2.3.4:/a/b", "dump_list": [{}]}}"#);
    let places = result.unwrap().dump.unwrap().places;
    assert_eq!(places, [dir.path().join("a/b")]);
    assert!(!dir.path().join("a").exists());
}

#[test]
fn home() {
    let dir = tempfile::tempdir().unwrap();
    let mut env = ConfigEnvironment {
        current_dir: dir.path().to_owned(),
        home: Some(dir.path().to_owned()),
        ..ConfigEnvironment::default()
    };
    let text = r#"{"dump": {"dump_path": "$HOME", "dump_list": [{}]}}"#;
    let config = load(text, &env).unwrap();
    assert_eq!(
        config.dump.unwrap().places,
        [dir.path().canonicalize().unwrap()]
    );
    let issue = &config.issues[0];
    assert!(issue.message.contains("does not expand"), "{issue}");
    assert_eq!((issue.severity, issue.code()), (Severity::Note, None));
    // The vendor's checker is recorded for the word alone.
    let issue = &check(text, &env).unwrap_err()[0];
    assert_eq!(issue.code(), Some("EP0003"));
    assert!(
        issue.to_string().contains("such as `$HOME/output`"),
        "{issue}"
    );
    for path in ["$HOME/output", "~/output", "$HOME/", "~/"] {
        let text = text.replace("$HOME", path);
        let verdict = |loaded: Result<AclConfig, Vec<ConfigIssue>>| loaded.is_ok();
        let is_there = !path.ends_with("output");
        assert_eq!(verdict(load(&text, &env)), is_there, "{path}");
        assert_eq!(verdict(check(&text, &env)), is_there, "{path}");
    }
    std::fs::create_dir(dir.path().join("output")).unwrap();
    for path in ["$HOME/output", "~/output"] {
        let text = text.replace("$HOME", path);
        for loaded in [load(&text, &env), check(&text, &env)] {
            let config = loaded.unwrap();
            assert_eq!(
                config.dump.unwrap().places[0].file_name().unwrap(),
                "output"
            );
            assert_eq!(config.issues[0].severity, Severity::Note);
        }
    }
    env.home = None;
    let issue = &load(text, &env).unwrap_err()[0];
    assert_eq!(issue.code(), Some("EP0003"));
    assert!(issue.to_string().contains("write the directory out"));
}

#[test]
fn odd_paths() {
    let dir = tempfile::tempdir().unwrap();
    let env = ConfigEnvironment {
        current_dir: dir.path().to_owned(),
        ..ConfigEnvironment::default()
    };
    for name in ["a b", "x:"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    for (name, code, part) in [
        ("a b", None, "dumps no model"),
        ("x:", Some("EP0003"), "expected a path after the colon"),
    ] {
        let text = format!(r#"{{"dump": {{"dump_path": "{name}", "dump_list": [{{}}]}}}}"#);
        let config = load(&text, &env).unwrap();
        let issue = &config.issues[0];
        assert_eq!((issue.severity, issue.code()), (Severity::Warning, code));
        assert!(issue.message.contains(part), "{issue}");
        assert!(config.dump.is_some());
    }
}
