"""The rows, in order. Each is a module with NUMBER, TITLE and run(bench)."""
from . import (add_chain, boundary, checkpoint, cluster_bytes, cluster_fetch, cluster_rows, cluster_step, cold_start, control_flow,
               convolution, copies, crowd, elementwise, embedding, empty_graph, empty_loop, empty_step, extend, first_step, graph_load,
               handoff, heap_calls, loop_overlap, lstm, matmul, mlp_step, noop_chain, null_device, opencl, plugin_load, sizes, swapping,
               ucx, wide_graph, wide_graph_idle)

ROWS = {row.NUMBER: row for row in (
    empty_step, noop_chain, add_chain, wide_graph, wide_graph_idle, matmul, convolution, elementwise, mlp_step, lstm, embedding,
    heap_calls, cluster_step, cluster_fetch, cluster_rows, cluster_bytes, ucx, checkpoint, graph_load, cold_start, sizes,
    plugin_load, empty_graph, first_step, boundary, null_device, opencl, empty_loop, handoff, loop_overlap, control_flow, swapping, extend,
    copies, crowd)}
