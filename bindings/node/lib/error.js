// Failures, and handles of objects of C.
"use strict";

const low = require("./low.js");

// A failure of the library. `code` is the name of the status's code; `operation` the name of the operation that failed, `place` the line of
// the program that made it.
class ThalwegError extends Error {
  constructor(code, message, operation = null, place = null, options = undefined) {
    super(message, options);
    this.name = "ThalwegError";
    this.code = code;
    this.operation = operation;
    this.place = place;
  }
}

function errorOf(status) {
  const code = low.tw_status_code_name(low.tw_status_code(status));
  const error = new ThalwegError(code, low.tw_status_message(status), low.tw_status_operation(status), low.tw_status_place(status));
  low.tw_status_release(status);
  return error;
}

// Throws the failure of a status, which it releases; 0 is success.
function check(status) {
  if (status !== 0) throw errorOf(status);
}

function invalid(message) {
  return new ThalwegError("INVALID_ARGUMENT", message);
}

// Calls f with room for an address and returns what C put there.
const room = new BigUint64Array(1);
function make(f) {
  room[0] = 0n;
  check(f(room));
  return Number(room[0]);
}

const forgotten = new FinalizationRegistry((state) => state.end());

// What a handle needs to end its object; it refers to no handle, so that the garbage collector can find forgotten ones.
class State {
  constructor(address, free) {
    this.address = address;
    this.free = free;
    this.users = 0; // asynchronous runs
    this.closed = false;
  }
  end() {
    if (this.address && this.users === 0) {
      const address = this.address;
      this.address = 0;
      this.free(address);
    }
  }
}

// An object of C. `close` ends it, and so does the garbage collector, later; `using` closes it where the engine knows Symbol.dispose.
class Handle {
  #state;
  constructor(address, free) {
    this.#state = new State(address, free);
    forgotten.register(this, this.#state, this.#state);
  }
  // The address, for a call of C.
  get address() {
    const state = this.#state;
    if (state.closed) throw new ThalwegError("FAILED_PRECONDITION", `the ${this.constructor.name} is closed`);
    return state.address;
  }
  get closed() {
    return this.#state.closed;
  }
  close() {
    const state = this.#state;
    if (state.closed) return;
    state.closed = true;
    forgotten.unregister(state);
    state.end();
  }
  // Keeps the object while a run is in progress, although the program closes it; returns the function that ends this.
  hold() {
    const state = this.#state;
    state.users++;
    return () => {
      state.users--;
      if (state.closed) state.end();
    };
  }
}
if (Symbol.dispose) Handle.prototype[Symbol.dispose] = Handle.prototype.close;

// Checks that a value is an object of a class of this package, and returns its address.
function addressOf(value, type, what) {
  if (!(value instanceof type)) throw invalid(`${what} must be a ${type.name}, not ${describe(value)}`);
  return value.address;
}

function describe(value) {
  if (value === null || value === undefined || typeof value === "boolean") return String(value);
  if (typeof value === "object") return `an object of ${value.constructor ? value.constructor.name : "no class"}`;
  return `a ${typeof value}`;
}

// Converts the TypeErrors of wrong types of arguments: all failures of the package are one kind of error.
function guarded(f) {
  try {
    return f();
  } catch (e) {
    if (e instanceof TypeError && e.code === "INVALID_ARGUMENT") throw new ThalwegError("INVALID_ARGUMENT", e.message, null, null, { cause: e });
    throw e;
  }
}

function listOf(values, what) {
  if (!Array.isArray(values)) throw invalid(`${what} must be an array, not ${describe(values)}`);
  return values;
}

// Options of a session, an importer, a server: {threads: 2, container: "eval"} as texts "key=value".
function options(given, what) {
  if (given === undefined || given === null) return low.texts([]);
  if (typeof given !== "object" || Array.isArray(given)) throw invalid(`${what} must be an object, not ${describe(given)}`);
  const all = [];
  for (const [key, value] of Object.entries(given)) for (const one of Array.isArray(value) ? value : [value]) all.push(`${key}=${one}`);
  if (all.some((text) => text.includes("\0"))) throw invalid(`${what} has a zero character`);
  return low.texts(all);
}

module.exports = { ThalwegError, errorOf, check, invalid, make, Handle, addressOf, describe, guarded, listOf, options };
