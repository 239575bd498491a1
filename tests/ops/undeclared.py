"""Ops without a declaration, by the tests that have an oracle for them, written by hand. A new op does not belong here: declare it."""
UNDECLARED = {
    "ops/state_test.py": "VarHandleOp DestroyResourceOp SaveResource RestoreResources",
    "ops/reference_test.py": "VariableV2 Variable",
    "ops/error_test.py": "Assert",
    "c_api/imported_test.c": "SaveV2 RestoreV2",
    "framework/io/checkpoint_peer_test.py": "MergeV2Checkpoints",
    "ops/kernels_test.py": "_Send _Recv",
    "ops/tw.py": "Const Placeholder",
    "python/scopes_test.py": "NoOp",
}
