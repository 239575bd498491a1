// Measures the cost of calling a kernel across the plugin ABI. usage: boundary_worker THREADS
#include "boundary_worker.h"

namespace {

void AnswerLoad(const char* plugin) {
  LoadKernels(plugin);
  LoadIntoRuntime(plugin);
  worker_reply("%d", 1);
}

}  // namespace

int main() {
  static const worker_command commands[] = {
      {"load", AnswerLoad},
      {"bare_call", AnswerBareCall},
      {"sugar_call", AnswerSugarCall},
      {"virtual_call", AnswerVirtualCall},
      {"bare_calls", AnswerBareCalls},
      {"sugar_calls", AnswerSugarCalls},
      {"virtual_calls", AnswerVirtualCalls},
      {"bare_plan", AnswerBarePlan},
      {"sugar_plan", AnswerSugarPlan},
      {"empty_plan", AnswerEmptyPlan},
      {"built_in_plan", AnswerBuiltInPlan},
      {nullptr, nullptr},
  };
  worker_serve(commands);
  return 0;
}
