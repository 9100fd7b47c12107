#ifndef OPSCOPE_ACLNN_ADD_LAYER_NORM_H
#define OPSCOPE_ACLNN_ADD_LAYER_NORM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the layer norm of xOut, which is x1 + x2 + biasOptional, over the axes of gamma */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAddLayerNormGetWorkspaceSize(const aclTensor *x1,
        const aclTensor *x2, const aclTensor *gamma, const aclTensor *beta,
        const aclTensor *biasOptional, double epsilon, bool additionalOutput, aclTensor *yOut,
        aclTensor *meanOut, aclTensor *rstdOut, aclTensor *xOut, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAddLayerNorm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
