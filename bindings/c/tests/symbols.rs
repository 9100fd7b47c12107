//! The headers declare the exported symbols, and their structures have the library's layout.

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use support::{Program, headers, library_dir, succeed};

/// The functions declared by a header: interface names before a parenthesis, at the top level of
/// the file.
fn declared(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let declarations = text.split(';').filter(|part| {
        (part.contains("ACL_FUNC_VISIBILITY") || part.contains("ACL_DUMP_API"))
            && part.contains('(')
    });
    for declaration in declarations {
        let marks = ["ACL_FUNC_VISIBILITY", "ACL_DUMP_API"];
        let start = marks
            .iter()
            .filter_map(|mark| declaration.rfind(mark))
            .max();
        let rest = &declaration[start.unwrap_or(0)..];
        let Some(before) = rest.split('(').next() else {
            continue;
        };
        let name = before.split_whitespace().last().unwrap_or_default();
        let name = name.trim_start_matches('*');
        // Not the macros themselves, whose definitions contain the same words.
        if is_of_interface(name) {
            names.insert(name.to_owned());
        }
    }
    names
}

/// Whether a function is the vendor's, by the two prefixes of their names.
fn is_of_interface(name: &str) -> bool {
    name.starts_with("acl") || name.starts_with("hi_")
}

fn exported() -> BTreeSet<String> {
    let library = library_dir().join("libascendcl.so");
    let mut nm = Command::new("nm");
    let output = succeed(nm.args(["-D", "--defined-only"]).arg(library));
    let text = String::from_utf8(output.stdout).expect("nm writes text");
    text.lines()
        .filter_map(|line| line.split_whitespace().last())
        .map(str::to_owned)
        .collect()
}

fn header_texts() -> Vec<String> {
    let mut texts = Vec::new();
    let mut dirs = vec![headers()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).expect("the headers are there") {
            let path = entry.expect("a header").path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                texts.push(std::fs::read_to_string(path).expect("a header is text"));
            }
        }
    }
    texts
}

#[test]
fn every_declared_function_is_exported_and_no_other() {
    let declared: BTreeSet<String> = header_texts()
        .iter()
        .flat_map(|text| declared(text))
        .collect();
    assert!(declared.len() > 150, "only {} found", declared.len());
    assert!(declared.contains("acldumpRegCallback") && declared.contains("aclAppLog"));
    let exported = exported();
    let missing: Vec<_> = declared.difference(&exported).collect();
    assert!(missing.is_empty(), "declared but not exported: {missing:?}");
    let undeclared: Vec<_> = exported
        .difference(&declared)
        .filter(|name| is_of_interface(name))
        .collect();
    assert!(
        undeclared.is_empty(),
        "exported but not declared: {undeclared:?}"
    );
}

#[test]
fn the_library_is_found_by_its_name() {
    let library = library_dir().join("libascendcl.so");
    let output = succeed(Command::new("readelf").arg("-d").arg(library));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let soname = text.lines().find(|line| line.contains("SONAME"));
    assert!(
        soname.is_some_and(|line| line.contains("[libascendcl.so]")),
        "{text}"
    );
}

const LAYOUT: &str = "\
aclmdlIODims 1160
aclmdlIODimsRange 2056
aclmdlBatch 1032
aclmdlHW 2056
aclAippDims 2336
aclAippInfo 200
acldumpChunk 4120
acldumpChunk.offset 4104
acldumpChunk.dataBuf 4116
acldumpTensorInfo 456
acldumpTensorInfo.shape 56
aclrtErrorInfo 2576
aclCANNPackageVersion 512
aclDataType 4
aclrtMemMallocPolicy 4
";

#[test]
fn structures_lie_in_c_as_they_do_in_the_library() {
    for source in ["layout.c", "layout.cpp"] {
        let program = Program::compile(source);
        assert_eq!(program.run::<&str>(&[]).stdout, LAYOUT, "{source}");
    }
}

/// Headers that a program may include alone, with the strictest warnings, in every standard.
#[test]
fn each_header_compiles_alone_without_warnings() {
    let dir = tempfile::tempdir().expect("a directory for sources");
    let names = [
        "acl/acl.h",
        "acl/acl_base.h",
        "acl/acl_rt.h",
        "acl/acl_mdl.h",
        "acl/acl_op.h",
        "acl/acl_op_compiler.h",
        "acl/acl_dump.h",
        "acl/acl_prof.h",
        "acl/acl_tdt.h",
        "acl/acl_tdt_queue.h",
        "acl/ops/acl_cblas.h",
        "acl/ops/acl_dvpp.h",
        "acl/ops/acl_fv.h",
        "aclnn/acl_meta.h",
        "aclnn/aclnn_base.h",
        // The headers of operators are all generated the same way.
        "aclnnop/aclnn_add.h",
        "aclnnop/aclnn_reduce_sum.h",
    ];
    for name in names {
        let source = format!("#include \"{name}\"\nint main(void) {{ return 0; }}\n");
        compile_only("gcc", &["c99", "c11"], &dir.path().join("t.c"), &source);
        compile_only(
            "g++",
            &["c++11", "c++17"],
            &dir.path().join("t.cpp"),
            &source,
        );
    }
}

fn compile_only(compiler: &str, standards: &[&str], path: &Path, source: &str) {
    std::fs::write(path, source).expect("a source");
    for standard in standards {
        let mut command = Command::new(compiler);
        command
            .arg(format!("-std={standard}"))
            .args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"])
            .arg(format!("-I{}", headers().display()))
            .arg(path);
        succeed(&mut command);
    }
}
