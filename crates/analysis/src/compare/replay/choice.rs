//! Which runs a name means.

use std::collections::BTreeSet;

use opscope_store::reader::ExecutionKind;
use opscope_store::tree::acl::clean_name;
use thiserror::Error;

use super::super::side::{ComparedDump, OperatorExecution};
use super::super::verdict::is_match;

/// Maximum number of names that an error lists.
const N_LISTED_MAX: usize = 20;

/// The operators that the user wants.
#[derive(Clone, Debug, Default)]
pub struct OperatorChoice {
    /// A name, its form in file names, the end of one, or a pattern with `*` and `?`; none means
    /// everything.
    pub name: Option<String>,
    /// Only this execution of the model.
    pub step: Option<u64>,
    /// Only this rank.
    pub rank: Option<u32>,
}

/// Why nothing was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChoiceError {
    /// There is nothing of the sort.
    #[error("the dump has no operator `{name}`{place}{alike}")]
    None {
        /// The name that was wanted.
        name: String,
        /// The step and rank that were wanted.
        place: String,
        /// Names like it.
        alike: String,
    },
    /// The dump has no operators, or none there.
    #[error("the dump has no operators{place}")]
    Empty {
        /// The step and rank that were wanted.
        place: String,
    },
    /// There are several.
    #[error("`{name}` may be any of {n} operators: {list}")]
    Several {
        /// The name that was wanted.
        name: String,
        /// How many.
        n: usize,
        /// Their names.
        list: String,
    },
}

/// The runs that are meant, in order. Without a pattern they are of one operator.
///
/// # Errors
/// [`ChoiceError`] if there are none, or several operators where one is meant.
pub fn choose(side: &ComparedDump, choice: &OperatorChoice) -> Result<Vec<usize>, ChoiceError> {
    let all = (0..side.runs.len()).filter(|&i| {
        let run = &side.runs[i];
        run.kind == ExecutionKind::Operator
            && choice.step.is_none_or(|step| run.place.step == Some(step))
            && choice.rank.is_none_or(|rank| run.place.rank == Some(rank))
    });
    let Some(name) = &choice.name else {
        let runs: Vec<usize> = all.collect();
        return if runs.is_empty() {
            Err(ChoiceError::Empty {
                place: place(choice),
            })
        } else {
            Ok(runs)
        };
    };
    if name.contains(['*', '?']) {
        let found = all.filter(|&i| {
            let forms = forms(&side.runs[i]);
            forms.iter().any(|form| is_match(name, form))
        });
        return some(side, choice, name, found.collect());
    }
    let exactly = all.clone().filter(|&i| forms(&side.runs[i]).contains(name));
    let mut found: Vec<usize> = exactly.collect();
    // Full names take precedence over suffixes; otherwise `conv1` could not be chosen next to
    // `block/conv1`.
    if found.is_empty() {
        let ends = all.filter(|&i| {
            let own = &side.runs[i].op_name;
            own.ends_with(name.as_str()) || clean_name(own).ends_with(&clean_name(name))
        });
        found = ends.collect();
    }
    let found = some(side, choice, name, found)?;
    let operators: BTreeSet<_> = found.iter().map(|&i| identity(&side.runs[i])).collect();
    if operators.len() == 1 {
        return Ok(found);
    }
    let shown = operators
        .iter()
        .take(N_LISTED_MAX)
        .map(|(model, op_type, op_name, task)| {
            let task = task.map_or_else(String::new, |task| format!(", task {task}"));
            let model = model
                .as_ref()
                .map_or_else(String::new, |model| format!(", model `{model}`"));
            format!("`{op_name}` ({op_type}{task}{model})")
        });
    let mut list = shown.collect::<Vec<_>>().join(", ");
    if operators.len() > N_LISTED_MAX {
        list.push_str(", …");
    }
    Err(ChoiceError::Several {
        name: name.clone(),
        n: operators.len(),
        list,
    })
}

/// Returns the properties that runs of one operator have in common.
fn identity(run: &OperatorExecution) -> (Option<String>, String, String, Option<u32>) {
    let model = run.place.model.as_ref().map(ToString::to_string);
    let [op_type, op_name] = [&run.op_type, &run.op_name].map(ToString::to_string);
    (model, op_type, op_name, run.task_id)
}

/// How a run may be called: by its name, and by file names with and without task.
fn forms(run: &OperatorExecution) -> Vec<String> {
    let clean = clean_name(&run.op_name);
    let typed = format!("{}.{clean}", clean_name(&run.op_type));
    let file = run.slots.first().and_then(|slot| slot.path.file_name());
    let mut forms = vec![run.op_name.to_string(), clean];
    forms.extend(run.task_id.map(|task| format!("{typed}.{task}")));
    forms.push(typed);
    forms.extend(file.map(|name| name.to_string_lossy().into_owned()));
    forms
}

fn some(
    side: &ComparedDump,
    choice: &OperatorChoice,
    name: &str,
    found: Vec<usize>,
) -> Result<Vec<usize>, ChoiceError> {
    if !found.is_empty() {
        return Ok(found);
    }
    let lower = name.to_lowercase();
    let names = side.runs.iter().map(|run| &run.op_name);
    // Every text contains the empty name.
    let alike = names.filter(|name| !name.is_empty()).find(|known| {
        let known = known.to_lowercase();
        !known.is_empty() && (known.contains(&lower) || lower.contains(&known))
    });
    Err(ChoiceError::None {
        name: name.to_owned(),
        place: place(choice),
        alike: alike.map_or_else(String::new, |known| format!("; there is `{known}`")),
    })
}

fn place(choice: &OperatorChoice) -> String {
    let step = choice.step.map(|step| format!(" in step {step}"));
    let rank = choice.rank.map(|rank| format!(" of rank {rank}"));
    step.into_iter().chain(rank).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::side::RunPlace;
    use super::*;

    fn side() -> ComparedDump {
        let run = |op_type: &str, op_name: &str, task: u32, step: u64| OperatorExecution {
            op_type: op_type.into(),
            op_name: op_name.into(),
            task_id: Some(task),
            place: Arc::new(RunPlace {
                step: Some(step),
                ..RunPlace::default()
            }),
            ..OperatorExecution::default()
        };
        ComparedDump {
            runs: vec![
                run("Conv", "/a/conv.1", 0, 0),
                run("Conv", "/b/conv.1", 1, 0),
                run("Relu", "/b/relu", 2, 0),
                run("Relu", "/b/relu", 2, 1),
            ],
            ..ComparedDump::default()
        }
    }

    fn check(name: Option<&str>, step: Option<u64>, expected: Result<&[usize], &str>) {
        let choice = OperatorChoice {
            name: name.map(str::to_owned),
            step,
            rank: None,
        };
        let found = choose(&side(), &choice).map_err(|error| error.to_string());
        assert_eq!(
            found.as_deref().map_err(String::as_str),
            expected,
            "{name:?}"
        );
    }

    #[test]
    fn names() {
        check(Some("/a/conv.1"), None, Ok(&[0]));
        check(Some("_a_conv_1"), None, Ok(&[0]));
        check(Some("Conv._b_conv_1.1"), None, Ok(&[1]));
        check(Some("relu"), None, Ok(&[2, 3]));
        check(Some("relu"), Some(1), Ok(&[3]));
        check(Some("*conv*"), None, Ok(&[0, 1]));
        check(None, Some(0), Ok(&[0, 1, 2]));
        check(
            Some("conv.1"),
            None,
            Err(
                "`conv.1` may be any of 2 operators: `/a/conv.1` (Conv, task 0), `/b/conv.1` (Conv, task 1)",
            ),
        );
        check(
            Some("RELU"),
            Some(0),
            Err("the dump has no operator `RELU` in step 0; there is `/b/relu`"),
        );
        check(None, Some(7), Err("the dump has no operators in step 7"));
        check(Some("x*"), None, Err("the dump has no operator `x*`"));
    }
}
