#ifndef OPSCOPE_ACLNN_AMINMAX_ALL_H
#define OPSCOPE_ACLNN_AMINMAX_ALL_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* both extremes of all elements */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAminmaxAllGetWorkspaceSize(const aclTensor *self,
        aclTensor *minOut, aclTensor *maxOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAminmaxAll(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
