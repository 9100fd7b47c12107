#ifndef OPSCOPE_ACL_PROF_H
#define OPSCOPE_ACL_PROF_H

/* Profiling of a device. Every function answers ACL_ERROR_API_NOT_SUPPORT, 0 or NULL. */

#include <stddef.h>
#include <stdint.h>

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Numbers */

#define ACL_PROF_ACL_API 0x0001ULL
#define ACL_PROF_TASK_TIME 0x0002ULL
#define ACL_PROF_AICORE_METRICS 0x0004ULL
#define ACL_PROF_AICPU 0x0008ULL
#define ACL_PROF_L2CACHE 0x0010ULL
#define ACL_PROF_HCCL_TRACE 0x0020ULL
#define ACL_PROF_TRAINING_TRACE 0x0040ULL
#define ACL_PROF_MSPROFTX 0x0080ULL
#define ACL_PROF_RUNTIME_API 0x0100ULL
#define ACL_PROF_GE_API_L0 0x0200ULL
#define ACL_PROF_TASK_TIME_L0 0x0800ULL
#define ACL_PROF_TASK_MEMORY 0x1000ULL
#define ACL_PROF_GE_API_L1 0x01000000ULL
#define ACL_PROF_TASK_TIME_L2 0x2000ULL
#define ACL_PROF_OP_ATTR 0x4000ULL
#define ACL_PROF_TASK_TIME_L3 0x8000ULL
#define ACL_PROF_API_STATS 0x400000000ULL
#define ACL_PROF_AICORE_SHAPE 0x800000000ULL
#define ACL_PROF_MAX_OP_NAME_LEN 257
#define ACL_PROF_MAX_OP_TYPE_LEN 65
#define ACL_PROF_TENSOR_DATA_SHAPE_LEN 8
#define ACL_PROF_EVENT_ATTR_VERSION 1

/* ---- Objects */

typedef struct aclprofConfig aclprofConfig;
typedef struct aclprofStopConfig aclprofStopConfig;
typedef struct aclprofAicoreEvents aclprofAicoreEvents;
typedef struct aclprofSubscribeConfig aclprofSubscribeConfig;
typedef struct aclprofStepInfo aclprofStepInfo;

/* ---- Enumerations */

typedef enum aclprofAicoreMetrics {
    ACL_AICORE_ARITHMETIC_UTILIZATION = 0,
    ACL_AICORE_PIPE_UTILIZATION = 1,
    ACL_AICORE_MEMORY_BANDWIDTH = 2,
    ACL_AICORE_L0B_AND_WIDTH = 3,
    ACL_AICORE_RESOURCE_CONFLICT_RATIO = 4,
    ACL_AICORE_MEMORY_UB = 5,
    ACL_AICORE_L2_CACHE = 6,
    ACL_AICORE_PIPE_EXECUTE_UTILIZATION = 7,
    ACL_AICORE_MEMORY_ACCESS = 8,
    ACL_AICORE_NONE = 0xFF
} aclprofAicoreMetrics;

typedef enum aclprofStepTag {
    ACL_STEP_START = 0,
    ACL_STEP_END = 1
} aclprofStepTag;

typedef enum aclprofSubscribeOpFlag {
    ACL_SUBSCRIBE_OP = 0,
    ACL_SUBSCRIBE_SUBGRAPH = 1,
    ACL_SUBSCRIBE_OP_THREAD = 2,
    ACL_SUBSCRIBE_NONE = 0xFF
} aclprofSubscribeOpFlag;

typedef enum aclprofSubscribeOpAttri {
    ACL_SUBSCRIBE_ATTRI_THREADID = 0,
    ACL_SUBSCRIBE_ATTRI_NONE = 1
} aclprofSubscribeOpAttri;

typedef enum aclprofConfigType {
    ACL_PROF_ARGS_MIN = 0,
    ACL_PROF_STORAGE_LIMIT = 1,
    ACL_PROF_SYS_HARDWARE_MEM_FREQ = 3,
    ACL_PROF_LLC_MODE = 4,
    ACL_PROF_SYS_IO_FREQ = 5,
    ACL_PROF_SYS_INTERCONNECTION_FREQ = 6,
    ACL_PROF_DVPP_FREQ = 7,
    ACL_PROF_HOST_SYS = 8,
    ACL_PROF_HOST_SYS_USAGE = 9,
    ACL_PROF_HOST_SYS_USAGE_FREQ = 10,
    ACL_PROF_LOW_POWER_FREQ = 11,
    ACL_PROF_SYS_MEM_SERVICEFLOW = 12,
    ACL_PROF_SYS_CPU_FREQ = 13,
    ACL_PROF_OPTYPE = 14,
    ACL_PROF_NTS_METRICS = 15,
    ACL_PROF_PATH = 16,
    ACL_PROF_ARGS_MAX = 17
} aclprofConfigType;

typedef enum aclprofMessageType {
    ACL_PROF_MESSAGE_TYPE_TENSOR_INFO = 0
} aclprofMessageType;

typedef struct aclprofTensor {
    uint32_t type;
    uint32_t format;
    uint32_t dataType;
    uint32_t shapeDim;
    uint32_t shape[ACL_PROF_TENSOR_DATA_SHAPE_LEN];
} aclprofTensor;

typedef struct aclprofTensorInfo {
    uint64_t opNameId;
    uint64_t opTypeId;
    uint32_t resv;
    uint32_t tensorNum;
    uint32_t kernelType;
    uint32_t blockNums;
    void *stream;
    aclprofTensor *tensors;
} aclprofTensorInfo;

typedef struct aclprofEventAttributes {
    uint16_t version;
    uint16_t size;
    uint32_t messageType;
    union Message {
        aclprofTensorInfo *tensorInfo;
    } message;
} aclprofEventAttributes;

/* ---- Functions */

ACL_FUNC_VISIBILITY aclError aclprofInit(const char *profiler_result_path, size_t length);
ACL_FUNC_VISIBILITY aclError aclprofFinalize(void);
ACL_FUNC_VISIBILITY aclError aclprofStart(const aclprofConfig *profiler_config);
ACL_FUNC_VISIBILITY aclprofConfig *aclprofCreateConfig(uint32_t *device_id_list, uint32_t device_nums,
                                                       aclprofAicoreMetrics aicore_metrics,
                                                       const aclprofAicoreEvents *aicore_events,
                                                       uint64_t data_type_config);
ACL_FUNC_VISIBILITY aclError aclprofDestroyConfig(const aclprofConfig *profiler_config);
ACL_FUNC_VISIBILITY aclError aclprofStop(const aclprofConfig *profiler_config);
ACL_FUNC_VISIBILITY aclError aclprofSetConfig(aclprofConfigType config_type, const char *config, size_t config_length);
ACL_FUNC_VISIBILITY aclError aclprofModelSubscribe(uint32_t model_id,
                                                   const aclprofSubscribeConfig *prof_subscribe_config);
ACL_FUNC_VISIBILITY aclError aclprofModelUnSubscribe(uint32_t model_id);
ACL_FUNC_VISIBILITY aclprofSubscribeConfig *aclprofCreateSubscribeConfig(int8_t time_info_switch,
                                                                         aclprofAicoreMetrics aicore_metrics, void *fd);
ACL_FUNC_VISIBILITY aclError aclprofDestroySubscribeConfig(const aclprofSubscribeConfig *prof_subscribe_config);
ACL_FUNC_VISIBILITY aclError aclprofGetOpDescSize(size_t *op_desc_size);
ACL_FUNC_VISIBILITY aclError aclprofGetOpNum(const void *op_info, size_t op_info_len, uint32_t *op_number);
ACL_FUNC_VISIBILITY aclError aclprofGetOpTypeLen(const void *op_info, size_t op_info_len, uint32_t index,
                                                 size_t *op_type_len);
ACL_FUNC_VISIBILITY aclError aclprofGetOpType(const void *op_info, size_t op_info_len, uint32_t index, char *op_type,
                                              size_t op_type_len);
ACL_FUNC_VISIBILITY aclError aclprofGetOpNameLen(const void *op_info, size_t op_info_len, uint32_t index,
                                                 size_t *op_name_len);
ACL_FUNC_VISIBILITY aclError aclprofGetOpName(const void *op_info, size_t op_info_len, uint32_t index, char *op_name,
                                              size_t op_name_len);
ACL_FUNC_VISIBILITY uint64_t aclprofGetOpStart(const void *op_info, size_t op_info_len, uint32_t index);
ACL_FUNC_VISIBILITY uint64_t aclprofGetOpEnd(const void *op_info, size_t op_info_len, uint32_t index);
ACL_FUNC_VISIBILITY uint64_t aclprofGetOpDuration(const void *op_info, size_t op_info_len, uint32_t index);
ACL_FUNC_VISIBILITY size_t aclprofGetModelId(const void *op_info, size_t op_info_len, uint32_t index);
ACL_FUNC_VISIBILITY aclprofSubscribeOpFlag aclprofGetOpFlag(const void *op_info, size_t op_info_len, uint32_t index);
ACL_FUNC_VISIBILITY const char *aclprofGetOpAttriValue(const void *op_info, size_t op_info_len, uint32_t index,
                                                       aclprofSubscribeOpAttri attri);
ACL_FUNC_VISIBILITY aclError aclprofGetStepTimestamp(aclprofStepInfo *step_info, aclprofStepTag tag,
                                                     aclrtStream stream);
ACL_FUNC_VISIBILITY aclprofStepInfo *aclprofCreateStepInfo(void);
ACL_FUNC_VISIBILITY void aclprofDestroyStepInfo(aclprofStepInfo *stepinfo);
ACL_FUNC_VISIBILITY void *aclprofCreateStamp(void);
ACL_FUNC_VISIBILITY void aclprofDestroyStamp(void *stamp);
ACL_FUNC_VISIBILITY aclError aclprofPush(void *stamp);
ACL_FUNC_VISIBILITY aclError aclprofPop(void);
ACL_FUNC_VISIBILITY aclError aclprofRangeStart(void *stamp, uint32_t *range_id);
ACL_FUNC_VISIBILITY aclError aclprofRangeStop(uint32_t range_id);
ACL_FUNC_VISIBILITY aclError aclprofSetStampTraceMessage(void *stamp, const char *msg, uint32_t msg_len);
ACL_FUNC_VISIBILITY aclError aclprofMark(void *stamp);
ACL_FUNC_VISIBILITY aclError aclprofMarkEx(const char *msg, size_t msg_len, aclrtStream stream);
ACL_FUNC_VISIBILITY uint64_t aclprofStr2Id(const char *message);
ACL_FUNC_VISIBILITY aclError aclprofRangePushEx(aclprofEventAttributes *attr);
ACL_FUNC_VISIBILITY aclError aclprofRangePop(void);

#ifdef __cplusplus
}
#endif

#endif
