#ifndef OPSCOPE_ACLNN_GROUP_NORM_SILU_H
#define OPSCOPE_ACLNN_GROUP_NORM_SILU_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* silu(group norm of self) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGroupNormSiluGetWorkspaceSize(const aclTensor *self,
        const aclTensor *gamma, const aclTensor *beta, int64_t group, double eps, aclTensor *out,
        aclTensor *meanOut, aclTensor *rstdOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGroupNormSilu(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the group norm of self, and silu of it if activateSilu is true */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGroupNormSiluV2GetWorkspaceSize(const aclTensor *self,
        const aclTensor *gamma, const aclTensor *beta, int64_t group, double eps, bool activateSilu,
        aclTensor *out, aclTensor *meanOut, aclTensor *rstdOut, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGroupNormSiluV2(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
