#ifndef OPSCOPE_ACLNN_AMINMAX_H
#define OPSCOPE_ACLNN_AMINMAX_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* both extremes along dim */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAminmaxGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *dim, bool keepDim, aclTensor *minOut, aclTensor *maxOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAminmax(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
