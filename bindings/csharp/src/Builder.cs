using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using static Thalweg.Low;
using static Thalweg.ThalwegException;

namespace Thalweg
{
    public sealed unsafe partial class Scope
    {
        /// <summary>Describes one operation; class Ops uses one for each op.</summary>
        internal sealed class Builder
        {
            private readonly Scope scope;
            private readonly string op;
            private readonly string name;
            private readonly List<Action<IntPtr, Memory>> parts = new List<Action<IntPtr, Memory>>();

            internal Builder(Scope scope, string op, string name)
            {
                this.scope = scope;
                this.op = op;
                this.name = name;
            }

            internal void Input(Output value)
            {
                parts.Add((b, m) => tw_op_add_input(b, value.Id));
            }

            internal void Inputs(IList<Output> values)
            {
                ulong[] ids = Ids(values);
                parts.Add((b, m) => {
                    fixed (ulong* p = ids) tw_op_add_inputs(b, p, (uint)ids.Length);
                });
            }

            private void Set(string attr, object value, Action<IntPtr, byte[], Memory> call)
            {
                if (value == null) throw Invalid(op + ": attribute '" + attr + "' is null");
                byte[] key = Memory.Utf8(attr);
                parts.Add((b, m) => call(b, key, m));
            }

            internal void SetInt(string attr, long value)
            {
                Set(attr, value, (b, key, m) => tw_op_set_int(b, key, value));
            }

            internal void SetFloat(string attr, double value)
            {
                Set(attr, value, (b, key, m) => tw_op_set_float(b, key, value));
            }

            internal void SetBool(string attr, bool value)
            {
                Set(attr, value, (b, key, m) => tw_op_set_bool(b, key, (byte)(value ? 1 : 0)));
            }

            internal void SetString(string attr, string value)
            {
                Set(attr, value, (b, key, m) => {
                    byte[] bytes = Encoding.UTF8.GetBytes(value);
                    tw_op_set_string(b, key, bytes, (ulong)bytes.Length);
                });
            }

            internal void SetFunc(string attr, string value)
            {
                Set(attr, value, (b, key, m) => tw_op_set_func(b, key, Memory.Utf8(value)));
            }

            internal void SetType(string attr, DType value)
            {
                Set(attr, value, (b, key, m) => tw_op_set_type(b, key, (uint)value));
            }

            /// <summary>dims: null: not even the number of axes is known.</summary>
            internal void SetShape(string attr, long[] dims)
            {
                Set(attr, attr, (b, key, m) => {
                    fixed (long* d = dims) tw_op_set_shape(b, key, d, dims == null ? -1 : dims.Length);
                });
            }

            internal void SetTensor(string attr, Tensor value)
            {
                Set(attr, value, (b, key, m) => {
                    using (Used t = value.Use()) tw_op_set_tensor(b, key, t);
                });
            }

            internal void SetInts(string attr, long[] all)
            {
                Set(attr, all, (b, key, m) => tw_op_set_ints(b, key, m.Longs(all), (uint)all.Length));
            }

            internal void SetFloats(string attr, double[] all)
            {
                Set(attr, all, (b, key, m) => {
                    fixed (double* p = all) tw_op_set_floats(b, key, p, (uint)all.Length);
                });
            }

            internal void SetBools(string attr, bool[] all)
            {
                Set(attr, all, (b, key, m) => tw_op_set_bools(b, key, m.Bytes(all.Select(yes => (byte)(yes ? 1 : 0)).ToArray()), (uint)all.Length));
            }

            internal void SetStrings(string attr, string[] all)
            {
                Set(attr, all, (b, key, m) => tw_op_set_strings(b, key, m.Strings(all), (uint)all.Length));
            }

            internal void SetFuncs(string attr, string[] all)
            {
                Set(attr, all, (b, key, m) => tw_op_set_funcs(b, key, m.Strings(all), (uint)all.Length));
            }

            internal void SetTypes(string attr, DType[] all)
            {
                Set(attr, all, (b, key, m) => {
                    fixed (uint* p = all.Select(d => (uint)d).ToArray()) tw_op_set_types(b, key, p, (uint)all.Length);
                });
            }

            internal void SetShapes(string attr, long[][] all)
            {
                Set(attr, all, (b, key, m) => {
                    tw_shape* list = (tw_shape*)m.Room(sizeof(tw_shape) * (long)all.Length);
                    for (int i = 0; i < all.Length; ++i)
                    {
                        list[i].rank = all[i] == null ? -1 : all[i].Length;
                        list[i].dims = all[i] == null ? null : m.Longs(all[i]);
                    }
                    tw_op_set_shapes(b, key, list, (uint)all.Length);
                });
            }

            internal void SetTensors(string attr, Tensor[] all)
            {
                Set(attr, all, (b, key, m) => {
                    using (UsedTensors tensors = new UsedTensors(all))
                        fixed (IntPtr* p = tensors.Addresses) tw_op_set_tensors(b, key, p, (uint)all.Length);
                });
            }

            internal Operation End(string file, int line)
            {
                return scope.Done(file, line, s => {
                    IntPtr b = tw_scope_begin(s, Memory.Utf8(op), Memory.Utf8(name));
                    try
                    {
                        using (Memory memory = new Memory())
                            foreach (Action<IntPtr, Memory> part in parts) part(b, memory);
                    }
                    catch
                    {
                        tw_op_destroy(b);
                        throw;
                    }
                    return tw_scope_end_operation(s, b);
                });
            }
        }

        internal static Builder Begin(Scope scope, string op, string name)
        {
            if (scope == null) throw Invalid("the scope is null");
            return new Builder(scope, op, name);
        }
    }
}
