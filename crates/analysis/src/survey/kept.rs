//! Caches the survey of a dump: next to the dump, or in the user's cache directory if the dump is
//! read-only.
//!
//! The file is little-endian: 8 bytes [`MAGIC`], the xxh3-128 of the rest, the [`Fingerprint`] of
//! the dump, the number of executions (8 bytes), 40 bytes for each of them, and the problems as a
//! JSON list of strings.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::tree::own;
use opscope_store::{regular_file, remote};
use opscope_tensor::digest::{hex, xxh3_128};

use super::{DumpSurvey, SpreadRole, SurveyedExecution};
use crate::compare::side::ComparedDump;

const MAGIC: &[u8; 8] = b"OPSSURV1";
const EXECUTION_BYTES: usize = 40;
/// Maximum bytes of a file apart from its executions. A survey with more problems is not cached.
const REST_BYTES_MAX: u64 = 1 << 24;

/// A digest of the names, sizes and times of the files with tensors.
type Fingerprint = [u8; 16];

/// The cached survey of a dump; `None` if there is none or the dump has changed since.
pub fn kept(dump: &ComparedDump) -> Option<DumpSurvey> {
    let fingerprint = fingerprint(dump);
    places(&dump.root).into_iter().find_map(|path| {
        let bytes = regular_file::read_in_dump(&path, n_bytes_max(dump)).ok()?;
        decode(&bytes, fingerprint, dump.runs.len())
    })
}

/// Caches the survey of a dump and returns the path. If neither place is writable, the next survey
/// takes as long as this one; that is not an error.
pub fn keep(dump: &ComparedDump, survey: &DumpSurvey) -> Option<PathBuf> {
    let bytes = encode(survey, fingerprint(dump));
    if bytes.len() as u64 > n_bytes_max(dump) {
        return None;
    }
    // A user without access to the dump gets none to this file.
    let modes = PermissionModes::default();
    places(&dump.root).into_iter().find(|path| {
        let Some(dir) = path.parent() else {
            return false;
        };
        // The dump may belong to another user and contain links.
        let creator = if path.starts_with(&dump.root) {
            Creator::in_dump(&dump.root, modes)
        } else {
            Creator::new(modes)
        };
        creator.create_dir(dir).is_ok() && creator.replace_file(path, &[&bytes]).is_ok()
    })
}

fn n_bytes_max(dump: &ComparedDump) -> u64 {
    REST_BYTES_MAX.saturating_add((dump.runs.len() * EXECUTION_BYTES) as u64)
}

/// Possible paths of the cached survey: next to the dump, then in the user's cache directory.
fn places(root: &Path) -> Vec<PathBuf> {
    let mut places = Vec::new();
    // A single file may be in any directory, which is not ours to write to.
    if root.is_dir() {
        places.push(own::survey_file(root));
    }
    let absolute = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let name = hex(&xxh3_128(absolute.as_os_str().as_encoded_bytes()));
    places.extend(user_dir().map(|dir| dir.join("opscope").join("surveys").join(name)));
    places
}

/// The user's cache directory, by the rules of freedesktop.org.
fn user_dir() -> Option<PathBuf> {
    let [cache, home] = ["XDG_CACHE_HOME", "HOME"].map(std::env::var_os);
    // The rules ignore relative paths.
    let cache = cache.map(PathBuf::from).filter(|dir| dir.is_absolute());
    cache.or_else(|| Some(PathBuf::from(home?).join(".cache")))
}

fn fingerprint(dump: &ComparedDump) -> Fingerprint {
    let slots = dump.runs.iter().flat_map(|run| &run.slots);
    let mut paths: BTreeSet<&Path> = BTreeSet::new();
    let mut last: Option<&Path> = None;
    for slot in slots {
        // Neighbours are usually in one file.
        if last != Some(&*slot.path) {
            paths.insert(&slot.path);
            last = Some(&slot.path);
        }
    }
    let mut text = format!("{}\n{}\n", env!("CARGO_PKG_VERSION"), dump.n_slots());
    for path in paths {
        // A moved dump counts as unchanged.
        let below = path.strip_prefix(&dump.root).unwrap_or(path);
        text += &below.to_string_lossy();
        if let Ok(metadata) = remote::metadata(path) {
            let modified = metadata.modified().ok();
            let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let since = since.map_or(0, |since| since.as_nanos());
            text += &format!(" {} {since}", metadata.len());
        }
        text.push('\n');
    }
    xxh3_128(text.as_bytes())
}

fn encode(survey: &DumpSurvey, fingerprint: Fingerprint) -> Vec<u8> {
    let mut body = fingerprint.to_vec();
    body.extend((survey.executions.len() as u64).to_le_bytes());
    for execution in &survey.executions {
        let flags = [
            execution.max_abs.is_some(),
            execution.headroom.is_some(),
            execution.n_nan.is_some(),
            execution.n_inf.is_some(),
            execution.n_elements.is_some(),
            execution.is_least,
        ];
        let flags = flags.iter().enumerate();
        let flags = flags.fold(0_u8, |all, (bit, is_set)| all | u8::from(*is_set) << bit);
        body.extend([flags, execution.role.map_or(0, role_number), 0, 0]);
        body.extend(execution.headroom.unwrap_or(0).to_le_bytes());
        body.extend(execution.max_abs.unwrap_or(0.0).to_le_bytes());
        for count in [execution.n_nan, execution.n_inf, execution.n_elements] {
            body.extend(count.unwrap_or(0).to_le_bytes());
        }
    }
    // Serializing strings cannot fail.
    body.extend(serde_json::to_vec(&survey.problems).unwrap_or_default());
    let mut bytes = MAGIC.to_vec();
    bytes.extend(xxh3_128(&body));
    bytes.extend(body);
    bytes
}

/// Decodes a survey with this fingerprint and number of executions; `None` for a damaged file or
/// another state of the dump.
fn decode(bytes: &[u8], fingerprint: Fingerprint, n_executions: usize) -> Option<DumpSurvey> {
    let n_bytes = n_executions.checked_mul(EXECUTION_BYTES)?;
    let body = bytes.strip_prefix(MAGIC)?;
    let (digest, body) = body.split_at_checked(16)?;
    let (found, rest) = body.split_at_checked(16)?;
    let (n, rest) = rest.split_first_chunk::<8>()?;
    let (executions, problems) = rest.split_at_checked(n_bytes)?;
    let is_ours = found == fingerprint
        && u64::from_le_bytes(*n) == n_executions as u64
        && xxh3_128(body) == *digest;
    if !is_ours {
        return None;
    }
    // Files with a valid digest are ours, so an unknown number comes from a later version.
    let executions = executions.chunks_exact(EXECUTION_BYTES).map(execution);
    Some(DumpSurvey {
        executions: executions.collect::<Option<_>>()?,
        n_surveyed: n_executions,
        problems: serde_json::from_slice(problems).ok()?,
    })
}

fn execution(bytes: &[u8]) -> Option<SurveyedExecution> {
    let (&[flags, role, _, _], rest) = bytes.split_first_chunk()?;
    let (headroom, rest) = rest.split_first_chunk()?;
    let (max_abs, rest) = rest.split_first_chunk()?;
    let mut counts = rest
        .as_chunks::<8>()
        .0
        .iter()
        .map(|n| u64::from_le_bytes(*n));
    let [
        has_max,
        has_headroom,
        has_nan,
        has_inf,
        has_elements,
        is_least,
    ] = [0, 1, 2, 3, 4, 5].map(|bit| flags & 1 << bit != 0);
    Some(SurveyedExecution {
        max_abs: has_max.then_some(f64::from_le_bytes(*max_abs)),
        headroom: has_headroom.then_some(i32::from_le_bytes(*headroom)),
        n_nan: counts.next().filter(|_| has_nan),
        n_inf: counts.next().filter(|_| has_inf),
        n_elements: counts.next().filter(|_| has_elements),
        is_least,
        role: role_of(role)?,
    })
}

const ROLES: [SpreadRole; 6] = [
    SpreadRole::MakesNan,
    SpreadRole::MakesInf,
    SpreadRole::TurnsInfToNan,
    SpreadRole::HandsOn,
    SpreadRole::MayBeMask,
    SpreadRole::Unknown,
];

fn role_number(role: SpreadRole) -> u8 {
    let place = ROLES.iter().position(|known| *known == role);
    place.map_or(0, |place| place as u8 + 1)
}

/// The role with this number, where 0 means no role; `None` for an unknown number.
fn role_of(number: u8) -> Option<Option<SpreadRole>> {
    match number.checked_sub(1) {
        None => Some(None),
        Some(place) => ROLES.get(usize::from(place)).map(|role| Some(*role)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> DumpSurvey {
        let known = SurveyedExecution {
            is_least: true,
            max_abs: Some(-0.0),
            headroom: Some(-3),
            n_nan: Some(0),
            n_inf: Some(u64::MAX),
            n_elements: Some(7),
            role: Some(SpreadRole::Unknown),
        };
        let mut executions = vec![known, SurveyedExecution::default()];
        executions.extend(ROLES.map(|role| SurveyedExecution {
            role: Some(role),
            ..SurveyedExecution::default()
        }));
        DumpSurvey {
            n_surveyed: executions.len(),
            executions,
            problems: vec!["a \"b\"".to_owned()],
        }
    }

    #[test]
    fn surveys_come_back() {
        let survey = example();
        let bytes = encode(&survey, [7; 16]);
        let n = survey.executions.len();
        assert_eq!(decode(&bytes, [7; 16], n), Some(survey));
        // Another dump, or another number of executions.
        assert_eq!(decode(&bytes, [8; 16], n), None);
        assert_eq!(decode(&bytes, [7; 16], n - 1), None);
        assert_eq!(decode(&bytes, [7; 16], usize::MAX), None);
    }

    #[test]
    fn damaged_files_are_none() {
        let survey = example();
        let bytes = encode(&survey, [7; 16]);
        let n = survey.executions.len();
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end], [7; 16], n), None, "{end}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert_eq!(decode(&damaged, [7; 16], n), None, "{at}");
        }
    }

    #[test]
    fn a_changed_dump_is_surveyed_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("Relu.relu.0.0.1");
        fs::write(&path, [0; 4]).unwrap();
        let dump = ComparedDump {
            root: dir.path().to_owned(),
            ..ComparedDump::default()
        };
        let survey = DumpSurvey::default();
        assert_eq!(kept(&dump), None);
        let kept_in = keep(&dump, &survey).unwrap();
        assert!(kept_in.starts_with(dir.path()));
        assert_eq!(kept(&dump), Some(survey));
        fs::write(&kept_in, b"other").unwrap();
        assert_eq!(kept(&dump), None);
    }
}
