//! Memos about the engine's tensors, so that a tensor shared by several operators is inspected
//! once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_tensor::{DType, Shape, Tensor, TensorIdentity, TensorMemo};

/// Number of tensors that are remembered before those that are gone are looked for.
const N_SWEEP_MIN: usize = 1024;

/// Memos by identity.
#[derive(Default)]
pub(crate) struct Memos(Mutex<MemoEntries>);

#[derive(Default)]
struct MemoEntries {
    known: HashMap<TensorIdentity, KnownMemo>,
    /// How many there may be before the next sweep.
    n_max: usize,
}

struct KnownMemo {
    dtype: DType,
    shape: Shape,
    memo: Arc<TensorMemo>,
}

impl Memos {
    /// The tensor, with what is known of it since it was shown before.
    pub(crate) fn recall(&self, tensor: Tensor) -> Tensor {
        // Without an identity two tensors at one address could be different values.
        let Some(identity) = tensor.identity() else {
            return tensor;
        };
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = table.known.get(identity) {
            // A view of the same memory as something else is another tensor.
            let is_same = known.dtype == tensor.dtype() && known.shape == *tensor.shape();
            return if is_same {
                tensor.with_memo(known.memo.clone())
            } else {
                tensor
            };
        }
        let known = KnownMemo {
            dtype: tensor.dtype(),
            shape: tensor.shape().clone(),
            memo: tensor.memo().clone(),
        };
        // An identity keeps no tensor alive: the engine frees its memory when it likes.
        let identity = identity.clone();
        table.known.insert(identity, known);
        table.sweep();
        tensor
    }
}

impl MemoEntries {
    /// Forgets tensors that are gone, each time their number may have doubled.
    fn sweep(&mut self) {
        if self.known.len() > self.n_max.max(N_SWEEP_MIN) {
            self.known.retain(|identity, _| identity.is_alive());
            self.n_max = self.known.len() * 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(owner: &Arc<Vec<u8>>, dtype: DType) -> Tensor {
        let shape = Shape::new([owner.len() / dtype.bytes().unwrap()]).unwrap();
        let tensor = Tensor::new(dtype, shape, owner.clone()).unwrap();
        tensor.with_identity(TensorIdentity::from_owner(owner))
    }

    #[test]
    fn one_memo_for_each_tensor() {
        let memos = Memos::default();
        let (one, other) = (Arc::new(vec![0; 8]), Arc::new(vec![0; 8]));
        let output = memos.recall(shown(&one, DType::F32));
        let input = memos.recall(shown(&one, DType::F32));
        assert!(Arc::ptr_eq(output.memo(), input.memo()));
        for different in [shown(&other, DType::F32), shown(&one, DType::I32)] {
            let different = memos.recall(different);
            assert!(!Arc::ptr_eq(output.memo(), different.memo()));
        }
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let memos = Memos::default();
        let constant = Arc::new(vec![0; 4]);
        let first = memos.recall(shown(&constant, DType::F32));
        for _ in 0..10 * N_SWEEP_MIN {
            memos.recall(shown(&Arc::new(vec![0; 4]), DType::F32));
        }
        assert!(memos.0.lock().unwrap().known.len() <= N_SWEEP_MIN + 1);
        let again = memos.recall(shown(&constant, DType::F32));
        assert!(Arc::ptr_eq(first.memo(), again.memo()));
    }
}
