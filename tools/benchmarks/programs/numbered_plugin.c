/* A plugin whose number is patched into its bytes: row 28 puts two hundred copies into one
 * folder. */
#include "thalweg/plugin/plugin.h"

static tw_status* execute(const tw_frame* f) {
  (void)f;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("Numbered000000(x: T[*s]) -> (y: T[*s]); T: {float, double}"), NULL, NULL, NULL};
  const tw_kernel_def kernel = {TW_SIZED(tw_kernel_def), TW_S("Numbered000000(float) @CPU"), NULL, NULL, execute, NULL, NULL};
  (void)h, (void)out_instance;
  TW_TRY(tw_add_op(r, &op));
  return tw_add_kernel(r, &kernel);
}
TW_PLUGIN("org.thalweg.numbered.000000", "1.0", init)
