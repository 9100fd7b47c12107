//! Memory for an input, whose size the model or the caller chooses.

use opscope_store::memory_bytes;

use crate::InputError;

/// Room for an input of `n_bytes`, which a shape may make as large as it likes.
///
/// # Errors
/// [`InputError::Memory`] if there is too little memory.
pub fn room(name: &str, n_bytes: usize) -> Result<Vec<u8>, InputError> {
    let none = |reason: String| InputError::Memory {
        name: name.to_owned(),
        n_bytes: n_bytes as u64,
        reason,
    };
    let n_there = memory_bytes();
    // A system that promises more memory than it has would kill the process later.
    if n_bytes as u64 > n_there {
        return Err(none(format!("there are {n_there} bytes of memory")));
    }
    let mut bytes = Vec::new();
    match bytes.try_reserve_exact(n_bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(none(error.to_string())),
    }
}
