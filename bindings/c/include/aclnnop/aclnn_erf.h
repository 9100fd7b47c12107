#ifndef OPSCOPE_ACLNN_ERF_H
#define OPSCOPE_ACLNN_ERF_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the error function */
ACL_FUNC_VISIBILITY aclnnStatus aclnnErfGetWorkspaceSize(const aclTensor *self, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnErf(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the error function */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceErfGetWorkspaceSize(aclTensor *selfRef,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceErf(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
