# Graphs, their values, and scopes, which add operations.

new_graph <- function() {
  out <- raw(8)
  check(tw_graph_create(NULL, out))
  own(out, "thalweg_graph")
}

# A graph of a serialised GraphDef, and back.
graph_import <- function(bytes) {
  if (!is.raw(bytes)) invalid("a graph is imported from raw bytes")
  g <- new_graph()
  check(tw_graph_import(g, bytes, length(bytes), NULL))
  g
}
graph_export <- function(g) {
  out <- raw(8)
  check(tw_graph_export(expect(g, "thalweg_graph", "g"), out))
  take_buffer(out)
}

length.thalweg_graph <- function(x) tw_graph_count(x)
print.thalweg_graph <- function(x, ...) {
  cat("<graph of", length(x), "operations>\n")
  invisible(x)
}

output_of <- function(s, id) structure(list(id = id, scope = s), class = "thalweg_output")
operation_of <- function(g, address) structure(list(address = address, graph = g), class = "thalweg_operation")

# Finds an operation, or a value such as "x" or "x:1", by its name. s: a scope of the graph.
find_operation <- function(g, name) {
  out <- raw(8)
  check(tw_graph_find(expect(g, "thalweg_graph", "g"), text(name), out))
  operation_of(g, peek(out, 0, "p"))
}
find_output <- function(s, name) {
  out <- raw(8)
  check(tw_graph_find_output(expect(s, "thalweg_scope", "s")$graph, text(name), out))
  output_of(s, out)
}

operation_name <- function(x) {
  tw_graph_count(expect(x, "thalweg_operation", "x")$graph) # raises if the graph is closed
  tw_operation_name(x$address)
}
operation_type <- function(x) {
  tw_graph_count(expect(x, "thalweg_operation", "x")$graph)
  tw_operation_type(x$address)
}
operation_outputs <- function(s, x) {
  tw_graph_count(x$graph)
  lapply(seq_len(tw_operation_output_count(x$address)), function(i) output_of(s, tw_operation_output(x$address, i - 1)))
}

describe <- function(x) {
  dtype <- raw(4)
  shape <- record("tw_shape")
  g <- tw_scope_graph(scope_pointer(expect(x, "thalweg_output", "x")$scope)) # of a function of elements: the function's own
  check(tw_graph_describe(g, x, dtype, shape))
  list(dtype = dtype_name(peek(dtype, 0, "u32")), dim = shape_of(shape))
}

shape_of <- function(shape) {
  rank <- get_field(shape, "rank")
  if (rank < 0) return(NULL)
  dims <- get_field(shape, "dims")
  found <- vapply(seq_len(rank), function(i) peek(dims, 8 * (i - 1), "i64"), 0)
  ifelse(found < 0, NA, found)
}

# The sizes of a value, of which NA is unknown; NULL: not even the number of axes is known.
output_dim <- function(x) describe(x)$dim

print.thalweg_output <- function(x, ...) {
  d <- describe(x)
  cat("<value of ", d$dtype, if (is.null(d$dim)) "" else paste0(" [", paste(d$dim, collapse = ", "), "]"), ">\n", sep = "")
  invisible(x)
}

# Begins to add operations, whose names have the prefix. A failure is raised where the wrong operation is added, and the scope goes on.
scope <- function(g, prefix = "") {
  s <- new.env(parent = emptyenv())
  s$graph <- expect(g, "thalweg_graph", "g")
  s$handle <- .Call(C_R_scope_create, g, text(prefix, "the prefix"))
  structure(s, class = "thalweg_scope")
}

# The line of the program that called into this package, or the call if R has kept no lines (options(keep.source = TRUE) keeps them).
place <- function() {
  here <- topenv()
  i <- sys.nframe()
  while (i > 0 && identical(topenv(environment(sys.function(i))), here)) i <- i - 1
  call <- sys.call(i + 1)
  line <- attr(call, "srcref")
  if (is.null(line)) return(substr(deparse(call, 60, nlines = 1)[[1]], 1, 80))
  paste0(basename(attr(line, "srcfile")$filename), ":", line[[1]])
}

scope_pointer <- function(s) {
  tw_graph_count(expect(s, "thalweg_scope", "s")$graph) # raises if the graph is closed
  p <- if (is.null(s$handle)) s$inner else .Call(C_R_scope_address, s$handle)
  if (is.null(p)) failure("FAILED_PRECONDITION", "the scope of a function of elements has ended")
  p
}

# Calls C with a scope and the line of the program on record, and raises the failure that the scope then has.
in_scope <- function(s, call) {
  p <- scope_pointer(s)
  tw_scope_set_place(p, place())
  result <- call(p)
  if (tw_scope_code(p) != 0) {
    if (is.null(s$handle)) failure(tw_status_code_name(tw_scope_code(p)), "the function of elements has failed")
    .Call(C_R_scope_fail, s$handle, s$graph)
  }
  result
}
add_value <- function(s, call) {
  id <- in_scope(s, call) # here, so that only frames of this package are above the caller's: see place
  output_of(s, id)
}
add_operation <- function(s, call) {
  address <- in_scope(s, call)
  operation_of(s$graph, address)
}

# A value of the graph: one that it is, or a constant of a number or vector.
as_output <- function(s, x, dtype = NULL) {
  if (inherits(x, "thalweg_output")) return(x)
  constant(s, x, dtype)
}

one <- function(x, what) expect(x, "thalweg_output", what)

placeholder <- function(s, name, dtype, dim) {
  dim <- sizes(dim)
  add_value(s, function(p) tw_scope_placeholder(p, text(name), dtype_number(dtype), longs(dim), length(dim)))
}

# A constant: a tensor, or a vector or array; one number has no axes.
constant <- function(s, value, dtype = NULL) {
  t <- if (inherits(value, "thalweg_tensor")) value else if (!is.array(value) && length(value) == 1) scalar(value, dtype) else tensor(value, dtype)
  add_value(s, function(p) tw_scope_constant(p, t))
}

# Gives a value a name, by which it can be found.
name_output <- function(x, name) add_value(one(x, "x")$scope, function(p) tw_scope_name(p, text(name), x))

group <- function(s, name, operations) add_operation(s, function(p) tw_scope_group(p, text(name), addresses(operations), length(as_list(operations))))

set_device <- function(s, device) invisible(in_scope(s, function(p) tw_scope_set_device(p, text(device, "the device"))))

variable <- function(s, name, initial) {
  initial <- as_output(s, initial)
  add_value(s, function(p) tw_variable_create(p, text(name), initial))
}
read_variable <- function(v) add_value(one(v, "v")$scope, function(p) tw_variable_read(p, v))
assign_variable <- function(v, x) add_operation(one(v, "v")$scope, function(p) tw_variable_assign(p, v, one(x, "x")))

# The operation that sets all variables that the graph has now to their first values.
initializer <- function(s, name = "init") add_operation(s, function(p) tw_variable_initializer(p, text(name)))

# The variables of a graph: handles, names, types and sizes.
variables <- function(s) {
  out <- raw(8)
  check(tw_variables_create(expect(s, "thalweg_scope", "s")$graph, out))
  list <- peek(out, 0, "p")
  on.exit(tw_variables_destroy(list))
  lapply(seq_len(tw_variables_count(list)) - 1, function(i) {
    dtype <- raw(4)
    shape <- record("tw_shape")
    check(tw_variables_describe(list, i, dtype, shape))
    list(handle = output_of(s, tw_variables_handle(list, i)), name = tw_variables_name(list, i), dtype = dtype_name(peek(dtype, 0, "u32")),
         dim = shape_of(shape))
  })
}

simple <- function(s, type, ...) {
  inputs <- ids(list(...))
  add_value(s, function(p) tw_scope_op(p, type, inputs, length(inputs) / 8))
}

# Arithmetic with values of a graph: x + 1, x * y. A number of R becomes a constant of the value's type.
Ops.thalweg_output <- function(e1, e2) {
  x <- if (inherits(e1, "thalweg_output")) e1 else e2
  type <- switch(.Generic, "+" = "Add", "-" = "Sub", "*" = "Mul", "/" = "RealDiv", "^" = "Pow", ">" = "Greater", "<" = "Less", ">=" = "GreaterEqual",
                 "<=" = "LessEqual", "==" = "Equal", "!=" = "NotEqual", invalid("values of a graph have no operator ", .Generic))
  if (missing(e2)) {
    if (.Generic != "-") invalid("values of a graph have no operator ", .Generic, " of one value")
    return(simple(x$scope, "Neg", x))
  }
  dtype <- describe(x)$dtype
  simple(x$scope, type, as_output(x$scope, e1, dtype), as_output(x$scope, e2, dtype))
}

axes <- function(x) {
  dim <- output_dim(x)
  if (is.null(dim)) invalid("the number of axes must be known")
  constant(x$scope, tensor(seq_along(dim) - 1L))
}
# The mean and the sum of all elements.
mean.thalweg_output <- function(x, ...) simple(x$scope, "Mean", x, axes(x))
sum.thalweg_output <- function(x, ..., na.rm = FALSE) simple(x$scope, "Sum", x, axes(x))

# Other sizes, of which one may be NA; the last axis is fastest.
reshape_output <- function(x, dim) simple(one(x, "x")$scope, "Reshape", x, constant(x$scope, tensor(as.integer(sizes(dim)))))

# Adds one operation; the functions of `op` use this. attributes: list(name, kind, value) each.
add_op <- function(s, type, name, inputs, attributes, shape) {
  for (x in inputs) if (!inherits(x, "thalweg_output")) ids(if (is.null(x)) invalid(type, ": an input is missing") else x)
  operation <- add_operation(s, function(p) {
    b <- tw_scope_begin(p, type, if (is.null(name)) NULL else text(name))
    tryCatch({
      for (x in inputs) if (inherits(x, "thalweg_output")) tw_op_add_input(b, x) else tw_op_add_inputs(b, ids(x), length(x))
      for (a in attributes) if (!is.null(a[[3]])) set_attribute(b, type, a[[1]], a[[2]], a[[3]])
    }, error = function(e) {
      tw_op_destroy(b)
      stop(e)
    })
    tw_scope_end_operation(p, b)
  })
  if (shape == "operation") return(operation)
  outputs <- operation_outputs(s, operation)
  if (shape == "value") outputs[[1]] else outputs
}

set_attribute <- function(b, type, key, kind, value) {
  want <- function(yes) if (!isTRUE(yes)) invalid(type, ": attribute '", key, "' of kind ", kind, " cannot be ", class(value)[[1]])
  one_of <- function(is) want(is(value) && length(value) == 1 && !is.na(value))
  many_of <- function(is) want((is(value) || length(value) == 0) && !anyNA(value))
  switch(kind,
    int = { one_of(is.numeric); tw_op_set_int(b, key, value) },
    float = { one_of(is.numeric); tw_op_set_float(b, key, value) },
    bool = { one_of(is.logical); tw_op_set_bool(b, key, value) },
    string = { one_of(is.character); tw_op_set_string(b, key, enc2utf8(value), nchar(enc2utf8(value), "bytes")) },
    func = { one_of(is.character); tw_op_set_func(b, key, value) },
    type = tw_op_set_type(b, key, dtype_number(value)),
    shape = tw_op_set_shape(b, key, longs(sizes(value)), length(value)),
    tensor = tw_op_set_tensor(b, key, expect(value, "thalweg_tensor", key)),
    ints = { many_of(is.numeric); tw_op_set_ints(b, key, longs(value), length(value)) },
    floats = { many_of(is.numeric); tw_op_set_floats(b, key, as.numeric(value), length(value)) },
    bools = { many_of(is.logical); tw_op_set_bools(b, key, as.raw(value), length(value)) },
    strings = { many_of(is.character); tw_op_set_strings(b, key, .Call(C_R_texts, value, TRUE), length(value)) },
    funcs = { many_of(is.character); tw_op_set_funcs(b, key, .Call(C_R_texts, value, TRUE), length(value)) },
    types = tw_op_set_types(b, key, vapply(value, function(d) as.integer(dtype_number(d)), 0L), length(value)),
    shapes = {
      want(is.list(value))
      all <- raw(16 * length(value))
      kept <- lapply(value, function(dim) longs(sizes(dim)))
      for (i in seq_along(value)) {
        .Call(C_R_poke, all, 16 * (i - 1), "p", kept[[i]])
        .Call(C_R_poke, all, 16 * (i - 1) + 8, "i32", length(value[[i]]))
      }
      tw_op_set_shapes(b, key, all, length(value))
    },
    tensors = tw_op_set_tensors(b, key, .Call(C_R_tensor_addresses, as_list(value), FALSE), length(as_list(value))))
}
