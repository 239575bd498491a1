"""The rows, in order. Each is a module with NUMBER, TITLE and run(bench)."""
from . import add_chain, cold_start, empty_step, mlp_step, noop_chain, sizes

ROWS = {row.NUMBER: row for row in (empty_step, noop_chain, add_chain, mlp_step, cold_start, sizes)}
