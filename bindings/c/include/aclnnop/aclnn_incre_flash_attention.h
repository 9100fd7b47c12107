#ifndef OPSCOPE_ACLNN_INCRE_FLASH_ATTENTION_H
#define OPSCOPE_ACLNN_INCRE_FLASH_ATTENTION_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax(scaleValue * query @ key^T) @ value for one token of each sample, of the first actualSeqLengths tokens of key and value; pseShift has no effect */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIncreFlashAttentionGetWorkspaceSize(const aclTensor *query,
        const aclTensorList *key, const aclTensorList *value, const aclTensor *pseShift,
        const aclTensor *attenMask, const aclIntArray *actualSeqLengths, int64_t numHeads,
        double scaleValue, const char *inputLayout, int64_t numKeyValueHeads,
        aclTensor *attentionOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnIncreFlashAttention(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
