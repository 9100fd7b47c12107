//! A request for a dump: its plan, its form, and the places for it.

use std::path::{Path, PathBuf};

use opscope_capture::{
    KernelSelection, ModelSelection, OperatorSelection, PatternError, Plan, Purpose, Steps,
    TensorRules,
};
use opscope_config::dialect::acl::{AclContent, AclDump};
use opscope_config::dialect::mindspore::MindSporeDumpPlan;
use opscope_store::atomic_file::PermissionModes;

use crate::sink::{MindSporeOptions, NativeContent};

/// The plan of a dump, and the form in which it is written.
#[derive(Clone, Debug)]
pub struct DumpRequest {
    /// Which operators and tensors of models are kept.
    pub plan: Plan,
    /// Whether operators that run outside a model are kept too.
    pub has_single_operators: bool,
    /// Which tensors are written whole where statistics are written too.
    pub tensors: TensorRules,
    /// The form and the places.
    pub form: DumpForm,
    /// The dump of operators that fail, where this one is about something else.
    pub failures: Option<AclDump>,
    /// The file that asks for the dump, for the record of the run.
    pub configuration: Option<PathBuf>,
}

/// The form of a dump, and where it may go.
#[derive(Clone, Debug)]
pub enum DumpForm {
    /// AscendCL's: one file for each operator.
    Acl {
        /// Candidate parent directories of the dump; the first usable one is taken. Without any,
        /// nothing is written.
        places: Vec<PathBuf>,
        /// The parts of each tensor that are written.
        content: AclContent,
    },
    /// A tree of MindSpore's.
    MindSpore(MindSporeOptions),
    /// Our own: a table for each step and few files of elements.
    Native(NativeOptions),
}

/// How a native dump is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeOptions {
    /// Directories above that of the dump; the first usable one is taken.
    pub places: Vec<PathBuf>,
    /// The parts of each tensor that are written.
    pub content: NativeContent,
    /// The rank that the dump is of.
    pub rank: u32,
}

impl DumpForm {
    /// The options of MindSpore's form, if the dump has it.
    pub fn mindspore(&self) -> Option<&MindSporeOptions> {
        match self {
            DumpForm::Acl { .. } | DumpForm::Native(_) => None,
            DumpForm::MindSpore(options) => Some(options),
        }
    }
}

impl DumpRequest {
    /// A request for everything that `plan` selects.
    pub fn new(plan: Plan, form: DumpForm) -> DumpRequest {
        DumpRequest {
            plan,
            has_single_operators: true,
            tensors: TensorRules::default(),
            form,
            failures: None,
            configuration: None,
        }
    }

    /// The dump that an `acl.json` asks for.
    pub fn from_acl(dump: AclDump) -> DumpRequest {
        DumpRequest {
            has_single_operators: dump.has_single_operators,
            ..DumpRequest::new(
                dump.plan,
                DumpForm::Acl {
                    places: dump.places,
                    content: dump.content,
                },
            )
        }
    }

    /// The dump that a configuration of MindSpore asks for. `time` names directories of whole
    /// graphs, `YYYYMMDDhhmmss`.
    ///
    /// # Errors
    /// [`PatternError`] for an entry of `kernels` that is not a regular expression.
    pub fn from_mindspore(
        dump: MindSporeDumpPlan,
        rank: u32,
        modes: PermissionModes,
        time: String,
    ) -> Result<DumpRequest, PatternError> {
        let plan = dump.plan()?;
        let options = MindSporeOptions::new(dump, rank, modes, time);
        Ok(DumpRequest {
            // Only AscendCL's configurations distinguish operators outside models.
            has_single_operators: false,
            ..DumpRequest::new(plan, DumpForm::MindSpore(options))
        })
    }

    /// A request that keeps nothing and has no place.
    pub fn nothing() -> DumpRequest {
        DumpRequest {
            has_single_operators: false,
            ..DumpRequest::new(
                Plan::nothing(),
                DumpForm::Acl {
                    places: Vec::new(),
                    content: AclContent::Tensors,
                },
            )
        }
    }

    /// The same request for another rank. AscendCL's form has none: models name their device there.
    #[must_use]
    pub fn for_rank(&self, rank: u32) -> DumpRequest {
        let mut request = self.clone();
        match &mut request.form {
            DumpForm::Acl { .. } => {}
            DumpForm::MindSpore(options) => options.rank = rank,
            DumpForm::Native(options) => options.rank = rank,
        }
        request
    }

    /// Whether nothing can be kept.
    pub fn is_nothing(&self) -> bool {
        self.plan.models == ModelSelection::None
    }

    /// Whether operators are chosen by marks.
    pub fn is_marking(&self) -> bool {
        let kernels = match &self.plan.models {
            ModelSelection::Every(operators) => operators.kernels.as_ref(),
            // Only configurations of MindSpore's leave the choice to marks, and these name no
            // models.
            ModelSelection::None | ModelSelection::Named(_) => None,
        };
        kernels == Some(&KernelSelection::Marked)
    }

    /// Whether files may never come: no directory is made for them before they do.
    pub(crate) fn is_lazy(&self) -> bool {
        matches!(self.plan.purpose, Purpose::Overflow | Purpose::Failures(_))
    }

    /// How many of `n_wanted` threads may write.
    pub fn n_writers(&self, n_wanted: usize) -> usize {
        let most = self.form.mindspore().map(MindSporeOptions::n_writers_max);
        n_wanted.min(most.unwrap_or(usize::MAX))
    }

    /// The same for a model. A dump of operators outside models alone keeps nothing of it, and
    /// opens no directory.
    #[must_use]
    pub fn for_models(mut self) -> DumpRequest {
        let is_about_others = self.has_single_operators && self.is_nothing();
        if let (true, DumpForm::Acl { places, .. }) = (is_about_others, &mut self.form) {
            places.clear();
        }
        self
    }

    /// The same for operators that run on their own: which models are meant is of no interest then.
    #[must_use]
    pub fn for_single_operators(self) -> DumpRequest {
        if self.form.mindspore().is_some() {
            return self;
        }
        let is_kept = match self.plan.purpose {
            Purpose::Values => self.has_single_operators,
            Purpose::Overflow | Purpose::NonFinite | Purpose::Failures(_) => true,
            // Overwrites are found when later operators of the step run, and here there are none.
            Purpose::Watch => false,
        };
        let plan = if is_kept {
            Plan {
                models: ModelSelection::Every(OperatorSelection::every()),
                excluded: Vec::new(),
                steps: Steps::every(),
                has_graph_inputs: false,
                ..self.plan
            }
        } else {
            Plan::nothing()
        };
        DumpRequest { plan, ..self }
    }

    /// The plan of `next`, for a dump that was begun for this request: it continues in its
    /// directories and form.
    ///
    /// # Errors
    /// A message, if `next` requests other directories or another form.
    pub fn plan_to_continue_with(&self, next: DumpRequest) -> Result<Plan, String> {
        if next.is_nothing() {
            // Such a configuration has no places to compare. The rest of the plan stays, since a
            // session refuses another purpose.
            return Ok(Plan {
                models: ModelSelection::None,
                ..self.plan.clone()
            });
        }
        let message = match (&self.form, &next.form) {
            (DumpForm::MindSpore(ours), DumpForm::MindSpore(theirs)) => {
                if ours.is_same_dump(theirs) {
                    return Ok(next.plan);
                }
                "the configuration asks for other files or another place than the one at the start; \
                 only operators and executions may differ"
            }
            (DumpForm::MindSpore(_), _) => {
                "the dump is in MindSpore's form, which the configuration does not ask for"
            }
            (DumpForm::Native(_), _) => {
                "the dump is in the native form, which no configuration asks for"
            }
            (_, DumpForm::Native(_)) => "the dump is not in the native form",
            (DumpForm::Acl { .. }, DumpForm::MindSpore(_)) => {
                "the dump is not in MindSpore's form, which the configuration asks for"
            }
            (
                DumpForm::Acl { places, content },
                DumpForm::Acl {
                    places: next_places,
                    content: next_content,
                },
            ) => {
                if content != next_content {
                    "whether and which statistics are written cannot change while the model runs"
                } else if places.iter().map(real).eq(next_places.iter().map(real)) {
                    return Ok(next.plan);
                } else {
                    let (found, expected) = (first_of(next_places), first_of(places));
                    return Err(format!(
                        "the configuration dumps to {found}, expected {expected} as at the start"
                    ));
                }
            }
        };
        Err(message.to_owned())
    }
}

/// The directory that a path means, if it exists.
fn real(place: &PathBuf) -> PathBuf {
    // A place that does not exist yet cannot be resolved; two spellings of it should be equal all
    // the same.
    let real = place.canonicalize().or_else(|_| std::path::absolute(place));
    real.unwrap_or_else(|_| place.clone())
}

fn first_of(places: &[PathBuf]) -> String {
    let first = places.first().map(|place| Path::display(place));
    first.map_or_else(|| "nowhere".to_owned(), |place| format!("`{place}`"))
}
