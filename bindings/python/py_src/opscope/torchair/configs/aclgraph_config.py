"""`config.aclgraph_config`."""

from __future__ import annotations

from typing import Any

from opscope.torchair.configs._node import PlainNode


class AclGraphConfig(PlainNode):
    """Unchecked options of captured graphs."""

    def __init__(self) -> None:
        self.use_custom_pool: Any = None
