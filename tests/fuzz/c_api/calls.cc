// Lists every exported function with the lines that call it: of graph_calls.h, session_calls.h and
// value_calls.h if they have some, else by its types.
#include "tests/fuzz/c_api/graph_calls.h"
#include "tests/fuzz/c_api/session_calls.h"
#include "tests/fuzz/c_api/special.h"
#include "tests/fuzz/c_api/value_calls.h"

namespace thalweg::fuzz {

// ---- Endings ----

#define ENDS(function, type) \
  SPECIAL(function) { p.Finish(p.Handle<type>()); }
ENDS(tw_runtime_release, tw_runtime)
ENDS(tw_graph_destroy, tw_graph)
ENDS(tw_op_destroy, tw_op)
ENDS(tw_block_destroy, tw_block)
ENDS(tw_session_destroy, tw_session)
ENDS(tw_server_destroy, tw_server)
ENDS(tw_callable_destroy, tw_callable)
ENDS(tw_partial_run_destroy, tw_partial_run)
ENDS(tw_cancel_token_destroy, tw_cancel_token)
ENDS(tw_tensor_release, tw_tensor)
ENDS(tw_buffer_release, tw_buffer)
ENDS(tw_status_release, tw_status)
ENDS(tw_ops_destroy, tw_ops)
ENDS(tw_devices_destroy, tw_devices)
ENDS(tw_plugins_destroy, tw_plugins)
ENDS(tw_variables_destroy, tw_variables)
ENDS(tw_checkpoint_close, tw_checkpoint)
ENDS(tw_saver_destroy, tw_saver)
ENDS(tw_checkpointer_destroy, tw_checkpointer)
ENDS(tw_iterator_destroy, tw_iterator)
ENDS(tw_model_destroy, tw_model)
ENDS(tw_record_writer_destroy, tw_record_writer)
ENDS(tw_summary_writer_destroy, tw_summary_writer)
ENDS(tw_lbfgs_destroy, tw_lbfgs)
ENDS(tw_step_stats_destroy, tw_step_stats)
ENDS(tw_restore_report_destroy, tw_restore_report)
ENDS(tw_spread_destroy, tw_spread)
ENDS(tw_sync_destroy, tw_sync)
ENDS(tw_tape_destroy, tw_tape)
ENDS(tw_eager_destroy, tw_eager)
ENDS(tw_trainer_destroy, tw_trainer)

#define RETAINS(function, type) \
  SPECIAL(function) {           \
    type* t = p.Handle<type>(); \
    function(t);                \
    p.Keep(t);                  \
  }
RETAINS(tw_runtime_retain, tw_runtime)
RETAINS(tw_tensor_retain, tw_tensor)
RETAINS(tw_buffer_retain, tw_buffer)

const std::map<std::string_view, Function>& Functions() {
  static const std::map<std::string_view, Function> functions = {
#define SYMBOL(name) {#name, Run<&name>},
#include "c_api_symbols.inc"
#undef SYMBOL
  };
  return functions;
}

}  // namespace thalweg::fuzz
