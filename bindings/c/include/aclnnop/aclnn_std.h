#ifndef OPSCOPE_ACLNN_STD_H
#define OPSCOPE_ACLNN_STD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the standard deviation over dim */
ACL_FUNC_VISIBILITY aclnnStatus aclnnStdGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *dim, int64_t correction, bool keepdim, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnStd(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
