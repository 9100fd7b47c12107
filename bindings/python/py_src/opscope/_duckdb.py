"""Runs the statements on standard input in DuckDB, one a line, up to the first that fails.

`python -m opscope sql` starts this as a program of its own, which it can end at any moment.
"""

from __future__ import annotations

import sys


def main() -> None:
    # Modules of the package beside this file have names of others, as `torch`.
    del sys.path[0]
    import duckdb

    # Otherwise names in a question might be variables of Python.
    connection = duckdb.connect(config={"python_enable_replacements": "false"})
    for statement in sys.stdin.buffer:
        try:
            connection.execute(statement.decode())
        except duckdb.Error as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
