/* Variables: assigned values are read by every graph and session that share the container; other
 * shapes are refused. */
#include "check.h"

/* A graph with one variable 'w' of n elements, all n, in a container. */
typedef struct variable {
  tw_graph* graph;
  tw_session* session;
  tw_output w, twice; /* the value of 'w', times two */
  const tw_operation *init, *destroy;
} variable;

static variable new_variable(int64_t n, const char* container) {
  variable v = {0};
  OK(tw_graph_create(NULL, &v.graph));
  tw_scope* s = tw_scope_create(v.graph, NULL);
  const int32_t dims[] = {(int32_t)n};
  v.w = tw_variable_create(s, "w", tw_scope_op2(s, "Fill", tw_scope_ints(s, dims, 1), tw_scope_scalar(s, TW_FLOAT, (double)n)));
  v.init = tw_variable_initializer(s, "init");
  const tw_output value = tw_variable_read(s, v.w);
  v.twice = tw_scope_op2(s, "Add", value, value);
  tw_op* destroy = tw_scope_begin(s, "DestroyResourceOp", NULL);
  tw_op_add_input(destroy, v.w);
  v.destroy = tw_scope_end_operation(s, destroy);
  OK(tw_scope_finish(s));
  const char* options[] = {container, "max_shape_plans=1"};
  OK(tw_session_create(v.graph, options, 2, &v.session));
  return v;
}

static tw_status* read_twice(const variable* v, float* out) {
  tw_tensor* t = NULL;
  const tw_signature what = {.size = sizeof what, .fetches = &v->twice, .n_fetches = 1};
  tw_status* s = tw_session_run(v->session, &what, NULL, NULL, &t);
  *out = as_float(t);
  return s;
}

static void free_variable(variable* v) {
  tw_session_destroy(v->session);
  tw_graph_destroy(v->graph);
}

static void VariablesAreAssigned(void) {
  variable v = new_variable(3, "container=assigned");
  tw_scope* s = tw_scope_create(v.graph, NULL);
  const tw_operation* assign = tw_variable_assign(s, v.w, v.twice);
  OK(tw_scope_finish(s));
  run(v.session, v.init);
  float got = 0;
  for (int i = 1; i <= 3; ++i) {
    run(v.session, assign);
    OK(read_twice(&v, &got));
    CHECK(got == 6 * (float)(1 << i));
  }
  free_variable(&v);
}

static void AVariableOfAnotherGraphsShapeIsNotRead(void) {
  const int64_t sizes[] = {3, 300000};
  variable v[2];
  for (int i = 0; i < 2; ++i) v[i] = new_variable(sizes[i], "container=shared_name");
  float got = 0;
  for (int i = 0; i < 4; ++i) {
    const int k = i % 2;
    run(v[k].session, v[k].init);
    OK(read_twice(&v[k], &got));
    CHECK(got == 2 * (float)sizes[k]);
    if (i)
      FAILS(read_twice(&v[!k], &got), TW_INVALID_ARGUMENT,
            k ? "holds [300000], but this graph declares [3]" : "holds [3], but this graph declares [300000]");
  }
  for (int i = 0; i < 2; ++i) free_variable(&v[i]);
}

/* The second shape of the feed uses the plan for any shape, made after the graph was checked. */
static void AnAssignmentOfAnotherShapeIsRefusedUnderThePlanForAnyShape(void) {
  variable v = new_variable(3, "container=any_shape");
  tw_scope* s = tw_scope_create(v.graph, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, -1);
  const tw_operation* assign = tw_variable_assign(s, v.w, x);
  OK(tw_scope_finish(s));
  run(v.session, v.init);
  const float values[] = {5, 6, 7, 8};
  const tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .targets = &assign, .n_targets = 1};
  for (int64_t n = 3; n <= 4; ++n) {
    tw_tensor* t = floats(&n, 1, values);
    if (n == 3) {
      OK(tw_session_run(v.session, &what, &t, NULL, NULL));
    } else {
      FAILS(tw_session_run(v.session, &what, &t, NULL, NULL), TW_INVALID_ARGUMENT, "[4]");
    }
    tw_tensor_release(t);
    float got = 0;
    OK(read_twice(&v, &got));
    CHECK(got == 10);
  }
  free_variable(&v);
}

/* Both sessions made their handles before. */
static void OldHandlesLeadToAVariableThatIsMadeAgain(void) {
  variable a = new_variable(3, "container=again"), b = new_variable(3, "container=again");
  float got = 0;
  run(a.session, a.init);
  OK(read_twice(&b, &got));
  for (int round = 0; round < 2; ++round) {
    run(a.session, a.destroy);
    FAILS(read_twice(&a, &got), TW_FAILED_PRECONDITION, "'w' is not initialised");
    FAILS(read_twice(&b, &got), TW_FAILED_PRECONDITION, "'w' is not initialised");
    run(b.session, b.init);
    for (int i = 0; i < 2; ++i) {
      OK(read_twice(i ? &a : &b, &got));
      CHECK(got == 6);
    }
    variable late = new_variable(3, "container=again");
    OK(read_twice(&late, &got));
    CHECK(got == 6);
    free_variable(&late);
  }
  free_variable(&a);
  free_variable(&b);
}

MAIN(TEST(VariablesAreAssigned), TEST(AVariableOfAnotherGraphsShapeIsNotRead),
     TEST(AnAssignmentOfAnotherShapeIsRefusedUnderThePlanForAnyShape), TEST(OldHandlesLeadToAVariableThatIsMadeAgain))
