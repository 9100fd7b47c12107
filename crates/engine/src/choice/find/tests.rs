use std::collections::BTreeMap;
use std::ffi::OsString;

use super::*;

/// A directory in which environments are made.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Tree {
        Tree(tempfile::tempdir().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// An empty file, with the directories above it.
    fn file(&self, path: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path
    }

    /// The library of a version beside the package in these packages' directory.
    fn package(&self, packages: &str, version: &str) -> PathBuf {
        self.file(&format!(
            "{packages}/onnxruntime/capi/libonnxruntime.so.{version}"
        ))
    }

    /// Surroundings whose variables have `@` for this directory. The system's packages are in
    /// `system`.
    fn around(&self, variables: &[(&'static str, &str)]) -> SearchSurroundings {
        let root = self.0.path().display().to_string();
        let value = |value: &str| OsString::from(value.replace('@', &root));
        let variables = variables.iter().map(|(name, text)| (*name, value(text)));
        SearchSurroundings {
            variables: variables.collect::<BTreeMap<_, _>>(),
            host_package: None,
            system_packages: self.path("system"),
        }
    }

    fn check(&self, variables: &[(&'static str, &str)], path: &Path, how: &str) {
        let found = find(&self.around(variables)).unwrap();
        assert_eq!((&*found.path, &*found.how), (path, how), "{variables:?}");
    }
}

#[cfg(unix)]
fn link(target: &Path, at: &Path) {
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(target, at).unwrap();
}

const EVERYTHING: [(&str, &str); 4] = [
    ("VIRTUAL_ENV", "@/venv"),
    ("CONDA_PREFIX", "@/conda"),
    ("PATH", "@/absent::@/python/bin:@/other/bin"),
    ("HOME", "@/home"),
];

#[cfg(target_os = "linux")]
#[test]
fn places_rank_in_their_order() {
    let tree = Tree::new();
    tree.file("python/bin/python3");
    tree.file("other/bin/python3");
    tree.package("other/lib/python3.11/site-packages", "9.9.9");
    // From the last place to the first; older libraries in front win.
    let user = tree.package("home/.local/lib/python3.11/site-packages", "1.30.0");
    let beside = |whose: &str| format!("found next to the Python package of {whose}");
    tree.check(&EVERYTHING, &user, &beside("the user"));
    let system = tree.package("system", "1.29.0");
    tree.check(&EVERYTHING, &system, &beside("the system"));
    let local = tree.package("python/local/lib/python3.11/dist-packages", "1.28.0");
    tree.check(&EVERYTHING, &local, &beside("the `python3` on PATH"));
    let conda = tree.package("conda/lib/python3.12/site-packages", "1.27.0");
    tree.check(&EVERYTHING, &conda, &beside("CONDA_PREFIX"));
    let venv = tree.package("venv/lib64/python3.10/site-packages", "1.26.0");
    tree.check(&EVERYTHING, &venv, &beside("VIRTUAL_ENV"));
    let host = tree.package("host", "1.25.0");
    let around = SearchSurroundings {
        host_package: Some(tree.path("host/onnxruntime")),
        ..tree.around(&EVERYTHING)
    };
    let found = find(&around).unwrap();
    assert_eq!((found.path, found.how), (host, beside("this interpreter")));
}

#[cfg(target_os = "linux")]
#[test]
fn the_newest_of_one_place_counts() {
    let tree = Tree::new();
    tree.package("venv/lib/python3.9/site-packages", "1.31.1");
    let newest = tree.package("venv/lib/python3.11/site-packages", "1.100.0");
    tree.package("venv/lib/python3.11/site-packages", "1.9.9");
    let how = "found next to the Python package of VIRTUAL_ENV";
    tree.check(&[("VIRTUAL_ENV", "@/venv")], &newest, how);
}

#[cfg(target_os = "linux")]
#[test]
fn the_library_of_conda_needs_no_package() {
    let tree = Tree::new();
    let path = tree.file("conda/lib/libonnxruntime.so.1.22.0");
    let variables = [("CONDA_PREFIX", "@/conda")];
    tree.check(&variables, &path, "found in CONDA_PREFIX");
}

#[cfg(target_os = "linux")]
#[test]
fn python_on_the_path_is_followed() {
    let tree = Tree::new();
    let python = tree.file("base/bin/python3.11");
    link(&python, &tree.path("base/bin/python3"));
    link(
        &tree.path("base/bin/python3"),
        &tree.path("env/bin/python3"),
    );
    let variables = [("PATH", "@/env/bin")];
    let how = "found next to the Python package of the `python3` on PATH";
    let base = tree.package("base/lib/python3.11/site-packages", "1.30.0");
    tree.check(&variables, &base, how);
    // What the environment itself has comes first.
    let env = tree.package("env/lib/python3.11/site-packages", "1.20.0");
    tree.check(&variables, &env, how);
    // A directory is no `python3`, and a broken link is none.
    fs::create_dir_all(tree.path("none/python3")).unwrap();
    link(&tree.path("nowhere"), &tree.path("broken/python3"));
    let variables = [("PATH", "@/none:@/broken:@/env/bin")];
    tree.check(&variables, &env, how);
}

#[cfg(target_os = "linux")]
#[test]
fn starters_of_pyenv_are_seen_through() {
    let tree = Tree::new();
    tree.file("pyenv/shims/python3");
    let first = tree.package(
        "pyenv/versions/3.11.4/lib/python3.11/site-packages",
        "1.30.0",
    );
    let second = tree.package(
        "pyenv/versions/3.12.1/lib/python3.12/site-packages",
        "1.20.0",
    );
    let how = "found next to the Python package of the `python3` on PATH";
    let path = ("PATH", "@/pyenv/shims");
    tree.check(&[path, ("PYENV_VERSION", "3.11.4")], &first, how);
    assert!(find(&tree.around(&[path])).is_err());
    fs::write(tree.path("pyenv/version"), "3.12.1\n3.11.4\n").unwrap();
    tree.check(&[path], &second, how);
    for version in ["system", "../versions/3.11.4", "..", ":"] {
        let around = tree.around(&[path, ("PYENV_VERSION", version)]);
        assert!(find(&around).is_err(), "{version}");
    }
}

#[test]
fn nothing_found_lists_where() {
    let tree = Tree::new();
    tree.file("python/bin/python3");
    let root = tree.0.path().display().to_string();
    let told = find(&tree.around(&EVERYTHING)).unwrap_err();
    let expected = "no library of ONNX Runtime was found (looked for the Python package of \
                    VIRTUAL_ENV `@/venv`, CONDA_PREFIX `@/conda`, the `python3` on PATH `@/python`, \
                    the system `@/system`, the user `@/home/.local`)";
    assert_eq!(told.replace(&root, "@"), expected);
    // An environment that counts twice is listed once.
    let told = find(&tree.around(&[("VIRTUAL_ENV", "@/python"), ("PATH", "@/python/bin")]));
    let told = told.unwrap_err().replace(&root, "@");
    assert!(
        told.ends_with("of VIRTUAL_ENV `@/python`, the system `@/system`)"),
        "{told}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn packages_without_a_library_are_told_and_passed_over() {
    let tree = Tree::new();
    let packages = "venv/lib/python3.9/site-packages";
    for name in [
        "onnxruntime/capi/onnxruntime_pybind11_state.so",
        "onnxruntime/capi/libonnxruntime_providers_shared.so",
        "onnxruntime_extensions-0.10.0.dist-info/METADATA",
        "onnxruntime_gpu-1.17.3.dist-info/METADATA",
    ] {
        tree.file(&format!("{packages}/{name}"));
    }
    link(
        &tree.path("nowhere"),
        &tree.path(&format!(
            "{packages}/onnxruntime/capi/libonnxruntime.so.1.17.3"
        )),
    );
    let variables = [("VIRTUAL_ENV", "@/venv"), ("HOME", "@/home")];
    let told = find(&tree.around(&variables)).unwrap_err();
    let part = "/venv`, whose onnxruntime 1.17.3 in `";
    assert!(told.contains(part), "{told}");
    assert!(
        told.contains("has no separate library (1.19 and newer do)"),
        "{told}"
    );
    let user = tree.package("home/.local/lib/python3.9/site-packages", "1.19.2");
    tree.check(
        &variables,
        &user,
        "found next to the Python package of the user",
    );
}

#[cfg(target_os = "linux")]
#[test]
fn named_places() {
    let tree = Tree::new();
    let unpacked = tree.file("unpacked/lib/libonnxruntime.so.1.20.0");
    let packages = tree.package("packages", "1.21.0");
    let env = tree.package("env/lib/python3.11/site-packages", "1.22.0");
    let own = tree.file("any name");
    fs::create_dir(tree.path("empty")).unwrap();
    link(&tree.path("nowhere"), &tree.path("broken.so"));
    let cases = [
        ("unpacked", &unpacked),
        ("unpacked/lib", &unpacked),
        ("packages", &packages),
        ("packages/onnxruntime", &packages),
        ("packages/onnxruntime/capi", &packages),
        ("env", &env),
        ("any name", &own),
    ];
    for (path, expected) in cases {
        let found = named(&tree.path(path), "--engine-lib").unwrap();
        let how = "named by --engine-lib";
        assert_eq!((&found.path, &*found.how), (expected, how), "{path}");
    }
    let cases = [
        ("empty", "empty`: there is no `libonnxruntime.so*` in it"),
        (
            "broken.so",
            "expected ONNX Runtime's `libonnxruntime.so*`, or a directory that has it",
        ),
        ("absent", "absent`: No such file or directory"),
    ];
    for (path, part) in cases {
        let told = named(&tree.path(path), "ORT_DYLIB_PATH").unwrap_err();
        assert!(told.starts_with("ORT_DYLIB_PATH names `"), "{told}");
        assert!(told.contains(part), "{told}");
    }
}
