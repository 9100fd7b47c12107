//! Tests of the texts of `aclGetRecentErrMsg`.

mod support;

use opscope_acl::status;

use support::Fixture;

/// A report's first line without process and time, after a check of their form.
fn head(text: &str) -> String {
    let line = text.lines().next().unwrap();
    let rest = line.strip_prefix("[PID: ").unwrap();
    let (pid, rest) = rest.split_once("] ").unwrap();
    assert_eq!(pid, std::process::id().to_string());
    let (time, rest) = rest.split_once(' ').unwrap();
    let form: String = time
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(form, "0000-00-00-00:00:00.000.000");
    rest.to_owned()
}

#[test]
fn reports_carry_code_and_placeholders() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    assert_eq!(process.recent_error(), None);
    process.init_dump().unwrap_err();
    let text = process.recent_error().unwrap();
    assert!(head(&text).starts_with("Invalid_Argument_API_Call_Sequence(EP0008): aclmdlInitDump"));
    assert!(
        text.contains("\n        Solution: ") && text.ends_with('\n'),
        "{text}"
    );
    assert_eq!(process.recent_error(), None);

    process.init(None).unwrap();
    process.init_dump().unwrap();
    process.set_dump(None).unwrap_err();
    let text = process.recent_error().unwrap();
    assert!(head(&text).starts_with("Invalid_Argument_Null_Pointer(EP0007): aclmdlSetDump"));
    let cases = [
        ("{\"dump\": 1}", "Config_Error(EP0001): ", "`dump`"),
        (
            "{\"dump\": {\"dump_path\": \"@DIR@\", \"dump_mode\": \"x\"}}",
            "Config_Error(EP0002): Value `x` of configuration item `dump_mode`",
            "all/input/output",
        ),
        (
            "{\"dump\": {\"dump_path\": \"@DIR@\", \"dump_op_switch\": \"on\", \"dump_step\": \"2-1\"}}",
            "Config_Error(EP0003): Value `",
            "`dump_step[0]`",
        ),
        (
            "{\"dump\":",
            "File_Operation_Error_Parse(EP0004): File `",
            "acl.json",
        ),
        (
            "{\"dump\": {\"dump_path\": \"@DIR@\", \"dump_debug\": \"on\", \"dump_op_switch\": \"on\"}}",
            "Config_Error(EP0005): ",
            "dump_op_switch",
        ),
    ];
    for (config, start, part) in cases {
        let path = fixture.file("acl.json", config);
        let answer = process.set_dump(Some(&path));
        assert_eq!(answer, Err(status::INVALID_DUMP_CONFIG), "{config}");
        let head = head(&process.recent_error().unwrap());
        assert!(
            head.starts_with(start) && head.contains(part),
            "{config}: {head}"
        );
        assert!(head.contains(path.to_str().unwrap()), "{config}: {head}");
    }
}

#[test]
fn the_newest_comes_first_and_the_others_follow() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    process.register_callback(None, 0).unwrap_err();
    process.init_dump().unwrap_err();
    let text = process.recent_error().unwrap();
    assert!(head(&text).contains("(EP0008)"));
    let (_, trace) = text
        .split_once("        TraceBack (most recent call last):\n")
        .unwrap();
    assert!(
        trace.starts_with("        [PID: ") && trace.contains("(EP0007)"),
        "{trace}"
    );
    assert_eq!(trace.lines().count(), 1);
    // Older reports are dropped.
    for _ in 0..1000 {
        process.init_dump().unwrap_err();
    }
    assert!(process.recent_error().unwrap().lines().count() < 100);
}

#[test]
fn reports_belong_to_a_thread_or_to_all() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    let fail_elsewhere = || {
        std::thread::scope(|scope| {
            scope.spawn(|| process.set_dump(None).unwrap_err());
        });
    };
    fail_elsewhere();
    assert_eq!(process.recent_error(), None);
    let config = fixture.file("bad.json", "{\"err_msg_mode\": \"2\"}");
    assert_eq!(process.init(Some(&config)), Err(status::INVALID_PARAM));
    assert!(process.recent_error().unwrap().contains("err_msg_mode"));
    let config = fixture.file("acl.json", "{\"err_msg_mode\": \"1\"}");
    process.init(Some(&config)).unwrap();
    fail_elsewhere();
    assert!(process.recent_error().is_some());
    assert_eq!(process.recent_error(), None);
}
