# Tensors, and the types of their elements.

dtypes <- c(float = 1, double = 2, int32 = 3, uint8 = 4, int16 = 5, int8 = 6, string = 7, complex64 = 8, int64 = 9, bool = 10, bfloat16 = 14,
            uint16 = 17, complex128 = 18, half = 19, resource = 20, variant = 21, uint32 = 22, uint64 = 23)

dtype_number <- function(dtype) {
  if (!is.character(dtype) || length(dtype) != 1 || !dtype %in% names(dtypes)) invalid("a type must be one of ", paste(names(dtypes), collapse = ", "))
  dtypes[[dtype]]
}

dtype_name <- function(number) {
  found <- names(dtypes)[dtypes == number]
  if (length(found)) found else as.character(number)
}

# A tensor with the elements of a vector, matrix or array, which are copied. dtype: NULL: float for doubles, int32 for integers, bool, string
# or uint8 (raw). dim: NULL: those of the values; numeric(0): no axes; one of them may be NA.
tensor <- function(values, dtype = NULL, dim = NULL) {
  if (inherits(values, "thalweg_tensor")) return(values)
  if (!is.vector(values) && !is.array(values) || is.list(values)) invalid("a tensor is made of numbers, logicals, bytes or texts")
  if (is.null(dtype))
    dtype <- switch(typeof(values), double = "float", integer = "int32", logical = "bool", character = "string", raw = "uint8",
                    invalid("no tensor has elements of type ", typeof(values)))
  number <- dtype_number(dtype)
  if (is.null(dim)) dim <- if (is.array(values)) base::dim(values) else length(values)
  dim <- sizes(dim)
  if (any(dim == -1)) {
    known <- prod(dim[dim != -1])
    if (sum(dim == -1) > 1 || known <= 0 || length(values) %% known) invalid(length(values), " elements do not fill the sizes ", paste(dim, collapse = ", "))
    dim[dim == -1] <- length(values) / known
  }
  if (!typeof(values) %in% c("double", "integer", "logical", "character", "raw")) invalid("no tensor has elements of type ", typeof(values))
  .Call(C_R_tensor_create, values, number, as.numeric(dim))
}

# A tensor without axes.
scalar <- function(value, dtype = NULL) tensor(value, dtype, numeric(0))

tensor_zeros <- function(dtype, dim) {
  out <- raw(8)
  check(tw_tensor_create(dtype_number(dtype), longs(sizes(dim)), length(dim), out))
  own(out, "thalweg_tensor")
}

# The same elements under other sizes; the memory is shared, with the last axis fastest.
tensor_reshape <- function(x, dim) {
  out <- raw(8)
  check(tw_tensor_reshape(expect(x, "thalweg_tensor", "x"), longs(sizes(dim)), length(dim), out))
  own(out, "thalweg_tensor")
}

tensor_dtype <- function(x) dtype_name(tw_tensor_dtype(expect(x, "thalweg_tensor", "x")))

dim.thalweg_tensor <- function(x) .Call(C_R_tensor_dims, x)
length.thalweg_tensor <- function(x) .Call(C_R_tensor_count, x)

# The elements: a vector, or an array with the axes of the tensor.
as.array.thalweg_tensor <- function(x, ...) {
  values <- .Call(C_R_tensor_values, x)
  dims <- .Call(C_R_tensor_dims, x)
  if (length(dims) > 1) array(values, dims) else values
}
as.vector.thalweg_tensor <- function(x, mode = "any") as.vector(.Call(C_R_tensor_values, x), mode)

format.thalweg_tensor <- function(x, ...) {
  out <- raw(8)
  check(tw_tensor_text(x, 20, out))
  take_text(out)
}
print.thalweg_tensor <- function(x, ...) {
  cat("<", tensor_dtype(x), " [", paste(dim(x), collapse = ", "), "]> ", format(x), "\n", sep = "")
  invisible(x)
}
