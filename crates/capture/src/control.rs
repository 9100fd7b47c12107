//! Switching a session on and off, and giving it another plan, while models run.
//!
//! A session stores the most recently requested settings. Each tap reads them when a step begins
//! and uses them until the step ends, so that one step is dumped by one plan or not at all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use opscope_store::record::ModelId;

use crate::select::select_marked;
use crate::{GraphView, Plan, Purpose, SelectedOperators};

/// A handle to switch a session with, from any thread and for as long as one likes.
#[derive(Clone)]
pub struct SessionControl(pub(crate) Arc<LiveSettings>);

/// Why a plan cannot take the place of the one that a session began with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanRefusal {
    /// It looks for something else.
    #[error(
        "the plan is for {}, expected one for {} as at the start", wanted.phrase(), kept.phrase()
    )]
    Purpose {
        /// The purpose of the session.
        kept: Purpose,
        /// The purpose of the plan.
        wanted: Purpose,
    },
    /// It limits the operators that are kept otherwise; they are counted from the start.
    #[error(
        "the plan keeps {} operators that overflow, expected {} as at the start",
        limit_text(*wanted), limit_text(*kept)
    )]
    OverflowLimit {
        /// The limit of the session.
        kept: Option<u64>,
        /// The limit of the plan.
        wanted: Option<u64>,
    },
}

/// The settings of a session that may change while models run: the most recently requested ones.
pub(crate) struct LiveSettings {
    /// The plan at the start, whose purpose and limit stay.
    first_plan: Arc<Plan>,
    /// Counts changes, so that a tap sees without a lock that there was none.
    n_changes: AtomicU64,
    state: Mutex<ControlState>,
    /// Operators and scopes that were switched on or off.
    marks: Mutex<Vec<(String, bool)>>,
}

#[derive(Clone)]
struct ControlState {
    is_enabled: bool,
    plan: Arc<Plan>,
}

/// The settings that a tap found when its step began.
#[derive(Clone)]
pub(crate) struct StepSettings {
    n_changes: u64,
    pub(crate) is_enabled: bool,
    pub(crate) plan: Arc<Plan>,
}

impl SessionControl {
    /// Switches the dump on or off from the next step of each model on. While it is off, models run
    /// as they do without a tap.
    pub fn set_enabled(&self, is_enabled: bool) {
        self.0.change(|state| state.is_enabled = is_enabled);
    }

    /// Switches the dump off if it is on, and on if it is off. Returns whether it is on now.
    pub fn toggle(&self) -> bool {
        self.0.change(|state| {
            state.is_enabled = !state.is_enabled;
            state.is_enabled
        })
    }

    /// Whether the dump is to be on from the next step on.
    pub fn is_enabled(&self) -> bool {
        self.0.lock().is_enabled
    }

    /// Keeps what `plan` selects from the next step of each model on. The new plan may select other
    /// models, operators, exclusions, sides, steps and additional records. Steps still count from
    /// the model's first execution.
    ///
    /// # Errors
    /// [`PlanRefusal`] if the plan has another purpose or another limit of overflowing operators;
    /// nothing is changed then.
    pub fn replace_plan(&self, plan: Plan) -> Result<(), PlanRefusal> {
        self.change(None, Some(plan))
    }

    /// Changes both at once: no step sees one change without the other. `None` leaves a setting
    /// unchanged.
    ///
    /// # Errors
    /// As for [`SessionControl::replace_plan`].
    pub fn change(&self, is_enabled: Option<bool>, plan: Option<Plan>) -> Result<(), PlanRefusal> {
        if let Some(plan) = &plan {
            check(&self.0.first_plan, plan)?;
        }
        self.0.change(|state| {
            if let Some(is_enabled) = is_enabled {
                state.is_enabled = is_enabled;
            }
            if let Some(plan) = plan {
                state.plan = Arc::new(plan);
            }
        });
        Ok(())
    }
}

impl LiveSettings {
    /// Switched on, with this plan.
    pub(crate) fn new(plan: Plan) -> LiveSettings {
        let plan = Arc::new(plan);
        LiveSettings {
            first_plan: plan.clone(),
            n_changes: AtomicU64::new(0),
            state: Mutex::new(ControlState {
                is_enabled: true,
                plan,
            }),
            marks: Mutex::default(),
        }
    }

    /// Marks operators for plans that leave the choice to marks. Models see it when they are next
    /// given a plan, so this is no change that a step looks for.
    pub(crate) fn mark(&self, target: &str, is_enabled: bool) {
        self.marks().push((target.to_owned(), is_enabled));
    }

    /// Returns what a plan selects of a model, as operators are marked now.
    pub(crate) fn select(
        &self,
        plan: &Plan,
        model: &ModelId,
        graph: GraphView<'_>,
    ) -> SelectedOperators {
        // Cloned, so that no thread waits for the lock while a whole graph is matched.
        let marks = self.marks().clone();
        select_marked(plan, model, graph, &marks)
    }

    fn marks(&self) -> MutexGuard<'_, Vec<(String, bool)>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a model that is attached now.
    pub(crate) fn in_force(&self) -> StepSettings {
        // Both under one lock, so that number and settings belong together.
        let state = self.lock();
        StepSettings {
            n_changes: self.n_changes.load(Ordering::Relaxed),
            is_enabled: state.is_enabled,
            plan: state.plan.clone(),
        }
    }

    /// Returns the settings in force; `None` if they have not changed since `known`.
    pub(crate) fn changed_since(&self, known: &StepSettings) -> Option<StepSettings> {
        // A change that is under way in another thread is seen now or at the next step.
        let is_same = self.n_changes.load(Ordering::Acquire) == known.n_changes;
        (!is_same).then(|| self.in_force())
    }

    fn change<T>(&self, change: impl FnOnce(&mut ControlState) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        // Under the lock, so that the number belongs to the state.
        self.n_changes.fetch_add(1, Ordering::Release);
        result
    }

    /// Changes are assignments, so a panic cannot leave one half-done.
    fn lock(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StepSettings {
    /// Whether anything may be kept of `step`.
    pub(crate) fn is_active(&self, step: u64) -> bool {
        self.is_enabled && self.plan.steps.contains(step)
    }
}

impl Purpose {
    fn phrase(self) -> &'static str {
        match self {
            Purpose::Values => "values",
            Purpose::Overflow => "operators that overflow",
            Purpose::NonFinite => "operators with NaN or infinities",
            Purpose::Failures(_) => "operators that fail",
            Purpose::Watch => "watched operators",
        }
    }
}

fn check(kept: &Plan, wanted: &Plan) -> Result<(), PlanRefusal> {
    if kept.purpose != wanted.purpose {
        return Err(PlanRefusal::Purpose {
            kept: kept.purpose,
            wanted: wanted.purpose,
        });
    }
    if kept.n_overflows_max != wanted.n_overflows_max {
        return Err(PlanRefusal::OverflowLimit {
            kept: kept.n_overflows_max,
            wanted: wanted.n_overflows_max,
        });
    }
    Ok(())
}

fn limit_text(limit: Option<u64>) -> String {
    limit.map_or_else(|| "all".to_owned(), |n| format!("at most {n}"))
}
