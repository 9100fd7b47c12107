//! The directory of operator models, which are not used here.

use std::sync::atomic::{AtomicBool, Ordering};

use opscope_acl::Answer;
use opscope_acl::status::{INVALID_PARAM, READ_MODEL_FAILURE, REPEAT_INITIALIZE};

use crate::argument::{FilePath, NumberArg};
use crate::table::table;

table! {
    codes {
        /// aclopSetModelDir: operators need no models here, so the directory only has to exist. It
        /// can be set once.
        set_model_dir(model_dir: FilePath) => note_model_dir(&model_dir);
        /// aclopSetMaxOpQueueNum: operators are not cached, so the number only has to be valid.
        set_max_op_queue_num(max_op_num: NumberArg<u64>)
            => if max_op_num.0 == 0 { Err(INVALID_PARAM) } else { Ok(()) };
    }
}

static HAS_MODEL_DIR: AtomicBool = AtomicBool::new(false);

fn note_model_dir(dir: &FilePath) -> Answer {
    if !dir.as_path().is_dir() {
        return Err(READ_MODEL_FAILURE);
    }
    // Only an accepted directory counts as set.
    if HAS_MODEL_DIR.swap(true, Ordering::Relaxed) {
        return Err(REPEAT_INITIALIZE);
    }
    Ok(())
}
