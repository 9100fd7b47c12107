use std::path::Path;

use super::*;

fn golden(name: &str) -> Vec<u8> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/polygraphy");
    std::fs::read(dir.join(name)).unwrap()
}

/// Reads all arrays, and returns their number and bytes.
fn read_all(file: &[u8]) -> Result<(usize, Vec<u8>), FormatError> {
    let arrays = decode(file)?;
    let mut bytes = Vec::new();
    for array in &arrays {
        let described = array.describe()?;
        let read = array.read(&mut bytes)?;
        assert_eq!(described.range.len(), read.range.len());
    }
    Ok((arrays.len(), bytes))
}

/// A file with one array, whose text is the one given.
fn with_array(text: &str) -> String {
    let array = format!(r#"{{"array":"{text}","polygraphy_class":"ndarray"}}"#);
    format!(r#"[{{"x":{array}}}]"#)
}

#[test]
fn other_json_is_not_taken() {
    for name in [
        "out.json",
        "in.json",
        "two.json",
        "in2.json",
        "each/0000000000.json",
    ] {
        assert!(has_signs(&golden(name)), "{name}");
    }
    let others: [&[u8]; 5] = [
        b"",
        b"{}",
        b"[\"array\"]",
        b"\"polygraphy_class\"",
        b"\x93NUMPY",
    ];
    for other in others {
        assert!(!has_signs(other), "{}", other.escape_ascii());
    }
}

#[test]
fn iterations_have_files_of_their_own() {
    let cases = [
        ("0000000000.json", Some(0)),
        ("0000000123.json", Some(123)),
        ("000000123.json", None),
        ("+000000123.json", None),
        ("0000000123", None),
    ];
    for (name, expected) in cases {
        assert_eq!(iteration_of(name), expected, "{name}");
    }
}

#[test]
fn old_and_unwrapped_forms_are_read() {
    let file = String::from_utf8(golden("in.json")).unwrap();
    let expected = read_all(file.as_bytes()).unwrap();
    let marked = r#""__polygraphy_encoded_ndarray":"polygraphy_serialized_json_type""#;
    let old = file.replace(r#""polygraphy_class":"ndarray""#, marked);
    let single = file.trim_start_matches('[').trim_end_matches(']');
    for other in [&old, single] {
        assert!(has_signs(other.as_bytes()), "{other}");
        assert_eq!(read_all(other.as_bytes()).unwrap(), expected, "{other}");
    }
}

#[test]
fn wrong_files_say_where_and_why() {
    let text = "k05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDEsKSwgfSAgICAg";
    let long = format!("{text}{}", "AAAA".repeat(80));
    let nested = format!("{}{}", r#"[{"x":{"values":"#.repeat(200), "1");
    let cases = [
        ("{", "EOF"),
        ("3", "expected outputs or inputs"),
        (r#"{"lst":[["a",[]],["a",[]]]}"#, "`a` twice"),
        (
            r#"{"lst":[["a",[{"outputs":{},"more":1}]]]}"#,
            "unknown key `more`",
        ),
        (r#"{"lst":[["a",[{}]]]}"#, "missing field `outputs`"),
        (
            r#"{"lst":[],"x":{"array":""}}"#,
            "results and inputs in one object",
        ),
        (r#"[{"x":{"array":""},"x":{"array":""}}]"#, "`x` twice"),
        (
            r#"[{"x":{"array":"","values":{"array":""}}}]"#,
            "two arrays in one",
        ),
        (r#"[{"x":{"array":"k05V\/TVB"}}]"#, "borrowed string"),
        (r#"[{"x":{"array":3}}]"#, "integer"),
        (
            r#"[{"x":{"tensor":"UEsDBA=="}}]"#,
            "a tensor of torch's (in `x`)",
        ),
        (&with_array("k05VTVB"), "no multiple of 4"),
        (&with_array("k05V*VBZ"), "byte 0x2a at digit 4"),
        (&with_array("AAAA"), "at byte 0 of its array"),
        (&with_array(&long), "in `x`"),
        (&nested, ""),
    ];
    for (file, part) in cases {
        let error = read_all(file.as_bytes()).err();
        let error = error
            .unwrap_or_else(|| panic!("{file} was read"))
            .to_string();
        assert!(error.contains(part), "{file}: {error}");
    }
}

#[test]
fn damage_is_an_error_and_no_panic() {
    let file = golden("out.json");
    for at in (0..file.len()).step_by(7) {
        for other in [b'"', b'}', b'=', b'A', 0xff] {
            let mut damaged = file.clone();
            damaged[at] = other;
            let _ = read_all(&damaged);
        }
        assert!(read_all(&file[..at]).is_err(), "{at} bytes");
    }
}
