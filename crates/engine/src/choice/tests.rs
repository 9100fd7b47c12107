use std::ffi::OsString;
use std::sync::Arc;

use super::*;
use crate::{LoadOptions, LoadedModel, ModelSource};

/// An engine that has a name only.
struct Named(&'static str);

impl Engine for Named {
    fn name(&self) -> &'static str {
        self.0
    }

    fn version(&self) -> Option<&str> {
        Some("7.8.9")
    }

    fn load(
        &self,
        _source: ModelSource<'_>,
        _options: &LoadOptions,
    ) -> Result<Box<dyn LoadedModel>, EngineError> {
        Err(EngineError::Stopped)
    }
}

const LOADS: Option<Loader> = Some(|_| Ok(Arc::new(Named("ONNX Runtime"))));
const FAILS: Option<Loader> = Some(|_| {
    Err(EngineError::Library {
        path: "lib.so".into(),
        reason: "invalid ELF header".to_owned(),
    })
});

/// Returns the choice, or why there is none; with `@` for the directory of the library that is
/// there.
fn choose_in(
    dir: &Path,
    wanted: &EngineRequest,
    (load, has_tract): (Option<Loader>, bool),
    shared: Option<&str>,
) -> Result<(String, Option<String>), String> {
    let around = || {
        let mut around = SearchSurroundings {
            system_packages: dir.join("packages"),
            ..SearchSurroundings::default()
        };
        if let Some(path) = shared {
            let path = dir.join(path).into_os_string();
            around.variables.insert(SHARED_VARIABLE, path);
        }
        around
    };
    let tract = has_tract.then(|| Arc::new(Named("tract")) as SharedEngine);
    let chooser = EngineChooser {
        around,
        load,
        tract,
    };
    let root = dir.display().to_string();
    let told = |text: String| text.replace(&root, "@");
    match chooser.choose(wanted) {
        Ok(chosen) => {
            assert_eq!(
                chosen.kind == EngineKind::Tract,
                chosen.engine.name() == "tract"
            );
            assert!(
                chosen.reason.starts_with(chosen.engine.name()),
                "{chosen:?}"
            );
            Ok((told(chosen.reason), chosen.warning.map(told)))
        }
        Err(EngineError::NoEngine { reason }) => Err(told(reason)),
        Err(other) => panic!("{other}"),
    }
}

fn wanted(kind: EngineKind, dir: &Path, library: Option<&str>) -> EngineRequest {
    let library = library.map(|path| NamedLibrary {
        path: dir.join(path),
        named_by: "--engine-lib",
    });
    EngineRequest { kind, library }
}

/// A directory with a library in it, `found`, and one without, `packages`.
fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("packages")).unwrap();
    std::fs::write(dir.path().join("lib.so"), "").unwrap();
    dir
}

const NOT_FOUND: &str = "no library of ONNX Runtime was found (looked for the Python package of the system \
                         `@/packages`); install it with `pip install onnxruntime`, or name it with \
                         --engine-lib or OPSCOPE_ENGINE_LIB";
const BROKEN: &str =
    "the library `@/lib.so`, named by ORT_DYLIB_PATH, cannot be used: invalid ELF header";

#[test]
fn what_is_there_and_wanted_decides() {
    let dir = tree();
    let check = |kind, build, shared, expected: Result<(&str, Option<&str>), &str>| {
        let found = choose_in(dir.path(), &wanted(kind, dir.path(), None), build, shared);
        let expected = expected
            .map(|(reason, warning)| (reason.to_owned(), warning.map(str::to_owned)))
            .map_err(str::to_owned);
        assert_eq!(found, expected, "{kind} {shared:?}");
    };
    let (auto, tract, onnx_runtime) =
        (EngineKind::Auto, EngineKind::Tract, EngineKind::OnnxRuntime);
    let loaded = "ONNX Runtime 7.8.9 of `@/lib.so`, named by ORT_DYLIB_PATH";
    let library = Some("lib.so");
    for kind in [auto, onnx_runtime] {
        check(kind, (LOADS, true), library, Ok((loaded, None)));
    }
    let asked = Ok(("tract 7.8.9, as asked for", None));
    check(tract, (LOADS, true), library, asked);
    check(tract, (None, true), None, asked);
    // Nothing found: an answer of `auto`, an error otherwise.
    let reason = format!("tract 7.8.9: {NOT_FOUND}");
    check(auto, (LOADS, true), None, Ok((&reason, None)));
    check(onnx_runtime, (LOADS, true), None, Err(NOT_FOUND));
    let reason = format!("{NOT_FOUND}; this build has no tract");
    check(auto, (LOADS, false), None, Err(&reason));
    // Found and broken: a warning, or an error.
    let reason = "tract 7.8.9: the ONNX Runtime that was found cannot be used";
    check(auto, (FAILS, true), library, Ok((reason, Some(BROKEN))));
    check(onnx_runtime, (FAILS, true), library, Err(BROKEN));
    let absent = "ORT_DYLIB_PATH names `@/absent`: No such file or directory (os error 2); expected ONNX \
                  Runtime's `libonnxruntime.so*`, or a directory that has it";
    if cfg!(target_os = "linux") {
        check(
            auto,
            (LOADS, true),
            Some("absent"),
            Ok((reason, Some(absent))),
        );
        check(onnx_runtime, (LOADS, true), Some("absent"), Err(absent));
    }
    // Builds that lack something.
    let not_built = "this build has no ONNX Runtime: build it with `--features onnxruntime`";
    check(onnx_runtime, (None, true), library, Err(not_built));
    let reason = format!("tract 7.8.9: {not_built}");
    check(auto, (None, true), library, Ok((&reason, None)));
    check(auto, (None, false), library, Err(NO_ENGINE));
    let no_tract = "this build has no tract: build it with `--features tract`";
    check(tract, (LOADS, false), library, Err(no_tract));
}

#[test]
fn a_named_library_is_wanted() {
    let dir = tree();
    let check = |kind, library, build, part: &str, is_found| {
        let wanted = wanted(kind, dir.path(), Some(library));
        let found = choose_in(dir.path(), &wanted, build, Some("absent"));
        assert_eq!(found.is_ok(), is_found, "{found:?}");
        let told = found.map_or_else(|error| error, |(reason, _)| reason);
        assert!(told.contains(part), "{told}");
    };
    let of_option = "`@/lib.so`, named by --engine-lib";
    for kind in [EngineKind::Auto, EngineKind::OnnxRuntime] {
        check(kind, "lib.so", (LOADS, true), of_option, true);
        check(kind, "lib.so", (FAILS, true), of_option, false);
        check(
            kind,
            "absent",
            (LOADS, true),
            "--engine-lib names `@/absent`",
            false,
        );
    }
    check(
        EngineKind::Tract,
        "absent",
        (LOADS, true),
        "as asked for",
        true,
    );
}

#[test]
fn variables_are_read() {
    let check =
        |engine: &str, library: &str, expected: Result<(EngineKind, Option<&str>), &str>| {
            let variable = |name: &str| match name {
                ENGINE_VARIABLE => Some(OsString::from(engine)),
                LIBRARY_VARIABLE => Some(OsString::from(library)),
                _ => None,
            };
            let found = EngineRequest::from_variables(variable)
                .map(|wanted| {
                    let library = wanted.library.map(|library| {
                        assert_eq!(library.named_by, LIBRARY_VARIABLE);
                        library.path.display().to_string()
                    });
                    (wanted.kind, library)
                })
                .map_err(|error| error.to_string());
            let expected = expected
                .map(|(kind, library)| (kind, library.map(str::to_owned)))
                .map_err(str::to_owned);
            assert_eq!(found, expected, "{engine} {library}");
        };
    check("", "", Ok((EngineKind::Auto, None)));
    check("", "x y", Ok((EngineKind::Auto, Some("x y"))));
    for kind in EngineKind::ALL {
        check(kind.name(), "", Ok((kind, None)));
    }
    let expected = "OPSCOPE_ENGINE is `ORT`: expected auto, tract or onnxruntime";
    check("ORT", "", Err(expected));
}
