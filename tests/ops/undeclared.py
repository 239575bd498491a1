"""Ops without a declaration, by the tests that have an oracle for them, written by hand. A new op does not belong here: declare it."""
UNDECLARED = {
    "ops/shapes_test.py": "Conv2D Conv2DBackpropInput Conv2DBackpropFilter MaxPool MaxPoolGrad MaxPoolGradGrad AvgPool AvgPoolGrad",
    "ops/random_test.py": "RandomUniform RandomUniformInt RandomStandardNormal TruncatedNormal",
    "ops/state_test.py":
        "VarHandleOp VarIsInitializedOp ReadVariableOp AssignVariableOp AssignAddVariableOp AssignSubVariableOp DestroyResourceOp "
        "ResourceGather ResourceScatterAdd ResourceScatterSub ResourceScatterUpdate SaveResource RestoreResources",
    "ops/training_test.py":
        "ResourceApplyGradientDescent ResourceApplyMomentum ResourceApplyAdagrad ResourceApplyAdagradV2 "
        "ResourceApplyAdadelta ResourceApplyRMSProp ResourceApplyCenteredRMSProp ResourceApplyAdam "
        "ResourceApplyAdaMax ResourceApplyFtrl ResourceApplyFtrlV2 ResourceSparseApplyMomentum "
        "ResourceSparseApplyAdagrad ResourceSparseApplyAdagradV2 ResourceSparseApplyAdadelta ResourceSparseApplyRMSProp "
        "ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2",
    "ops/string_test.py": "AsString StringJoin ShardedFilename ShardedFilespec",
    "ops/error_test.py": "Assert",
    "c_api/imported_test.c": "SaveV2 RestoreV2",
    "framework/io/checkpoint_peer_test.py": "MergeV2Checkpoints",
    "ops/kernels_test.py": "_Send _Recv",
    "ops/tw.py": "Const Placeholder",
    "python/scopes_test.py": "NoOp",
}
