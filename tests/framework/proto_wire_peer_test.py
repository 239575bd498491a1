"""Compares our messages with TensorFlow's, field by field: number, name, type, label, packing, oneof, map, enum values.

usage: proto_wire_peer_test.py PROTOSET        (thalweg.protoset in the build tree; needs the tensorflow package)

Every message and enum of ours must have a counterpart of the same name (or one named in RENAMED), with the same fields; a
field that TensorFlow has and we lack is reported too, since it would only survive as an unknown one.
"""

import importlib
import importlib.util
import os
import sys
import types

from google.protobuf import descriptor_pb2

PACKAGE = 'thalweg.proto'

# The modules of TensorFlow's counterparts. They are imported without the package's own __init__, which takes seconds.
MODULES = [
    'core.example.example_pb2', 'core.framework.attr_value_pb2', 'core.framework.full_type_pb2', 'core.framework.function_pb2',
    'core.framework.graph_debug_info_pb2', 'core.framework.graph_pb2', 'core.framework.node_def_pb2',
    'core.framework.op_def_pb2', 'core.framework.summary_pb2', 'core.framework.tensor_pb2', 'core.framework.tensor_slice_pb2',
    'core.framework.types_pb2', 'core.framework.variable_pb2', 'core.framework.versions_pb2', 'core.protobuf.meta_graph_pb2',
    'core.protobuf.saved_model_pb2', 'core.protobuf.saved_object_graph_pb2', 'core.protobuf.struct_pb2',
    'core.protobuf.tensor_bundle_pb2', 'core.util.event_pb2', 'python.training.checkpoint_state_pb2',
]
RENAMED = {'AnyValue': 'google.protobuf.Any', 'BoolWrapper': 'google.protobuf.BoolValue'}


def import_peer(module):
  """Imports tensorflow.<module>, giving each parent package a path but no contents."""
  if 'tensorflow' not in sys.modules:
    spec = importlib.util.find_spec('tensorflow')
    if spec is None:
      print('skipped: the tensorflow package is not installed; run tools/setup --peers')
      sys.exit(77)
    package = types.ModuleType('tensorflow')
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules['tensorflow'] = package
  name = 'tensorflow'
  for part in module.split('.')[:-1]:
    parent, name = sys.modules[name], name + '.' + part
    if name not in sys.modules:
      package = types.ModuleType(name)
      package.__path__ = [os.path.join(parent.__path__[0], part)]
      sys.modules[name] = package
  return importlib.import_module('tensorflow.' + module)


def collect(files):
  """Maps full names to message and enum protos, for all of `files`."""
  found = {}

  def visit(prefix, messages, enums):
    for enum in enums:
      found[prefix + enum.name] = enum
    for message in messages:
      found[prefix + message.name] = message
      visit(prefix + message.name + '.', message.nested_type, message.enum_type)

  for file in files:
    visit(file.package + '.', file.message_type, file.enum_type)
  return found


def peer_files():
  files = {}

  def add(descriptor):
    if descriptor.name not in files:
      proto = descriptor_pb2.FileDescriptorProto()
      descriptor.CopyToProto(proto)
      files[descriptor.name] = proto
      for dependency in descriptor.dependencies:
        add(dependency)

  for module in MODULES:
    add(import_peer(module).DESCRIPTOR)
  return files.values()


def theirs_of(ours):
  """Returns the full name of the counterpart of one of our messages or enums."""
  local = ours.removeprefix(PACKAGE + '.')
  return RENAMED.get(local, 'tensorflow.' + local)


def packed(field):
  """Returns whether a repeated field is written packed; proto3 packs numbers by default."""
  f = descriptor_pb2.FieldDescriptorProto
  if field.label != f.LABEL_REPEATED or field.type in (f.TYPE_STRING, f.TYPE_BYTES, f.TYPE_MESSAGE, f.TYPE_GROUP):
    return False
  return field.options.packed if field.options.HasField('packed') else True


def facts(message, field, rename):
  type_name = field.type_name.removeprefix('.')
  oneof = None
  if field.HasField('oneof_index') and not field.proto3_optional:
    oneof = message.oneof_decl[field.oneof_index].name
  return {
      'number': field.number,
      'type': descriptor_pb2.FieldDescriptorProto.Type.Name(field.type),
      'of': rename(type_name) if type_name else '',
      'label': descriptor_pb2.FieldDescriptorProto.Label.Name(field.label),
      'packed': packed(field),
      'oneof': oneof,
  }


def compare(name, ours, theirs):
  """Yields the differences between two messages or two enums."""
  if isinstance(ours, descriptor_pb2.EnumDescriptorProto):
    a, b = ({value.name: value.number for value in enum.value} for enum in (ours, theirs))
  else:
    a = {field.name: facts(ours, field, theirs_of) for field in ours.field}
    b = {field.name: facts(theirs, field, lambda type_name: type_name) for field in theirs.field}
  for field in sorted(a.keys() | b.keys()):
    if a.get(field) != b.get(field):
      yield f'{name}.{field}: ours {a.get(field, "missing")}, theirs {b.get(field, "missing")}'


def main():
  with open(sys.argv[1], 'rb') as file:
    ours = collect(descriptor_pb2.FileDescriptorSet.FromString(file.read()).file)
  theirs = collect(peer_files())
  differences = []
  for name, proto in ours.items():
    counterpart = theirs.get(theirs_of(name))
    if counterpart is None:
      differences.append(f'{name}: no {theirs_of(name)}')
    else:
      differences.extend(compare(name, proto, counterpart))
  for difference in differences:
    print(difference)
  print(f'{len(ours)} messages and enums compared, {len(differences)} differences')
  sys.exit(1 if differences or not ours else 0)


if __name__ == '__main__':
  main()
