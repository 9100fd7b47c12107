//! The machine, as it describes itself.

use std::fs::{self, File};
use std::io::Read;
use std::sync::OnceLock;

use crate::file_format::run_json::HostMachine;

/// How much is read of the kernel's description of the first processors.
const CPU_BYTES_MAX: u64 = 64 << 10;

/// The machine that this process runs on, as it was at the first call: reading it takes longer than
/// a small dump. Unknown facts are empty.
pub fn this_host() -> HostMachine {
    static HOST: OnceLock<HostMachine> = OnceLock::new();
    if let Some(host) = HOST.get() {
        return host.clone();
    }
    // Read before the lock is taken: a fork that comes meanwhile would wait for it forever.
    let host = read_host();
    HOST.get_or_init(|| host).clone()
}

fn read_host() -> HostMachine {
    let os = format!("{} {}", kernel("ostype"), kernel("osrelease"));
    HostMachine {
        name: kernel("hostname"),
        os: format!("{} {}", os.trim(), std::env::consts::ARCH)
            .trim()
            .to_owned(),
        cpu: cpu().unwrap_or_default(),
        n_cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u64),
    }
}

fn kernel(name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    text.trim().to_owned()
}

/// The umask. The system call for it would change it, so it is read from the kernel's description
/// of the process.
pub fn umask() -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let umask = lines.find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(umask.trim(), 8).ok()
}

/// The name of the first processor; where the kernel has no name, its part number.
fn cpu() -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open("/proc/cpuinfo").ok()?;
    file.take(CPU_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let value = |key: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    value("model name").or_else(|| value("CPU part"))
}
