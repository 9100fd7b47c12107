#ifndef OPSCOPE_ACLNN_FRAC_H
#define OPSCOPE_ACLNN_FRAC_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* what stands behind the point */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFracGetWorkspaceSize(const aclTensor *input, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFrac(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* what stands behind the point */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceFracGetWorkspaceSize(aclTensor *inputRef,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceFrac(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
