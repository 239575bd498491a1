# Records of C, lists for C, and failures. Functions of C are called by their names in low.R.

# A record in memory of R. Fields are set by their names; `kept` has what pointers lead to.
record <- function(name, ...) {
  r <- new.env(parent = emptyenv())
  r$layout <- layouts[[name]]
  r$bytes <- raw(r$layout$size)
  r$kept <- list()
  if (!is.null(r$layout$fields$size)) set_field(r, "size", r$layout$size)
  given <- list(...)
  for (field in names(given)) set_field(r, field, given[[field]])
  r
}

set_field <- function(r, field, value) {
  at <- r$layout$fields[[field]]
  if (at[[2]] == "p") r$kept[[field]] <- value
  .Call(C_R_poke, r$bytes, at[[1]], at[[2]], value)
  invisible(r)
}

get_field <- function(r, field, kind = NULL) {
  at <- r$layout$fields[[field]]
  .Call(C_R_peek, r$bytes, at[[1]], if (is.null(kind)) at[[2]] else kind)
}

# The record at an address, copied.
record_at <- function(name, address) {
  r <- new.env(parent = emptyenv())
  r$layout <- layouts[[name]]
  r$bytes <- .Call(C_R_bytes_at, address, r$layout$size)
  r
}

peek <- function(memory, offset, kind) .Call(C_R_peek, memory, offset, kind)

# Raises the failure of a status, as a condition with the classes thalweg_CODE, thalweg_error and error.
check <- function(status) .Call(C_R_check, status)

failure <- function(code, message) {
  stop(structure(class = c(paste0("thalweg_", tolower(code)), "thalweg_error", "error", "condition"),
                 list(message = message, call = NULL, code = code, operation = NULL, place = NULL)))
}

invalid <- function(...) failure("INVALID_ARGUMENT", paste0(...))

# A handle for what a function of C put into an out parameter. kept: handles that it needs.
own <- function(out, kind, kept = NULL, kept2 = NULL) .Call(C_R_own, out, kind, kept, kept2)

expect <- function(x, kind, what) {
  if (!inherits(x, kind)) invalid(what, " must be a ", sub("thalweg_", "", kind))
  x
}

# A text that must be given.
text <- function(x, what = "a name") {
  if (!is.character(x) || length(x) != 1 || is.na(x)) invalid(what, " must be one text")
  x
}

# Options "key=value" for C.
texts <- function(x) {
  if (!is.character(x)) invalid("options must be texts such as \"threads=1\"")
  .Call(C_R_texts, x, FALSE)
}

# Addresses one after the other. Each item must be of a kind.
ids <- function(outputs) {
  if (inherits(outputs, "thalweg_output")) outputs <- list(outputs)
  if (!is.list(outputs)) invalid("values of a graph must be given as a list")
  for (x in outputs) expect(x, "thalweg_output", "each of a list of values")
  as.raw(unlist(lapply(outputs, function(x) x$id)))
}

addresses <- function(operations) {
  if (inherits(operations, "thalweg_operation")) operations <- list(operations)
  if (!is.list(operations)) invalid("operations must be given as a list")
  memory <- raw(8 * length(operations))
  for (i in seq_along(operations)) .Call(C_R_poke, memory, 8 * (i - 1), "p", expect(operations[[i]], "thalweg_operation", "each of a list of operations")$address)
  memory
}

as_list <- function(x) if (is.list(x) && is.null(attr(x, "class"))) x else list(x)

# Sizes for C: NA is unknown.
sizes <- function(dim) {
  if (!is.null(dim) && !is.numeric(dim) && !all(is.na(dim))) invalid("sizes must be numbers")
  ifelse(is.na(dim), -1, as.numeric(dim))
}

# 64-bit numbers one after the other.
longs <- function(x) {
  memory <- raw(8 * length(x))
  for (i in seq_along(x)) .Call(C_R_poke, memory, 8 * (i - 1), "i64", x[[i]])
  memory
}

# The contents of a buffer of C, which is released.
take_buffer <- function(out) {
  buffer <- peek(out, 0, "p")
  bytes <- .Call(C_R_bytes_at, tw_buffer_data(buffer), tw_buffer_bytes(buffer))
  tw_buffer_release(buffer)
  bytes
}

take_text <- function(out) {
  found <- rawToChar(take_buffer(out))
  Encoding(found) <- "UTF-8"
  found
}

# Ends an object. Closing twice is fine.
close_object <- function(con, ...) invisible(.Call(C_R_close_handle, con))
