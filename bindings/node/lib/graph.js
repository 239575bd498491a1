// Graphs, scopes that add operations, layers, gradients, optimizers, metrics, datasets.
"use strict";

const path = require("node:path");
const low = require("./low.js");
const { Handle, ThalwegError, addressOf, check, describe, guarded, invalid, listOf, make } = require("./error.js");
const { DType, Tensor, bufferBytes, sizes } = require("./tensor.js");

const { Record } = low;

// The line of the program that called into this package: "train.js:18".
function place() {
  const holder = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 12;
  Error.captureStackTrace(holder, place);
  Error.stackTraceLimit = limit;
  for (const line of String(holder.stack).split("\n").slice(1)) {
    const found = /\(?([^()\s]+):(\d+):\d+\)?$/.exec(line);
    if (found && path.dirname(found[1].replace("file://", "")) !== __dirname) return `${path.basename(found[1])}:${found[2]}`;
  }
  return "";
}

function outputs(values, what) {
  return BigUint64Array.from(listOf(values, what), (v, i) => output(v, `${what}[${i}]`));
}
function output(value, what) {
  if (typeof value !== "bigint") throw invalid(`${what} must be a value of a graph, not ${describe(value)}`);
  return BigInt.asUintN(64, value);
}

/** One operation of a graph. */
class Operation {
  #graph;
  #address;
  constructor(graph, address) {
    this.#graph = graph;
    this.#address = address;
  }
  // The address, if the graph is open.
  get address() {
    void this.#graph.address;
    return this.#address;
  }
  get name() { return low.tw_operation_name(this.address); }
  get type() { return low.tw_operation_type(this.address); }
  get outputs() { return Array.from({ length: low.tw_operation_output_count(this.address) }, (_, i) => low.tw_operation_output(this.address, i)); }
}

/** Operations, and the values between them. */
class Graph extends Handle {
  constructor() { super(make((out) => low.tw_graph_create(0, out)), low.tw_graph_destroy); }

  /** Makes a graph of a serialised GraphDef. */
  static import(bytes) {
    return guarded(() => {
      if (!ArrayBuffer.isView(bytes)) throw invalid(`a graph is made of bytes, not of ${describe(bytes)}`);
      const graph = new Graph();
      check(low.tw_graph_import(graph.address, bytes, bytes.byteLength, null));
      return graph;
    });
  }
  export() { return bufferBytes(make((out) => low.tw_graph_export(this.address, out))); }
  get length() { return low.tw_graph_count(this.address); }
  operation(name) { return guarded(() => new Operation(this, make((out) => low.tw_graph_find(this.address, name, out)))); }
  output(name) {
    return guarded(() => {
      const out = new BigUint64Array(1);
      check(low.tw_graph_find_output(this.address, name, out));
      return out[0];
    });
  }
  /** {dtype, shape}: -1 is an unknown size, and null an unknown number of axes. */
  describe(value) { return describeValue(this.address, output(value, "the value")); }

  /** The variables that the graph has now: {handle, name, dtype, shape}. */
  variables() {
    const list = make((out) => low.tw_variables_create(this.address, out));
    try {
      return Array.from({ length: low.tw_variables_count(list) }, (_, i) => {
        const dtype = new Uint32Array(1), shape = new Record("tw_shape");
        check(low.tw_variables_describe(list, i, dtype, shape.buffer));
        return { handle: low.tw_variables_handle(list, i), name: low.tw_variables_name(list, i), dtype: dtype[0], shape: shapeOf(shape) };
      });
    } finally {
      low.tw_variables_destroy(list);
    }
  }

  /** Begins to add operations, whose names have the prefix. */
  scope(prefix = "") { return new Scope(this, prefix); }
}

function describeValue(graph, value) {
  const dtype = new Uint32Array(1), shape = new Record("tw_shape");
  check(low.tw_graph_describe(graph, value, dtype, shape.buffer));
  return { dtype: dtype[0], shape: shapeOf(shape) };
}

function shapeOf(record) {
  const rank = record.get("rank");
  return rank < 0 ? null : Array.from(new BigInt64Array(low.bytes(record.get("dims"), 8 * rank)), Number);
}

function shapeRecord(shape) {
  if (shape === null) return new Record("tw_shape", { rank: -1 });
  const dims = sizes(shape);
  return new Record("tw_shape", { dims, rank: dims.length });
}

// Records one after the other; what they refer to is kept by the buffer.
function packed(records) {
  const size = records.length ? records[0].layout.size : 0;
  const bytes = new Uint8Array(size * records.length);
  records.forEach((r, i) => bytes.set(new Uint8Array(r.view.buffer), i * size));
  bytes.kept = records;
  return bytes;
}

function stringRecord(text) {
  const bytes = Buffer.from(String(text));
  return new Record("tw_string", { data: bytes.length ? bytes : null, size: bytes.length });
}

function whole(v, what) {
  if (typeof v === "bigint" || Number.isSafeInteger(v)) return v;
  throw invalid(`${what} must be a whole number, not ${describe(v)}`);
}

// How each kind of attribute is set: alone, and as a list.
const setters = {
  int: (op, n, v) => low.tw_op_set_int(op, n, whole(v, n)),
  float: (op, n, v) => low.tw_op_set_float(op, n, v),
  bool: (op, n, v) => low.tw_op_set_bool(op, n, v ? 1 : 0),
  string: (op, n, v) => { const b = Buffer.from(String(v)); low.tw_op_set_string(op, n, b, b.length); },
  type: (op, n, v) => low.tw_op_set_type(op, n, v),
  shape: (op, n, v) => { const d = v === null ? [] : sizes(v); low.tw_op_set_shape(op, n, d.length ? d : null, v === null ? -1 : d.length); },
  tensor: (op, n, v) => low.tw_op_set_tensor(op, n, addressOf(v, Tensor, n)),
  func: (op, n, v) => low.tw_op_set_func(op, n, v),
};
const listSetters = {
  int: (op, n, v) => low.tw_op_set_ints(op, n, BigInt64Array.from(v, (x) => BigInt(whole(x, n))), v.length),
  float: (op, n, v) => low.tw_op_set_floats(op, n, Float64Array.from(v), v.length),
  bool: (op, n, v) => low.tw_op_set_bools(op, n, Uint8Array.from(v, (x) => (x ? 1 : 0)), v.length),
  string: (op, n, v) => low.tw_op_set_strings(op, n, packed(v.map(stringRecord)), v.length),
  type: (op, n, v) => low.tw_op_set_types(op, n, Uint32Array.from(v), v.length),
  shape: (op, n, v) => low.tw_op_set_shapes(op, n, packed(v.map(shapeRecord)), v.length),
  tensor: (op, n, v) => low.tw_op_set_tensors(op, n, BigUint64Array.from(v, (t) => BigInt(addressOf(t, Tensor, n))), v.length),
  func: (op, n, v) => low.tw_op_set_funcs(op, n, packed(v.map(stringRecord)), v.length),
};

/** Adds operations to a graph. A failure is thrown at once, where the wrong operation is added. */
class Scope {
  #graph;
  #address;
  #owned;
  constructor(graph, prefix, address = 0) {
    this.#graph = graph;
    this.#owned = !address;
    if (typeof prefix !== "string") throw invalid(`a prefix must be a text, not ${describe(prefix)}`);
    this.#address = address || guarded(() => low.tw_scope_create(graph.address, prefix || null));
    if (this.#owned) abandoned.register(this, { address: this.#address, graph }, this);
  }
  get graph() { return this.#graph; }

  // The address for a call that adds operations; the graph must be open.
  get address() {
    void this.#graph.address;
    if (!this.#address) throw new ThalwegError("FAILED_PRECONDITION", "the scope has ended");
    return this.#address;
  }

  // Calls C with the line of the program on record, and throws the failure that the scope then has. A scope of C keeps its first failure
  // and adds nothing more, so that this one goes on with a new one.
  add(f) {
    return guarded(() => {
      const address = this.address;
      low.tw_scope_set_place(address, place());
      const result = f(address);
      if (low.tw_scope_code(address) !== 0) this.#fail();
      return result;
    });
  }

  #fail() {
    if (!this.#owned) throw new ThalwegError(low.tw_status_code_name(low.tw_scope_code(this.#address)), "the function of elements has failed");
    const [prefix, device] = [low.tw_scope_prefix(this.#address), low.tw_scope_device(this.#address)];
    const failed = this.#address;
    abandoned.unregister(this);
    this.#address = low.tw_scope_create(this.#graph.address, prefix ? prefix.replace(/\/$/, "") : null);
    if (device) low.tw_scope_set_device(this.#address, device);
    abandoned.register(this, { address: this.#address, graph: this.#graph }, this);
    check(low.tw_scope_finish(failed));
  }

  // The scope of a function ends with the function.
  end() {
    this.#address = 0;
  }

  setDevice(device) { this.add((s) => low.tw_scope_set_device(s, device)); }

  /** Adds an operation: its type, inputs, attributes by name as {name: [kind, isList, value]}. */
  build(type, inputs, attributes, { name = null, device = null } = {}) {
    return new Operation(this.#graph, this.add((s) => {
      const op = low.tw_scope_begin(s, type, name);
      try {
        if (device !== null) low.tw_op_set_device(op, device);
        for (const one of inputs) {
          if (Array.isArray(one)) low.tw_op_add_inputs(op, outputs(one, "inputs"), one.length);
          else low.tw_op_add_input(op, output(one, "an input"));
        }
        for (const [attr, [kind, isList, value]] of Object.entries(attributes)) {
          if (isList) listSetters[kind](op, attr, listOf(value, attr));
          else setters[kind](op, attr, value);
        }
      } catch (e) {
        low.tw_op_destroy(op);
        throw e;
      }
      return low.tw_scope_end_operation(s, op);
    }));
  }

  /** Adds an operation with default attributes and returns its first value. */
  op(type, ...inputs) { return this.add((s) => low.tw_scope_op(s, type, outputs(inputs, "inputs"), inputs.length)); }
  placeholder(name, dtype, shape) {
    return this.add((s) => {
      const dims = shape === null || shape === undefined ? [] : sizes(shape);
      return low.tw_scope_placeholder(s, name, dtype, dims.length ? dims : null, shape ? dims.length : -1);
    });
  }
  constant(value) { return this.add((s) => low.tw_scope_constant(s, addressOf(value instanceof Tensor ? value : new Tensor(value), Tensor, "a constant"))); }
  scalar(value, dtype = DType.float) { return this.add((s) => low.tw_scope_scalar(s, dtype, value)); }
  ints(...values) { return this.add((s) => low.tw_scope_ints(s, Int32Array.from(values), values.length)); }
  name(name, value) { return this.add((s) => low.tw_scope_name(s, name, output(value, "the value"))); }
  group(name, ...operations) {
    return new Operation(this.#graph, this.add((s) => low.tw_scope_group(s, name || null, addresses(operations), operations.length)));
  }
  variable(name, initial) { return this.add((s) => low.tw_variable_create(s, name, output(initial, "the first value"))); }
  read(variable) { return this.add((s) => low.tw_variable_read(s, output(variable, "the variable"))); }
  assign(variable, value) {
    return new Operation(this.#graph, this.add((s) => low.tw_variable_assign(s, output(variable, "the variable"), output(value, "the value"))));
  }
  /** The operation that sets all variables that the graph has now to their first values. */
  initializer(name = "init") { return new Operation(this.#graph, this.add((s) => low.tw_variable_initializer(s, name))); }

  sum(x) { return this.op("Sum", x, this.#axes(x)); }
  mean(x) { return this.op("Mean", x, this.#axes(x)); }
  reshape(x, shape) { return this.op("Reshape", x, this.ints(...listOf(shape, "a shape"))); }

  #shape(x, what) {
    const { shape } = this.add((s) => describeValue(low.tw_scope_graph(s), output(x, "the value")));
    if (shape === null) throw invalid(`${what}: the number of axes must be known`);
    return shape;
  }
  #axes(x) { return this.ints(...this.#shape(x, "sum and mean").keys()); }
  #last(what, name, x) {
    const shape = this.#shape(x, what);
    if (!shape.length || shape[shape.length - 1] < 0) throw invalid(`${what} '${name}': the last size of [${shape}] must be known`);
    return shape[shape.length - 1];
  }

  /** Applies a function to each element: "relu", "gelu", "sigmoid", "tanh", "softmax", ... */
  activation(kind, x) {
    if (kind === null || kind === undefined) return x;
    const number = low[`TW_ACTIVATION_${String(kind).toUpperCase()}`];
    if (number === undefined) throw invalid(`there is no activation '${String(kind)}'`);
    return this.add((s) => low.tw_activation(s, number, output(x, "the value")));
  }
  /** x kernel + bias, then the activation. x: [.., inputs]; the result: [.., units]. */
  dense(name, x, units, activation = null, options = {}) {
    const inputs = this.#last("dense", name, x), layer = new Record("tw_dense");
    return this.activation(activation, this.add((s) => {
      low.tw_dense_create(s, name, layerOptions(options), inputs, units, layer.buffer);
      return low.tw_dense_apply(s, layer.buffer, x);
    }));
  }
  /** A convolution with a square window over [batch, height, width, channels] that keeps height and width. */
  conv2d(name, x, filters, window, activation = null, options = {}) {
    const channels = this.#last("conv2d", name, x);
    const [layer, like, want] = [new Record("tw_convolution"), new Record("tw_convolution"), new Record("tw_convolution_sizes")];
    low.tw_convolution_init(like.buffer);
    low.tw_convolution_init(layer.buffer);
    low.tw_convolution_sizes_init(want.buffer);
    return this.activation(activation, this.add((s) => {
      for (const [field, value] of Object.entries({ window_1: window, window_2: window, channels, filters })) want.set(field, whole(value, field));
      low.tw_convolution_create(s, name, layerOptions(options), like.buffer, want.buffer, layer.buffer);
      return low.tw_convolution_apply(s, layer.buffer, x);
    }));
  }
  maxPool2d(x, window) {
    const pool = new Record("tw_pool");
    low.tw_pool_init(pool.buffer);
    const fields = { kind: low.TW_POOL_MAX, rank: 2, padding: low.TW_PADDING_VALID, window_1: window, window_2: window, stride_1: window, stride_2: window };
    return this.add((s) => {
      for (const [field, value] of Object.entries(fields)) pool.set(field, whole(value, field));
      return low.tw_pool_apply(s, pool.buffer, output(x, "the value"));
    });
  }
  /** Makes a row of each example. */
  flatten(x) {
    const rest = this.#shape(x, "flatten").slice(1);
    if (rest.some((d) => d < 0)) throw invalid(`flatten: the sizes [${rest}] behind the first must be known`);
    return this.reshape(x, [-1, rest.reduce((a, b) => a * b, 1)]);
  }
  dropout(x, rate, training, seed = 0) { return this.add((s) => low.tw_dropout(s, output(x, "the value"), rate, output(training, "training"), seed)); }
  /** The mean cross-entropy of logits [batch, classes] for labels [batch]. */
  sparseSoftmaxCrossEntropy(logits, labels) { return this.op("Mean", this.op("SparseSoftmaxCrossEntropyWithLogits", logits, labels), this.ints(0)); }

  /** The gradients of a scalar loss: {values, rows} for each value or variable. */
  gradients(loss, xs) {
    const out = new BigUint64Array(2 * listOf(xs, "xs").length);
    this.add((s) => low.tw_scope_gradients(s, output(loss, "the loss"), outputs(xs, "xs"), xs.length, out));
    return xs.map((_, i) => ({ values: out[2 * i], rows: out[2 * i + 1] }));
  }
  clipByGlobalNorm(gradients, max) {
    const flat = flatGradients(gradients);
    this.add((s) => low.tw_clip_by_global_norm(s, flat, gradients.length, max));
    return gradients.map((_, i) => ({ values: flat[2 * i], rows: flat[2 * i + 1] }));
  }
  /** One update of variables by gradients. */
  apply(optimizer, variables, gradients) {
    if (!(optimizer instanceof Optimizer)) throw invalid(`an optimizer is made by adam(), sgd(), ..., not ${describe(optimizer)}`);
    if (listOf(variables, "variables").length !== listOf(gradients, "gradients").length)
      throw invalid(`apply: ${gradients.length} gradients for ${variables.length} variables`);
    const { kind, rate, fields } = optimizer, record = new Record(`tw_${kind}`);
    low[`tw_${kind}_init`](record.buffer);
    const learning = typeof rate === "number" ? this.scalar(rate) : rate === undefined ? 0n : output(rate, "the learning rate");
    record.set("learning_rate", learning);
    return new Operation(this.#graph, this.add((s) => {
      for (const [field, value] of Object.entries(fields)) {
        if (!(field in record.layout.fields)) throw invalid(`${kind} has no option '${field}'`);
        record.set(field, typeof value === "boolean" ? Number(value) : numberOf(value, field));
      }
      return low[`tw_train_${kind}`](s, outputs(variables, "variables"), flatGradients(gradients), variables.length, record.buffer);
    }));
  }
  /** One update of all variables of the graph that hold real numbers and that the loss depends on. */
  minimize(loss, optimizer) {
    const real = [DType.float, DType.double, DType.half, DType.bfloat16];
    const variables = this.#graph.variables().filter((v) => real.includes(v.dtype)).map((v) => v.handle);
    if (!variables.length) throw invalid("minimize: the graph has no variables of real numbers");
    return this.apply(optimizer, variables, this.gradients(loss, variables));
  }

  #metric(name, f) {
    const m = new Record("tw_metric");
    this.add((s) => f(s, m.buffer));
    return { name, value: m.get("value"), update: new Operation(this.#graph, m.get("update")), reset: new Operation(this.#graph, m.get("reset")) };
  }
  accuracy(name, predictions, labels) {
    return this.#metric(name, (s, m) => low.tw_metric_accuracy(s, name, output(predictions, "predictions"), output(labels, "labels"), 0n, m));
  }
  meanMetric(name, values) { return this.#metric(name, (s, m) => low.tw_metric_mean(s, name, output(values, "values"), 0n, m)); }

  /** Datasets: elements for each row of values; a range of int64; lines of text files; records of TFRecord files. */
  rows(...components) { return new Dataset(this, this.add((s) => low.tw_dataset_rows(s, outputs(components, "components"), components.length))); }
  range(start, stop, step = 1) { return new Dataset(this, this.add((s) => low.tw_dataset_range(s, start, stop, step))); }
  lines(files) { return new Dataset(this, this.add((s) => low.tw_dataset_lines(s, output(files, "files")))); }
  records(files) { return new Dataset(this, this.add((s) => low.tw_dataset_records(s, output(files, "files")))); }
}

const abandoned = new FinalizationRegistry(({ address }) => {
  const status = low.tw_scope_finish(address); // `graph` was kept until here
  if (status) low.tw_status_release(status);
});

function numberOf(value, what) {
  if (typeof value !== "number") throw invalid(`${what} must be a number, not ${describe(value)}`);
  return value;
}

function addresses(operations) {
  return BigUint64Array.from(operations, (o) => BigInt(addressOf(o, Operation, "an operation")));
}

function flatGradients(gradients) {
  const pairs = listOf(gradients, "gradients").map((g) => {
    if (g === null || typeof g !== "object") throw invalid(`a gradient is {values, rows}, not ${describe(g)}`);
    return [output(g.values, "values"), output(g.rows, "rows")];
  });
  return BigUint64Array.from(pairs.flat());
}

function layerOptions({ seed = 0, bias = true, dtype = undefined, kernelInitializer = undefined } = {}) {
  const record = new Record("tw_layer_options");
  low.tw_layer_options_init(record.buffer);
  record.set("seed", whole(seed, "seed"));
  record.set("no_bias", bias ? 0 : 1);
  if (dtype !== undefined) record.set("dtype", dtype);
  if (kernelInitializer !== undefined) record.set("kernel_initializer", kernelInitializer);
  return record.buffer;
}

/** An optimizer: its kind, its learning rate (a number, or a value of a schedule), and options of train.h. */
class Optimizer {
  constructor(kind, rate, fields) {
    if (rate !== undefined && typeof rate !== "number" && typeof rate !== "bigint") throw invalid(`a learning rate is a number or a value, not ${describe(rate)}`);
    Object.assign(this, { kind, rate, fields });
  }
}
const optimizers = Object.fromEntries(["sgd", "momentum", "adam", "adamax", "adagrad", "adadelta", "rmsprop", "ftrl"]
  .map((kind) => [kind, (rate = undefined, fields = {}) => new Optimizer(kind, rate, fields)]));

/** Where elements come from and what happens to them. An element is one or more tensors. */
class Dataset {
  constructor(scope, value) {
    this.scope = scope;
    this.value = value;
  }
  #then(f) { return new Dataset(this.scope, this.scope.add((s) => f(s, this.value))); }
  take(n) { return this.#then((s, d) => low.tw_dataset_take(s, d, n)); }
  skip(n) { return this.#then((s, d) => low.tw_dataset_skip(s, d, n)); }
  shard(shards, index) { return this.#then((s, d) => low.tw_dataset_shard(s, d, shards, index)); }
  repeat(n = -1) { return this.#then((s, d) => low.tw_dataset_repeat(s, d, n)); }
  shuffle(buffer, seed = 0) { return this.#then((s, d) => low.tw_dataset_shuffle(s, d, buffer, seed, 1)); }
  batch(n) { return this.#then((s, d) => low.tw_dataset_batch(s, d, n, 0)); }
  prefetch(n) { return this.#then((s, d) => low.tw_dataset_prefetch(s, d, n)); }
  #function(callee, f) {
    if (typeof callee !== "function") throw invalid(`a function is needed, not ${describe(callee)}`);
    return this.#then((s, d) => {
      const components = new BigUint64Array(low.tw_dataset_component_count(low.tw_scope_graph(s), d));
      const block = low.tw_dataset_block(s, d, components);
      const inner = new Scope(this.scope.graph, "", low.tw_block_scope(block));
      let results;
      try {
        const given = callee(inner, ...components);
        results = outputs(Array.isArray(given) ? given : [given], "results");
      } catch (e) {
        low.tw_block_destroy(block);
        throw e;
      } finally {
        inner.end();
      }
      low.tw_block_give(block, results, results.length);
      return f(s, d, block);
    });
  }
  /** The results of a function for each element, which adds operations through its scope. */
  map(callee) { return this.#function(callee, (s, d, block) => low.tw_dataset_map(s, d, block, low.TW_DATASET_AUTO)); }
  filter(callee) { return this.#function(callee, (s, d, block) => low.tw_dataset_filter(s, d, block)); }
}

// Makes the functions of module ops from its table.
function defineOps(exports, table) {
  for (const [name, [type, inputs, required, attrs, results]] of Object.entries(table)) {
    exports[name] = (scope, ...given) => {
      if (!(scope instanceof Scope)) throw invalid(`${name}: the first argument must be a Scope, not ${describe(scope)}`);
      const want = inputs.length + required.length;
      if (given.length < want || given.length > want + 1) throw invalid(`${name} takes ${want} arguments behind the scope, and attributes, not ${given.length}`);
      const values = given.slice(0, inputs.length).map((v, i) => (inputs[i] ? listOf(v, `input ${i} of ${name}`) : v));
      const all = {};
      required.forEach((key, i) => { all[attrs[key][0]] = [attrs[key][1], attrs[key][2], given[inputs.length + i]]; });
      const more = given[want] === undefined ? {} : given[want];
      if (more === null || typeof more !== "object") throw invalid(`${name}: attributes are an object, not ${describe(more)}`);
      for (const [key, value] of Object.entries(more)) {
        if (attrs[key]) all[attrs[key][0]] = [attrs[key][1], attrs[key][2], value];
        else if (key !== "name" && key !== "device") throw invalid(`${name} has no attribute '${key}'`);
      }
      const operation = scope.build(type, values, all, more);
      if (!results.length) return operation;
      const found = operation.outputs, lists = results.reduce((a, b) => a + b, 0);
      if (lists > 1) return found;
      const at = lists ? results.indexOf(1) : results.length, behind = results.length - at - 1;
      const grouped = lists ? [...found.slice(0, at), found.slice(at, found.length - behind), ...found.slice(found.length - behind)] : found;
      return results.length === 1 ? grouped[0] : grouped;
    };
  }
}

module.exports = { Dataset, Graph, Operation, Optimizer, Scope, addresses, defineOps, optimizers, output, outputs, shapeOf };
