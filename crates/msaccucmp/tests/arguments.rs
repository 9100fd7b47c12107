//! `msaccucmp convert` with odd arguments and array files: exit status, number of arrays, and
//! whether there is an output directory. Every row was recorded with the real tool.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use opscope_store::file_format::npy::encode_header;
use opscope_tensor::{DType, Shape};

/// The bytes of an array file written by numpy.
fn array(dtype: DType, dims: &[usize]) -> Vec<u8> {
    let shape = Shape::new(dims.to_vec()).unwrap();
    let n_bytes = shape.n_bytes(dtype).unwrap();
    [encode_header(dtype, &shape).unwrap(), vec![0; n_bytes]].concat()
}

/// The array's file with a part of its header replaced by one of the same length.
fn with_header(from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let bytes = array(DType::F32, &[2, 3]);
    let at = bytes
        .windows(from.len())
        .position(|part| part == from.as_bytes())
        .unwrap();
    let mut bytes = bytes;
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

fn fill(dir: &Path) {
    let whole = array(DType::F32, &[2, 3]);
    let with_version = |major: u8, minor: u8| {
        let mut bytes = whole.clone();
        (bytes[6], bytes[7]) = (major, minor);
        bytes
    };
    let files = [
        ("a.npy", whole.clone()),
        ("b.npy", whole.clone()),
        ("more.npy", [&whole[..], b"xyz"].concat()),
        ("much_more.npy", [&whole[..], &[0; 64]].concat()),
        ("less.npy", whole[..whole.len() - 1].to_vec()),
        ("empty.npy", Vec::new()),
        ("magic.npy", whole[..6].to_vec()),
        ("half_header.npy", whole[..40].to_vec()),
        ("version_0.npy", with_version(0, 0)),
        ("version_4.npy", with_version(4, 0)),
        ("version_1_1.npy", with_version(1, 1)),
        ("big_endian.npy", with_header("'<f4'", "'>f4'")),
        ("complex.npy", array(DType::C64, &[2, 3])),
        ("object.npy", with_header("'<f4'", "'|O' ")),
        ("text.npy", with_header("'<f4'", "'<U1'")),
        ("negative.npy", with_header("(2, 3)", "(2,-3)")),
        ("open.npy", with_header("(2, 3), }", "(2, 3,   ")),
        ("archive.npy", b"PK\x03\x04rest".to_vec()),
        ("words.npy", b"1 2 3\n".to_vec()),
        ("dir/p.npy", whole.clone()),
        ("dir/q.npy", whole.clone()),
        ("dirs/s1/x.npy", whole.clone()),
        ("map/mapping.csv", b"1,a\n".to_vec()),
    ];
    fs::create_dir_all(dir.join("void")).unwrap();
    fs::create_dir_all(dir.join("dirs/s2")).unwrap();
    for (name, bytes) in files {
        fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
        fs::write(dir.join(name), bytes).unwrap();
    }
}

/// Arguments with `@` for the directory, the status, the number of arrays, and whether there is an
/// output directory.
type Row = (&'static str, i32, usize, bool);

const ROWS: &[Row] = &[
    // Array files.
    ("-d @/a.npy", 0, 1, true),
    ("-d @/more.npy", 0, 1, true),
    ("-d @/much_more.npy", 0, 1, true),
    ("-d @/less.npy", 11, 0, true),
    ("-d @/empty.npy", 11, 0, true),
    ("-d @/magic.npy", 11, 0, true),
    ("-d @/half_header.npy", 11, 0, true),
    ("-d @/version_0.npy", 11, 0, true),
    ("-d @/version_4.npy", 11, 0, true),
    ("-d @/version_1_1.npy", 11, 0, true),
    ("-d @/big_endian.npy", 21, 0, true),
    ("-d @/complex.npy", 1, 0, true),
    ("-d @/object.npy", 11, 0, true),
    ("-d @/text.npy", 21, 0, true),
    ("-d @/negative.npy", 11, 0, true),
    ("-d @/open.npy", 1, 0, true),
    ("-d @/archive.npy", 1, 0, true),
    ("-d @/words.npy", 11, 0, true),
    // Directories and lists.
    ("-d @/dir", 0, 2, true),
    ("-d @/dirs", 0, 0, true),
    ("-d @/map", 0, 0, true),
    ("-d @/void", 6, 0, false),
    ("-d @/void -f xx", 6, 0, false),
    ("-d ,", 0, 0, true),
    ("-d ,,", 0, 0, true),
    ("-d @/dir,", 0, 0, true),
    ("-d @/dir,@/nope", 0, 2, true),
    ("-d @/void,@/nope", 0, 0, true),
    ("-d @/dirs/s1,@/dirs/s2", 0, 0, true),
    ("-d @/a.npy,@/void", 0, 1, true),
    ("-d @/a.npy,,@/b.npy", 0, 2, true),
    ("-d @/nope,@/a.npy", 0, 1, true),
    ("-d @/nope", 3, 0, false),
    ("-d @/nope,@/nope2", 3, 0, false),
    ("-d @/dirs -f ND", 0, 0, true),
    ("-d , -f ND", 0, 0, true),
    // The order of the checks.
    ("-d @/a.npy -f xx -s 3", 23, 0, false),
    ("-d @/a.npy -f xx -s 0,3", 23, 0, false),
    ("-d @/a.npy -f xx -s 3 -o x", 6, 0, false),
    ("-d @/a.npy -f xx -s 2,3", 6, 0, false),
    ("-d @/a.npy,@/b.npy -f xx -s 3", 6, 0, false),
    ("-d @/dir -f xx -s 3", 6, 0, false),
    ("-d @/nope -f xx -s 3", 6, 0, false),
    ("-d @/nope -f ND -s 3", 3, 0, false),
    ("-d @/a.npy -f ND -c @/nope -s 3", 23, 0, false),
    ("-d @/a.npy -f xx -c @/nope", 6, 0, false),
    ("-d @/nope -f ND -c @/a.npy", 3, 0, false),
    ("-d @/a.npy -f ND -c @/void", 22, 0, true),
    ("-d @/a.npy -f ND -o=", 22, 0, true),
    ("-d @/a.npy -f= -s x -o x -c @/nope", 0, 1, true),
    ("-d @/a.npy -s 3", 6, 0, false),
    ("-d @/dir -f ND -s x -o x", 22, 0, true),
];

#[test]
fn odd_arguments_have_the_status_of_the_reference() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    fill(&root);
    for (i, (arguments, status, n_arrays, has_out)) in ROWS.iter().enumerate() {
        let out = root.join(format!("out_{i}"));
        let words = arguments.replace('@', root.to_str().unwrap());
        let mut all: Vec<OsString> = vec!["convert".into()];
        for word in words.split(' ') {
            // An empty value cannot be separated by spaces.
            match word.strip_suffix('=') {
                Some(option) => all.extend([option.into(), OsString::new()]),
                None => all.push(word.into()),
            }
        }
        all.extend(["-out".into(), out.clone().into_os_string()]);
        let found = opscope_msaccucmp::run(&all);
        let entries = fs::read_dir(&out).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let n_found = names.filter(|name| name.ends_with(".npy")).count();
        assert_eq!(
            (found, n_found, out.exists()),
            (*status, *n_arrays, *has_out),
            "{arguments}"
        );
    }
}
