// The C API: every function under its name, and what they need of memory. See low.d.ts.
"use strict";

const addon = require("../build/thalweg.node");
const { structs, constants } = require("./layouts.js");

// A record of C in a buffer. Fields are set and read by their names; what a pointer refers to is kept as long as the record.
class Record {
  constructor(name, fields = {}) {
    this.layout = structs[name];
    this.view = new DataView(new ArrayBuffer(this.layout.size));
    this.kept = [];
    if ("size" in this.layout.fields) this.set("size", this.layout.size);
    for (const key in fields) this.set(key, fields[key]);
  }

  // The record at an address of C, copied.
  static at(name, address) {
    const record = new Record(name);
    record.view = new DataView(addon.bytes(address, structs[name].size));
    return record;
  }

  set(field, value) {
    const [at, type] = this.layout.fields[field];
    switch (type) {
      case "p":
        if (value !== null && typeof value === "object") {
          this.kept.push(value);
          value = addon.address(value instanceof Record ? value.view : value);
        }
        this.view.setBigUint64(at, BigInt(value || 0), true);
        break;
      case "u64": this.view.setBigUint64(at, BigInt(value), true); break;
      case "i64": this.view.setBigInt64(at, BigInt(value), true); break;
      case "u32": this.view.setUint32(at, value, true); break;
      case "i32": this.view.setInt32(at, value, true); break;
      case "f64": this.view.setFloat64(at, value, true); break;
      default: throw new TypeError(`field ${field} of type ${type}`);
    }
  }

  get(field) {
    const [at, type] = this.layout.fields[field];
    switch (type) {
      case "p": return Number(this.view.getBigUint64(at, true));
      case "u64": return this.view.getBigUint64(at, true);
      case "i64": return this.view.getBigInt64(at, true);
      case "u32": return this.view.getUint32(at, true);
      case "i32": return this.view.getInt32(at, true);
      default: return this.view.getFloat64(at, true);
    }
  }

  get buffer() {
    return this.view;
  }
}

const encoder = new TextEncoder();

// Texts with their zeros, and a list of their addresses.
function texts(all) {
  const encoded = all.map((text) => encoder.encode(`${text}\0`));
  const list = BigUint64Array.from(encoded, (t) => BigInt(addon.address(t)));
  list.kept = encoded;
  return list;
}

// n addresses of C from an address, as numbers.
function pointers(address, n) {
  return n ? Array.from(new BigUint64Array(addon.bytes(address, 8 * n)), Number) : [];
}

module.exports = Object.assign({}, addon, constants, { Record, texts, pointers });
