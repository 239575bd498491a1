/* Steps over several processes. Each of `servers` parameter servers is a process with one
 * variable; the worker, which is this process, sums the first elements of all variables. Another
 * step gathers 32 rows of a server's table. */
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "thalweg_worker.h"

enum { kMostServers = 16, kClusters = 8, kRows = 32, kColumns = 64 };

extern char** environ;

typedef struct cluster {
  int servers;
  long long bytes; /* of each variable */
  int table;       /* true: the step gathers rows of it */
  pid_t processes[kMostServers];
  tw_server* self;
  tw_session* session;
  const tw_operation* init;
  prepared step;
} cluster;

static int free_port(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(fd, (struct sockaddr*)&at, size) != 0 || getsockname(fd, (struct sockaddr*)&at, &size) != 0) worker_fail("no free port");
  close(fd);
  return ntohs(at.sin_port);
}

/* Finds bin/thalweg beside the folder of this program. */
static void program_path(char* path, size_t size) {
  const ssize_t n = readlink("/proc/self/exe", path, size - 20);
  if (n <= 0) worker_fail("cannot find this program");
  path[n] = '\0';
  for (int up = 0; up < 2; ++up) *strrchr(path, '/') = '\0';
  strcat(path, "/bin/thalweg");
}

static pid_t start_server(const char* config, int task) {
  static char path[4096], environment[8192], index[16];
  program_path(path, sizeof path);
  char* words[] = {path, "worker", "--job", "ps", "--task", index, "--threads", "1", NULL};
  char* with[256] = {environment};
  int pipe_ends[2], n = 1;
  pid_t pid;
  char line[256];
  snprintf(index, sizeof index, "%d", task);
  snprintf(environment, sizeof environment, "TF_CONFIG=%s", config);
  for (char** e = environ; *e && n < 255; ++e) with[n++] = *e;
  if (pipe(pipe_ends) != 0) worker_fail("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  if (posix_spawn(&pid, path, &actions, NULL, words, with) != 0) worker_fail("cannot start '%s'", path);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  FILE* out = fdopen(pipe_ends[0], "r");
  if (!out || !fgets(line, sizeof line, out)) worker_fail("server %d did not come up", task);
  fclose(out);
  return pid;
}

static tw_output variable_on(tw_scope* s, int task, const cluster* c, tw_operation const** out_init) {
  const int64_t dims[] = {c->table ? c->bytes / (kColumns * 4) : c->bytes / 4, kColumns};
  const int32_t shape[] = {(int32_t)dims[0], kColumns};
  const int32_t rank = c->table ? 2 : 1;
  char device[64], name[64];
  snprintf(device, sizeof device, "/job:ps/task:%d", task);
  const int length = snprintf(name, sizeof name, "value%d", task);
  tw_op* handle = tw_scope_begin(s, "VarHandleOp", NULL);
  tw_op_set_type(handle, "dtype", TW_FLOAT);
  tw_op_set_shape(handle, "shape", dims, rank);
  tw_op_set_string(handle, "shared_name", name, (uint64_t)length);
  tw_op_set_device(handle, device);
  const tw_output variable = tw_scope_end(s, handle);
  tw_op* fill = tw_scope_begin(s, "Fill", NULL);
  tw_op_add_input(fill, tw_scope_ints(s, shape, (uint32_t)rank));
  tw_op_add_input(fill, tw_scope_scalar(s, TW_FLOAT, task + 1));
  tw_op_set_device(fill, device);
  tw_op* assign = tw_scope_begin(s, "AssignVariableOp", NULL);
  tw_op_add_input(assign, variable);
  tw_op_add_input(assign, tw_scope_end(s, fill));
  *out_init = tw_scope_end_operation(s, assign);
  return variable;
}

static tw_output first_of(tw_scope* s, tw_output value) {
  static const int32_t zero[] = {0}, one[] = {1};
  tw_op* slice = tw_scope_begin(s, "Slice", NULL);
  tw_op_add_input(slice, value);
  tw_op_add_input(slice, tw_scope_ints(s, zero, 1));
  tw_op_add_input(slice, tw_scope_ints(s, one, 1));
  tw_op_set_device(slice, "/job:worker/task:0");
  return tw_scope_end(s, slice);
}

/* Builds the step's result: the sum of all first elements, or the rows. */
static tw_output build(tw_scope* s, const cluster* c, tw_output* out_rows, const tw_operation** inits) {
  const int64_t dims[] = {kRows};
  tw_output firsts[kMostServers];
  for (int i = 0; i < c->servers; ++i) {
    const tw_output variable = variable_on(s, i, c, &inits[i]);
    tw_op* read = tw_scope_begin(s, c->table ? "ResourceGather" : "ReadVariableOp", NULL);
    tw_op_add_input(read, variable);
    if (c->table) tw_op_add_input(read, *out_rows = tw_scope_placeholder(s, "rows", TW_INT64, dims, 1));
    tw_op_set_type(read, "dtype", TW_FLOAT);
    const tw_output value = tw_scope_end(s, read);
    if (c->table) return tw_scope_op1(s, "Identity", value);
    firsts[i] = first_of(s, value);
  }
  tw_op* sum = tw_scope_begin(s, "AddN", NULL);
  tw_op_add_inputs(sum, firsts, (uint32_t)c->servers);
  tw_op_set_device(sum, "/job:worker/task:0");
  return tw_scope_end(s, sum);
}

static void make_step(cluster* c, const char* target) {
  const tw_operation* inits[kMostServers];
  tw_graph* graph;
  tw_output rows = 0;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output result = build(s, c, &rows, inits);
  check(tw_scope_finish(s));
  c->session = open_session(graph, target);
  const tw_signature init = {.size = sizeof init, .targets = inits, .n_targets = (uint32_t)c->servers};
  check(tw_session_run(c->session, &init, NULL, NULL, NULL));
  const tw_signature what = {.size = sizeof what, .feeds = &rows, .n_feeds = (uint32_t)c->table, .fetches = &result, .n_fetches = 1};
  check(tw_callable_create(c->session, &what, &c->step.callable));
  c->step.n_fetches = 1;
  if (c->table) {
    int64_t which[kRows];
    for (int i = 0; i < kRows; ++i) which[i] = (int64_t)((uint32_t)(i + 1) * 2654435761u) % (c->bytes / (kColumns * 4));
    check(tw_tensor_create_copy(TW_INT64, (const int64_t[]){kRows}, 1, which, sizeof which, &c->step.feeds[0]));
  }
}

static void start(cluster* c) {
  char config[4096] = "{\"cluster\": {\"ps\": [";
  int ports[kMostServers + 1];
  for (int i = 0; i <= c->servers; ++i) ports[i] = free_port();
  for (int i = 0; i < c->servers; ++i)
    snprintf(config + strlen(config), sizeof config - strlen(config), "%s\"127.0.0.1:%d\"", i ? ", " : "", ports[i]);
  snprintf(config + strlen(config), sizeof config - strlen(config), "], \"worker\": [\"127.0.0.1:%d\"]}}", ports[c->servers]);
  for (int i = 0; i < c->servers; ++i) c->processes[i] = start_server(config, i);
  check(tw_server_create(runtime, config, "worker", 0, NULL, 0, &c->self));
  check(tw_server_start(c->self));
  char target[64];
  snprintf(target, sizeof target, "target=127.0.0.1:%d", ports[c->servers]);
  make_step(c, target);
  tw_tensor* got;
  check(tw_callable_run(c->step.callable, c->step.feeds, NULL, &got));
  const double value = (double)*(const float*)tw_tensor_data(got), want = c->table ? 1 : c->servers * (c->servers + 1) / 2.0;
  tw_tensor_release(got);
  if (value < want || value > want) worker_fail("the step answered %g instead of %g", value, want);
}

static cluster clusters[kClusters];

static void stop(cluster* c) {
  tw_callable_destroy(c->step.callable);
  tw_tensor_release(c->step.feeds[0]);
  tw_session_destroy(c->session);
  for (int i = 0; i < c->servers; ++i) {
    if (c->processes[i] > 0) kill(c->processes[i], SIGKILL), waitpid(c->processes[i], NULL, 0); /* 0: it did not start */
  }
  tw_server_destroy(c->self);
  memset(c, 0, sizeof *c);
}
static void stop_all(void) {
  for (int i = 0; i < kClusters; ++i)
    if (clusters[i].servers) stop(&clusters[i]);
}

static void answer(const char* argument, int table) {
  static int registered;
  int servers, samples;
  long long bytes;
  if (sscanf(argument, "%d %lld %d", &servers, &bytes, &samples) != 3 || servers > kMostServers) worker_fail("SERVERS BYTES SAMPLES");
  if (!registered++) atexit(stop_all);
  cluster* c = clusters;
  while (c->servers && (c->servers != servers || c->bytes != bytes || c->table != table)) ++c;
  if (c == clusters + kClusters - 1) worker_fail("too many clusters");
  if (!c->servers) {
    *c = (cluster){.servers = servers, .bytes = bytes, .table = table};
    start(c);
  }
  worker_reply_time(run_prepared, &c->step, samples, 1, 1);
}

void answer_cluster(const char* argument) { answer(argument, 0); }
void answer_cluster_rows(const char* argument) { answer(argument, 1); }
void answer_cluster_stop(const char* argument) {
  (void)argument;
  stop_all();
  worker_reply("0");
}
