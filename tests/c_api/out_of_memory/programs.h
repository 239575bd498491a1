/* The programs and their shared helpers. Each makes objects, uses and releases them, and returns
 * its first failure. */
#ifndef OUT_OF_MEMORY_PROGRAMS_H
#define OUT_OF_MEMORY_PROGRAMS_H
#include <stddef.h>

#include "thalweg/thalweg.h"

/* lost: allocations that a library without out-of-memory handling leaks in one failure: a
 * message that protobuf was adding to a list, the parts of a table that LevelDB was opening. */
typedef struct program {
  const char* name;
  tw_status* (*run)(void);
  long lost;
} program;
#define PROGRAM(name, lost) {#name, name, lost}

/* Each list ends with an entry of NULLs. */
extern const program building_programs[], running_programs[], eager_programs[], training_programs[], saving_programs[];

extern tw_runtime* runtime; /* of all programs */
extern char folder[64];     /* for their files */

/* Stores the first failure of a program and jumps to its end; every object is NULL or valid, so
 * one exit path serves all. */
#define TRY(call)          \
  do {                     \
    status = (call);       \
    if (status) goto done; \
  } while (0)

/* Checks a condition that must hold with or without memory. */
#define EXPECT(condition)                                         \
  do {                                                            \
    if (!(condition)) unexpected(__FILE__, __LINE__, #condition); \
  } while (0)
void unexpected(const char* file, int line, const char* condition);

/* Accepts NULL, which a builder is when memory is out. */
tw_status* finish(tw_op* op, const tw_operation** out);

/* loss = mean((x w)^2). */
typedef struct net {
  tw_graph* graph;
  tw_session* session;
  tw_tensor* x;
  tw_output in, w, loss;
  const tw_operation *init, *train;
} net;

/* Adds operations that train w by its gradient; returns the operation to run. */
typedef const tw_operation* (*trainer)(tw_scope* scope, const tw_output* w, tw_gradient* gradient);

tw_status* make_net(net* n, trainer train, const char* container); /* train: NULL for none */
void end_net(net* n);
/* Runs a step that feeds x. out: NULL for no fetch. */
tw_status* run_target(net* n, const tw_operation* target, tw_output fetch, tw_tensor** out);
/* Makes the net, runs its initializer and two steps, and fetches the loss. */
tw_status* steps(trainer train, const char* container);

#endif
