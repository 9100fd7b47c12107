#ifndef OPSCOPE_ACLNN_INSTANCE_NORM_H
#define OPSCOPE_ACLNN_INSTANCE_NORM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* (x - mean) / the root of variance + eps, times gamma, plus beta, for each sample and channel */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInstanceNormGetWorkspaceSize(const aclTensor *x,
        const aclTensor *gamma, const aclTensor *beta, const char *dataFormat, double eps,
        aclTensor *y, aclTensor *mean, aclTensor *variance, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInstanceNorm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
