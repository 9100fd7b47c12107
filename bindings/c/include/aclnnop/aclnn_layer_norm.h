#ifndef OPSCOPE_ACLNN_LAYER_NORM_H
#define OPSCOPE_ACLNN_LAYER_NORM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* (input - mean) * rstd * weightOptional + biasOptional, over the last axes, whose extents are normalizedShape */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLayerNormGetWorkspaceSize(const aclTensor *input,
        const aclIntArray *normalizedShape, const aclTensor *weightOptional,
        const aclTensor *biasOptional, double eps, aclTensor *out, aclTensor *meanOutOptional,
        aclTensor *rstdOutOptional, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLayerNorm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* as aclnnLayerNorm; implMode, 0 to 2, changes nothing */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLayerNormWithImplModeGetWorkspaceSize(const aclTensor *input,
        const aclIntArray *normalizedShape, const aclTensor *weightOptional,
        const aclTensor *biasOptional, double eps, aclTensor *out, aclTensor *meanOutOptional,
        aclTensor *rstdOutOptional, int32_t implMode, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLayerNormWithImplMode(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
