//! The order of execution of a listing's files.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::path::{Path, PathBuf};

use super::result_name;
use crate::dump::DumpEntry;
use crate::tree::acl::PathOrigin;

/// The files of one directory.
struct FileGroup<T> {
    /// The directory of the device, for an execution of a model.
    device_dir: Option<PathBuf>,
    /// The directory of the model's load.
    load_dir: PathBuf,
    /// When the first of its files was written.
    first_time: Option<u64>,
    entries: Vec<(DumpEntry, T)>,
}

/// Sorts files into the order of execution: a device's models ran in turns, each with its steps in
/// order. The times in the file names determine the turns.
pub(super) fn by_execution<T>(entries: Vec<(DumpEntry, T)>) -> Vec<(DumpEntry, T)> {
    let mut groups: VecDeque<FileGroup<T>> = VecDeque::new();
    for (entry, content) in entries {
        let dir = entry.path.parent().unwrap_or(Path::new(""));
        match groups.back_mut().filter(|group| {
            let first = group.entries.first();
            first.is_some_and(|(first, _)| first.path.parent() == Some(dir))
        }) {
            Some(group) => group.add(entry, content),
            None => groups.push_back(FileGroup::new(entry, content)),
        }
    }
    let mut ordered = Vec::new();
    while let Some(first) = groups.pop_front() {
        let mut of_device = vec![first];
        while let Some(next) = groups.pop_front_if(|next| next.is_beside(&of_device[0])) {
            of_device.push(next);
        }
        merge(of_device, &mut ordered);
    }
    ordered
}

/// Takes the earliest of the loads' next steps, again and again.
fn merge<T>(groups: Vec<FileGroup<T>>, ordered: &mut Vec<(DumpEntry, T)>) {
    let mut loads: Vec<VecDeque<FileGroup<T>>> = Vec::new();
    let mut of_dir: HashMap<PathBuf, usize> = HashMap::new();
    for group in groups {
        let load = *of_dir.entry(group.load_dir.clone()).or_insert_with(|| {
            loads.push(VecDeque::new());
            loads.len() - 1
        });
        loads[load].push_back(group);
    }
    let front = |loads: &[VecDeque<FileGroup<T>>], i: usize| {
        let first = loads[i].front();
        // The heap yields the greatest first, hence `Reverse`; at the same time the first load goes
        // first.
        first.map(|group| Reverse((group.first_time, i)))
    };
    let mut fronts: BinaryHeap<_> = (0..loads.len()).filter_map(|i| front(&loads, i)).collect();
    while let Some(Reverse((_, i))) = fronts.pop() {
        let group = loads[i].pop_front();
        ordered.extend(group.into_iter().flat_map(|group| group.entries));
        fronts.extend(front(&loads, i));
    }
}

impl<T> FileGroup<T> {
    fn new(entry: DumpEntry, content: T) -> FileGroup<T> {
        let dir = entry.path.parent().unwrap_or(Path::new(""));
        let origin = PathOrigin::from_path(dir);
        let load_dir = dir.parent().unwrap_or(Path::new("")).to_owned();
        let device_dir = load_dir.parent().and_then(Path::parent);
        // Without a device the numbers can be those of any directories, whose order must stay.
        let is_of_model = origin.device.is_some() && origin.model_id.is_some();
        let mut group = FileGroup {
            device_dir: device_dir.filter(|_| is_of_model).map(Path::to_owned),
            load_dir,
            first_time: None,
            entries: Vec::new(),
        };
        group.add(entry, content);
        group
    }

    fn add(&mut self, entry: DumpEntry, content: T) {
        let name = entry
            .name
            .clone()
            .or_else(|| Some(result_name(&entry)?.file));
        let time = name.and_then(|name| name.timestamp.parse::<u64>().ok());
        // Flattened first, as `None` would be the smaller one of two options.
        self.first_time = [self.first_time, time].into_iter().flatten().min();
        self.entries.push((entry, content));
    }

    fn is_beside(&self, other: &FileGroup<T>) -> bool {
        self.device_dir.is_some() && self.device_dir == other.device_dir
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::acl::DumpFileName;

    fn order(paths: &[&str]) -> Vec<String> {
        let entry = |path: &&str| {
            let path = PathBuf::from(path);
            let real_name = path.file_name().unwrap().to_string_lossy().into_owned();
            DumpEntry {
                name: DumpFileName::parse(&real_name),
                path,
                real_name,
                n_bytes: 0,
            }
        };
        let ordered = by_execution(paths.iter().map(|path| (entry(path), ())).collect());
        let text = |(entry, ()): &(DumpEntry, ())| entry.path.to_string_lossy().into_owned();
        ordered.iter().map(text).collect()
    }

    #[test]
    fn models_take_turns() {
        const T: &str = "20240102030405/0";
        let at = |rest: &str| format!("{T}/{rest}");
        let forward = [
            "graph_1/1/0/A.a.0.0.10",
            "graph_1/1/0/A.a.1.0.11",
            "graph_1/1/1/A.a.0.0.30",
        ];
        let backward = [
            "graph_10/10/0/B.b.0.0.20",
            "graph_2/2/0/B.b.0.0.15",
            "graph_2/2/1/B.b.0.0.35",
        ];
        let paths: Vec<String> = forward.iter().chain(&backward).map(|p| at(p)).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let expected = [0, 1, 4, 3, 2, 5].map(|i| paths[i].to_owned());
        assert_eq!(order(&paths), expected);
    }

    #[test]
    fn steps_of_a_model_keep_their_order_whatever_the_times() {
        let paths = [
            "20240102030405/0/net/1/0/A.a.0.0.99",
            "20240102030405/0/net/1/1/A.a.0.0.5",
            "20240102030405/1/net/1/0/A.a.0.0.1",
            "arrays/1/2/b.npy",
            "arrays/1/3/a.npy",
        ];
        assert_eq!(order(&paths), paths);
    }
}
