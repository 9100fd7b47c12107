"""Media processing: memory and descriptions work; functions on images name a replacement."""

from opscope._native.media import *  # noqa: F403
