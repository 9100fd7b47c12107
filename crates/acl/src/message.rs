//! Messages for `aclGetRecentErrMsg`: reports with a code, a title and hints.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

/// Maximum number of unread reports; older ones are dropped.
const N_REPORTS_MAX: usize = 64;
/// Maximum number of threads with unread reports; those of the least active thread are dropped.
const N_THREADS_MAX: usize = 1024;
/// Indentation of a report's continuation lines.
const INDENT: &str = "        ";

/// The description of an error, in the user's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AclReport {
    /// The whole text.
    head: String,
}

/// A code's title, its message with `{}` for each placeholder, and hints that may be empty.
struct ReportWording {
    code: &'static str,
    title: &'static str,
    message: &'static str,
    cause: &'static str,
    solution: &'static str,
}

const WORDINGS: &[ReportWording] = &[
    ReportWording {
        code: "EP0001",
        title: "Config_Error",
        message: "The content of configuration item `{}` in `{}` is invalid: {}.",
        cause: "The item is missing, empty or of the wrong type.",
        solution: "Correct the item in the configuration file.",
    },
    ReportWording {
        code: "EP0002",
        title: "Config_Error",
        message: "Value `{}` of configuration item `{}` in `{}` is invalid. Expected: {}.",
        cause: "",
        solution: "Set the item to one of the expected values.",
    },
    ReportWording {
        code: "EP0003",
        title: "Config_Error",
        message: "Value `{}` of configuration item `{}` in `{}` is invalid: {}.",
        cause: "",
        solution: "Correct the value in the configuration file.",
    },
    ReportWording {
        code: "EP0004",
        title: "File_Operation_Error_Parse",
        message: "File `{}` cannot be parsed: {}.",
        cause: "The file is not valid JSON, or it is nested too deeply.",
        solution: "Check the file's syntax.",
    },
    ReportWording {
        code: "EP0005",
        title: "Config_Error",
        message: "Items of the configuration `{}` exclude each other: {}.",
        cause: "",
        solution: "Remove one of the items that exclude each other.",
    },
    ReportWording {
        code: "EP0006",
        title: "Invalid_Argument",
        message: "{}: value `{}` of parameter `{}` is invalid: {}.",
        cause: "",
        solution: "Call the function again with a valid value.",
    },
    ReportWording {
        code: "EP0007",
        title: "Invalid_Argument_Null_Pointer",
        message: "{}: parameter `{}` is a null pointer.",
        cause: "",
        solution: "Call the function again with a valid pointer.",
    },
    ReportWording {
        code: "EP0008",
        title: "Invalid_Argument_API_Call_Sequence",
        message: "{} was called out of order: {}.",
        cause: "",
        solution: "Check the order of the calls.",
    },
    ReportWording {
        code: "EH0001",
        title: "Invalid_Argument",
        message: "Value `{}` of parameter `{}` is invalid: {}.",
        cause: "",
        solution: "Call the function again with a valid value.",
    },
    ReportWording {
        code: "EH0002",
        title: "Invalid_Argument_Null_Pointer",
        message: "{}: parameter `{}` is a null pointer.",
        cause: "",
        solution: "Call the function again with a valid pointer.",
    },
    ReportWording {
        code: "EH0003",
        title: "Invalid_Path",
        message: "Path `{}` is invalid: {}.",
        cause: "The path does not exist, or is not readable.",
        solution: "Check the path and the permissions along it.",
    },
    ReportWording {
        code: "EH0004",
        title: "Invalid_File",
        message: "File `{}` is invalid: {}.",
        cause: "The file is damaged, or of another kind.",
        solution: "Check the file.",
    },
    ReportWording {
        code: "EZ1001",
        title: "AclNN_Parameter_Error",
        message: "{}: {}.",
        cause: "",
        solution: "",
    },
    ReportWording {
        code: "EZ9903",
        title: "AclNN_Runtime_Error",
        message: "{}: {}.",
        cause: "",
        solution: "",
    },
    ReportWording {
        code: "EZ9999",
        title: "AclNN_Inner_Error",
        message: "{}: {}.",
        cause: "",
        solution: "",
    },
];
/// The title of reports of internal errors.
const INNER: ReportWording = ReportWording {
    code: "E19999",
    title: "Inner_Error",
    message: "{}.",
    cause: "",
    solution: "",
};

impl AclReport {
    /// A report with the placeholders of its code, in order. An unknown code is reported as an
    /// internal error with the placeholders joined.
    pub(crate) fn new(code: &'static str, placeholders: &[&str]) -> AclReport {
        let wording = WORDINGS.iter().find(|wording| wording.code == code);
        let joined = placeholders.join(": ");
        match wording {
            Some(wording) => AclReport::worded(wording, placeholders),
            None => AclReport::worded(&INNER, &[&joined]),
        }
    }

    /// A report of an internal error, in the words of the failing part.
    pub(crate) fn inner(text: &str) -> AclReport {
        AclReport::worded(&INNER, &[text])
    }

    fn worded(wording: &ReportWording, placeholders: &[&str]) -> AclReport {
        let now = opscope_store::clock::local();
        // Process, time, title and code follow the order and form of the vendor's reports.
        let mut head = format!(
            "[PID: {}] {}.{:03}.{:03} {}({}): ",
            std::process::id(),
            now.strftime("%Y-%m-%d-%H:%M:%S"),
            now.millisecond(),
            now.microsecond(),
            wording.title,
            wording.code,
        );
        let mut placeholders = placeholders.iter();
        for (i, part) in wording.message.split("{}").enumerate() {
            if i > 0 {
                head.push_str(placeholders.next().unwrap_or(&""));
            }
            head.push_str(part);
        }
        for (label, hint) in [
            ("Possible Cause", wording.cause),
            ("Solution", wording.solution),
        ] {
            if !hint.is_empty() {
                let _ = write!(head, "\n{INDENT}{label}: {hint}");
            }
        }
        AclReport { head }
    }
}

/// Unread reports.
#[derive(Default)]
pub(crate) struct ReportQueue(Mutex<ReportLists>);

#[derive(Default)]
struct ReportLists {
    is_shared: bool,
    /// The common list; used if `is_shared`.
    common: VecDeque<AclReport>,
    of_thread: HashMap<ThreadId, (u64, VecDeque<AclReport>)>,
    n_reports: u64,
}

impl ReportQueue {
    /// Stores reports from now on in one list for the whole process, or in one for each thread.
    pub(crate) fn share(&self, is_shared: bool) {
        self.lock().is_shared = is_shared;
    }

    pub(crate) fn push(&self, report: AclReport) {
        let mut waiting = self.lock();
        waiting.n_reports += 1;
        let n_reports = waiting.n_reports;
        let list = if waiting.is_shared {
            &mut waiting.common
        } else {
            let of_thread = &mut waiting.of_thread;
            let me = thread::current().id();
            // Entries of threads that ended without reading would stay forever: there is no
            // notification of their end.
            if of_thread.len() >= N_THREADS_MAX && !of_thread.contains_key(&me) {
                let quietest = of_thread.iter().min_by_key(|(_, (last, _))| *last);
                if let Some(quietest) = quietest.map(|(thread, _)| *thread) {
                    of_thread.remove(&quietest);
                }
            }
            let (last, list) = of_thread.entry(me).or_default();
            *last = n_reports;
            list
        };
        if list.len() == N_REPORTS_MAX {
            list.pop_front();
        }
        list.push_back(report);
    }

    /// The text of the unread reports, the newest first; `None` if there are none. Removes them.
    pub(crate) fn take(&self) -> Option<String> {
        let mut waiting = self.lock();
        let mut reports = if waiting.is_shared {
            std::mem::take(&mut waiting.common)
        } else {
            waiting.of_thread.remove(&thread::current().id())?.1
        };
        // The text is built without the lock, which every refused call of any thread takes.
        drop(waiting);
        let newest = reports.pop_back()?;
        let mut text = newest.head;
        text.push('\n');
        if !reports.is_empty() {
            let _ = writeln!(text, "{INDENT}TraceBack (most recent call last):");
            for report in &reports {
                let first_line = report.head.lines().next().unwrap_or_default();
                let _ = writeln!(text, "{INDENT}{first_line}");
            }
        }
        Some(text)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ReportLists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
