//! The process: initialisation, end, errors, versions.

use std::cmp::Ordering;
use std::ffi::c_char;
use std::ptr;

use opscope_acl::{Answer, status};

use crate::border::{Code, SUCCESS, last_failure, process, take_last_failure};
use crate::layout::PackageVersion;
use crate::pointer::{CText, OutPointer};
use crate::strings::keep_report;
use crate::table::{codes, results, values};

/// Major, minor and patch version of the API of the headers.
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

// ---- Packages

/// The release whose interface the headers follow, as text and as the vendor's number.
const PACKAGE_VERSION: &str = "8.5.0";
const PACKAGE_VERSION_NUMBER: i32 = 80_500_000;
/// The packages that this library replaces, in the order of `aclCANNPackageName`. The drivers and
/// firmware that follow belong to a device.
const PACKAGES: &[&str] = &[
    "cann",
    "runtime",
    "compiler",
    "hccl",
    "toolkit",
    "opp",
    "opp_kernel",
];

codes! {
    aclsysGetVersionStr(package: CText, version: OutPointer<c_char>) => {
        check_package("aclsysGetVersionStr", package)?;
        version.require("aclsysGetVersionStr", "versionStr")?;
        version.set_text(PACKAGE_VERSION, PackageVersion::VERSION_SIZE)
    };
    aclGetCannAttributeList(list: OutPointer<*const i32>, count: OutPointer<usize>) => {
        list.require("aclGetCannAttributeList", "cannAttrList")?;
        count.require("aclGetCannAttributeList", "num")?;
        list.set(ATTRIBUTES.as_ptr());
        count.set(ATTRIBUTES.len());
        Ok(())
    };
}

results! {
    aclsysGetVersionNum(package: CText, versionNum: OutPointer<i32>)
        => versionNum = check_package(FUNCTION, package).map(|()| PACKAGE_VERSION_NUMBER)?;
    aclsysGetCANNVersion(name: i32, version: OutPointer<PackageVersion>) => version = {
        let index = usize::try_from(name).map_err(|_| status::INVALID_PARAM)?;
        match index.cmp(&PACKAGES.len()) {
            Ordering::Less => PackageVersion::new(PACKAGE_VERSION),
            // The driver is known, but not installed.
            Ordering::Equal => return Err(status::INVALID_FILE),
            Ordering::Greater => return Err(status::INVALID_PARAM),
        }
    };
    aclGetCannAttribute(attribute: i32, value: OutPointer<i32>) => value = {
        if !ATTRIBUTE_RANGE.contains(&attribute) {
            return Err(status::INVALID_PARAM);
        }
        i32::from(ATTRIBUTES.contains(&attribute))
    };
}

/// `ACL_CANN_ATTR_INF_NAN` and `ACL_CANN_ATTR_BF16`: infinities, NaN and bfloat16 are supported.
static ATTRIBUTES: [i32; 2] = [0, 1];
/// All named attributes; the third is run-time compilation of operators.
const ATTRIBUTE_RANGE: std::ops::RangeInclusive<i32> = 0..=2;

/// Like the vendor's library, accepts hyphens in place of underscores.
fn check_package(function: &'static str, package: CText) -> Answer {
    let package = package.require_name(function, "pkgName")?.replace('-', "_");
    if PACKAGES.contains(&package.as_str()) {
        return Ok(());
    }
    Err(status::INVALID_FILE)
}

values! {
    aclGetRecentErrMsg() -> *const c_char => keep_report(process().recent_error()), or ptr::null();
    aclrtPeekAtLastError(_level: i32) -> Code => last_failure(), or SUCCESS;
    aclrtGetLastError(_level: i32) -> Code => take_last_failure(), or SUCCESS;
}
