//! How much memory the machine has.

use std::sync::OnceLock;
use std::{fs, io};

/// Where control groups of either version say what the processes of a container may use together.
const GROUP_FILES: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/// Where they say how much of it is in use, caches included.
const USED_FILES: [&str; 2] = [
    "/sys/fs/cgroup/memory.current",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes",
];

/// Maximum bytes of memory of a process: those of the machine, including swap, or the limit of its
/// container. [`u64::MAX`] if the system does not report it.
///
/// The system grants far more than that, and ends the process once it is used.
pub fn memory_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let machine = fs::read_to_string("/proc/meminfo");
        let machine = machine.ok().and_then(|text| of_machine(&text));
        let groups = GROUP_FILES
            .into_iter()
            // Version 2 says `max` for no limit, which is not a number and is skipped.
            .filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
        machine.into_iter().chain(groups).min().unwrap_or(u64::MAX)
    })
}

/// Bytes of memory that this process can still take without displacing others: those free in the
/// machine or its container; `None` if the system does not report them.
pub fn free_memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok();
    let machine = text.and_then(|text| kibibytes(&text, "MemAvailable")?.checked_mul(1024));
    let groups = GROUP_FILES
        .into_iter()
        .zip(USED_FILES)
        .filter_map(|(limit, used)| {
            let [limit, used] =
                [limit, used].map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
            Some(limit?.saturating_sub(used?))
        });
    machine.into_iter().chain(groups).min()
}

/// Refuses a size beyond the memory.
///
/// # Errors
/// [`io::ErrorKind::OutOfMemory`] with both sizes.
pub fn check_memory(n_bytes: u64) -> io::Result<()> {
    let n_there = memory_bytes();
    if n_bytes <= n_there {
        return Ok(());
    }
    let text = format!("it takes {n_bytes} bytes, and there are {n_there} bytes of memory");
    Err(io::Error::new(io::ErrorKind::OutOfMemory, text))
}

/// From the text of `/proc/meminfo`.
fn of_machine(text: &str) -> Option<u64> {
    let swap = kibibytes(text, "SwapTotal").unwrap_or(0);
    kibibytes(text, "MemTotal")?
        .checked_add(swap)?
        .checked_mul(1024)
}

/// A number of `/proc/meminfo`.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_counts() {
        for (text, expected) in [
            ("MemTotal:       16384 kB\nMemFree: 1 kB\n", Some(16 << 20)),
            ("SwapTotal: 1024 kB\nMemTotal: 1024 kB\n", Some(2 << 20)),
            ("MemTotalX: 5 kB\n", None),
            ("MemTotal:\n", None),
            ("MemTotal: 18446744073709551615 kB\n", None),
            ("", None),
        ] {
            assert_eq!(of_machine(text), expected, "{text:?}");
        }
        assert!(memory_bytes() >= 1 << 20);
    }
}
