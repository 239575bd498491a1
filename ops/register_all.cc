// The plugin org.thalweg.ops with all standard ops. Their order follows files.inc; it does not
// matter.
#include "ops/register.h"

namespace thalweg::ops {
#define OPS(family, name) void register_##name(tw::Plugin& p);
#include "ops/files.inc"
#undef OPS
}  // namespace thalweg::ops

TW_CPP_PLUGIN("org.thalweg.ops", "0.1.0", p) {
#define OPS(family, name) thalweg::ops::register_##name(p);
#include "ops/files.inc"
#undef OPS
}
