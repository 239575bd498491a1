// Tensors: typed arrays in and out.
"use strict";

const low = require("./low.js");
const { Handle, addressOf, check, describe, guarded, invalid, listOf, make, ThalwegError } = require("./error.js");

// Element types by their names in the C API, and the typed array of each.
const DType = Object.freeze(Object.fromEntries(
  ["FLOAT", "DOUBLE", "INT32", "UINT8", "INT16", "INT8", "STRING", "COMPLEX64", "INT64", "BOOL", "BFLOAT16", "UINT16", "COMPLEX128", "HALF", "UINT32", "UINT64", "RESOURCE", "VARIANT"]
    .map((name) => [name.toLowerCase(), low[`TW_${name}`]])));
const arrays = new Map([[DType.float, Float32Array], [DType.double, Float64Array], [DType.int32, Int32Array], [DType.uint8, Uint8Array],
  [DType.int16, Int16Array], [DType.int8, Int8Array], [DType.int64, BigInt64Array], [DType.bool, Uint8Array], [DType.uint16, Uint16Array],
  [DType.uint32, Uint32Array], [DType.uint64, BigUint64Array], [DType.half, Uint16Array], [DType.bfloat16, Uint16Array]]);
const types = new Map([[Float32Array, DType.float], [Float64Array, DType.double], [Int32Array, DType.int32], [Uint8Array, DType.uint8],
  [Uint8ClampedArray, DType.uint8], [Int16Array, DType.int16], [Int8Array, DType.int8], [BigInt64Array, DType.int64],
  [Uint16Array, DType.uint16], [Uint32Array, DType.uint32], [BigUint64Array, DType.uint64]]);

// Sizes as C takes them; one may be -1 if `count` elements decide it.
function sizes(shape, count = undefined) {
  const dims = listOf(shape, "a shape").map((d) => {
    if (!Number.isSafeInteger(d) || d < -1) throw invalid(`sizes [${shape}] must be whole numbers`);
    return d;
  });
  const at = dims.indexOf(-1);
  if (count !== undefined && at >= 0) {
    const known = dims.reduce((n, d, i) => (i === at ? n : n * d), 1);
    if (known === 0 || count % known !== 0) throw invalid(`${count} elements do not fill sizes [${shape}]`);
    dims[at] = count / known;
  }
  return BigInt64Array.from(dims, BigInt);
}

class Tensor extends Handle {
  #view = null;

  /** Copies a typed array, or takes numbers, booleans, texts: one, or nested arrays. */
  constructor(data, shape = undefined, dtype = undefined) {
    super(guarded(() => create(data, shape, dtype)), low.tw_tensor_release);
  }

  // A tensor that owns a reference of C.
  static own(address) {
    return Reflect.construct(Tensor, [OWN, address]);
  }

  /** A tensor of zeros, to be written to by `data` before anybody else has it. */
  static zeros(shape, dtype = DType.float) {
    return guarded(() => {
      const dims = sizes(shape);
      return Tensor.own(make((out) => low.tw_tensor_create(dtype, dims, dims.length, out)));
    });
  }

  get dtype() { return low.tw_tensor_dtype(this.address); }
  get shape() {
    const address = this.address;
    return Array.from(new BigInt64Array(low.bytes(low.tw_tensor_dims(address), 8 * low.tw_tensor_rank(address))), Number);
  }
  get length() { return low.tw_tensor_count(this.address); }

  /** The elements as a typed array over the tensor's own memory, which the array keeps alive. Texts are a copy. */
  get data() {
    const address = this.address, dtype = this.dtype;
    if (dtype === DType.string) return strings(address);
    if (low.tw_tensor_device(address) !== null) throw new ThalwegError("FAILED_PRECONDITION", "the tensor is in a device's memory; use toHost() first");
    const kind = arrays.get(dtype);
    if (!kind) throw new ThalwegError("UNIMPLEMENTED", `elements of type ${low.tw_dtype_name(dtype)} have no typed array`);
    this.#view = this.#view || new kind(low.view(address));
    return this.#view;
  }

  /** The only element. */
  item() {
    if (this.length !== 1) throw invalid(`the tensor has ${this.length} elements, not one`);
    const value = this.data[0];
    return this.dtype === DType.bool ? value !== 0 : value;
  }

  reshape(shape) {
    return guarded(() => {
      const dims = sizes(shape, this.length);
      return Tensor.own(make((out) => low.tw_tensor_reshape(this.address, dims, dims.length, out)));
    });
  }

  toHost() { return Tensor.own(make((out) => low.tw_tensor_to_host(this.address, out))); }

  toString() {
    return this.closed ? "closed" : bufferText(make((out) => low.tw_tensor_text(this.address, 20, out)));
  }
}

const OWN = Symbol("own");

function create(data, shape, dtype) {
  if (data === OWN) return shape;
  if (data instanceof Tensor) throw invalid("a tensor is made of an array, not of a tensor");
  if (ArrayBuffer.isView(data) && types.has(data.constructor === Buffer ? Uint8Array : data.constructor)) {
    const dims = sizes(shape === undefined ? [data.length] : shape, data.length);
    const type = dtype === undefined ? types.get(data.constructor === Buffer ? Uint8Array : data.constructor) : dtype;
    if (arrays.get(type) !== data.constructor && !(data instanceof Uint8Array || data instanceof Uint8ClampedArray))
      throw invalid(`a ${data.constructor.name} holds no elements of type ${low.tw_dtype_name(type) || type}`);
    return make((out) => low.tw_tensor_create_copy(type, dims, dims.length, data, data.byteLength, out));
  }
  const found = [];
  const own = [];
  flatten(data, found, own, 0);
  const dims = sizes(shape === undefined ? own : shape, found.length);
  const type = dtype === undefined ? guess(found[0]) : dtype;
  if (type === DType.string) return createStrings(found, dims);
  const kind = arrays.get(type);
  if (!kind) throw invalid(`elements of type ${low.tw_dtype_name(type) || type} cannot be made of an array`);
  let array;
  try {
    array = kind.from(found, (v) => convert(v, kind));
  } catch (e) {
    throw e instanceof ThalwegError ? e : invalid(`a value cannot be an element of type ${low.tw_dtype_name(type)}: ${e.message}`);
  }
  return make((out) => low.tw_tensor_create_copy(type, dims, dims.length, array, array.byteLength, out));
}

function convert(value, kind) {
  if (kind === BigInt64Array || kind === BigUint64Array) return BigInt(value);
  if (typeof value !== "number" && typeof value !== "boolean") throw invalid(`${describe(value)} is no number`);
  return Number(value);
}

function guess(value) {
  switch (typeof value) {
    case "string": return DType.string;
    case "boolean": return DType.bool;
    case "bigint": return DType.int64;
    default: return DType.float;
  }
}

function flatten(value, found, shape, depth) {
  if (!Array.isArray(value)) {
    if (value === null || !["number", "string", "boolean", "bigint"].includes(typeof value)) throw invalid(`a tensor cannot be made of ${describe(value)}`);
    if (depth !== shape.length) throw invalid("the arrays have different depths");
    found.push(value);
    return;
  }
  if (depth > 254) throw invalid("arrays are nested too deeply");
  if (shape.length === depth) {
    if (found.length) throw invalid("the arrays have different depths");
    shape.push(value.length);
  } else if (shape[depth] !== value.length) throw invalid("the arrays have different lengths");
  for (const one of value) flatten(one, found, shape, depth + 1);
}

function createStrings(found, dims) {
  const address = make((out) => low.tw_tensor_create(DType.string, dims, dims.length, out));
  if (low.tw_tensor_count(address) !== found.length) {
    low.tw_tensor_release(address);
    throw invalid(`${found.length} texts do not fill sizes [${dims}]`);
  }
  found.forEach((text, i) => {
    const bytes = Buffer.from(String(text));
    check(low.tw_tensor_set_string(address, i, bytes, bytes.length));
  });
  return address;
}

const place = new BigUint64Array(2);
function strings(address) {
  return Array.from({ length: low.tw_tensor_count(address) }, (_, i) => {
    check(low.tw_tensor_get_string(address, i, place, place.subarray(1)));
    return Buffer.from(low.bytes(place[0], place[1])).toString();
  });
}

// The contents of a buffer of C, which is released.
function bufferBytes(address) {
  const bytes = Buffer.from(low.bytes(low.tw_buffer_data(address), low.tw_buffer_bytes(address)));
  low.tw_buffer_release(address);
  return bytes;
}
function bufferText(address) { return bufferBytes(address).toString(); }

/** Reads the numbers of a file with commas between them: a Float32Array for each line. */
function readCsv(path) {
  const lines = require("node:fs").readFileSync(path, "utf8").split("\n").filter((line) => line.trim());
  return lines.map((line, i) => Float32Array.from(line.split(","), (cell) => {
    const value = Number(cell);
    if (cell.trim() === "" || Number.isNaN(value)) throw invalid(`${path}:${i + 1}: '${cell}' is not a number`);
    return value;
  }));
}

// The addresses of tensors, after a check of each; values that are no tensors are made into some.
function tensorAddress(value, what) { return addressOf(value, Tensor, what); }

module.exports = { DType, Tensor, bufferBytes, bufferText, readCsv, sizes, tensorAddress };
