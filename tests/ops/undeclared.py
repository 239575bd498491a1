"""Ops without a declaration, grouped by the hand-written tests that have an oracle for them. Declare a new op instead of adding it here."""
UNDECLARED = {
    "ops/snapshot_test.py": "ReadVariables AssignVariables",
    "ops/state_test.py": "VarHandleOp DestroyResourceOp SaveResource RestoreResources",
    "ops/accumulator_test.py": "ResourceConditionalAccumulator ResourceAccumulatorApplyGradient ResourceAccumulatorNumAccumulated "
                               "ResourceAccumulatorSetGlobalStep ResourceAccumulatorTakeGradient",
    "ops/sparse_accumulator_test.py": "ConditionalAccumulator AccumulatorApplyGradient AccumulatorNumAccumulated AccumulatorSetGlobalStep "
                                      "AccumulatorTakeGradient SparseConditionalAccumulator SparseAccumulatorApplyGradient "
                                      "SparseAccumulatorTakeGradient ResourceSparseConditionalAccumulator "
                                      "ResourceSparseAccumulatorApplyGradient ResourceSparseAccumulatorTakeGradient",
    "ops/barrier_test.py": "Barrier BarrierInsertMany BarrierTakeMany BarrierClose BarrierReadySize BarrierIncompleteSize ResourceBarrier "
                           "ResourceBarrierInsertMany ResourceBarrierTakeMany ResourceBarrierClose ResourceBarrierReadySize "
                           "ResourceBarrierIncompleteSize",
    "ops/mutex_test.py": "MutexV2 MutexLock ConsumeMutexLock",
    "ops/staging_test.py": "Stage Unstage StagePeek StageSize StageClear",
    "ops/map_staging_test.py": "MapStage MapUnstage MapUnstageNoKey MapPeek MapSize MapIncompleteSize MapClear OrderedMapStage OrderedMapUnstage "
                               "OrderedMapUnstageNoKey OrderedMapPeek OrderedMapSize OrderedMapIncompleteSize OrderedMapClear",
    "ops/queue_test.py": "FIFOQueueV2 RandomShuffleQueueV2 PaddingFIFOQueueV2 PriorityQueueV2 QueueEnqueueV2 QueueEnqueueManyV2 "
                         "QueueDequeueV2 QueueDequeueManyV2 QueueDequeueUpToV2 QueueCloseV2 QueueIsClosedV2 QueueSizeV2 FIFOQueue RandomShuffleQueue "
                         "PaddingFIFOQueue PriorityQueue QueueEnqueue QueueEnqueueMany QueueDequeue QueueDequeueMany QueueDequeueUpTo "
                         "QueueClose QueueIsClosed QueueSize",
    "ops/reference_test.py": "VariableV2 Variable",
    "ops/error_test.py": "Assert",
    "ops/list_test.py": "EmptyTensorList TensorListReserve TensorListPushBack TensorListPopBack TensorListGetItem TensorListSetItem "
                        "TensorListLength TensorListResize TensorListElementShape TensorListStack TensorListFromTensor TensorListGather "
                        "TensorListScatter TensorListScatterV2 TensorListScatterIntoExistingList TensorListConcat TensorListConcatV2 "
                        "TensorListSplit TensorListConcatLists TensorListPushBackBatch",
    "ops/tensor_array_test.py": "TensorArrayV3 TensorArrayGradV3 TensorArrayGradWithShape TensorArrayWriteV3 TensorArrayReadV3 "
                                "TensorArrayGatherV3 TensorArrayScatterV3 TensorArrayConcatV3 TensorArraySplitV3 TensorArraySizeV3 "
                                "TensorArrayCloseV3",
    "ops/optional_test.py": "OptionalFromValue OptionalNone OptionalHasValue OptionalGetValue",
    "ops/stack_test.py": "StackV2 StackPushV2 StackPopV2 StackCloseV2",
    "ops/lookup_test.py": "HashTableV2 MutableHashTableV2 MutableHashTableOfTensorsV2 MutableDenseHashTableV2 LookupTableFindV2 "
                          "LookupTableInsertV2 LookupTableRemoveV2 LookupTableSizeV2 LookupTableExportV2 LookupTableImportV2 "
                          "InitializeTableV2 InitializeTableFromTextFileV2",
    "ops/checkpoint_test.py": "SaveV2 RestoreV2 MergeV2Checkpoints",
    "ops/kernels_test.py": "_Send _Recv",
    "ops/tw.py": "Const Placeholder",
    "python/collectives_test.py": "CollectiveReduceV2 CollectiveReduceScatterV2 CollectiveGatherV2 CollectiveAllToAllV2 "
                                  "CollectiveBcastSendV2 CollectiveBcastRecvV2 CollectivePermute",
    "python/data_image_test.py": "DecodePng DecodeJpeg DecodeAndCropJpeg ExtractJpegShape DecodeBmp DecodeImage EncodePng EncodeJpeg "
                                 "EncodeJpegVariableQuality",
    "python/data_frames_test.py": "DecodeGif DecodeWebP",
    "python/data_sound_test.py": "DecodeFlac",
    "python/data_decode_test.py": "DecodeCSV DecodeWav EncodeWav",
    "python/data_example_test.py": "ParseExampleV2 ParseExample ParseSingleExample",
    "python/data_sequence_example_test.py": "ParseSequenceExample ParseSequenceExampleV2 ParseSingleSequenceExample",
    "python/data_ops_test.py": "TensorDataset TensorSliceDataset RangeDataset RandomDataset GeneratorDataset TFRecordDataset "
                               "TextLineDataset FixedLengthRecordDatasetV2 TakeDataset SkipDataset ShardDataset RepeatDataset "
                               "ConcatenateDataset ZipDataset ShuffleDatasetV3 CacheDatasetV2 PrefetchDataset OptionsDataset "
                               "BatchDatasetV2 ParallelBatchDataset PaddedBatchDatasetV2 UnbatchDataset WindowDataset "
                               "MapDataset ParallelMapDatasetV2 FilterDataset TakeWhileDataset FlatMapDataset InterleaveDataset "
                               "ParallelInterleaveDatasetV4 ScanDataset IteratorV2 AnonymousIteratorV3 MakeIterator "
                               "MakeEpochIterator IteratorGetNext IteratorGetNextSync DatasetCardinality DummyMemoryCache "
                               "DummySeedGenerator GroupByWindowDataset CSVDatasetV2 CsvColumnsDataset JsonLinesDataset "
                               "ArrayFilesDataset IgnoreErrorsDataset",
    "python/text_test.py": "CaseFoldUTF8 NormalizeUTF8 RegexSplitWithOffsets WordpieceTokenizeWithOffsets SentencepieceOp SentencepieceTokenizeOp "
                           "SentencepieceTokenizeWithOffsetsOp SentencepieceDetokenizeOp SentencepieceVocabSizeOp SentencepieceIdToStringOp "
                           "SentencepieceStringToIdOp TextTokenizer TextTokenizerEncode TextTokenizerDecode TextTokenizerVocabSize "
                           "TextTokenizerIdToString TextTokenizerStringToId",
    "python/summary_ops_test.py": "ScalarSummary HistogramSummary ImageSummary AudioSummary AudioSummaryV2 TensorSummary TensorSummaryV2 "
                                  "MergeSummary SummaryWriter CreateSummaryFileWriter CloseSummaryWriter FlushSummaryWriter "
                                  "WriteScalarSummary WriteHistogramSummary WriteImageSummary WriteAudioSummary WriteSummary "
                                  "WriteGraphSummary WriteRawProtoSummary ImportEvent",
    "python/flow_test.py": "If StatelessIf Case StatelessCase While StatelessWhile For PartitionedCall StatefulPartitionedCall",
    "python/host_functions_test.py": "PyFunc PyFuncStateless EagerPyFunc",
    "python/scopes_test.py": "NoOp",
    "ops/control_flow_test.py": "RefSwitch RefMerge RefSelect RefEnter RefExit RefNextIteration _SelectHandle",
    "framework/runtime/frame_run_test.cc": "Switch Merge Enter Exit NextIteration LoopCond ControlTrigger Abort",
}

# Files of ops/ whose tests have other names than FAMILY/NAME.py and NAME_test.py.
NAMED_OTHERWISE = {
    "array/const": "ops/tw.py", "control/abort": "framework/runtime/frame_run_test.cc", "control/assert": "ops/error_test.py",
    "collective/collectives": "python/collectives_test.py", "control/check_numerics": "ops/array/passed.py", "control/control_trigger": "framework/runtime/frame_run_test.cc",
    "control/loop": "framework/runtime/frame_run_test.cc", "control/no_op": "python/scopes_test.py", "control/send_recv": "ops/kernels_test.py",
    "control/switch": "framework/runtime/frame_run_test.cc", "data/decode": "python/data_decode_test.py", "data/image": "python/data_image_test.py",
    "data/iterator": "python/data_ops_test.py", "data/parse_example": "python/data_example_test.py", "data/parse_sequence_example": "python/data_sequence_example_test.py",
    "data/source": "python/data_ops_test.py", "data/transform": "python/data_ops_test.py", "functional/call": "python/flow_test.py", "functional/if": "python/flow_test.py",
    "functional/py_func": "python/host_functions_test.py",
    "functional/while": "python/flow_test.py", "io/summary": "python/summary_ops_test.py", "io/summary_writer": "python/summary_ops_test.py",
    "list/tensor_list": "ops/list_test.py", "lookup/lookup_table": "ops/lookup_test.py",
    "nn/recurrent": "ops/nn/lstm.py",
    **{f"text/{name}": "python/text_test.py" for name in ("normalize", "regex_split", "sentencepiece", "tokenizer", "wordpiece")},
    "random/key_counter": "ops/random/stateless_seed.py", "state/saved_resource": "ops/state_test.py",
}
