"""Runs the statements on standard input in DuckDB, one per line, up to the first failure.

`python -m opscope sql` starts this as a separate process, which it can end at any moment.
"""

from __future__ import annotations

import sys


def main() -> None:
    # Modules of the package next to this file have the same names as others, such as `torch`.
    del sys.path[0]
    import duckdb

    # Otherwise names in a query could refer to Python variables.
    connection = duckdb.connect(config={"python_enable_replacements": "false"})
    for statement in sys.stdin.buffer:
        try:
            connection.execute(statement.decode())
        except duckdb.Error as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
