"""`config.aclgraph_config`."""

from __future__ import annotations

from typing import Any

from opscope.torchair.configs._node import PlainNode


class AclGraphConfig(PlainNode):
    """Options of captured graphs that are not checked."""

    def __init__(self) -> None:
        self.use_custom_pool: Any = None
