//! Functions of device features: they exist so that programs link, and report an alternative.

use crate::table::refusals;

// ---- Search for similar features. ops/acl_fv.h

refusals! {
    because "there is no hardware for feature search; use a library for nearest neighbours";
    aclfvCreateInitPara(u64) -> usize;
    aclfvDestroyInitPara(usize);
    aclfvSet1NTopNum(usize, u32);
    aclfvSetNMTopNum(usize, u32);
    aclfvCreateFeatureInfo(u32, u32, u32, u32, u32, usize, u32) -> usize;
    aclfvDestroyFeatureInfo(usize);
    aclfvCreateRepoRange(u32, u32, u32, u32) -> usize;
    aclfvDestroyRepoRange(usize);
    aclfvCreateQueryTable(u32, u32, usize, u32) -> usize;
    aclfvDestroyQueryTable(usize);
    aclfvCreateSearchInput(usize, usize, u32) -> usize;
    aclfvDestroySearchInput(usize);
    aclfvCreateSearchResult(u32, usize, u32, usize, usize, usize, usize, u32) -> usize;
    aclfvDestroySearchResult(usize);
    aclfvInit(usize);
    aclfvRelease();
    aclfvRepoAdd(i32, usize);
    aclfvRepoDel(i32, usize);
    aclfvDel(usize);
    aclfvModify(usize);
    aclfvSearch(i32, usize, usize);
}

// ---- Channels of tensors. acl_tdt.h

refusals! {
    because "tensors reach a model in datasets (aclmdlAddDatasetBuffer); there is no device to send them to";
    acltdtGetTensorTypeFromItem(usize) -> i32;
    acltdtGetDataTypeFromItem(usize) -> i32;
    acltdtGetDataAddrFromItem(usize) -> usize;
    acltdtGetDataSizeFromItem(usize) -> usize;
    acltdtGetDimNumFromItem(usize) -> usize;
    acltdtGetSliceInfoFromItem(usize, usize, usize);
    acltdtGetDimsFromItem(usize, usize, usize);
    acltdtCreateDataItem(i32, usize, usize, i32, usize, usize) -> usize;
    acltdtDestroyDataItem(usize);
    acltdtCreateDataset() -> usize;
    acltdtDestroyDataset(usize);
    acltdtGetDataItem(usize, usize) -> usize;
    acltdtAddDataItem(usize, usize);
    acltdtGetDatasetSize(usize) -> usize;
    acltdtGetDatasetName(usize) -> usize;
    acltdtStopChannel(usize);
    acltdtCreateChannel(u32, usize) -> usize;
    acltdtCreateChannelWithCapacity(u32, usize, usize) -> usize;
    acltdtDestroyChannel(usize);
    acltdtCleanChannel(usize);
    acltdtSendTensor(usize, usize, i32);
    acltdtReceiveTensor(usize, usize, i32);
    acltdtQueryChannelSize(usize, usize);
}

// ---- Queues. acl_tdt_queue.h

refusals! {
    because "queues belong to a device; load models with aclmdlLoadFromFile and run them with datasets";
    acltdtCreateQueue(usize, usize);
    acltdtDestroyQueue(u32);
    acltdtEnqueue(u32, usize, i32);
    acltdtDequeue(u32, usize, i32);
    acltdtEnqueueData(u32, usize, usize, usize, usize, i32, u32);
    acltdtDequeueData(u32, usize, usize, usize, usize, usize, i32);
    acltdtGrantQueue(u32, i32, u32, i32);
    acltdtAttachQueue(u32, i32, usize);
    acltdtBindQueueRoutes(usize);
    acltdtUnbindQueueRoutes(usize);
    acltdtQueryQueueRoutes(usize, usize);
    acltdtAllocBuf(usize, u32, usize);
    acltdtFreeBuf(usize);
    acltdtGetBufData(usize, usize, usize);
    acltdtSetBufDataLen(usize, usize);
    acltdtGetBufDataLen(usize, usize);
    acltdtAppendBufChain(usize, usize);
    acltdtGetBufChainNum(usize, usize);
    acltdtGetBufFromChain(usize, u32, usize);
    acltdtGetBufUserData(usize, usize, usize, usize);
    acltdtSetBufUserData(usize, usize, usize, usize);
    acltdtCopyBufRef(usize, usize);
    acltdtCreateQueueAttr() -> usize;
    acltdtDestroyQueueAttr(usize);
    acltdtSetQueueAttr(usize, i32, usize, usize);
    acltdtGetQueueAttr(usize, i32, usize, usize, usize);
    acltdtCreateQueueRoute(u32, u32) -> usize;
    acltdtDestroyQueueRoute(usize);
    acltdtGetQueueRouteParam(usize, i32, usize, usize, usize);
    acltdtCreateQueueRouteList() -> usize;
    acltdtDestroyQueueRouteList(usize);
    acltdtAddQueueRoute(usize, usize);
    acltdtGetQueueRoute(usize, usize, usize);
    acltdtGetQueueRouteNum(usize) -> usize;
    acltdtCreateQueueRouteQueryInfo() -> usize;
    acltdtDestroyQueueRouteQueryInfo(usize);
    acltdtSetQueueRouteQueryInfo(usize, i32, usize, usize);
}

// ---- Profiling. acl_prof.h

refusals! {
    because "there is no device to profile; a profiler of the host, such as perf, shows where the time goes";
    aclprofInit(usize, usize);
    aclprofFinalize();
    aclprofStart(usize);
    aclprofCreateConfig(usize, u32, i32, usize, u64) -> usize;
    aclprofDestroyConfig(usize);
    aclprofStop(usize);
    aclprofSetConfig(i32, usize, usize);
    aclprofModelSubscribe(u32, usize);
    aclprofModelUnSubscribe(u32);
    aclprofCreateSubscribeConfig(i8, i32, usize) -> usize;
    aclprofDestroySubscribeConfig(usize);
    aclprofGetOpDescSize(usize);
    aclprofGetOpNum(usize, usize, usize);
    aclprofGetOpTypeLen(usize, usize, u32, usize);
    aclprofGetOpType(usize, usize, u32, usize, usize);
    aclprofGetOpNameLen(usize, usize, u32, usize);
    aclprofGetOpName(usize, usize, u32, usize, usize);
    aclprofGetOpStart(usize, usize, u32) -> u64;
    aclprofGetOpEnd(usize, usize, u32) -> u64;
    aclprofGetOpDuration(usize, usize, u32) -> u64;
    aclprofGetModelId(usize, usize, u32) -> usize;
    aclprofGetOpFlag(usize, usize, u32) -> i32;
    aclprofGetOpAttriValue(usize, usize, u32, i32) -> usize;
    aclprofGetStepTimestamp(usize, i32, usize);
    aclprofCreateStepInfo() -> usize;
    aclprofDestroyStepInfo(usize) -> ();
    aclprofCreateStamp() -> usize;
    aclprofDestroyStamp(usize) -> ();
    aclprofPush(usize);
    aclprofPop();
    aclprofRangeStart(usize, usize);
    aclprofRangeStop(u32);
    aclprofSetStampTraceMessage(usize, usize, u32);
    aclprofMark(usize);
    aclprofMarkEx(usize, usize, usize);
    aclprofStr2Id(usize) -> u64;
    aclprofRangePushEx(usize);
    aclprofRangePop();
}
