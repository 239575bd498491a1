# Models from files, servers, and what belongs to no object.

# Loads a model file or folder: ONNX, a SavedModel, or what else a plugin imports. options: "key=value" of the session.
load_model <- function(path, ...) {
  options <- as.character(c(...))
  out <- raw(8)
  check(tw_model_load(NULL, text(path, "the path"), record("tw_model_options", session_options = texts(options), n_session_options = length(options)), out))
  own(out, "thalweg_model")
}

values_in <- function(list, n) {
  lapply(seq_len(n) - 1, function(i) {
    v <- record_at("tw_model_value", peek(list, 8 * i, "p"))
    list(name = get_field(v, "name", "text"), dtype = dtype_name(get_field(v, "dtype")), dim = shape_of(record_at("tw_shape", get_field(v, "shape"))),
         optional = get_field(v, "is_optional") != 0)
  })
}
signature_at <- function(address) {
  s <- record_at("tw_model_signature", address)
  list(name = get_field(s, "name", "text"), inputs = values_in(get_field(s, "inputs"), get_field(s, "n_inputs")),
       outputs = values_in(get_field(s, "outputs"), get_field(s, "n_outputs")))
}

# The ways to run a model.
signatures <- function(model) {
  lapply(seq_len(tw_model_signature_count(expect(model, "thalweg_model", "model"))) - 1, function(i) signature_at(tw_model_signature_at(model, i)))
}

# Runs a signature by the names in the file: run(model, list(image = x)). signature: NULL is the default one. timeout: seconds.
run.thalweg_model <- function(x, inputs = list(), signature = NULL, timeout = NULL, ...) {
  if (!is.list(inputs) || length(inputs) && is.null(names(inputs))) invalid("inputs must be a list with names")
  name <- if (!is.null(signature)) text(signature, "a signature")
  out <- raw(8)
  check(tw_model_find(x, name, out))
  s <- signature_at(peek(out, 0, "p"))
  known <- vapply(s$inputs, function(v) v$name, "")
  for (key in setdiff(names(inputs), known)) invalid("signature '", s$name, "' has no input '", key, "'; it has: ", paste(known, collapse = ", "))
  dtypes <- vapply(s$inputs, function(v) v$dtype, "")
  given <- lapply(seq_along(known), function(i) {
    value <- inputs[[known[[i]]]]
    if (is.null(value)) NULL else tensor(value, dtypes[[i]])
  })
  found <- raw(8 * length(s$outputs))
  check(tw_model_run(x, name, .Call(C_R_tensor_addresses, given, TRUE), run_options(timeout), found))
  stats::setNames(.Call(C_R_own_tensors, found), vapply(s$outputs, function(v) v$name, ""))
}

# One task of a cluster in this process. cluster: JSON such as {"worker": ["grpc:host:2222"]}. job: NULL means the JSON's task.
server <- function(cluster, job = NULL, task = 0, ...) {
  options <- as.character(c(...))
  out <- raw(8)
  check(tw_server_create(NULL, text(cluster, "the cluster"), if (!is.null(job)) text(job, "the job"), task, texts(options), length(options), out))
  own(out, "thalweg_server")
}
server_start <- function(server) check(tw_server_start(expect(server, "thalweg_server", "server")))
# Ends the steps that run here and stops listening.
server_stop <- function(server) check(tw_server_stop(expect(server, "thalweg_server", "server")))
server_address <- function(server) {
  out <- raw(8)
  check(tw_server_address(expect(server, "thalweg_server", "server"), out))
  take_text(out)
}

# Empties a container of this process without a session, as reset_session does. container "": localhost.
reset_container <- function(container = "") {
  count <- raw(8)
  check(tw_runtime_reset(NULL, text(container, "the container"), count))
  peek(count, 0, "i64")
}

# The same on every task of a cluster. target: the address of any task. timeout: seconds within which tasks must answer. ...: options as of a
# session, such as "insecure=true". If a task does not answer, the condition names it, all others have emptied theirs, and the call may be
# repeated.
reset_cluster <- function(target, container = "", timeout = 5, ...) {
  if (!is.numeric(timeout) || length(timeout) != 1 || is.na(timeout) || timeout <= 0) invalid("a timeout must be a number of seconds above 0")
  options <- c(paste0("target=", text(target, "the target")), as.character(c(...)))
  count <- raw(8)
  check(tw_cluster_reset(NULL, texts(options), length(options), text(container, "the container"), ceiling(timeout * 1e9), count))
  peek(count, 0, "i64")
}

# The version of the library.
library_version <- function() tw_version_string()

devices <- function() {
  out <- raw(8)
  check(tw_devices_create(NULL, out))
  list <- peek(out, 0, "p")
  on.exit(tw_devices_destroy(list))
  vapply(seq_len(tw_devices_count(list)) - 1, function(i) tw_devices_name(list, i), "")
}

# Loads a plugin that the runtime does not find by itself.
load_plugin <- function(path) check(tw_plugin_load(NULL, text(path, "the path")))

# The help of an op: op_help("MatMul") is ?MatMul.
op_help <- function(name) utils::help(paste0("op-", text(name)), package = "thalweg")
