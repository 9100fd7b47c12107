#ifndef OPSCOPE_ACLNN_GROUP_NORM_H
#define OPSCOPE_ACLNN_GROUP_NORM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* (self - meanOut) * rstdOut * gamma + beta, for each sample and group of channels */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGroupNormGetWorkspaceSize(const aclTensor *self,
        const aclTensor *gamma, const aclTensor *beta, int64_t N, int64_t C, int64_t HxW,
        int64_t group, double eps, aclTensor *out, aclTensor *meanOut, aclTensor *rstdOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGroupNorm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
