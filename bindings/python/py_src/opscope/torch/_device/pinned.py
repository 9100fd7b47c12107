"""Host memory that devices write to, lent in blocks."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import torch

# Block sizes are powers of two, so that one fits many tensors.
_BLOCK_BYTES_MIN = 4096


class Lease:
    """A block of memory, returned when this object is collected."""

    __slots__ = ("block", "__weakref__")

    def __init__(self, block: torch.Tensor) -> None:
        self.block = block


class PinnedPool:
    """Blocks of at most `bytes_max` bytes in total, unless a single tensor takes more."""

    def __init__(self, bytes_max: int, allocate: Callable[[int], torch.Tensor]) -> None:
        self._bytes_max = bytes_max
        self._allocate = allocate
        self._free: dict[int, list[torch.Tensor]] = {}
        # Lent blocks, each with a weak reference to its lease. A lease may be released by any
        # thread at any moment, even during Ctrl-C, so only the weak reference records it, without a
        # lock.
        self._lent: dict[int, tuple[weakref.ref[Lease], torch.Tensor]] = {}
        self._returned: list[weakref.ref[Lease]] = []
        # Bytes of lent blocks, and of free ones.
        self._n_lent = 0
        self._n_free = 0

    def has_room(self, n_bytes: int) -> bool:
        """Whether a block of so many bytes is within the limit."""
        self._take_back()
        return self._n_lent + _block_bytes(n_bytes) <= self._bytes_max

    @property
    def is_scarce(self) -> bool:
        """Whether more than half of the limit is lent."""
        self._take_back()
        return self._n_lent * 2 > self._bytes_max

    def lend(self, n_bytes: int) -> Lease:
        """A block of at least so many bytes, regardless of the limit."""
        self._take_back()
        size = _block_bytes(n_bytes)
        if blocks := self._free.get(size):
            block = blocks.pop()
            self._n_free -= size
        else:
            if self._n_lent + self._n_free + size > self._bytes_max:
                # Frees blocks of other sizes to make room.
                self.release()
            block = self._allocate(size)
        self._n_lent += size
        lease = Lease(block)
        ended = weakref.ref(lease, self._returned.append)
        self._lent[id(ended)] = ended, block
        return lease

    def release(self) -> None:
        """Releases the free blocks."""
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
