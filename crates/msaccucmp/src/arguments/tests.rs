use super::*;

const SPECS: &[OptionSpec] = &[
    option(&["-o", "--output_tensor"], true),
    option(&["-out", "--output"], false),
    option(&["-i", "--input_tensor"], true),
];

const fn option(names: &'static [&'static str], is_exclusive: bool) -> OptionSpec {
    OptionSpec {
        names,
        value: ValueKind::Text,
        is_required: false,
        is_exclusive,
    }
}

fn check(args: &str, expected: Result<[Option<&str>; 3], &str>) {
    let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
    match (parse(SPECS, &args), expected) {
        (Ok(values), Ok(expected)) => {
            let values: Vec<_> = values.iter().map(Option::as_deref).collect();
            assert_eq!(values, expected, "{args:?}");
        }
        (Err(ParseStop::Error(message)), Err(part)) => {
            assert!(message.contains(part), "{args:?}: {message}");
        }
        (Err(ParseStop::Help), Err("help")) => {}
        (found, expected) => panic!("{args:?}: {found:?}, expected {expected:?}"),
    }
}

#[test]
fn words_are_read_as_argparse_reads_them() {
    check("", Ok([None, None, None]));
    check("-o 1 -out d", Ok([Some("1"), Some("d"), None]));
    check("-o 1 -o 2", Ok([Some("2"), None, None]));
    check("-o -1", Ok([Some("-1"), None, None]));
    check("-o=-1", Ok([Some("-1"), None, None]));
    check("-o3", Ok([Some("3"), None, None]));
    check("-outd", Ok([Some("utd"), None, None]));
    check("-out=d", Ok([None, Some("d"), None]));
    check("--output d", Ok([None, Some("d"), None]));
    check("--inp=4", Ok([None, None, Some("4")]));
    check("-o -- -x", Ok([Some("-x"), None, None]));
}

#[test]
fn wrong_words_are_named() {
    check(
        "-o 1 -i 2",
        Err("argument -i/--input_tensor: not allowed with"),
    );
    check("-ou d", Err("ambiguous option: -ou could match -o, -out"));
    check("--outp d", Err("ambiguous option: --outp could match"));
    check(
        "-o",
        Err("argument -o/--output_tensor: expected one argument"),
    );
    check("-o -i", Err("expected one argument"));
    check("-x 1", Err("unrecognized arguments: -x 1"));
    check("1", Err("unrecognized arguments: 1"));
    check("-o 1 -h", Err("help"));
    check("--he", Err("help"));
}

#[test]
fn flags_take_no_word_and_numbers_take_many() {
    let spec = |names, value| OptionSpec {
        names,
        value,
        is_required: false,
        is_exclusive: false,
    };
    let specs = [
        spec(&["-map"], ValueKind::Flag),
        spec(&["-alg"], ValueKind::Integers(&[0, 1, 2])),
        spec(&["-max"], ValueKind::AnyInteger),
    ];
    let read = |args: &str| {
        let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
        parse(&specs, &args)
    };
    let values = |found: [Option<&str>; 3]| Ok(found.map(|text| text.map(str::to_owned)).to_vec());
    assert_eq!(
        read("-map -alg 0 2 -max -7"),
        values([Some(""), Some("0,2"), Some("-7")])
    );
    assert_eq!(read("-alg=1"), values([None, Some("1"), None]));
    assert_eq!(read("-max 1_0"), values([None, None, Some("1_0")]));
    for args in ["-map=x", "-alg", "-alg 0 3", "-alg x", "-max 1.5", "-max"] {
        assert!(matches!(read(args), Err(ParseStop::Error(_))), "{args}");
    }
    assert_eq!(integer(" -1_0 "), Some(-10));
    assert_eq!(integer("1__0"), None);
}
