#ifndef OPSCOPE_ACLNN_RMS_NORM_H
#define OPSCOPE_ACLNN_RMS_NORM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x * rstd * gamma, with rstd of the mean of squares over the axes of gamma */
ACL_FUNC_VISIBILITY aclnnStatus aclnnRmsNormGetWorkspaceSize(const aclTensor *x,
        const aclTensor *gamma, double epsilon, aclTensor *yOut, aclTensor *rstdOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnRmsNorm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
