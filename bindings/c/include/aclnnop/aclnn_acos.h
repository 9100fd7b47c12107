#ifndef OPSCOPE_ACLNN_ACOS_H
#define OPSCOPE_ACLNN_ACOS_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the angle of this cosine */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAcosGetWorkspaceSize(const aclTensor *input, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAcos(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the angle of this cosine */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAcosGetWorkspaceSize(aclTensor *inputRef,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAcos(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
