/* The programs, and what they share. Each makes things, uses them and lets them go, and answers its first failure. */
#ifndef OUT_OF_MEMORY_PROGRAMS_H
#define OUT_OF_MEMORY_PROGRAMS_H
#include <stddef.h>

#include "thalweg/thalweg.h"

/* lost: pieces of memory that a library which knows no failing heap loses in one failure: a message that protobuf was about to add to a
 * list, the parts of a table that LevelDB was opening. */
typedef struct program {
  const char* name;
  tw_status* (*run)(void);
  long lost;
} program;
#define PROGRAM(name, lost) {#name, name, lost}

/* Each ends with an entry of NULLs. */
extern const program building_programs[], running_programs[], training_programs[], saving_programs[];

extern tw_runtime* runtime; /* of all programs */
extern char folder[64];     /* for their files */

/* The first failure of a program; what it made is NULL or right, so that one way out serves all. */
#define TRY(call)          \
  do {                     \
    status = (call);       \
    if (status) goto done; \
  } while (0)

/* What holds whether memory is short or not. */
#define EXPECT(condition)                                         \
  do {                                                            \
    if (!(condition)) unexpected(__FILE__, __LINE__, #condition); \
  } while (0)
void unexpected(const char* file, int line, const char* condition);

/* A builder is NULL when memory is out. */
tw_status* finish(tw_op* op, const tw_operation** out);

/* loss = mean((x w)^2). */
typedef struct net {
  tw_graph* graph;
  tw_session* session;
  tw_tensor* x;
  tw_output in, w, loss;
  const tw_operation *init, *train;
} net;

/* Adds what trains w by its gradient; answers the operation to run. */
typedef const tw_operation* (*trainer)(tw_scope* scope, const tw_output* w, tw_gradient* gradient);

tw_status* make_net(net* n, trainer train, const char* container); /* train: NULL for none */
void end_net(net* n);
/* A run that feeds x. out: NULL for no fetch. */
tw_status* run_target(net* n, const tw_operation* target, tw_output fetch, tw_tensor** out);
/* The net, its initializer, two steps, the loss. */
tw_status* steps(trainer train, const char* container);

#endif
