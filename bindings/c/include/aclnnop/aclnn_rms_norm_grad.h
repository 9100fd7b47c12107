#ifndef OPSCOPE_ACLNN_RMS_NORM_GRAD_H
#define OPSCOPE_ACLNN_RMS_NORM_GRAD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the gradients of aclnnRmsNorm */
ACL_FUNC_VISIBILITY aclnnStatus aclnnRmsNormGradGetWorkspaceSize(const aclTensor *dy,
        const aclTensor *x, const aclTensor *rstd, const aclTensor *gamma, aclTensor *dxOut,
        aclTensor *dgammaOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnRmsNormGrad(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
