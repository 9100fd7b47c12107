"""Memory of the host that devices write to, lent in blocks and taken back."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import torch

# Blocks have sizes of powers of two, so that one fits many tensors.
_BLOCK_BYTES_MIN = 4096


class Lease:
    """A block of memory, which goes back when nobody has this object any more."""

    __slots__ = ("block", "__weakref__")

    def __init__(self, block: torch.Tensor) -> None:
        self.block = block


class PinnedPool:
    """Blocks of at most `bytes_max` bytes together, unless a single tensor takes more."""

    def __init__(self, bytes_max: int, allocate: Callable[[int], torch.Tensor]) -> None:
        self._bytes_max = bytes_max
        self._allocate = allocate
        self._free: dict[int, list[torch.Tensor]] = {}
        # Blocks that are lent, each with the reference that tells when nobody has the lease any more. Any thread may
        # let go of one at any moment, and Ctrl-C may come just then: so Python's own code notes it, without a lock.
        self._lent: dict[int, tuple[weakref.ref[Lease], torch.Tensor]] = {}
        self._returned: list[weakref.ref[Lease]] = []
        # Bytes of the blocks that are lent, and of those that are not.
        self._n_lent = 0
        self._n_free = 0

    def has_room(self, n_bytes: int) -> bool:
        """Whether a block of so many bytes can be lent within the limit."""
        self._take_back()
        return self._n_lent + _block_bytes(n_bytes) <= self._bytes_max

    @property
    def is_scarce(self) -> bool:
        """Whether more than half of the limit is lent."""
        self._take_back()
        return self._n_lent * 2 > self._bytes_max

    def lend(self, n_bytes: int) -> Lease:
        """A block of at least so many bytes, whatever the limit says."""
        self._take_back()
        size = _block_bytes(n_bytes)
        if blocks := self._free.get(size):
            block = blocks.pop()
            self._n_free -= size
        else:
            if self._n_lent + self._n_free + size > self._bytes_max:
                # Blocks of other sizes have to make room.
                self.release()
            block = self._allocate(size)
        self._n_lent += size
        lease = Lease(block)
        ended = weakref.ref(lease, self._returned.append)
        self._lent[id(ended)] = ended, block
        return lease

    def release(self) -> None:
        """Lets go of the blocks that nobody has."""
        self._free.clear()
        self._n_free = 0

    def _take_back(self) -> None:
        while self._returned:
            _, block = self._lent.pop(id(self._returned.pop()))
            size = block.numel()
            self._n_lent -= size
            self._n_free += size
            self._free.setdefault(size, []).append(block)


def _block_bytes(n_bytes: int) -> int:
    return max(_BLOCK_BYTES_MIN, 1 << (n_bytes - 1).bit_length())
