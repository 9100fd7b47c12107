#ifndef OPSCOPE_ACLNN_EYE_H
#define OPSCOPE_ACLNN_EYE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 1 on the diagonal, 0 elsewhere */
ACL_FUNC_VISIBILITY aclnnStatus aclnnEyeGetWorkspaceSize(int64_t n, int64_t m, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnEye(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
