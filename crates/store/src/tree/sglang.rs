//! The files of SGLang's dumpers.
//!
//! ```text
//! {dir}/{exp_name}/step={n}___rank={n}___dump_index={n}___name={name}[___{tag}={value}]….pt
//! {dir}/sglang_dump_{time}/forward_pass_id={n}___rank={n}___name={name}___dump_index={n}[___{tag}={value}]….pt
//! {dir}/TP{n}_PP{n}_Rank{n}_pid{n}/Pass{n}.pt
//! ```

use std::path::Path;

use super::{directory_names, number};

const SUFFIX: &str = ".pt";
/// Between the tags of a file's name.
const TAG_SEPARATOR: &str = "___";
/// Tags that begin a file's name, the second one in versions up to 0.5.9.
const STEPS: [&str; 2] = ["step", "forward_pass_id"];
const RANK: &str = "rank";
const INDEX: &str = "dump_index";
/// The tag that names a value.
pub const NAME: &str = "name";
/// Where a module is computed again for its gradient.
const RECOMPUTE: &str = "recompute_status";
/// The status that marks a second computation.
const RECOMPUTED: &str = "recompute";
/// Tags for the part of a model that a process has.
pub const PARALLEL_RANKS: [&str; 5] = ["pp_rank", "tp_rank", "cp_rank", "ep_rank", "etp_rank"];
/// The tag of a layer, which the dumper writes for some values of a module and not for all.
const LAYER: &str = "layer_id";
/// The prefix of the names of values that hooks saved, before the path of the module.
const OF_MODULE: &str = "non_intrusive__";
/// Sides of a module in the names of its values.
const INPUTS: &str = "inputs";
const OUTPUT: &str = "output";
/// Maximum number of directories from the slashes in a name.
const N_PARTS_MAX: usize = 16;

/// The tags of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueTags {
    /// The step, counted by calls of `step`, or the pass.
    pub step: u64,
    /// The process; 0 where processes do not know of each other.
    pub rank: u32,
    /// How many values the process had saved, this one included.
    pub dump_index: u64,
    /// The name that the program gave.
    pub name: String,
    /// The other tags in their order.
    pub others: Vec<(String, String)>,
}

impl ValueTags {
    /// Takes the path of a file apart; none if it is not such a file's. A name with `/` in it has
    /// made directories.
    pub fn from_path(path: &Path) -> Option<ValueTags> {
        let parts = directory_names(path);
        let (last, dirs) = parts.split_last()?;
        let mut text = last.strip_suffix(SUFFIX)?.to_owned();
        let mut dirs = dirs.iter().rev().take(N_PARTS_MAX);
        // Until a part begins as names of files do.
        while !STEPS.iter().any(|step| begins_with_tag(&text, step)) {
            text = format!("{}/{text}", dirs.next()?);
        }
        ValueTags::parse(&text)
    }

    /// Takes the tags of a file's name apart, without its suffix.
    fn parse(text: &str) -> Option<ValueTags> {
        let mut tags: Vec<(String, String)> = Vec::new();
        for part in text.split(TAG_SEPARATOR) {
            match (part.split_once('='), tags.last_mut()) {
                (Some((key, value)), _) => tags.push((key.to_owned(), value.to_owned())),
                // The separator stood in a value.
                (None, Some((_, value))) => {
                    value.push_str(TAG_SEPARATOR);
                    value.push_str(part);
                }
                (None, None) => return None,
            }
        }
        let mut take = |wanted: &str| {
            let position = tags.iter().position(|(key, _)| key == wanted)?;
            Some(tags.remove(position).1)
        };
        let step = STEPS.iter().find_map(|step| take(step))?;
        Some(ValueTags {
            step: number(&step)?,
            rank: number(&take(RANK)?)?,
            dump_index: number(&take(INDEX)?)?,
            name: take(NAME)?,
            others: tags,
        })
    }

    /// Adds the file's own description of the value, because parts of the name may only look like
    /// tags.
    pub fn correct(&mut self, meta: &[(String, String)]) {
        let name = meta.iter().find(|(key, _)| key == NAME);
        if let Some((_, name)) = name {
            self.name.clone_from(name);
            let others = &mut self.others;
            others.retain(|(key, _)| meta.iter().any(|(wanted, _)| wanted == key));
        }
    }

    /// The part of a module's inputs or outputs that the value is; none of values that the program
    /// saved itself.
    pub fn module_value(&self) -> Option<ModuleValue<'_>> {
        ModuleValue::parse(self.name.strip_prefix(OF_MODULE)?)
    }

    /// The name with the tags that distinguish the value from others of this name. `is_left_out`
    /// marks tags that are the same in the whole process.
    pub fn label(&self, name: &str, is_left_out: impl Fn(&str) -> bool) -> String {
        let is_of_module = self.name.starts_with(OF_MODULE);
        let mut label = name.to_owned();
        for (key, value) in &self.others {
            let is_told = match key.as_str() {
                RECOMPUTE => value == RECOMPUTED,
                // The path of the module is more precise.
                LAYER => !is_of_module,
                _ => true,
            };
            if is_told && !is_left_out(key) {
                label.push_str(TAG_SEPARATOR);
                label.push_str(key);
                label.push('=');
                label.push_str(value);
            }
        }
        label
    }
}

fn begins_with_tag(text: &str, key: &str) -> bool {
    text.strip_prefix(key)
        .is_some_and(|rest| rest.starts_with('='))
}

/// An input or output of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleValue<'a> {
    /// Path of the module; that of the whole model is what the names of such values begin with.
    pub module: &'a str,
    /// Whether it comes out.
    pub is_output: bool,
    /// Which one it is: `inputs.0`, `inputs.hidden_states`, `output`, `output.1`.
    pub part: &'a str,
}

impl<'a> ModuleValue<'a> {
    /// Takes `{module}.inputs.{argument}[.{key}]` or `{module}.output[.{key}]` apart.
    fn parse(name: &'a str) -> Option<ModuleValue<'a>> {
        // Modules can be called `output`, so that the last part of this name counts.
        let mut start = name.len();
        for (n_behind, part) in name.rsplit('.').enumerate() {
            start -= part.len();
            let is_output = part == OUTPUT && n_behind <= 1;
            if is_output || (part == INPUTS && (1..=2).contains(&n_behind)) {
                let module = name.get(..start)?.trim_end_matches('.');
                return Some(ModuleValue {
                    module: if module.is_empty() { ROOT } else { module },
                    is_output,
                    part: name.get(start..)?,
                });
            }
            start = start.saturating_sub(1);
        }
        None
    }
}

/// The path of the whole model.
const ROOT: &str = "non_intrusive";

/// A file with the outputs of all modules in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassFile {
    /// The process.
    pub rank: u32,
    /// The pass.
    pub pass: u64,
}

impl PassFile {
    /// Takes the path of a file apart; none if it is not such a file's.
    pub fn from_path(path: &Path) -> Option<PassFile> {
        let parts = directory_names(path);
        let [.., dir, file] = &parts[..] else {
            return None;
        };
        let pass = file.strip_suffix(SUFFIX)?.strip_prefix("Pass")?;
        let [tensor, pipeline, rank, process] = dir.split('_').collect::<Vec<_>>()[..] else {
            return None;
        };
        for digits in [
            tensor.strip_prefix("TP")?,
            pipeline.strip_prefix("PP")?,
            process.strip_prefix("pid")?,
        ] {
            number::<u32>(digits)?;
        }
        Some(PassFile {
            rank: number(rank.strip_prefix("Rank")?)?,
            pass: number(pass)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_say_what_was_saved() {
        let new = "step=3___rank=1___dump_index=7___name=";
        let others = |tags: &[(&str, &str)]| -> Vec<(String, String)> {
            let tags = tags.iter();
            tags.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        let cases = [
            (format!("{new}x.pt"), "x", others(&[])),
            (
                format!("/d/{new}x___recompute_status=disabled___layer_id=4.pt"),
                "x",
                others(&[("recompute_status", "disabled"), ("layer_id", "4")]),
            ),
            (
                "forward_pass_id=3___rank=1___name=x___dump_index=7___a=b=c.pt".to_owned(),
                "x",
                others(&[("a", "b=c")]),
            ),
            (format!("d/{new}block/mlp.pt"), "block/mlp", others(&[])),
            (format!("d/{new}a___b.pt"), "a___b", others(&[])),
            (format!("{new}.pt"), "", others(&[])),
        ];
        for (path, name, others) in cases {
            let expected = ValueTags {
                step: 3,
                rank: 1,
                dump_index: 7,
                name: name.to_owned(),
                others,
            };
            assert_eq!(
                ValueTags::from_path(Path::new(&path)),
                Some(expected),
                "{path}"
            );
        }
        for path in [
            "weights.pt",
            "step=3.pt",
            "step=3___rank=1___name=x.pt",
            "step=3___rank=1___dump_index=7.pt",
            "step=-3___rank=1___dump_index=7___name=x.pt",
            "step=3___rank=99999999999___dump_index=7___name=x.pt",
            "step=3___rank=1___dump_index=7___name=x.npy",
            "/",
            "",
        ] {
            assert_eq!(ValueTags::from_path(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn labels_have_the_tags_that_matter() {
        let label = |name: &str, tags: &str| {
            let path = format!("step=0___rank=0___dump_index=1___name={name}{tags}.pt");
            let tags = ValueTags::from_path(Path::new(&path)).unwrap();
            tags.label(name, |key| key == "tp_rank")
        };
        let of_layer = "___recompute_status=disabled___layer_id=4___tp_rank=1";
        assert_eq!(label("x", of_layer), "x___layer_id=4");
        assert_eq!(
            label("non_intrusive__x.output", of_layer),
            "non_intrusive__x.output"
        );
        assert_eq!(label("x", "___recompute_status=original"), "x");
        assert_eq!(
            label("x", "___recompute_status=recompute___phase=decode"),
            "x___recompute_status=recompute___phase=decode"
        );
    }

    #[test]
    fn modules_have_inputs_and_outputs() {
        let cases = [
            ("layers.0.mlp.inputs.0", "layers.0.mlp", false, "inputs.0"),
            ("mlp.inputs.hidden.1", "mlp", false, "inputs.hidden.1"),
            ("mlp.output", "mlp", true, "output"),
            ("mlp.output.1", "mlp", true, "output.1"),
            (
                "bert.output.dense.inputs.0",
                "bert.output.dense",
                false,
                "inputs.0",
            ),
            ("bert.output.output", "bert.output", true, "output"),
            ("bert.inputs.output", "bert.inputs", true, "output"),
            ("inputs.0", ROOT, false, "inputs.0"),
            ("output", ROOT, true, "output"),
        ];
        for (name, module, is_output, part) in cases {
            let expected = ModuleValue {
                module,
                is_output,
                part,
            };
            assert_eq!(ModuleValue::parse(name), Some(expected), "{name}");
        }
        for name in ["mlp", "inputs", "mlp.output.a.b", "x.inputs.a.b.c", ""] {
            assert_eq!(ModuleValue::parse(name), None, "{name}");
        }
    }

    #[test]
    fn passes_are_in_directories_of_processes() {
        let parse = |path: &str| PassFile::from_path(Path::new(path));
        let found = parse("d/TP1_PP0_Rank1_pid77/Pass00012.pt");
        assert_eq!(found, Some(PassFile { rank: 1, pass: 12 }));
        for path in [
            "Pass00012.pt",
            "d/TP1_PP0_Rank1/Pass00012.pt",
            "d/TP1_PP0_Rank1_pid77/Pass.pt",
            "d/TP1_PP0_Rankx_pid77/Pass1.pt",
        ] {
            assert_eq!(parse(path), None, "{path}");
        }
    }
}
