//! Which run, graph and iteration a directory belongs to.

use std::path::Path;

use crate::tree::directory_names;

use super::{CONSTANTS_DIR, RANK_PREFIX, number};

/// Digits of the time in a directory's name.
const TIME_DIGITS: usize = 14;

/// Facts from the path of a directory with tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MindSporePlace {
    /// The rank, or the device where there are no ranks.
    pub rank: Option<u32>,
    /// Name of the network, or of the model.
    pub net_name: Option<String>,
    /// Step of the training, where the tree has steps.
    pub step: Option<u64>,
    /// Local time, `YYYYMMDDhhmmss`, where the tree has times.
    pub time: Option<String>,
    /// The iteration; none for constants.
    pub iteration: Option<u64>,
    /// The graph, or the model.
    pub graph_id: Option<u32>,
    /// Whether the directory holds constants.
    pub is_constants: bool,
}

impl MindSporePlace {
    /// Parses the end of a directory's path. Missing facts are omitted.
    pub fn from_path(dir: &Path) -> MindSporePlace {
        let names = directory_names(dir);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        with_rank(&names)
            .or_else(|| with_time(&names))
            .unwrap_or_else(|| without_root(&names))
    }
}

/// `…/rank_0/{net_name}/{graph_id}/{iteration}`
fn with_rank(names: &[&str]) -> Option<MindSporePlace> {
    let [.., rank, net_name, graph_id, leaf] = names else {
        return None;
    };
    Some(MindSporePlace {
        rank: Some(number(rank.strip_prefix(RANK_PREFIX)?)?),
        net_name: Some((*net_name).to_owned()),
        graph_id: Some(number(graph_id)?),
        ..leaf_of(leaf)?
    })
}

/// `…/[{step}/]{time}/{device}/{model_name}/{model_id}/{iteration}`
fn with_time(names: &[&str]) -> Option<MindSporePlace> {
    let [before @ .., time, device, model_name, model_id, leaf] = names else {
        return None;
    };
    number::<u64>(time).filter(|_| time.len() == TIME_DIGITS)?;
    Some(MindSporePlace {
        rank: Some(number(device)?),
        net_name: Some((*model_name).to_owned()),
        step: before.last().and_then(|step| number(step)),
        time: Some((*time).to_owned()),
        graph_id: Some(number(model_id)?),
        ..leaf_of(leaf)?
    })
}

/// A part of a tree that was taken out of it.
fn without_root(names: &[&str]) -> MindSporePlace {
    let Some(place) = names.last().and_then(|leaf| leaf_of(leaf)) else {
        return MindSporePlace::default();
    };
    MindSporePlace {
        graph_id: names.iter().rev().nth(1).and_then(|id| number(id)),
        ..place
    }
}

fn leaf_of(leaf: &str) -> Option<MindSporePlace> {
    let is_constants = leaf == CONSTANTS_DIR;
    let iteration = number(leaf);
    (is_constants || iteration.is_some()).then(|| MindSporePlace {
        iteration,
        is_constants,
        ..MindSporePlace::default()
    })
}
