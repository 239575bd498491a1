package org.thalweg;

import static org.thalweg.ThalwegException.check;
import static org.thalweg.ThalwegException.invalid;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A model from a file: ONNX, a SavedModel, or what else a plugin imports. Any number of threads may run it at once. */
public final class Model extends Handle {
    /** An input or output; shape null: not even the number of axes is known. */
    public record Value(String name, DType dtype, long[] shape, boolean optional) {}

    /** One way to run a model. */
    public record Signature(String name, List<Value> inputs, List<Value> outputs) {}

    private Model(long address) {
        super(address, Low::tw_model_destroy);
    }

    /** Loads a model file or folder. sessionOptions: "key=value", such as "threads=2". */
    public static Model load(String path, String... sessionOptions) {
        if (path == null) throw invalid("the path is null");
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room o = frame.room(Low.tw_model_options).setInt(0, Low.tw_model_options), out = frame.room(8);
            o.setLong(Low.tw_model_options__session_options, frame.texts(Memory.list(sessionOptions)));
            o.setInt(Low.tw_model_options__n_session_options, sessionOptions.length);
            check(Low.tw_model_load(0, Memory.utf8(path), o.address, out.address));
            return new Model(out.getLong(0));
        }
    }

    private static List<Value> values(long list, int n) {
        List<Value> all = new ArrayList<>();
        for (int i = 0; i < n; ++i) {
            ByteBuffer v = Memory.at(Memory.at(list, 8L * n).getLong(8 * i), Low.tw_model_value);
            all.add(new Value(Memory.string(v.getLong(Low.tw_model_value__name)), DType.of(v.getInt(Low.tw_model_value__dtype)),
                    Graph.shapeAt(v.getLong(Low.tw_model_value__shape)), v.getInt(Low.tw_model_value__is_optional) != 0));
        }
        return all;
    }

    private static Signature signature(long address) {
        ByteBuffer s = Memory.at(address, Low.tw_model_signature);
        return new Signature(Memory.string(s.getLong(Low.tw_model_signature__name)),
                values(s.getLong(Low.tw_model_signature__inputs), s.getInt(Low.tw_model_signature__n_inputs)),
                values(s.getLong(Low.tw_model_signature__outputs), s.getInt(Low.tw_model_signature__n_outputs)));
    }

    /** The ways to run the model. */
    public List<Signature> signatures() {
        return with(m -> {
            List<Signature> all = new ArrayList<>();
            for (int i = 0; i < Low.tw_model_signature_count(m); ++i) all.add(signature(Low.tw_model_signature_at(m, i)));
            return all;
        });
    }

    /** Runs the default signature by the names in the file. */
    public Map<String, Tensor> run(Map<String, Tensor> inputs) {
        return run(null, inputs, null);
    }

    /** Runs a signature; null is the default one. */
    public Map<String, Tensor> run(String name, Map<String, Tensor> inputs, RunOptions options) {
        if (inputs == null) throw invalid("the inputs are null");
        return with(m -> (options == null ? RunOptions.NONE : options).with(o -> {
            List<Tensor> used = new ArrayList<>();
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room found = frame.room(8);
                check(Low.tw_model_find(m, Memory.utf8(name), found.address));
                Signature s = signature(found.getLong(0));
                List<String> known = s.inputs().stream().map(Value::name).toList();
                for (String key : inputs.keySet())
                    if (!known.contains(key)) throw invalid("signature '" + s.name() + "' has no input '" + key + "'; it has: " + String.join(", ", known));
                Memory.Room in = frame.room(8 * known.size()), out = frame.room(8 * s.outputs().size());
                for (int i = 0; i < known.size(); ++i) {
                    Tensor tensor = inputs.get(known.get(i));
                    if (tensor == null) continue;
                    in.setLong(8 * i, tensor.use());
                    used.add(tensor);
                }
                check(Low.tw_model_run(m, Memory.utf8(name), in.address, o, out.address));
                Map<String, Tensor> all = new LinkedHashMap<>();
                List<Tensor> outputs = Tensor.own(out, s.outputs().size());
                for (int i = 0; i < outputs.size(); ++i) all.put(s.outputs().get(i).name(), outputs.get(i));
                return all;
            } finally {
                used.forEach(Tensor::leave);
            }
        }));
    }
}
