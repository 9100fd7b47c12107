use super::*;

fn tensor(dtype: &str, shape: &[u64]) -> DebugTensor {
    DebugTensor {
        dtype: dtype.to_owned(),
        shape: Some(shape.to_vec()),
        ..DebugTensor::default()
    }
}

#[test]
fn descriptions_of_tensors_are_found_among_arguments() {
    let spread = DebugTensor {
        placement: Some("S(0)[1]R".to_owned()),
        ..tensor("f32", &[8, 8])
    };
    let symbolic = DebugTensor {
        shape: None,
        ..tensor("i64", &[])
    };
    let cases = [
        ("t$0: f32[4, 4], 0, 1.5", vec![tensor("f32", &[4, 4])]),
        (
            "['t: bf16[2]', 't: i64[]']",
            vec![tensor("bf16", &[2]), tensor("i64", &[])],
        ),
        (", out=t: b8[2, 0]", vec![tensor("b8", &[2, 0])]),
        ("dt$1: f32[8, 8]| S(0)[1]R, 3", vec![spread]),
        ("ft$2: i64[s0, 3]", vec![symbolic]),
        (
            "t$0: f32[2]{device=cpu, grad={}}, t$1: f16[3]{a=b}",
            vec![tensor("f32", &[2]), tensor("f16", &[3])],
        ),
        ("batch: f32[4], t: F32[4], t: [4], t: f32[4", vec![]),
        ("t$0: f32[2]{device=cpu", vec![]),
        ("größe t$: u8[1]", vec![tensor("u8", &[1])]),
        ("", vec![]),
    ];
    for (text, expected) in cases {
        let found = tensors::find(text).into_iter();
        let found = found.map(|tensor| DebugTensor {
            number: None,
            ..tensor
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{text}");
    }
    let numbers: Vec<_> = tensors::find("t$12: f32[2], t: f32[]")
        .iter()
        .map(|tensor| tensor.number)
        .collect();
    assert_eq!(numbers, [Some(12), None]);
}

#[test]
fn modules_end_where_lines_stand_as_deep() {
    let text = "\
  torch.empty(4)  ->  t: f32[4]
      aten::empty([4])  ->  t: f32[4]
    [nn.Mod] Net
    [record function] a part
      [nn.Mod] Net.a
      torch.nn.functional.linear(t: f32[4])  ->  t: f32[4]
          aten::linear(t: f32[4])  ->  t: f32[4]
      [nn.Mod] Net.b
        aten::relu(t: f32[4])  ->  t: f32[4]
      aten::add.Tensor(t: f32[4], 1)  ->  t: f32[4]
    aten::mul.Tensor(t: f32[4], 1)  ->  t: f32[4]
  torch.relu(t: f32[4])  ->  t: f32[4]
";
    let log = parse(text.as_bytes()).unwrap();
    let found: Vec<_> = log.calls.iter().map(|call| call.module.as_str()).collect();
    assert_eq!(found, ["", "", "Net.a", "Net.a", "Net.b", "Net", "", ""]);
}

#[test]
fn hashes_belong_to_tensors() {
    let cases: [(&str, &[&[&str]], usize); 8] = [
        ("{'hash': 1.5}", &[&["1.5"]], 0),
        ("{'hash': (2.0, 3)}", &[&["2.0", "3"]], 0),
        ("{'hash': nan}", &[&["nan"]], 0),
        ("{'hash': 1e-07}", &[&["1e-7"]], 0),
        ("{'hash': 'it\\'s'}", &[&["it's"]], 0),
        ("{'hash': None}", &[&[]], 0),
        ("{'hash': (1.0, 2.0)}", &[&[]], 1),
        ("{'hash': tensor(1.5)}", &[&[]], 1),
    ];
    for (log, expected, n_unread) in cases {
        let text = format!("    aten::f(t: f32[1])  ->  t: f32[1]  # {log}\n");
        let read = parse(text.as_bytes()).unwrap();
        let outputs = read.calls[0].outputs.iter();
        let found: Vec<Vec<&str>> = outputs
            .map(|tensor| {
                tensor
                    .hashes
                    .iter()
                    .map(|(_, text)| text.as_str())
                    .collect()
            })
            .collect();
        assert_eq!(found, expected, "{log}");
        assert_eq!(read.unread.n_hashed, n_unread, "{log}");
    }
}

#[test]
fn what_is_no_log_is_an_error() {
    let call = |fields: &str| format!(r#"{{"type":"op","call_depth":1,{fields}}}"#);
    let json = |logs: &str| {
        let format = "torch.utils._debug_mode.DebugMode.logs";
        format!(r#"{{"format":"{format}","version":1,"logs":[{logs}]}}"#)
    };
    let deep = format!(
        "{}{}",
        r#"{"type":"list","items":["#.repeat(4000),
        "]}".repeat(4000)
    );
    let cases = [
        ("{".to_owned(), "EOF"),
        (json("").replace('1', "2"), "in version 2"),
        (json("").replace("logs\",\"v", "x\",\"v"), "DebugMode.x"),
        (json("7"), "invalid type"),
        (json(&call(r#""op_name":3"#)), "invalid type"),
        (json(&call(r#""args_str":"""#)), "`op_name`"),
        (json(r#"{"type":"other","call_depth":1}"#), "`other`"),
        (
            json(&call(&format!(r#""op_name":"a","log":{deep}"#))),
            "recursion limit",
        ),
        (
            json(&call(r#""op_name":"a","log":{"type":"set"}"#)),
            "found one of type",
        ),
        (
            json(&call(
                r#""op_name":"a","log":{"type":"dict","items":[["a"]]}"#,
            )),
            "a key and a value",
        ),
        ("  a line\n  another\n".to_owned(), "no line that is a call"),
        ("\u{fffd}x".replace('x', "\n"), "no line that is a call"),
    ];
    for (text, expected) in cases {
        let error = parse(text.as_bytes()).unwrap_err().to_string();
        let start: String = text.chars().take(90).collect();
        assert!(error.contains(expected), "{start}: {error}");
    }
    assert!(parse(b"  aten::\xff()").is_err());
    assert!(parse(json("").as_bytes()).unwrap().calls.is_empty());
    let nested = format!(
        "    aten::f(t: f32[1])  # {{'input_hash': {}\n",
        "(".repeat(100_000)
    );
    assert_eq!(parse(nested.as_bytes()).unwrap().unread.n_hashed, 1);
}

#[test]
fn calls_go_on_in_lines_that_are_not_indented() {
    let text = "\
  torch.max(t: f32[2, 3])  ->  torch.return_types.max(
values='t: f32[2]',
indices='t: i64[2]')
  aten::f(a text
of two lines, t: u8[1])  ->  t: u8[1]
(odd
";
    let log = parse(text.as_bytes()).unwrap();
    assert_eq!(told(&log.calls[0].outputs), ["f32", "i64"]);
    assert_eq!(told(&log.calls[1].inputs), ["u8"]);
    assert_eq!(log.unread.first_line, Some((6, "(odd".to_owned())));
}

fn told(tensors: &[DebugTensor]) -> Vec<&str> {
    let dtypes = tensors.iter().map(|tensor| tensor.dtype.as_str());
    dtypes.collect()
}

#[test]
fn lines_that_are_no_calls_are_counted() {
    let text = "  aten::f(t: f32[1])\nloss 0.5\n\nloss 0.25\n";
    let unread = parse(text.as_bytes()).unwrap().unread;
    assert_eq!(
        (unread.n_lines, unread.first_line),
        (2, Some((2, "loss 0.5".to_owned())))
    );
}

#[test]
fn other_texts_are_no_logs() {
    for text in [
        "",
        "\n\n",
        "  indented\n",
        "aten::f(t: f32[1])\n",
        "{\"format\": \"x\"}",
        "  f(1, 2)\n",
    ] {
        assert!(!is_log(text.as_bytes()), "{text}");
    }
    for text in [
        "  aten::f(t: f32[1])\n",
        "\n    [nn.Mod] Net\n      aten::f(1)  ->  t: f32[1]\n",
    ] {
        assert!(is_log(text.as_bytes()), "{text}");
    }
}
