//! The process: setting up, ending, errors, versions.

use std::ffi::c_char;

use crate::border::{Code, call, last_failure, null, process, take_last_failure, value};
use crate::kept::keep_report;
use crate::pointer::{Out, Text};

/// Major, minor and patch number of the API that the headers follow.
const VERSION: (i32, i32, i32) = (1, 17, 0);

#[unsafe(no_mangle)]
extern "C" fn aclInit(path: Text) -> Code {
    call(|| process().init(path.path()))
}

#[unsafe(no_mangle)]
extern "C" fn aclFinalize() -> Code {
    call(|| process().finalize())
}

#[unsafe(no_mangle)]
extern "C" fn aclFinalizeReference(n_left: Out<u64>) -> Code {
    call(|| {
        let (count, answer) = process().finalize_reference();
        n_left.set(count);
        answer
    })
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

#[unsafe(no_mangle)]
extern "C" fn aclrtGetVersion(major: Out<i32>, minor: Out<i32>, patch: Out<i32>) -> Code {
    call(|| {
        for (out, name) in [
            (major, "majorVersion"),
            (minor, "minorVersion"),
            (patch, "patchVersion"),
        ] {
            if out.is_null() {
                return Err(null("aclrtGetVersion", name));
            }
        }
        major.set(VERSION.0);
        minor.set(VERSION.1);
        patch.set(VERSION.2);
        Ok(())
    })
}
