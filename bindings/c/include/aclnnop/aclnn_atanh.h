#ifndef OPSCOPE_ACLNN_ATANH_H
#define OPSCOPE_ACLNN_ATANH_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the inverse of the hyperbolic tangent */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAtanhGetWorkspaceSize(const aclTensor *input, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAtanh(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the inverse of the hyperbolic tangent */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAtanhGetWorkspaceSize(aclTensor *inputRef,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAtanh(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
