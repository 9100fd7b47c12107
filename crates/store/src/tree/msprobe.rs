//! The tree of msProbe.
//!
//! ```text
//! {path}/step{step}/rank{rank} | rank | proc{process}/dump.json
//!                                                    /construct.json, stack.json, debug.json
//!                                                    /dump_tensor_data/{key}.{side}.{position}.pt | .npy
//! {key} = {family}.{function}.{call}.{pass}                Functional.linear.0.forward
//!         {Module | Cell}.{path}.{class}.{pass}.{call}     Module.layer1.Linear.forward.0
//!         {Module | Cell}.{path}.{class}.parameters_grad.{call}
//!         {variable}.{call}.debug
//! ```

use std::path::Path;

use super::{directory_names, number};

/// The calls of a step.
pub const DUMP_FILE: &str = "dump.json";
/// Variables that a program saved by name.
pub const DEBUG_FILE: &str = "debug.json";
/// The modules of calls.
pub const CONSTRUCT_FILE: &str = "construct.json";
/// The lines of the program that made calls.
pub const STACK_FILE: &str = "stack.json";
/// Directory of the tensors.
pub const DATA_DIR: &str = "dump_tensor_data";
/// Failures of the tool.
pub const ERROR_FILE: &str = "dump_error_info.log";

/// The tool's configuration, which users keep next to its output.
pub const CONFIG_FILE: &str = "config.json";

/// Families of modules.
const MODULES: [&str; 2] = ["Module", "Cell"];
const PASSES: [&str; 2] = ["forward", "backward"];
const GRADIENTS: &str = "parameters_grad";
const SAVED: &str = "debug";

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A call of a function or module, forward or backward.
    Call,
    /// The gradients of a module's own parameters.
    Gradients,
    /// A variable that the program saved.
    Saved,
}

/// The parts of an entry's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryName<'a> {
    /// Its kind.
    pub kind: EntryKind,
    /// Function or class; empty if the key does not contain it.
    pub op_type: &'a str,
    /// Path of the module that the entry is about; none of functions.
    pub module: Option<&'a str>,
}

impl<'a> EntryName<'a> {
    /// Takes a key apart.
    pub fn parse(key: &'a str) -> EntryName<'a> {
        let unknown = EntryName {
            kind: EntryKind::Call,
            op_type: "",
            module: None,
        };
        let Some((rest, last)) = key.rsplit_once('.') else {
            return unknown;
        };
        if last == SAVED {
            let kind = EntryKind::Saved;
            return EntryName { kind, ..unknown };
        }
        let is_number = number::<u64>(last).is_some();
        // Old versions do not count the calls of gradients.
        let (subject, word) = match rest.rsplit_once('.') {
            Some((subject, word)) if is_number => (subject, word),
            _ => (rest, last),
        };
        let kind = match word {
            GRADIENTS => EntryKind::Gradients,
            _ => EntryKind::Call,
        };
        let (family, name) = subject.split_once('.').unwrap_or((subject, ""));
        let is_module = MODULES.contains(&family);
        match word {
            GRADIENTS if is_module => {}
            _ if PASSES.contains(&word) && is_number == is_module => {}
            _ => return unknown,
        }
        if is_module {
            let (path, class) = name.rsplit_once('.').unwrap_or(("", name));
            return EntryName {
                kind,
                op_type: class,
                module: Some(path),
            };
        }
        // Behind the function's name is the number of the call.
        let function = name.rsplit_once('.');
        let function = function.filter(|(_, call)| number::<u64>(call).is_some());
        EntryName {
            op_type: function.map_or("", |(function, _)| function),
            ..unknown
        }
    }
}

/// Facts from the path of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProbePlace {
    /// The process among those that run together; none where it was not known.
    pub rank: Option<u32>,
    /// The step of the training.
    pub step: Option<u64>,
}

impl ProbePlace {
    /// Looks for `step{N}` and `rank{N}` in the names of the directories; the innermost one counts.
    pub fn from_dir(dir: &Path) -> ProbePlace {
        let names = directory_names(dir);
        let numbers = |prefix: &'static str| {
            let names = names.iter().rev();
            names.filter_map(move |name| name.strip_prefix(prefix))
        };
        ProbePlace {
            rank: numbers("rank").find_map(number),
            step: numbers("step").find_map(number),
        }
    }
}

/// Whether a directory's name contains the step or the rank below it.
pub fn is_step_or_rank(name: &str) -> bool {
    let digits = name.strip_prefix("step").or(name.strip_prefix("rank"));
    digits.and_then(number::<u64>).is_some() || name == "rank"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_say_what_ran() {
        use EntryKind::{Call, Gradients, Saved};
        let cases = [
            ("Functional.linear.3.forward", Call, "linear", None),
            ("Tensor.__mul__.0.backward", Call, "__mul__", None),
            ("Torch.linalg.norm.12.forward", Call, "linalg.norm", None),
            (
                "Mint.functional.relu.0.forward",
                Call,
                "functional.relu",
                None,
            ),
            ("Primitive.net.MatMul.0.forward", Call, "net.MatMul", None),
            (
                "Module.layer1.Linear.forward.0",
                Call,
                "Linear",
                Some("layer1"),
            ),
            (
                "Module.a.0.b.Linear.backward.7",
                Call,
                "Linear",
                Some("a.0.b"),
            ),
            ("Cell.net.fc.Dense.forward.0", Call, "Dense", Some("net.fc")),
            ("Module.Net.forward.0", Call, "Net", Some("")),
            (
                "Module.x.Linear.parameters_grad",
                Gradients,
                "Linear",
                Some("x"),
            ),
            (
                "Module.x.Linear.parameters_grad.1",
                Gradients,
                "Linear",
                Some("x"),
            ),
            ("loss.0.debug", Saved, "", None),
            (
                "Functional.parameters_grad.0.forward",
                Call,
                "parameters_grad",
                None,
            ),
            ("Functional.linear.forward", Call, "", None),
            ("Functional.linear.0.forward.0", Call, "", None),
            ("Module.x.Linear.forward", Call, "", None),
            ("forward", Call, "", None),
            ("", Call, "", None),
        ];
        for (key, kind, op_type, module) in cases {
            let expected = EntryName {
                kind,
                op_type,
                module,
            };
            assert_eq!(EntryName::parse(key), expected, "{key}");
        }
    }

    #[test]
    fn directories_say_when_and_where() {
        let place = |dir: &str| {
            let place = ProbePlace::from_dir(Path::new(dir));
            (place.step, place.rank)
        };
        assert_eq!(place("/d/step10/rank3"), (Some(10), Some(3)));
        assert_eq!(place("/d/step0/proc4711"), (Some(0), None));
        assert_eq!(place("step2/rank"), (Some(2), None));
        assert_eq!(place("/ranking/steps"), (None, None));
        assert_eq!(place("/rank7/step1/rank0"), (Some(1), Some(0)));
    }
}
