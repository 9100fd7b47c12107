#ifndef OPSCOPE_ACLNN_ASINH_H
#define OPSCOPE_ACLNN_ASINH_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the inverse of the hyperbolic sine */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAsinhGetWorkspaceSize(const aclTensor *input, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAsinh(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the inverse of the hyperbolic sine */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAsinhGetWorkspaceSize(aclTensor *inputRef,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAsinh(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
