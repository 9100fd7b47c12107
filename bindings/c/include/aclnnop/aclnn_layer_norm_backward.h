#ifndef OPSCOPE_ACLNN_LAYER_NORM_BACKWARD_H
#define OPSCOPE_ACLNN_LAYER_NORM_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the gradients of aclnnLayerNorm that outputMask asks for; others get 0 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLayerNormBackwardGetWorkspaceSize(const aclTensor *gradOut,
        const aclTensor *input, const aclIntArray *normalizedShape, const aclTensor *mean,
        const aclTensor *rstd, const aclTensor *weightOptional, const aclTensor *biasOptional,
        const aclBoolArray *outputMask, aclTensor *gradInputOut, aclTensor *gradWeightOut,
        aclTensor *gradBiasOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLayerNormBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
