#ifndef OPSCOPE_ACLNN_FLASH_ATTENTION_SCORE_GRAD_H
#define OPSCOPE_ACLNN_FLASH_ATTENTION_SCORE_GRAD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the gradients of aclnnFlashAttentionScore for query, keyIn and value; dy is that of its result, of which softmaxMaxOptional, softmaxSumOptional and attentionInOptional are read if they are given */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionScoreGradGetWorkspaceSize(
        const aclTensor *query, const aclTensor *keyIn, const aclTensor *value, const aclTensor *dy,
        const aclTensor *pseShiftOptional, const aclTensor *dropMaskOptional,
        const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional,
        const aclTensor *softmaxMaxOptional, const aclTensor *softmaxSumOptional,
        const aclTensor *softmaxInOptional, const aclTensor *attentionInOptional,
        const aclIntArray *prefixOptional, double scaleValue, double keepProb, int64_t preTokens,
        int64_t nextTokens, int64_t headNum, const char *inputLayout, int64_t innerPrecise,
        int64_t sparseMode, aclTensor *dqOut, aclTensor *dkOut, aclTensor *dvOut,
        aclTensor *dpseOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionScoreGrad(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/* the gradients of aclnnFlashAttentionScoreV2 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionScoreGradV2GetWorkspaceSize(
        const aclTensor *query, const aclTensor *keyIn, const aclTensor *value, const aclTensor *dy,
        const aclTensor *pseShiftOptional, const aclTensor *dropMaskOptional,
        const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional,
        const aclTensor *softmaxMaxOptional, const aclTensor *softmaxSumOptional,
        const aclTensor *softmaxInOptional, const aclTensor *attentionInOptional,
        const aclIntArray *prefixOptional, const aclIntArray *qStartIdxOptional,
        const aclIntArray *kvStartIdxOptional, double scaleValue, double keepProb,
        int64_t preTokens, int64_t nextTokens, int64_t headNum, const char *inputLayout,
        int64_t innerPrecise, int64_t sparseMode, int64_t pseType, aclTensor *dqOut,
        aclTensor *dkOut, aclTensor *dvOut, aclTensor *dpseOut, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionScoreGradV2(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/* the gradients of aclnnFlashAttentionVarLenScore */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionUnpaddingScoreGradGetWorkspaceSize(
        const aclTensor *query, const aclTensor *keyIn, const aclTensor *value, const aclTensor *dy,
        const aclTensor *pseShiftOptional, const aclTensor *dropMaskOptional,
        const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional,
        const aclTensor *softmaxMaxOptional, const aclTensor *softmaxSumOptional,
        const aclTensor *softmaxInOptional, const aclTensor *attentionInOptional,
        const aclIntArray *prefixOptional, const aclIntArray *actualSeqQLenOptional,
        const aclIntArray *actualSeqKvLenOptional, double scaleValue, double keepProb,
        int64_t preTokens, int64_t nextTokens, int64_t headNum, const char *inputLayout,
        int64_t innerPrecise, int64_t sparseMode, aclTensor *dqOut, aclTensor *dkOut,
        aclTensor *dvOut, aclTensor *dpseOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionUnpaddingScoreGrad(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
