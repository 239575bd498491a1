/* Graph rewriters: a plugin that replaces nodes by nodes of its own, such as a pattern of standard
 * ops by one op of the plugin.
 *
 * While a plan is made, the host shows the nodes of the plan to `rewrite`. At that time shapes are
 * inferred, constants are computed and equal nodes are merged; devices are not chosen yet. The
 * plugin passes substitutions to the host: nodes that go, nodes that come, and the values that
 * stand for those of the nodes that go. The host applies each substitution at once and as a whole, or
 * refuses it and changes nothing. Devices and kernels are chosen for new nodes as for all others.
 * If a rewriter changed something, the host shows it the new plan, at most 16 times, so that one
 * rule can build on the result of another. Rewriters run in the order of plugin ids, then names.
 *
 * A rewriter changes plans only. The program's graph stays as it is: its names, feeds, fetches,
 * gradients and checkpoints. A rewritten plan must compute the same values, up to rounding, and have
 * the same effects. If rewrite fails, the host logs the failure; substitutions that it applied
 * before stay. The session option disable_pass=rewrite turns all rewriters off.
 *
 * Not shown: nodes that touch files, network or system, nodes that run once in a session, nodes that
 * exchange values with other processes, and plans with control flow of primitives (Switch, Merge).
 * The results of nodes that are not shown are inputs of the part. Bodies of functions are plans of
 * their own, unless they were inlined.
 * Threads: rewrite runs on any thread, several at once, and may block. */
#ifndef THALWEG_PLUGIN_REWRITER_H
#define THALWEG_PLUGIN_REWRITER_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/compiler.h"
#include "thalweg/plugin/role.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The version of the role that this header declares; see role.h. */
enum {
  TW_REWRITER_MAJOR = 1,
  TW_REWRITER_MINOR = 0 /* newest minor */
};

/* A node that a substitution adds. Added node k has the number part->n_nodes + k. */
typedef struct tw_added_node {
  TW_HEAD;
  TW_TEXT(op);
  /* n_attrs; attributes that have a default, or follow from the types of the inputs, may be left
   * out. */
  const tw_attr* attrs;
  /* n_in flat values, as in tw_part_node: of a node of the part, an input of the part (node -1), or
   * an added node that comes before. */
  const tw_part_edge* in;
  uint32_t n_attrs, n_in;
} tw_added_node;

typedef struct tw_substitution {
  TW_HEAD;
  TW_TEXT(rule);                     /* its name in reports: "x * Sigmoid(x) is Swish" */
  const uint32_t* nodes;             /* n_nodes nodes of the part that go, at least one, each once */
  const tw_added_node* const* added; /* n_added; each reads only what comes before it */
  /* n_values pairs: new_values[i] stands for old_values[i], an output of a node that goes. It is an
   * output of an added node, or of a node that stays, or an input of the part, and has the same type
   * and shape. Each value that a node that stays reads, or that is fetched, must be there; others
   * may be left out. */
  const tw_part_edge *old_values, *new_values;
  uint32_t n_nodes, n_added, n_values, reserved;
} tw_substitution;

/* Receives the substitutions of one call of rewrite. Valid only inside that call. */
typedef struct tw_rewriting {
  TW_HEAD;
  /* Applies a substitution. The records of the part stay as they were, so that a later substitution
   * of the call may name a value of a node that went: it then means what stands for it. Added nodes
   * wait for what the nodes that go waited for (control inputs), and what waited for these waits for
   * the added nodes. They take device and colocation of the first node that goes. An added node may
   * read or update a variable only if it stands for a node that did.
   * Errors: INVALID_ARGUMENT for a record that breaks the rules above, for an unknown op, for
   * attributes and types that the op does not take. FAILED_PRECONDITION if the substitution is sound
   * but cannot be used in this plan: no device has a kernel, a node would wait for itself, a shape
   * cannot be inferred as before, the op touches files, network or system. The plan's report
   * (`thalweg inspect --plan`) has each refusal; the rewriter may go on with other substitutions. */
  TW_R tw_status* (*substitute)(struct tw_rewriting* r, const tw_substitution* s);
  /* Reports why a node is left, for `thalweg inspect --plan`. Errors: INVALID_ARGUMENT for a node
   * that does not exist. */
  TW_R tw_status* (*refuse)(struct tw_rewriting* r, uint32_t node, const char* why, uint64_t len);
} tw_rewriting;

typedef struct tw_rewriter_def {
  TW_HEAD;
  TW_TEXT(name); /* for reports; unique within a plugin */
  void* user;
  /* Looks at the nodes of a plan and passes substitutions to `to`. part: borrowed; its nodes have no
   * device yet. A part without nodes is not shown. */
  TW_R tw_status* (*rewrite)(const tw_host* h, void* user, const tw_part* part, tw_rewriting* to);
} tw_rewriter_def;

/* Registers a definition of the role "rewriter", as tw_add_role. `d` uses what the role had in minor
 * 0. */
static inline tw_status* tw_add_rewriter(tw_registrar* r, const tw_rewriter_def* d) {
  return tw_add_role(r, TW_S("rewriter"), TW_REWRITER_MAJOR, 0, 0, d);
}

#ifdef __cplusplus
}
#endif
#endif
