#include <stdio.h>
#include <thalweg/thalweg.h>

int main(void) { /* y = x * x + 1, for x = 3 */
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  tw_tensor *three = NULL, *result = NULL;
  tw_status* status = tw_graph_create(NULL, &graph);
  tw_scope* s = tw_scope_create(graph, NULL);
  tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  tw_output y = tw_scope_op2(s, "Add", tw_scope_op2(s, "Mul", x, x), tw_scope_scalar(s, TW_FLOAT, 1));
  tw_status* built = tw_scope_finish(s);
  tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
  if (!status) status = built;
  if (!status) status = tw_session_create(graph, NULL, 0, &session);
  if (!status) status = tw_tensor_create_float(3, &three);
  if (!status) status = tw_session_run(session, &what, &three, NULL, &result);
  if (!status) printf("y = %g\n", *(const float*)tw_tensor_data(result));
  if (status) fprintf(stderr, "%s\n", tw_status_message(status));
  tw_tensor_release(three);
  tw_tensor_release(result);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  return status != NULL;
}
