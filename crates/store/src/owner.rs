//! Which process something belongs to, and whether that process is still there.
//!
//! A process id alone is ambiguous: ids are reused, and other machines and containers have their
//! own ids. The start time of the process, the boot of the machine and the namespace of the id make
//! it unique.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::{fmt, fs, io};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A process. Fields that the operating system does not report are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnerProcess {
    /// Process id, as the process itself sees it.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did.
    pub start_ticks: u64,
    /// The first half of the machine's boot id, which is random. In JSON it is 16 hexadecimal
    /// digits: many readers of JSON round large numbers.
    #[serde(serialize_with = "write_boot", deserialize_with = "read_boot")]
    pub boot: u64,
    /// The namespace that counts process ids: containers have their own.
    pub pid_namespace: u64,
}

/// State of a process that may have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It runs.
    Alive,
    /// It has ended.
    Dead,
    /// It ran on another machine, or on this one before it was started again.
    OtherBoot,
    /// It cannot be looked up from here.
    Unknown,
}

impl OwnerProcess {
    /// This process, also after a fork.
    pub fn current() -> OwnerProcess {
        // Plain numbers instead of a lock: a fork may come while another thread is here.
        static PID: AtomicU32 = AtomicU32::new(0);
        static START_TICKS: AtomicU64 = AtomicU64::new(0);
        static BOOT: AtomicU64 = AtomicU64::new(0);
        static PID_NAMESPACE: AtomicU64 = AtomicU64::new(0);
        let pid = std::process::id();
        if PID.load(Ordering::Acquire) != pid {
            let start_ticks = start_of("self").ok().map_or(0, |(ticks, _)| ticks);
            START_TICKS.store(start_ticks, Ordering::Relaxed);
            BOOT.store(boot().unwrap_or(0), Ordering::Relaxed);
            PID_NAMESPACE.store(pid_namespace().unwrap_or(0), Ordering::Relaxed);
            // The id comes last: a thread that sees it sees the other numbers too.
            PID.store(pid, Ordering::Release);
        }
        OwnerProcess {
            pid,
            start_ticks: START_TICKS.load(Ordering::Relaxed),
            boot: BOOT.load(Ordering::Relaxed),
            pid_namespace: PID_NAMESPACE.load(Ordering::Relaxed),
        }
    }

    /// Whether the process is still there. One of another user may be hidden and look dead.
    pub fn liveness(&self) -> Liveness {
        let here = OwnerProcess::current();
        if !self.is_complete() || !here.is_complete() {
            return Liveness::Unknown;
        }
        if self.boot != here.boot {
            return Liveness::OtherBoot;
        }
        if self.pid_namespace != here.pid_namespace {
            return Liveness::Unknown;
        }
        match start_of(&self.pid.to_string()) {
            Ok((start_ticks, is_ended)) if start_ticks == self.start_ticks && !is_ended => {
                Liveness::Alive
            }
            // Another process has got the id since, or this one has ended and waits for its parent.
            Ok(_) => Liveness::Dead,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Liveness::Dead,
            // The process ended between the opening of its file in `/proc` and the reading.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
                Liveness::Dead
            }
            Err(_) => Liveness::Unknown,
        }
    }

    fn is_complete(&self) -> bool {
        self.pid != 0 && self.start_ticks != 0 && self.boot != 0 && self.pid_namespace != 0
    }

    /// Takes the text of [`OwnerProcess`]'s `Display` apart.
    pub fn parse(text: &str) -> Option<OwnerProcess> {
        let mut fields = text.split('-');
        let owner = OwnerProcess {
            pid: fields.next()?.parse().ok()?,
            start_ticks: fields.next()?.parse().ok()?,
            boot: u64::from_str_radix(fields.next()?, 16).ok()?,
            pid_namespace: fields.next()?.parse().ok()?,
        };
        // Signs and leading zeros are nothing that was written.
        (owner.to_string() == text).then_some(owner)
    }
}

/// `{pid}-{start_ticks}-{boot}-{pid_namespace}`, the boot as 16 hexadecimal digits.
impl fmt::Display for OwnerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OwnerProcess {
            pid,
            start_ticks,
            boot,
            pid_namespace,
        } = self;
        write!(f, "{pid}-{start_ticks}-{boot:016x}-{pid_namespace}")
    }
}

fn write_boot<S: Serializer>(boot: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{boot:016x}"))
}

/// Other text is an unknown boot.
fn read_boot<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(u64::from_str_radix(&text, 16).unwrap_or(0))
}

/// The user that this process acts for.
pub(crate) fn user() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|proc| proc.uid())
}

/// When a process started, and whether it has ended and only waits to be noticed.
fn start_of(process: &str) -> io::Result<(u64, bool)> {
    let text = fs::read(format!("/proc/{process}/stat"))?;
    let text = String::from_utf8_lossy(&text);
    // The second field is the program's name in parentheses, and may hold anything.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = fields.split_ascii_whitespace();
    let is_ended = matches!(fields.next(), Some("Z" | "X" | "x"));
    // Field 22 of proc(5): the two up to the parenthesis and the state are gone by now.
    let start_ticks = fields.nth(18).and_then(|ticks| ticks.parse().ok());
    let start_ticks = start_ticks.ok_or_else(|| io::Error::other("no start time"))?;
    Ok((start_ticks, is_ended))
}

fn boot() -> Option<u64> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = id
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(16)
        .collect();
    u64::from_str_radix(&digits, 16).ok()
}

/// The number in `pid:[4026531836]`.
fn pid_namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    let text = link.to_str()?;
    text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_its_likes_are_not() {
        let here = OwnerProcess::current();
        assert!(here.is_complete(), "{here:?}");
        let cases = [
            (here, Liveness::Alive),
            (
                OwnerProcess {
                    start_ticks: here.start_ticks + 1,
                    ..here
                },
                Liveness::Dead,
            ),
            (
                OwnerProcess {
                    boot: here.boot ^ 1,
                    ..here
                },
                Liveness::OtherBoot,
            ),
            (
                OwnerProcess {
                    pid_namespace: here.pid_namespace + 1,
                    ..here
                },
                Liveness::Unknown,
            ),
            (
                OwnerProcess {
                    start_ticks: 0,
                    ..here
                },
                Liveness::Unknown,
            ),
        ];
        for (owner, expected) in cases {
            assert_eq!(owner.liveness(), expected, "{owner:?}");
        }
    }

    #[test]
    fn an_ended_process_is_dead_before_and_after_it_is_noticed() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let pid = child.id();
        let (start_ticks, _) = start_of(&pid.to_string()).unwrap();
        let owner = OwnerProcess {
            pid,
            start_ticks,
            ..OwnerProcess::current()
        };
        assert_eq!(owner.liveness(), Liveness::Alive);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(owner.liveness(), Liveness::Dead);
    }

    #[test]
    fn text_comes_back() {
        let owner = OwnerProcess::current();
        assert_eq!(OwnerProcess::parse(&owner.to_string()), Some(owner));
        for other in [
            "",
            "1",
            "1-2-3-4",
            "+1-2-0000000000000003-4",
            "01-2-0000000000000003-4",
        ] {
            assert_eq!(OwnerProcess::parse(other), None, "{other}");
        }
    }
}
