//! Dumps of failing operators.

use super::*;

#[test]
fn failures_go_to_the_first_place_that_can_be_used() {
    let env = ConfigEnvironment {
        current_dir: "/cwd".into(),
        home: Some("/home/me".into()),
        work_path: Some("/work".into()),
        ..ConfigEnvironment::default()
    };
    let text = r#"{"dump": {"dump_scene": "SCENE", "dump_path": "PATH", "dump_step": "x"}}"#;
    for (scene, path, detail, third) in [
        ("lite_exception", "out", FailureDetail::Brief, "/cwd/out"),
        (
            "aic_err_brief_dump",
            "~/x",
            FailureDetail::Brief,
            "/home/me/x",
        ),
        ("aic_err_norm_dump", "/x", FailureDetail::Normal, "/x"),
        (
            "aic_err_detail_dump",
            "1.2.3.4:/x",
            FailureDetail::Full,
            "/cwd/x",
        ),
    ] {
        let text = text.replace("SCENE", scene).replace("PATH", path);
        let config = load(&text, &env).unwrap();
        let dump = config.dump.unwrap();
        assert_eq!(dump.plan.purpose, Purpose::Failures(detail));
        let places: Vec<_> = dump.places.iter().map(|p| p.to_str().unwrap()).collect();
        assert_eq!(places, ["/work", third, "/cwd"], "{text}");
        let has_home = path.starts_with('~');
        let notes = config
            .issues
            .iter()
            .filter(|i| i.severity == Severity::Note);
        assert_eq!(notes.count(), usize::from(has_home), "{:?}", config.issues);
        assert!(
            config
                .issues
                .iter()
                .any(|i| i.message.contains("no effect"))
        );
    }
}

#[test]
fn failures_that_the_environment_asks_for() {
    let of = |scene: Option<&str>, collect: Option<&str>| {
        let env = ConfigEnvironment {
            current_dir: "/cwd".into(),
            dump_path: Some("/dump".into()),
            dump_scene: scene.map(str::to_owned),
            collect_path: collect.map(PathBuf::from),
            ..ConfigEnvironment::default()
        };
        from_environment(&env).map(|dump| (dump.mode.name(), dump.places))
    };
    let places = |places: &[&str]| places.iter().map(PathBuf::from).collect::<Vec<_>>();
    let by_scene = places(&["/dump", "/cwd"]);
    let by_path = places(&["/collect"]);
    for (scene, collect, expected) in [
        (None, None, None),
        (Some("watcher"), None, None),
        (Some("lite_exception"), None, None),
        (
            Some("aic_err_brief_dump"),
            Some("/collect"),
            Some(("exception_brief", &by_scene)),
        ),
        (
            Some("aic_err_detail_dump"),
            None,
            Some(("exception_detail", &by_scene)),
        ),
        (None, Some("/collect"), Some(("exception_norm", &by_path))),
        (
            Some("x"),
            Some("/collect"),
            Some(("exception_norm", &by_path)),
        ),
    ] {
        let expected = expected.map(|(mode, places)| (mode, places.clone()));
        assert_eq!(of(scene, collect), expected, "{scene:?} {collect:?}");
    }
}
