use super::*;

fn any_name(_: PickleName<'_>) -> bool {
    true
}

fn no_name(_: PickleName<'_>) -> bool {
    false
}

/// A value as Python would write it.
fn shown(pickle: &Pickle<'_>, id: ValueId) -> String {
    let list = |items: &[ValueId]| {
        let items: Vec<String> = items.iter().map(|&item| shown(pickle, item)).collect();
        items.join(", ")
    };
    match pickle.value(id) {
        PickleValue::None => "None".to_owned(),
        PickleValue::Bool(value) => value.to_string(),
        PickleValue::Int(value) => value.to_string(),
        PickleValue::Long => "long".to_owned(),
        PickleValue::Float(value) => format!("{value:?}"),
        PickleValue::Text(text) => format!("{text:?}"),
        PickleValue::Bytes(bytes) => format!("b{:?}", String::from_utf8_lossy(bytes)),
        PickleValue::Tuple(items) => format!("({})", list(items)),
        PickleValue::List(items) => format!("[{}]", list(items)),
        PickleValue::Set(items) => format!("{{{}}}", list(items)),
        PickleValue::Dict(pairs) => {
            let pairs = pairs.iter().map(|&(key, value)| list(&[key, value]));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join("; "))
        }
        PickleValue::Name(name) => format!("{}.{}", name.0, name.1),
        PickleValue::Call(call) => {
            format!(
                "{}.{}{}",
                call.name.0,
                call.name.1,
                shown(pickle, call.args)
            )
        }
        PickleValue::Persistent(id) => format!("@{}", shown(pickle, *id)),
    }
}

#[test]
fn opcodes_make_values() {
    let cases: [(&[u8], &str); 23] = [
        (b"\x80\x02N.", "None"),
        (b"\x80\x05\x95\x02\0\0\0\0\0\0\0\x88.", "true"),
        (b"J\xff\xff\xff\xff.", "-1"),
        (b"K\xff.", "255"),
        (b"M\xff\xff.", "65535"),
        (b"\x8a\0.", "0"),
        (b"\x8a\x01\xff.", "-1"),
        (b"\x8a\x02\xff\0.", "255"),
        (
            b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\0.",
            "9223372036854775807",
        ),
        (b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0.", "long"),
        (b"\x8b\x08\0\0\0\0\0\0\0\0\0\0\x80.", "-9223372036854775808"),
        (b"\x8a\x09\0\0\0\0\0\0\0\0\xff.", "long"),
        (b"G\x3f\xf8\0\0\0\0\0\0.", "1.5"),
        (b"\x8c\x02ab.", "\"ab\""),
        (b"C\x01x.", "b\"x\""),
        (b"(K\x01K\x02t.", "(1, 2)"),
        (b"K\x01K\x02K\x03\x87.", "(1, 2, 3)"),
        (b"](K\x01K\x02eN\x85\x86.", "([1, 2], (None))"),
        (b"\x8f(K\x01\x90.", "{1}"),
        (b"}(K\x01NK\x02Nu.", "{1, None; 2, None}"),
        (b"K\x07\x94K\x08q\x05h\0h\x05\x87\x86.", "(7, (8, 7, 8))"),
        (b"cm\nf\n)R.", "m.f()"),
        (
            b"ccollections\nOrderedDict\n]K\x01K\x02\x86a\x85R}b.",
            "{1, 2}",
        ),
    ];
    for (bytes, expected) in cases {
        let found = decode(bytes, any_name);
        let found = found.map_or(String::new(), |pickle| shown(&pickle, pickle.root()));
        assert_eq!(found, expected, "{bytes:?}");
    }
}

#[test]
fn what_is_no_plain_data_is_refused() {
    let cases: [(&[u8], &str); 16] = [
        (b"", "bytes of the pickle"),
        (b".", "a value on the stack"),
        (b"cos\nsystem\n.", "`os.system`"),
        (b"\x8c\x02os\x8c\x06system\x93.", "`os.system`"),
        (b"K\x01K\x02.", "one value"),
        (b"N.N.", "the pickle's end"),
        (b"(N.", "one value"),
        (b"(0.", "a value on the stack"),
        (b"t.", "a mark on the stack"),
        (b"N(K\x010s.", "values on the stack"),
        (b"NNa.", "a list, set or dictionary"),
        (b"}(K\x01u.", "a list, set or dictionary"),
        (b"\x8c\x01\xff.", "text in UTF-8"),
        (b"X\xff\xff\xff\xff.", "bytes of the pickle"),
        (b"I1\n.", "an opcode"),
        (b"NNb.", "attributes of a dictionary"),
    ];
    for (bytes, expected) in cases {
        let error = decode(bytes, no_name).unwrap_err().to_string();
        assert!(error.contains(expected), "{bytes:?}: {error}");
    }
}

#[test]
fn limits_end_bombs() {
    let many = |opcode: &[u8], n: usize| opcode.repeat(n);
    let cases: [(Vec<u8>, &str); 5] = [
        (many(b"(", N_MARKS_MAX + 1), "values inside one another"),
        (many(b"N", N_VALUES_MAX + 1), "values"),
        ([&b"]"[..], &many(b"2", N_VALUES_MAX)].concat(), "values"),
        // Room that a stack once took is not given to each small tuple.
        (
            [
                &b"("[..],
                &many(b"N", 1 << 20),
                b"t0",
                &many(b"(t0", 1 << 20),
                b"N.",
            ]
            .concat(),
            "",
        ),
        // A list of pairs that is copied again and again.
        (
            [
                &b"](K\x01K\x02\x86q\0"[..],
                &many(b"h\0", 1 << 16),
                b"e\x85q\x01",
                &many(b"ccollections\nOrderedDict\nh\x01R0", 1 << 10),
            ]
            .concat(),
            "values",
        ),
    ];
    for (bytes, expected) in cases {
        let error = decode(&bytes, any_name)
            .err()
            .map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
