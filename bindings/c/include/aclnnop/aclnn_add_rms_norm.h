#ifndef OPSCOPE_ACLNN_ADD_RMS_NORM_H
#define OPSCOPE_ACLNN_ADD_RMS_NORM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the RMS norm of xOut, which is x1 + x2 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAddRmsNormGetWorkspaceSize(const aclTensor *x1,
        const aclTensor *x2, const aclTensor *gamma, double epsilon, aclTensor *yOut,
        aclTensor *rstdOut, aclTensor *xOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAddRmsNorm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
