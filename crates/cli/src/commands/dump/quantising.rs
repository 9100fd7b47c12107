//! Whether quantising is shown whole.

use opscope_capture::{Plan, Purpose};

use crate::console::tell;

/// `plan` with what `--quant-dumpable` asks for, if it was given; says so if that has no effect.
pub(super) fn apply(quant_dumpable: bool, plan: Plan) -> Plan {
    if quant_dumpable && plan.purpose != Purpose::Values {
        tell!(
            "opscope: warning: `--quant-dumpable` has no effect on a dump that keeps only operators that \
             overflow, fail or are watched"
        );
    }
    Plan {
        shows_quantising: quant_dumpable,
        ..plan
    }
}
