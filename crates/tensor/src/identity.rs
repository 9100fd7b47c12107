//! Which of an engine's tensors one is.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

/// The name of a reference-counted tensor that its engine never changes while a reference exists.
///
/// Tensors with equal identities are the same one. An identity keeps the address of the count, so
/// that it is never given out a second time, but not the tensor: the engine frees that when it
/// likes.
#[derive(Clone)]
pub struct TensorIdentity {
    pin: Weak<dyn Any + Send + Sync>,
}

impl TensorIdentity {
    /// The identity of what `owner` counts.
    pub fn from_owner<T: Any + Send + Sync>(owner: &Arc<T>) -> TensorIdentity {
        let owner: Arc<dyn Any + Send + Sync> = owner.clone();
        TensorIdentity {
            pin: Arc::downgrade(&owner),
        }
    }

    /// Whether the tensor is still there. Once it is not, no tensor with this identity is ever
    /// shown again.
    pub fn is_alive(&self) -> bool {
        self.pin.strong_count() > 0
    }

    fn address(&self) -> usize {
        self.pin.as_ptr().addr()
    }
}

impl PartialEq for TensorIdentity {
    fn eq(&self, other: &TensorIdentity) -> bool {
        self.address() == other.address()
    }
}

impl Eq for TensorIdentity {}

impl Hash for TensorIdentity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl fmt::Debug for TensorIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({:#x})", self.address())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_not_given_out_again_while_somebody_remembers_it() {
        let first = Arc::new([0_u8; 64]);
        let identity = TensorIdentity::from_owner(&first);
        assert_eq!(identity, TensorIdentity::from_owner(&first.clone()));
        assert!(identity.is_alive());
        drop(first);
        assert!(!identity.is_alive());
        let later: Vec<Arc<[u8; 64]>> = (0..1000).map(|_| Arc::new([0; 64])).collect();
        assert!(
            later
                .iter()
                .all(|owner| TensorIdentity::from_owner(owner) != identity)
        );
    }
}
