#ifndef OPSCOPE_ACLNN_FUSED_INFER_ATTENTION_SCORE_H
#define OPSCOPE_ACLNN_FUSED_INFER_ATTENTION_SCORE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax(scaleValue * query @ key^T + pseShift) @ value, without what attenMask masks, of the first actualSeqLengthsKv tokens of key and value, which may lie in blocks; sparse modes 0 to 4, not quantised */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFusedInferAttentionScoreGetWorkspaceSize(
        const aclTensor *query, const aclTensorList *key, const aclTensorList *value,
        const aclTensor *pseShift, const aclTensor *attenMask, const aclIntArray *actualSeqLengths,
        const aclIntArray *actualSeqLengthsKv, const aclTensor *deqScale1,
        const aclTensor *quantScale1, const aclTensor *deqScale2, const aclTensor *quantScale2,
        const aclTensor *quantOffset2, const aclTensor *antiquantScale,
        const aclTensor *antiquantOffset, const aclTensor *blockTable,
        const aclTensor *queryPaddingSize, const aclTensor *kvPaddingSize, int64_t numHeads,
        double scaleValue, int64_t preTokens, int64_t nextTokens, const char *inputLayout,
        int64_t numKeyValueHeads, int64_t sparseMode, int64_t innerPrecise, int64_t blockSize,
        int64_t antiquantMode, bool softmaxLseFlag, aclTensor *attentionOut, aclTensor *softmaxLse,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFusedInferAttentionScore(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
