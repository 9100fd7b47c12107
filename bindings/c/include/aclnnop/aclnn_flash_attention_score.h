#ifndef OPSCOPE_ACLNN_FLASH_ATTENTION_SCORE_H
#define OPSCOPE_ACLNN_FLASH_ATTENTION_SCORE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax(scaleValue * (query @ key^T + realShiftOptional)) @ value, without what attenMaskOptional masks; sparse modes 0 to 6, without dropout */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionScoreGetWorkspaceSize(const aclTensor *query,
        const aclTensor *key, const aclTensor *value, const aclTensor *realShiftOptional,
        const aclTensor *dropMaskOptional, const aclTensor *paddingMaskOptional,
        const aclTensor *attenMaskOptional, const aclIntArray *prefixOptional, double scaleValue,
        double keepProb, int64_t preTokens, int64_t nextTokens, int64_t headNum,
        const char *inputLayout, int64_t innerPrecise, int64_t sparseMode, aclTensor *softmaxMaxOut,
        aclTensor *softmaxSumOut, aclTensor *softmaxOutOut, aclTensor *attentionOutOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionScore(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* as aclnnFlashAttentionScore; with pseType 0 realShiftOptional is added after the scale, with 1 before it */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionScoreV2GetWorkspaceSize(const aclTensor *query,
        const aclTensor *key, const aclTensor *value, const aclTensor *realShiftOptional,
        const aclTensor *dropMaskOptional, const aclTensor *paddingMaskOptional,
        const aclTensor *attenMaskOptional, const aclIntArray *prefixOptional,
        const aclIntArray *qStartIdxOptional, const aclIntArray *kvStartIdxOptional,
        double scaleValue, double keepProb, int64_t preTokens, int64_t nextTokens, int64_t headNum,
        const char *inputLayout, int64_t innerPrecise, int64_t sparseMode, int64_t pseType,
        aclTensor *softmaxMaxOut, aclTensor *softmaxSumOut, aclTensor *softmaxOutOut,
        aclTensor *attentionOutOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionScoreV2(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* as aclnnFlashAttentionScore, of samples that lie one after the other and end at the numbers of actualSeqQLenOptional and actualSeqKvLenOptional; sparse modes 0 to 4 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionVarLenScoreGetWorkspaceSize(
        const aclTensor *query, const aclTensor *key, const aclTensor *value,
        const aclTensor *realShiftOptional, const aclTensor *dropMaskOptional,
        const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional,
        const aclIntArray *prefixOptional, const aclIntArray *actualSeqQLenOptional,
        const aclIntArray *actualSeqKvLenOptional, double scaleValue, double keepProb,
        int64_t preTokens, int64_t nextTokens, int64_t headNum, const char *inputLayout,
        int64_t innerPrecise, int64_t sparseMode, aclTensor *softmaxMaxOut,
        aclTensor *softmaxSumOut, aclTensor *softmaxOutOut, aclTensor *attentionOutOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionVarLenScore(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/* as aclnnFlashAttentionVarLenScore */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionVarLenScoreV2GetWorkspaceSize(
        const aclTensor *query, const aclTensor *key, const aclTensor *value,
        const aclTensor *realShiftOptional, const aclTensor *dropMaskOptional,
        const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional,
        const aclIntArray *prefixOptional, const aclIntArray *actualSeqQLenOptional,
        const aclIntArray *actualSeqKvLenOptional, const aclIntArray *qStartIdxOptional,
        const aclIntArray *kvStartIdxOptional, double scaleValue, double keepProb,
        int64_t preTokens, int64_t nextTokens, int64_t headNum, const char *inputLayout,
        int64_t innerPrecise, int64_t sparseMode, int64_t pseType, aclTensor *softmaxMaxOut,
        aclTensor *softmaxSumOut, aclTensor *softmaxOutOut, aclTensor *attentionOutOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlashAttentionVarLenScoreV2(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
