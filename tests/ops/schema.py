"""Parses the parts of op schemas that tests need: inputs, type attributes, and attributes without defaults."""
import functools
import re

import numpy as np
import thalweg
import tw

# Handles (resource) are scalars that only Identity and similar ops pass on; only the ops on lists make variants.
ALL = [name for name in (thalweg._low.tw_dtype_name(number).decode() for number in range(1, 33)) if name not in ("resource", "variant")]
# Values for attributes without defaults.
VALUES = {"strides": [1, 1, 1, 1], "ksize": [1, 1, 1, 1], "padding": "VALID", "shape": None, "num_split": 1, "num": 1,
          "key_index": 0, "value_index": 1, "source": "", "frame_name": "f", "shapes": [()], "component_index": 0,
          "has_known_shape": False, "output_shapes": [None], "shared_name": "", "container": "", "serialized_options": "", "num_sparse": 1,
          "dense_shapes": [()], "sample_rate": 8000.0, "bad_color": np.uint8([255, 0, 0, 255]),
          "merge_op": "Add", "final_op": "Id", "token": "nobody", "normalization_form": "NFC",
          "concat_dim": 0, "sparse_keys": ["k"], "dense_keys": ["k"], "context_sparse_keys": ["k"], "context_dense_keys": ["k"],
          "feature_list_sparse_keys": ["k"], "feature_list_dense_keys": ["k"], "feature_list_dense_missing_assumed_empty": ["k"],
          "suffix_indicator": "##", "max_bytes_per_word": 100, "use_unknown_token": True, "unknown_token": "[UNK]", "model": "{}",
          "columns": ["k"], "keys": ["k"], "format": "npy"}
# Numbers and shapes of features of messages, which inputs do not give; each list of types has one.
FEATURES = dict.fromkeys("Nsparse Ndense Ncontext_sparse Ncontext_dense Nfeature_list_sparse Nfeature_list_dense".split(), 1)
FEATURES |= {"context_dense_shapes": [()], "feature_list_dense_shapes": [()]}
ARGUMENT = re.compile(r"(\w+)\s*:\s*(?:ref\()?(\w+)\)?(?:\s*\[[^\]]*\])?(?:\s*\*\s*(\w+))?")
CLAUSE = re.compile(r"(\w+)\s*:\s*(\{[^}]*\}|list\(\{[^}]*\}\)|list\(\w+\)|(?:int|float|bool|string|shape|tensor|func|type)\b)"
                    r"(?:\s*>=\s*(-?\d+))?\s*(=[^;]*)?(?:;|$)")


type_of = functools.cache(thalweg.as_dtype)


class Schema:
    """A parsed schema. inputs: (name, type, count); types: the allowed types of each type attribute; lists: those that take a list; attrs:
    the kinds of the other attributes, a list of texts for a choice; needed: attributes without a default; counts: their lower bounds;
    given: values for the needed ones, with an unused name for functions; references: the names of inputs that are references."""

    def __init__(self, text, given=None):
        self.values = VALUES | (given or {})
        head, _, tail = " ".join(text.split()).partition(";")
        inputs = re.search(r"\((.*?)\)\s*->", head)[1]
        self.inputs, self.references = ARGUMENT.findall(inputs), set(re.findall(r"(\w+)\s*:\s*ref\(", inputs))
        self.types, self.lists, self.attrs, self.needed, self.counts = {}, set(), {}, [], {}
        for name, kind, least, default in CLAUSE.findall(tail):
            options = [option.strip() for option in kind.removeprefix("list(").strip("{})").split(",")]
            if kind in ("type", "list(type)"):
                self.types[name] = ALL
                if kind != "type":
                    self.lists.add(name)
            elif kind.startswith("list({"):
                self.types[name] = options
                self.lists.add(name)
            elif kind[0] == "{" and '"' not in kind:
                self.types[name] = options
            else:
                self.attrs[name] = [option.strip('"') for option in options] if kind[0] == "{" else kind
                self.counts[name] = int(least or 0)
                if not default:
                    self.needed.append(name)
                if kind in ("func", "list(func)"):
                    self.values.setdefault(name, tw.Func("nobody") if kind == "func" else [tw.Func("nobody")])

    def graph(self, op, choice):
        """Returns a graph with the op on these types."""
        graph = tw.Graph()
        graph.op(op, *self.placeholders(graph, choice), **self.given(choice))
        return graph

    def placeholders(self, graph, choice):
        """Returns placeholders for the inputs; for an input of variable length, the fewest that the schema allows, and at least one."""
        values = []
        for name, kind, count in self.inputs:
            dtype = type_of(choice.get(kind, kind))
            if name in self.references:
                values.append(graph.op("VariableV2", dtype=dtype, shape=None))
                continue
            values += [graph.placeholder(dtype) for _ in range(max(1, self.counts[count]) if count else 1)]
        return values

    def given(self, choice):
        """Returns the attributes for these types and for attributes without a default."""
        counted = {count for _, _, count in self.inputs}
        attrs = {a: [type_of(t)] if a in self.lists else type_of(t) for a, t in choice.items()}
        features = {a: FEATURES[a] for a in self.attrs if a in FEATURES}
        return attrs | {a: self.values[a] for a in self.needed if a not in counted} | features
