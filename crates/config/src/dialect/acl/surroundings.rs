//! Dumps requested by the environment, with or without a file.

use opscope_capture::FailureDetail;

use super::dump::{AclDump, DumpMode};
use super::{dump_path, lower, settings};
use crate::ConfigEnvironment;

/// The variable that requests a dump of failures, and its level of detail.
pub(super) fn asking_variable(env: &ConfigEnvironment) -> Option<(&'static str, FailureDetail)> {
    let scene = env.dump_scene.as_deref();
    if let Some(detail) = scene.and_then(settings::environment_scene) {
        return Some(("ASCEND_DUMP_SCENE", detail));
    }
    env.collect_path.as_ref()?;
    Some(("NPU_COLLECT_PATH", FailureDetail::Normal))
}

/// The dump of failures requested by variables: by `ASCEND_DUMP_SCENE`, or else by
/// `NPU_COLLECT_PATH`. It is in force from the start of the process, and precedes one of a file.
pub fn from_environment(env: &ConfigEnvironment) -> Option<AclDump> {
    let (variable, detail) = asking_variable(env)?;
    let places = match &env.collect_path {
        Some(path) if variable == "NPU_COLLECT_PATH" => vec![env.absolute(path)],
        _ => dump_path::failure_places(None, env),
    };
    Some(lower::failures(detail, places))
}

/// The dumps of failures of a process in this environment, in order of precedence: the
/// environment's, then the file's, which is used if no directory of the first is usable.
pub fn failures_in_force(file: Option<&AclDump>, env: &ConfigEnvironment) -> Vec<AclDump> {
    let of_file = file.filter(|dump| matches!(dump.mode, DumpMode::Failures(_)));
    let dumps = from_environment(env).into_iter();
    dumps.chain(of_file.cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::acl::load;

    #[test]
    fn the_environment_goes_before_the_file() {
        let env = ConfigEnvironment {
            current_dir: "/cwd".into(),
            work_path: Some("/work".into()),
            collect_path: Some("/collect".into()),
            ..ConfigEnvironment::default()
        };
        let in_force = |text: &str, env: &ConfigEnvironment| {
            let config = load(text, env).unwrap();
            let dumps = failures_in_force(config.dump.as_ref(), env);
            let shown =
                |dump: &AclDump| format!("{} {}", dump.mode.name(), dump.places[0].display());
            dumps.iter().map(shown).collect::<Vec<_>>().join(", ")
        };
        let detail = r#"{"dump": {"dump_scene": "aic_err_detail_dump", "dump_path": "/file"}}"#;
        let expected = "exception_norm /collect, exception_detail /work";
        assert_eq!(in_force(detail, &env), expected);
        assert_eq!(in_force("{}", &env), "exception_norm /collect");
        let without = ConfigEnvironment {
            collect_path: None,
            ..env
        };
        assert_eq!(in_force(detail, &without), "exception_detail /work");
        assert_eq!(in_force("{}", &without), "");
    }
}
