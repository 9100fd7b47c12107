//! Operators of a dump, defined by its model or by its graph description.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;

use opscope_analysis::compare::side::{ComparedDump, OperatorExecution};
use opscope_engine::SharedEngine;
use opscope_engine::choice::EngineChoice;
use opscope_engine::onnx::OnnxOperators;
use opscope_engine::operator_source::OperatorSource;
use opscope_store::file_format::graph_json::GraphFile;
use opscope_store::tree::acl::clean_name;

use super::ReplayRefusal;
use crate::engine::EngineArguments;
use crate::exit::{CommandResult, USAGE};

/// Operators of one model, by name.
pub(super) struct ModelOperators {
    pub(super) source: Box<dyn OperatorSource>,
    by_name: HashMap<String, Vec<usize>>,
}

/// The operator and the source of each run.
pub(super) struct LocatedOperators<'a> {
    /// Operators of the model, or of each description.
    owned: Vec<ModelOperators>,
    model: Option<&'a ModelOperators>,
    of_run: Vec<Result<(usize, usize), ReplayRefusal>>,
}

impl ModelOperators {
    pub(super) fn of_model(source: Box<dyn OperatorSource>) -> ModelOperators {
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, one) in source.operators().iter().enumerate() {
            // A dump may have only the form of a name in file names, so both sides are compared in
            // that form.
            let name = clean_name(&one.operator.op_name);
            by_name.entry(name).or_default().push(i);
        }
        ModelOperators { source, by_name }
    }

    /// The operator of this name; among several, the one of the same type and task.
    fn find(&self, run: &OperatorExecution) -> Result<usize, ReplayRefusal> {
        let name = &run.op_name;
        let operators = self.source.operators();
        let named = self
            .by_name
            .get(&clean_name(name))
            .map_or(&[][..], |all| all);
        let has_type =
            |&&i: &&usize| clean_name(&operators[i].operator.op_type) == clean_name(&run.op_type);
        let alike: Vec<usize> = named.iter().filter(has_type).copied().collect();
        // Tasks only distinguish operators of the same name, because other dumps may number them
        // differently.
        let problem = match (&alike[..], named) {
            ([only], _) => return Ok(*only),
            ([], []) => format!("the model has no operator `{name}`"),
            ([], [only]) => {
                let (found, known) = (&run.op_type, &operators[*only].operator.op_type);
                format!("`{name}` is a `{found}` in the dump and a `{known}` in the model")
            }
            ([], _) => format!("the model has no `{name}` of type `{}`", run.op_type),
            (several, _) => match several
                .iter()
                .find(|&&i| Some(operators[i].operator.task_id) == run.task_id)
            {
                Some(&only) => return Ok(only),
                None => format!("several operators of the model are called `{name}`"),
            },
        };
        Err(ReplayRefusal::new(USAGE, problem))
    }
}

impl<'a> LocatedOperators<'a> {
    /// Looks up every run, in the model if there is one.
    pub(super) fn locate(
        side: &ComparedDump,
        model: Option<&'a ModelOperators>,
        engine: &ReplayEngine<'_>,
    ) -> LocatedOperators<'a> {
        let mut located = LocatedOperators {
            owned: Vec::new(),
            model,
            of_run: Vec::new(),
        };
        let mut known: HashMap<&Path, Result<usize, ReplayRefusal>> = HashMap::new();
        for (index, run) in side.runs.iter().enumerate() {
            let description = side.description_of(index);
            let found = match (model, description) {
                // PyTorch graphs have no opsets, and an ONNX model next to them would not be
                // theirs.
                (_, Some((_, graph, _))) if graph.opsets.is_empty() => Err(ReplayRefusal::new(
                    USAGE,
                    "operators of PyTorch cannot be re-run: no engine supports them",
                )),
                (Some(model), _) => model.find(run).map(|operator| (0, operator)),
                (None, Some((path, graph, operator))) => known
                    .entry(path)
                    .or_insert_with(|| {
                        let source = engine.of_description(path, graph)?;
                        located.owned.push(ModelOperators::of_model(source));
                        Ok(located.owned.len() - 1)
                    })
                    .clone()
                    .map(|source| (source, operator)),
                (None, None) => Err(ReplayRefusal::new(
                    USAGE,
                    "the dump does not describe its graph: pass the model by `--model FILE`",
                )),
            };
            // Only the refusals of requested operators are reported, so all are kept.
            located.of_run.push(found);
        }
        located
    }

    /// Whether a model defines all operators.
    pub(super) fn has_model(&self) -> bool {
        self.model.is_some()
    }

    /// The source of a run, with its number, and the run's operator in it.
    pub(super) fn get(&self, run: usize) -> Result<(usize, &ModelOperators, usize), ReplayRefusal> {
        let (source, operator) = self.of_run[run].clone()?;
        let operators = match self.model {
            Some(model) => model,
            None => &self.owned[source],
        };
        Ok((source, operators, operator))
    }
}

/// The engine, chosen when first needed: dumps of other frameworks need none.
pub(super) struct ReplayEngine<'a> {
    /// `None` if the engine was chosen before.
    arguments: Option<&'a EngineArguments>,
    chosen: OnceCell<Result<EngineChoice, ReplayRefusal>>,
}

impl<'a> ReplayEngine<'a> {
    pub(super) fn new(arguments: &'a EngineArguments) -> ReplayEngine<'a> {
        ReplayEngine {
            arguments: Some(arguments),
            chosen: OnceCell::new(),
        }
    }

    pub(super) fn of_choice(choice: EngineChoice) -> ReplayEngine<'a> {
        ReplayEngine {
            arguments: None,
            chosen: OnceCell::from(Ok(choice)),
        }
    }

    fn get(&self) -> Result<SharedEngine, ReplayRefusal> {
        let chosen = self.chosen.get_or_init(|| match self.arguments {
            Some(arguments) => arguments.choose().map_err(ReplayRefusal::from),
            None => Err(ReplayRefusal::new(USAGE, "no engine was chosen")),
        });
        chosen.clone().map(|chosen| chosen.engine)
    }

    /// The engine, if one was needed.
    pub(super) fn chosen(&self) -> Option<&EngineChoice> {
        self.chosen.get()?.as_ref().ok()
    }

    /// The operators of a model.
    pub(super) fn open(&self, path: &Path) -> CommandResult<Box<dyn OperatorSource>> {
        let engine = self.get()?;
        Ok(Box::new(OnnxOperators::open(engine, path)?))
    }

    fn of_description(
        &self,
        path: &Path,
        graph: &GraphFile,
    ) -> Result<Box<dyn OperatorSource>, ReplayRefusal> {
        let engine = self.get()?;
        Ok(Box::new(OnnxOperators::of_description(engine, path, graph)))
    }
}
