"""Models: loading, describing, executing, dumping."""

from opscope._native.mdl import *  # noqa: F403
