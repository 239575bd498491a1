// Sessions, prepared runs, iterators, the training loop, checkpoints, models, servers.
"use strict";

const low = require("./low.js");
const { Handle, ThalwegError, addressOf, check, describe, errorOf, guarded, invalid, listOf, make, options } = require("./error.js");
const { Tensor, bufferText, sizes, tensorAddress } = require("./tensor.js");
const { Dataset, Graph, Operation, addresses, output, outputs, shapeOf } = require("./graph.js");

const { Record, pointers, texts } = low;

// A token that an AbortSignal cancels; its end is `end`. None without a signal.
function cancelling(signal, timeout) {
  if (signal === undefined && timeout === undefined) return { record: null, end() {} };
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid(`signal must be an AbortSignal, not ${describe(signal)}`);
  if (timeout !== undefined && !(typeof timeout === "number" && timeout > 0)) throw invalid(`timeout must be milliseconds above 0, not ${describe(timeout)}`);
  const token = make((out) => low.tw_cancel_token_create(out));
  const cancel = () => low.tw_cancel_token_cancel(token);
  if (signal) {
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
  }
  const record = new Record("tw_run_options", { cancel: token, timeout_ns: Math.ceil((timeout || 0) * 1e6) });
  return { record, token, end() {
    if (signal) signal.removeEventListener("abort", cancel);
    low.tw_cancel_token_destroy(token);
  } };
}

function withToken({ signal, timeout } = {}, f) {
  const cancel = cancelling(signal, timeout);
  try {
    return f(cancel);
  } finally {
    cancel.end();
  }
}

function signature(feeds, fetches, targets) {
  return new Record("tw_signature", {
    feeds, n_feeds: feeds.length, fetches, n_fetches: fetches.length, targets: addresses(targets), n_targets: targets.length });
}

function textOf(text, what) {
  if (typeof text !== "string" || text.includes("\0")) throw invalid(`${what} must be a text without zero characters, not ${describe(text)}`);
  return text;
}

function own(fetched) { return Array.from(fetched, (address) => Tensor.own(Number(address))); }

/** Runs a graph. */
class Session extends Handle {
  #graph;
  constructor(graph, given = undefined) {
    super(guarded(() => {
      const all = options(given, "options");
      return make((out) => low.tw_session_create(addressOf(graph, Graph, "a graph"), all, all.length, out));
    }), low.tw_session_destroy);
    this.#graph = graph;
  }
  get graph() { return this.#graph; }

  /** Empties a container of state, that of the session by default, and returns how many objects it held. */
  reset(container = "") {
    return guarded(() => make((out) => low.tw_session_reset(this.address, textOf(container, "the container"), out)));
  }

  /** Prepares a run, whose feeds and fetches have an order. */
  callable(feeds, fetches, targets = []) { return guarded(() => new Callable(this, feeds, fetches, targets)); }

  /** Runs one step: `feeds` is a Map, or pairs, of values and tensors. Returns the fetched tensors. */
  run(feeds, fetches = [], targets = [], given = {}) {
    return guarded(() => {
      const pairs = pairsOf(feeds);
      const tensors = BigUint64Array.from(pairs, ([, t]) => BigInt(tensorAddress(t, "a fed value")));
      const what = signature(outputs(pairs.map(([v]) => v), "feeds"), outputs(fetches, "fetches"), listOf(targets, "targets"));
      const out = new BigUint64Array(fetches.length), address = this.address;
      withToken(given, ({ record }) => check(low.tw_session_run(address, what.buffer, tensors, record && record.buffer, out)));
      return own(out);
    });
  }

  /** The same without blocking: a promise. `signal`, an AbortSignal, cancels it. */
  async runAsync(feeds, fetches = [], targets = [], given = {}) {
    const pairs = pairsOf(feeds);
    const callable = this.callable(pairs.map(([v]) => v), fetches, targets);
    try {
      return await callable.runAsync(pairs.map(([, t]) => t), given);
    } finally {
      callable.close();
    }
  }
}

function pairsOf(feeds) {
  if (feeds === null || feeds === undefined) return [];
  if (feeds instanceof Map) return [...feeds];
  return listOf(feeds, "feeds").map((pair) => listOf(pair, "a feed"));
}

/** A prepared run. */
class Callable extends Handle {
  #session;
  #feeds;
  #out;
  constructor(session, feeds, fetches, targets) {
    const what = signature(outputs(feeds, "feeds"), outputs(fetches, "fetches"), listOf(targets, "targets"));
    super(make((out) => low.tw_callable_create(session.address, what.buffer, out)), low.tw_callable_destroy);
    this.#session = session;
    this.#feeds = new BigUint64Array(feeds.length);
    this.#out = new BigUint64Array(fetches.length);
  }

  #fill(tensors) {
    if (listOf(tensors, "tensors").length !== this.#feeds.length) throw invalid(`the callable takes ${this.#feeds.length} tensors, not ${tensors.length}`);
    void this.#session.address; // the session must be open
    for (let i = 0; i < tensors.length; ++i) this.#feeds[i] = BigInt(tensorAddress(tensors[i], "a fed value"));
  }

  /** Runs the step with a tensor for each feed, and returns the fetches. */
  run(...tensors) {
    this.#fill(tensors);
    const address = this.address, out = this.#out;
    check(low.tw_callable_run(address, this.#feeds, null, out));
    const fetched = new Array(out.length);
    for (let i = 0; i < out.length; ++i) fetched[i] = Tensor.own(Number(out[i]));
    return fetched;
  }

  /** The same without blocking: a promise. */
  runAsync(tensors, { signal, timeout } = {}) {
    return new Promise((resolve, reject) => {
      guarded(() => {
        this.#fill(tensors);
        const address = this.address, cancel = cancelling(signal, timeout);
        const releases = [this.hold(), this.#session.hold()];
        const end = () => {
          cancel.end();
          releases.forEach((f) => f());
        };
        const status = low.runAsync(address, this.#feeds, cancel.record && cancel.record.buffer, this.#out.length, (failed, fetched) => {
          end();
          if (failed) reject(aborted(errorOf(failed), signal));
          else resolve(fetched.map((a) => Tensor.own(a)));
        });
        if (status) {
          end();
          check(status);
        }
      });
    });
  }
}

function aborted(error, signal) {
  if (error.code === "CANCELLED" && signal && signal.aborted) error.cause = signal.reason;
  return error;
}

/** The batches of a training loop; as an iterable, those of the rest of the epoch. */
class Batches extends Handle {
  #width;
  #record;
  #functions;
  constructor(address, width, record = null, functions = null) {
    super(address, record ? () => low.forget(functions.user) : low.tw_iterator_destroy);
    this.#width = width;
    this.#record = record;
    this.#functions = functions;
  }

  /** Rows of tensors with equal first sizes. */
  static of(tensors, { size = 32, seed = 0, shuffle = false, dropRemainder = false } = {}) {
    return guarded(() => {
      const all = BigUint64Array.from(listOf(tensors, "tensors"), (t) => BigInt(tensorAddress(t, "data")));
      const o = new Record("tw_batch_options");
      low.tw_batch_options_init(o.buffer);
      for (const [field, value] of Object.entries({ batch: size, seed })) {
        if (!Number.isSafeInteger(value)) throw invalid(`${field} must be a whole number, not ${describe(value)}`);
        o.set(field, value);
      }
      o.set("shuffle", shuffle ? 1 : 0);
      o.set("drop_remainder", dropRemainder ? 1 : 0);
      return new Batches(make((out) => low.tw_iterator_create_batches(all, all.length, o.buffer, out)), tensors.length);
    });
  }

  /** What a function returns: arrays of n tensors, and null at the end of an epoch. reset(epoch) begins one; without it there is only one. */
  static from(n, next, reset = null) {
    if (!Number.isSafeInteger(n) || n < 1 || typeof next !== "function" || (reset !== null && typeof reset !== "function"))
      throw invalid("an iterator needs the number of its tensors, and a function");
    const user = low.keep((what, places, epoch) => {
      if (what === "reset") return reset(epoch), 0;
      const batch = next();
      if (batch === null || batch === undefined) return low.write(places, 0, 0), 0;
      if (listOf(batch, "a batch").length !== n) throw invalid(`the iterator's function returned ${batch.length} tensors, not ${n}`);
      const all = batch.map((t) => tensorAddress(t, "a tensor of a batch"));
      all.forEach((address, i) => low.write(places, i, address));
      return 0;
    });
    const call = low.functions();
    const record = new Record("tw_iterator", { n_tensors: n, n_batches: -1, user, next: call.next, reset: reset ? call.reset : 0 });
    return new Batches(low.address(record.buffer), n, record, { user });
  }

  // Throws what a function of this iterator threw, if it did.
  rethrow() {
    const thrown = this.#functions && low.thrown(this.#functions.user);
    if (thrown) throw thrown.cause;
  }

  /** The next batch, or null at the end of the epoch. */
  next() {
    const out = new BigUint64Array(this.#width), end = new Uint32Array(1);
    const status = low.tw_iterator_next(this.address, out, end);
    if (status) {
      const error = errorOf(status);
      this.rethrow();
      throw error;
    }
    return end[0] ? null : own(out);
  }
  reset(epoch = 0) {
    return guarded(() => {
      const status = low.tw_iterator_reset(this.address, epoch);
      if (status) {
        const error = errorOf(status);
        this.rethrow();
        throw error;
      }
    });
  }
  *[Symbol.iterator]() {
    for (let batch; (batch = this.next()) !== null;) yield batch;
  }
}

/** Runs a dataset in a session of its own. */
Dataset.prototype.batches = function batches(given = undefined) {
  return guarded(() => {
    const graph = this.scope.graph, all = options(given, "options"), o = new Record("tw_dataset_iterator_options");
    low.tw_dataset_iterator_options_init(o.buffer);
    o.set("session", all);
    o.set("n_session", all.length);
    const width = low.tw_dataset_component_count(graph.address, this.value);
    return new Batches(make((out) => low.tw_dataset_iterator_create(graph.address, this.value, o.buffer, out)), width);
  });
};

/** Runs the training loop. */
class Trainer extends Handle {
  #names;
  #predictions;
  #kept; // graph and session outlive the trainer
  constructor(session, { feeds, inputs = 0, loss = 0n, step = null, training = 0n, metrics = [], predictions = [] }) {
    addressOf(session, Session, "a session");
    const m = new Record("tw_trainer_model");
    super(guarded(() => {
      low.tw_trainer_model_init(m.buffer);
      const list = listOf(metrics, "metrics").map((one) => {
        if (!one || !(one.update instanceof Operation)) throw invalid(`a metric is made by accuracy() or meanMetric(), not ${describe(one)}`);
        return new Record("tw_metric", { value: one.value, update: one.update.address, reset: one.reset.address });
      });
      const flat = new Uint8Array(32 * list.length);
      list.forEach((r, i) => flat.set(new Uint8Array(r.view.buffer), 32 * i));
      const fields = { graph: session.graph.address, session: session.address, feeds: outputs(feeds, "feeds"), n_feeds: feeds.length, n_inputs: inputs,
        loss: output(loss, "the loss"), training: output(training, "training"), step: step === null ? 0 : addressOf(step, Operation, "step"),
        n_metrics: list.length, metrics: flat, metric_names: texts(metrics.map((one) => one.name)),
        predictions: outputs(predictions, "predictions"), n_predictions: predictions.length };
      for (const [field, value] of Object.entries(fields)) m.set(field, value);
      return make((out) => low.tw_trainer_create(m.buffer, out));
    }), Trainer.#free([session.graph.hold(), session.hold()]));
    this.#kept = [session, session.graph];
    this.#predictions = predictions.length;
    this.#names = Array.from({ length: low.tw_trainer_value_count(this.address) }, (_, i) => low.tw_trainer_value_name(this.address, i));
  }
  static #free(releases) {
    return (address) => {
      low.tw_trainer_destroy(address);
      releases.forEach((f) => f());
    };
  }

  /** Trains over the batches. What a function throws comes back as it is. */
  fit(data, { epochs = 1, validation = null, watch = null, patience = 0, keepBest = false, largerIsBetter = false, progress = false, folder = null,
    everySteps = 0, afterStep = null, epochEnd = null } = {}) {
    return guarded(() => {
      const o = new Record("tw_fit_options"), report = new Record("tw_fit_report"), address = this.address;
      low.tw_fit_options_init(o.buffer);
      const flags = (keepBest ? low.TW_FIT_KEEP_BEST : 0) | (largerIsBetter ? low.TW_FIT_LARGER_IS_BETTER : 0) | (progress ? low.TW_FIT_PROGRESS : 0);
      const text = (t) => (t === null ? 0 : Buffer.from(`${t}\0`));
      for (const [name, value] of Object.entries({ epochs, patience, everySteps })) if (!Number.isSafeInteger(value)) throw invalid(`${name} must be a whole number, not ${describe(value)}`);
      const fields = { flags, epochs, patience, every_steps: everySteps, watch: text(watch), folder: text(folder),
        validation: validation === null ? 0 : addressOf(validation, Batches, "validation") };
      for (const [field, value] of Object.entries(fields)) o.set(field, value);
      for (const f of [afterStep, epochEnd]) if (f !== null && typeof f !== "function") throw invalid(`a callback must be a function, not ${describe(f)}`);
      const user = low.keep((what, at) => ((what === "afterStep" ? afterStep : epochEnd)(progressOf(at)) === true ? 1 : 0));
      const call = low.functions();
      const callback = new Record("tw_fit_callback", { user, after_step: afterStep ? call.afterStep : 0, epoch_end: epochEnd ? call.epochEnd : 0 });
      o.set("callbacks", callback);
      o.set("n_callbacks", 1);
      try {
        const status = low.tw_trainer_fit(address, addressOf(data, Batches, "data"), o.buffer, report.buffer);
        if (status) {
          const error = errorOf(status), thrown = low.thrown(user);
          if (thrown) throw thrown.cause;
          data.rethrow();
          if (validation) validation.rethrow();
          throw error;
        }
      } finally {
        low.forget(user);
      }
      const n = (field) => Number(report.get(field));
      return { epochs: n("epochs"), steps: n("steps"), resumedAt: n("resumed_at"), bestEpoch: n("best_epoch"), best: n("best"),
        stopped: n("why") !== low.TW_FIT_COMPLETE };
    });
  }

  /** The loss and the metrics over one epoch, by their names. */
  evaluate(data) {
    return guarded(() => {
      const values = new Float64Array(this.#names.length);
      this.#over(data, (address, batches) => low.tw_trainer_evaluate(address, batches, null, values));
      return Object.fromEntries(this.#names.map((name, i) => [name, values[i]]));
    });
  }

  /** The predictions for one epoch, with the rows of all batches. */
  predict(data) {
    return guarded(() => {
      const out = new BigUint64Array(this.#predictions);
      this.#over(data, (address, batches) => low.tw_trainer_predict(address, batches, null, out));
      return own(out);
    });
  }

  #over(data, f) {
    const status = f(this.address, addressOf(data, Batches, "data"));
    if (!status) return;
    const error = errorOf(status);
    data.rethrow();
    throw error;
  }
}

function progressOf(address) {
  const p = Record.at("tw_fit_progress", address), n = p.get("n_values"), number = (field) => Number(p.get(field));
  const names = pointers(p.get("names"), n).map((a) => low.text(a));
  const values = (field) => {
    const at = p.get(field);
    if (!at) return {};
    const all = new Float64Array(low.bytes(at, 8 * n));
    return Object.fromEntries(names.map((name, i) => [name, all[i]]));
  };
  return { epoch: number("epoch"), epochs: number("epochs"), step: number("step"), batch: number("batch"), values: values("values"),
    validation: values("validation"), improved: p.get("improved") !== 0, seconds: p.get("seconds") };
}

/** Writes variables to checkpoints in TensorFlow's format and reads them back. */
class Saver extends Handle {
  #graph; // outlives the saver
  constructor(graph, variables = []) {
    super(guarded(() => {
      const all = outputs(variables, "variables");
      return make((out) => low.tw_saver_create(addressOf(graph, Graph, "a graph"), all.length ? all : null, all.length, out));
    }), Saver.#free(graph.hold()));
    this.#graph = graph;
  }
  static #free(release) {
    return (address) => {
      low.tw_saver_destroy(address);
      release();
    };
  }
  save(session, prefix) { guarded(() => check(low.tw_saver_save(this.address, addressOf(session, Session, "a session"), prefix))); }
  restore(session, prefix) { guarded(() => check(low.tw_saver_restore(this.address, addressOf(session, Session, "a session"), prefix))); }
}

/** Reads the tensors of a checkpoint. */
class Checkpoint extends Handle {
  constructor(prefix) { super(guarded(() => make((out) => low.tw_checkpoint_open(prefix, out))), low.tw_checkpoint_close); }
  get names() { return Array.from({ length: low.tw_checkpoint_count(this.address) }, (_, i) => low.tw_checkpoint_name(this.address, i)); }
  read(name) { return guarded(() => Tensor.own(make((out) => low.tw_checkpoint_read(this.address, name, out)))); }
  /** Writes an object of tensors by name. */
  static write(prefix, tensors) {
    guarded(() => {
      const all = BigUint64Array.from(Object.values(tensors), (t) => BigInt(tensorAddress(t, "a value")));
      check(low.tw_checkpoint_write(prefix, texts(Object.keys(tensors)), all, all.length));
    });
  }
}

function valuesAt(address, n) {
  return pointers(address, n).map((at) => {
    const v = Record.at("tw_model_value", at);
    return { name: low.text(v.get("name")), dtype: v.get("dtype"), shape: shapeOf(Record.at("tw_shape", v.get("shape"))), optional: v.get("is_optional") !== 0 };
  });
}

function signatureAt(address) {
  const s = Record.at("tw_model_signature", address);
  return { name: low.text(s.get("name")), inputs: valuesAt(s.get("inputs"), s.get("n_inputs")), outputs: valuesAt(s.get("outputs"), s.get("n_outputs")) };
}

/** A model from a file: ONNX, a SavedModel, or what else a plugin imports. */
class Model extends Handle {
  #found = new Map();
  static load(path, { importer = null, options: importing = undefined, session = undefined } = {}) {
    return guarded(() => {
      const [a, b] = [options(importing, "options"), options(session, "session")];
      const o = new Record("tw_model_options", { importer: importer === null ? 0 : Buffer.from(`${importer}\0`), options: a, n_options: a.length,
        session_options: b, n_session_options: b.length });
      return new Model(make((out) => low.tw_model_load(null, path, o.buffer, out)), low.tw_model_destroy);
    });
  }
  get signatures() { return Array.from({ length: low.tw_model_signature_count(this.address) }, (_, i) => signatureAt(low.tw_model_signature_at(this.address, i))); }

  #prepare(inputs, name) {
    const address = this.address;
    if (!this.#found.has(name)) this.#found.set(name, signatureAt(make((out) => low.tw_model_find(address, name, out))));
    const s = this.#found.get(name);
    if (inputs === null || typeof inputs !== "object") throw invalid(`inputs are an object of tensors, not ${describe(inputs)}`);
    const known = s.inputs.map((v) => v.name);
    for (const key of Object.keys(inputs)) if (!known.includes(key)) throw invalid(`signature '${s.name}' has no input '${key}'; it has: ${known.join(", ")}`);
    const feeds = BigUint64Array.from(known, (key) => (inputs[key] === undefined ? 0n : BigInt(tensorAddress(inputs[key], `input '${key}'`))));
    return { address, s, feeds };
  }

  /** Runs a signature by the names in the file; without a name, the default one. */
  run(inputs, signatureName = null, given = {}) {
    return guarded(() => {
      const { address, s, feeds } = this.#prepare(inputs, signatureName), out = new BigUint64Array(s.outputs.length);
      withToken(given, ({ record }) => check(low.tw_model_run(address, signatureName, feeds, record && record.buffer, out)));
      return Object.fromEntries(own(out).map((tensor, i) => [s.outputs[i].name, tensor]));
    });
  }
}

/** One task of a cluster in this process. */
class Server extends Handle {
  constructor(cluster, job = null, task = 0, given = undefined) {
    super(guarded(() => {
      const all = options(given, "options");
      return make((out) => low.tw_server_create(null, typeof cluster === "string" ? cluster : JSON.stringify(cluster), job, task, all, all.length, out));
    }), low.tw_server_destroy);
  }
  start() { check(low.tw_server_start(this.address)); }
  stop() { check(low.tw_server_stop(this.address)); }
  get target() { return bufferText(make((out) => low.tw_server_address(this.address, out))); }
}

function resetContainer(container = "") {
  return guarded(() => make((out) => low.tw_runtime_reset(null, textOf(container, "the container"), out)));
}

function resetCluster(target, container = "", { timeout = 5000, ...given } = {}) {
  return guarded(() => {
    if (!(typeof timeout === "number" && timeout > 0)) throw invalid(`timeout must be milliseconds above 0, not ${describe(timeout)}`);
    const all = options({ ...given, target: textOf(target, "the target") }, "options"), limit = BigInt(Math.ceil(timeout * 1e6));
    return make((out) => low.tw_cluster_reset(null, all, all.length, textOf(container, "the container"), limit, out));
  });
}

module.exports = { Batches, Callable, Checkpoint, Model, Saver, Server, Session, Trainer, ThalwegError, resetCluster, resetContainer, sizes };
