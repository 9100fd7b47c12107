#ifndef OPSCOPE_ACLNN_INCRE_FLASH_ATTENTION_V2_H
#define OPSCOPE_ACLNN_INCRE_FLASH_ATTENTION_V2_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* as aclnnIncreFlashAttention, not quantised */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIncreFlashAttentionV2GetWorkspaceSize(const aclTensor *query,
        const aclTensorList *key, const aclTensorList *value, const aclTensor *pseShift,
        const aclTensor *attenMask, const aclIntArray *actualSeqLengths,
        const aclTensor *dequantScale1, const aclTensor *quantScale1,
        const aclTensor *dequantScale2, const aclTensor *quantScale2, const aclTensor *quantOffset2,
        int64_t numHeads, double scaleValue, const char *inputLayout, int64_t numKeyValueHeads,
        aclTensor *attentionOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnIncreFlashAttentionV2(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
