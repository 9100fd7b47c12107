//! Memory for an input, whose size the model or the caller chooses.

use opscope_store::memory_bytes;

use crate::InputError;

/// Room for an input of `n_bytes`, which a shape may make as large as it likes.
///
/// # Errors
/// [`InputError::Memory`] if there is too little memory.
pub fn room(name: &str, n_bytes: usize) -> Result<Vec<u8>, InputError> {
    let n_there = memory_bytes();
    let mut bytes = Vec::new();
    // A system that promises more memory than it has would kill the process later.
    let reason = if n_bytes as u64 > n_there {
        format!("there are {n_there} bytes of memory")
    } else {
        match bytes.try_reserve_exact(n_bytes) {
            Ok(()) => return Ok(bytes),
            Err(error) => error.to_string(),
        }
    };
    Err(InputError::Memory {
        name: name.to_owned(),
        n_bytes: n_bytes as u64,
        reason,
    })
}
