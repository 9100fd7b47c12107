//! The process: setting up, ending, errors, versions.

use std::ffi::c_char;

use crate::border::{Code, last_failure, process, take_last_failure, value};
use crate::kept::keep_report;
use crate::pointer::{CText, OutPointer};
use crate::table::codes;

/// Major, minor and patch number of the API that the headers follow.
const VERSION: (i32, i32, i32) = (1, 17, 0);

codes! {
    aclInit(path: CText) => process().init(path.path());
    aclFinalize() => process().finalize();
    aclFinalizeReference(n_left: OutPointer<u64>) => {
        let (count, answer) = process().finalize_reference();
        n_left.set(count);
        answer
    };
    aclrtGetVersion(major: OutPointer<i32>, minor: OutPointer<i32>, patch: OutPointer<i32>) => {
        major.require("aclrtGetVersion", "majorVersion")?;
        minor.require("aclrtGetVersion", "minorVersion")?;
        patch.require("aclrtGetVersion", "patchVersion")?;
        major.set(VERSION.0);
        minor.set(VERSION.1);
        patch.set(VERSION.2);
        Ok(())
    };
}

#[unsafe(no_mangle)]
extern "C" fn aclGetRecentErrMsg() -> *const c_char {
    let report = value(None, || process().recent_error());
    keep_report(report)
}

#[unsafe(no_mangle)]
extern "C" fn aclrtPeekAtLastError(_level: i32) -> Code {
    last_failure()
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetLastError(_level: i32) -> Code {
    take_last_failure()
}
