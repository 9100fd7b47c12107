"""Single operators."""

from opscope._native.op import *  # noqa: F403
