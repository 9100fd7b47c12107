"""Media processing: memory and descriptions work, what reads or makes a picture says what to use instead."""

from opscope._native.media import *  # noqa: F403
