# Sessions and prepared runs.

# options: "key=value", as tw_session_option lists them, such as "threads=2".
session <- function(g, ...) {
  options <- as.character(c(...))
  out <- raw(8)
  check(tw_session_create(expect(g, "thalweg_graph", "g"), texts(options), length(options), out))
  structure(list(handle = own(out, "thalweg_session"), graph = g), class = "thalweg_session_of")
}

# Empties a container of state: variables lose their values, queues, tables and the like are removed. The session can go on; its variables can
# be initialised again. container "": the session's default one, which is its graph's own unless the session has a target or the option
# "container". With a target, the container is emptied on every task. Returns the number of objects that it held.
reset_session <- function(x, container = "") {
  count <- raw(8)
  check(tw_session_reset(expect(x, "thalweg_session_of", "x")$handle, text(container, "the container"), count))
  peek(count, 0, "i64")
}

# A value that a run feeds, with the tensor, or what a tensor is made of.
feed <- function(x, value) {
  if (!inherits(value, "thalweg_tensor")) {
    d <- describe(x)
    value <- if (!is.array(value) && length(value) == 1 && length(d$dim) == 0) scalar(value, d$dtype) else tensor(value, d$dtype)
  }
  list(x = one(x, "x"), tensor = value)
}

signature_of <- function(feeds, fetches, targets) {
  record("tw_signature", feeds = ids(feeds), n_feeds = length(feeds), fetches = ids(fetches), n_fetches = length(fetches), targets = addresses(targets),
         n_targets = length(targets))
}

run_options <- function(timeout) {
  if (is.null(timeout)) return(NULL)
  if (!is.numeric(timeout) || length(timeout) != 1 || is.na(timeout) || timeout < 0) invalid("a timeout must be a number of seconds")
  record("tw_run_options", timeout_ns = max(1, floor(timeout * 1e9)))
}

run <- function(x, ...) UseMethod("run")

# Runs one step and returns the fetched tensors: one for one value, a list for a list. feeds: a list of feed(x, value). timeout: seconds.
run.thalweg_session_of <- function(x, fetches = list(), feeds = list(), targets = list(), timeout = NULL, ...) {
  single <- inherits(fetches, "thalweg_output")
  if (inherits(fetches, "thalweg_operation")) {
    targets <- c(list(fetches), as_list(targets))
    fetches <- list()
  }
  fetches <- as_list(fetches)
  targets <- as_list(targets)
  if (!is.null(names(feeds)) && all(c("x", "tensor") %in% names(feeds))) feeds <- list(feeds)
  for (f in feeds) if (!is.list(f) || !inherits(f$tensor, "thalweg_tensor")) invalid("feeds must be a list of feed(x, value)")
  tw_graph_count(x$graph)
  what <- signature_of(lapply(feeds, function(f) f$x), fetches, targets)
  out <- raw(8 * length(fetches))
  check(tw_session_run(x$handle, what, .Call(C_R_tensor_addresses, lapply(feeds, function(f) f$tensor), FALSE), run_options(timeout), out))
  found <- .Call(C_R_own_tensors, out)
  if (single) found[[1]] else if (length(found)) found else invisible(found)
}

# Prepares a run, whose feeds and fetches have an order. run(step, list(...)) takes a tensor for each feed and returns a list.
prepare <- function(x, feeds, fetches, targets = list()) {
  feeds <- as_list(feeds)
  fetches <- as_list(fetches)
  out <- raw(8)
  expect(x, "thalweg_session_of", "x")
  tw_graph_count(x$graph)
  check(tw_callable_create(x$handle, signature_of(feeds, fetches, as_list(targets)), out))
  structure(list(handle = own(out, "thalweg_callable", x$handle), session = x$handle, feeds = length(feeds), fetches = length(fetches)),
            class = "thalweg_step")
}

run.thalweg_step <- function(x, tensors = list(), ...) .Call(C_R_callable_run, x, tensors)

close.thalweg_session_of <- function(con, ...) close_object(con$handle)
close.thalweg_step <- function(con, ...) close_object(con$handle)
