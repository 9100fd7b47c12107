use super::*;

fn read(name: &str, text: &str) -> Result<Thresholds, ThresholdsError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    Thresholds::read(&path)
}

fn get(thresholds: &Thresholds, dtype: DType, names: (&str, &str), metric: &str) -> MetricBounds {
    let bounds = thresholds.bounds(Some(dtype), names.0, names.1);
    let found = bounds.into_iter().find(|(known, _)| known.name() == metric);
    found.map(|(_, bounds)| bounds).unwrap_or_default()
}

#[test]
fn a_file_lies_over_the_defaults() {
    let yaml = "\
dtypes:
  float: {kl: 3}
  float32: {rel_l2: {fail: 1}, kl: 4}
  int32: {max_abs: 2}
op_types:
  Softmax: {cosine: false}
names:
  'z*': {rel_l2: {warn: 0.25}}
  'a*': {rel_l2: {warn: 0.5}}
  'ab*': {rel_l2: {warn: 0.75}}
yardstick_factor: 3
";
    let json = r#"{"dtypes": {"float": {"kl": 3}, "float32": {"rel_l2": {"fail": 1}, "kl": 4},
        "int32": {"max_abs": 2}},
        "op_types": {"Softmax": {"cosine": {}}},
        "names": {"z*": {"rel_l2": {"warn": 0.25}}, "a*": {"rel_l2": {"warn": 0.5}},
        "ab*": {"rel_l2": {"warn": 0.75}}}, "yardstick_factor": 3}"#;
    let all = [read("t.yaml", yaml).unwrap(), read("t.json", json).unwrap()];
    assert_eq!(all[0], all[1]);
    let [all, _] = all;
    let plain = ("Add", "x");
    assert_eq!(get(&all, DType::F32, plain, "rel_l2").fail, Some(1.0));
    assert_eq!(get(&all, DType::F32, plain, "rel_l2").warn, None);
    assert_eq!(get(&all, DType::F32, plain, "kl").fail, Some(4.0));
    assert_eq!(get(&all, DType::F16, plain, "kl").fail, Some(3.0));
    assert_eq!(get(&all, DType::HiF8, plain, "kl").fail, Some(3.0));
    assert_eq!(get(&all, DType::I32, plain, "max_abs").fail, Some(2.0));
    assert_eq!(
        get(&all, DType::I32, plain, "share_unequal"),
        MetricBounds::NEVER
    );
    assert_eq!(get(&all, DType::I32, plain, "kl"), MetricBounds::default());
    assert_eq!(
        get(&all, DType::F32, ("Add", "abc"), "rel_l2").warn,
        Some(0.75)
    );
    assert_eq!(
        get(&all, DType::F32, ("Add", "ac"), "rel_l2").warn,
        Some(0.5)
    );
    assert_eq!(
        get(&all, DType::F32, ("Softmax", "x"), "cosine"),
        MetricBounds::default()
    );
    assert!(get(&all, DType::F32, plain, "cosine").fail.is_some());
    assert_eq!(all.yardstick_factor, 3.0);
}

#[test]
fn what_a_file_must_not_have() {
    for (text, expected) in [
        ("dtypes: {float33: {}}", "`float32`?)"),
        (
            "dtypes: {float32: {cosin: 1}}",
            "`dtypes.float32`: there is no metric `cosin` (did you mean `cosine`?)",
        ),
        (
            "op_types: {Add: {nothing_at_all: 1}}",
            "`op_types.Add`: there is no metric",
        ),
        ("names: {'*': {rel_l3: 1}}", "(did you mean `rel_l2`?)"),
        ("dtype: {}", "dtypes"),
        ("dtypes: {float32: {rel_l2: {fial: 1}}}", "fail"),
        ("dtypes: {float32: {rel_l2: word}}", "`warn` and `fail`"),
        ("dtypes: {float32: {rel_l2: true}}", "names no limit"),
        ("dtypes: {float32: {rel_l2: .nan}}", "non-finite"),
        ("yardstick_factor: 0.5", "from 1 on"),
        ("yardstick: narrow", "widen"),
        ("names: [a]", "expected mapping"),
    ] {
        let error = read("t.yaml", text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert!(read("t.yaml", "dtypes: {float32: {statistic_max_rel: 1}}").is_ok());
    assert!(read("empty.yaml", "{}").unwrap() == Thresholds::default());
}

#[test]
fn outputs_that_are_not_judged() {
    let all = Thresholds::default();
    for (op_type, expected) in [
        ("Dropout", false),
        ("DropOutGenMaskV3", false),
        ("RandomNormalLike", false),
        ("aten::rand.names", false),
        ("aten.empty_like.default", false),
        ("EmptyLike", false),
        ("Add", true),
        ("BatchNormalization", true),
        ("aten.add.Tensor", true),
        ("", true),
    ] {
        assert_eq!(all.is_judged(op_type, "x"), expected, "{op_type}");
    }
    let own = read("t.yaml", "op_types: {Dropout: {}}\nnot_judged: ['Top?']").unwrap();
    assert!(own.is_judged("Dropout", "x") && own.is_judged("Empty", "x"));
    assert!(!own.is_judged("TopK", "x"));
}

#[test]
fn the_yardstick_widens_and_never_narrows_unasked() {
    let mut all = Thresholds::default();
    for (metric, bound, natural, expected) in [
        ("rel_l2", 0.1, 0.2, 0.4),
        ("rel_l2", 0.1, 0.01, 0.1),
        ("cosine", 0.99, 0.98, 0.92),
        ("cosine", 0.99, 0.999, 0.99),
        ("snr_db", 40.0, 30.0, 30.0 - 20.0 * 2f64.log10()),
        ("rel_l2", 0.1, f64::INFINITY, 0.1),
        ("n_non_finite_mismatches", 0.0, 5.0, 0.0),
    ] {
        let found = all.with_yardstick(MetricId::from_name(metric).unwrap(), bound, Some(natural));
        assert!(
            (found - expected).abs() < 1e-12,
            "{metric} {natural}: {found}"
        );
    }
    all.yardstick = YardstickUse::Replace;
    assert_eq!(all.with_yardstick(MetricId::RelL2, 0.1, Some(0.01)), 0.02);
    assert_eq!(all.with_yardstick(MetricId::RelL2, 0.1, None), 0.1);
}

#[test]
fn the_preset_for_eight_bits_is_wider_for_float32_alone() {
    let preset = Thresholds::read(Path::new(PRESET_INT8)).unwrap();
    let defaults = Thresholds::default();
    assert_ne!(preset.dtypes["float32"], defaults.dtypes["float32"]);
    let limit = |thresholds: &Thresholds| thresholds.dtypes["float32"]["rel_l2"].fail;
    assert!(limit(&preset) > limit(&defaults));
    assert_eq!(preset.dtypes["float16"], defaults.dtypes["float16"]);
}
