#ifndef OPSCOPE_ACLNN_UNIQUE2_H
#define OPSCOPE_ACLNN_UNIQUE2_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the different elements of self in order, the place among them of each element, and how often they occur */
ACL_FUNC_VISIBILITY aclnnStatus aclnnUnique2GetWorkspaceSize(const aclTensor *self, bool sorted,
        bool returnInverse, bool returnCounts, aclTensor *valueOut, aclTensor *inverseOut,
        aclTensor *countsOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnUnique2(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
