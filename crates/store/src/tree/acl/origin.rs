//! Which run, model and execution a directory of the tree belongs to.

use std::path::Path;

use crate::tree::{directory_names, number};

/// Digits of the time in a directory's name.
const TIME_DIGITS: usize = 14;
/// Text around the numbers in the name of a rank's directory.
const WORLD_SIZE: &str = "worldsize";
const RANK: &str = "_global_rank";

/// Facts from the path of a directory with dump files. Those that it lacks are omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathOrigin {
    /// Local time, `YYYYMMDDhhmmss`.
    pub time: Option<String>,
    /// The rank, if the tree is below `worldsize{N}_global_rank{R}`, as trees of TorchAir do.
    pub rank: Option<u32>,
    /// The device.
    pub device: Option<u32>,
    /// Name of the model, characters replaced.
    pub model: Option<String>,
    /// Number of the load.
    pub model_id: Option<u32>,
    /// Which execution of the model.
    pub step: Option<u64>,
}

impl PathOrigin {
    /// Takes the end of a directory's path apart: `{time}/{device}/{model}/{model_id}/{step}`,
    /// `{time}/{device}` of operators that run on their own, or the last part of these that is left
    /// of a tree that was taken apart.
    pub fn from_path(dir: &Path) -> PathOrigin {
        let names = directory_names(dir);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        in_model(&names)
            .or_else(|| on_its_own(&names))
            .unwrap_or_else(|| without_root(&names))
    }
}

fn in_model(names: &[&str]) -> Option<PathOrigin> {
    let [above @ .., time, device, model, model_id, step] = names else {
        return None;
    };
    Some(PathOrigin {
        time: Some(time_of(time)?),
        rank: rank_of(above),
        device: Some(number(device)?),
        model: Some((*model).to_owned()),
        model_id: Some(number(model_id)?),
        step: Some(number(step)?),
    })
}

fn on_its_own(names: &[&str]) -> Option<PathOrigin> {
    let [above @ .., time, device] = names else {
        return None;
    };
    Some(PathOrigin {
        time: Some(time_of(time)?),
        rank: rank_of(above),
        device: Some(number(device)?),
        ..PathOrigin::default()
    })
}

fn without_root(names: &[&str]) -> PathOrigin {
    let step = names.last().and_then(|name| number(name));
    let model_id = names.iter().rev().nth(1).and_then(|name| number(name));
    // Any directory can be third from the end; only two numbers below it make it a model's.
    let is_in_model = step.is_some() && model_id.is_some();
    PathOrigin {
        step,
        model_id,
        model: names
            .iter()
            .rev()
            .nth(2)
            .filter(|_| is_in_model)
            .map(|name| (*name).to_owned()),
        ..PathOrigin::default()
    }
}

fn rank_of(above: &[&str]) -> Option<u32> {
    let (world_size, rank) = above.last()?.split_once(RANK)?;
    // The number of ranks is not used, but a name without it is not that of a rank's directory.
    number::<u32>(world_size.strip_prefix(WORLD_SIZE)?)?;
    number(rank)
}

fn time_of(name: &str) -> Option<String> {
    let is_time = name.len() == TIME_DIGITS && number::<u64>(name).is_some();
    is_time.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts<'a> = (
        Option<&'a str>,
        Option<u32>,
        Option<&'a str>,
        Option<u32>,
        Option<u64>,
    );

    #[test]
    fn every_part_of_a_tree() {
        let time = Some("20240102030405");
        let cases: &[(&str, Parts<'_>)] = &[
            (
                "/d/7/20240102030405/1/net/2/3",
                (time, Some(1), Some("net"), Some(2), Some(3)),
            ),
            (
                "20240102030405/0/1/2/3",
                (time, Some(0), Some("1"), Some(2), Some(3)),
            ),
            ("/d/20240102030405/2", (time, Some(2), None, None, None)),
            ("/x/net/1/5", (None, None, Some("net"), Some(1), Some(5))),
            ("/x/net/5", (None, None, None, None, Some(5))),
            ("/x/arrays", (None, None, None, None, None)),
            ("", (None, None, None, None, None)),
        ];
        for (dir, expected) in cases {
            let PathOrigin {
                time,
                device,
                model,
                model_id,
                step,
                rank: _,
            } = PathOrigin::from_path(Path::new(dir));
            let found = (time.as_deref(), device, model.as_deref(), model_id, step);
            assert_eq!(found, *expected, "{dir}");
        }
    }

    #[test]
    fn ranks_of_torchair() {
        for (dir, rank) in [
            (
                "d/worldsize8_global_rank3/20240102030405/0/graph_1/1/0",
                Some(3),
            ),
            ("d/worldsize8_global_rank12/20240102030405/0", Some(12)),
            (
                "d/worldsize_global_rank3/20240102030405/0/graph_1/1/0",
                None,
            ),
            ("d/worldsize8_global_rankx/20240102030405/0", None),
            ("d/20240102030405/0/graph_1/1/0", None),
        ] {
            assert_eq!(PathOrigin::from_path(Path::new(dir)).rank, rank, "{dir}");
        }
    }
}
