"""The runtime: devices, contexts, streams, events and memory."""

from opscope._native.rt import *  # noqa: F403
