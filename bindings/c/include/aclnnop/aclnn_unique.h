#ifndef OPSCOPE_ACLNN_UNIQUE_H
#define OPSCOPE_ACLNN_UNIQUE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the different elements of self in order, and the place among them of each element */
ACL_FUNC_VISIBILITY aclnnStatus aclnnUniqueGetWorkspaceSize(const aclTensor *self, bool sorted,
        bool returnInverse, aclTensor *valueOut, aclTensor *inverseOut, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnUnique(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
